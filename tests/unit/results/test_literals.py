import orjson
import pytest

from lib.results.tools.literals import opened


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("{'method': 'mtp', 'on': True, 'x': None}", {"method": "mtp", "on": True, "x": None}),
        ("[0.5, nan, None]", [0.5, None, None]),
        ("[NaN, 1]", [None, 1]),
        (" [1]", [1]),
        ("[(1, 2), {3}]", [[1, 2], [3]]),
        ("{1: b'x'}", {"1": "b'x'"}),
        ("text", "text"),
        ("12", "12"),
        ("", ""),
        ("[broken", "[broken"),
        ("{f()}", "{f()}"),
    ],
)
def test_cells(cell: str, value: object) -> None:
    assert opened(cell) == value


@pytest.mark.parametrize(
    "cell",
    [
        "[" * 300 + "]" * 300,
        "[NaN," + "[" * 300 + "]" * 301,
        "[" * 100_000,
        "[1j, " + "9" * 5000 + "]",
        "[" + "9" * 400 + ", nan]",
        "[" + "1," * 600_000 + "None]",
    ],
)
def test_cells_that_would_hurt_stay_texts_or_can_be_written(cell: str) -> None:
    value = opened(cell)
    assert value == cell or orjson.dumps(value)
