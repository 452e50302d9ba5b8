import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import FileTooLarge, UnreadableFile
from lib.results import parsing
from lib.results.parsing import as_count, as_number, as_text, decode, parse_json, parse_rows

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_plain_object() -> None:
    assert parse_json("f", b'{"a": 1}').values == ({"a": 1},)


@pytest.mark.parametrize(
    ("data", "values", "nonfinite"),
    [
        (b'\xef\xbb\xbf{"a": 1}', ({"a": 1},), 0),
        (b'{"a": NaN, "b": -Infinity}', ({"a": None, "b": "-Infinity"},), 2),
        (b'{"a": 1}\n{"a": 2}\n', ({"a": 1}, {"a": 2}), 0),
        (b'{\n "a": 1\n}\n{\n "a": NaN\n}', ({"a": 1}, {"a": None}), 1),
        (b'{"a": 1}\n\n{"a": Infinity}\n', ({"a": 1}, {"a": "Infinity"}), 1),
        (b'{"a": 1, "a": 2}', ({"a": 2},), 0),
        (b'{"a": "\\ud800x"}', ({"a": "\ufffdx"},), 0),
        (
            b'{"a": "\\ud83d\\ude00", "b": NaN, "c": 1e999}',
            ({"a": "😀", "b": None, "c": float("inf")},),
            1,
        ),
        (b'{"a": "line\nbreak"}', ({"a": "line\nbreak"},), 0),
    ],
)
def test_json_as_tools_write_it(data: bytes, values: tuple[object, ...], nonfinite: int) -> None:
    documents = parse_json("f", data)
    assert documents.values == values
    assert documents.nonfinite == nonfinite


def test_literals_inside_strings_stay() -> None:
    data = rb'{"a": "x: NaN, \\", "b": "\"Infinity", "c": [NaN, -Infinity]}'
    documents = parse_json("f", data)
    assert documents.values == ({"a": "x: NaN, \\", "b": '"Infinity', "c": [None, "-Infinity"]},)
    assert documents.nonfinite == 2


@given(json_values, json_values)
def test_nonfinite_literals_beside_any_value(first: object, second: object) -> None:
    text = json.dumps([first, "NaN", float("nan"), second, float("inf")])
    (value,) = parse_json("f", text.encode("utf-8", "surrogatepass")).values
    assert isinstance(value, list)
    assert value[1:3] == ["NaN", None]
    assert value[4] == "Infinity"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"a": [1, 2', "truncated JSON, it breaks off in the value at line 1, column 12"),
        (b'{"a": "xy', "truncated"),
        (b'{"a": 1}\n{"b":', "after 1 whole object;"),
        (b'{"a": 1,}', "not valid JSON at line 1"),
        (b"{a: 1}", "not valid JSON at line 1, column 2"),
        (b'{"a": 1} x', "not valid JSON at line 1, column 10"),
        (b"[" * 1000 + b"]" * 1000, "nested deeper than 200 levels"),
        (b"[" * 100_000, "nested deeper than 200 levels"),
        (b"[" * 201 + b"]" * 201, "nested deeper than 200 levels"),
    ],
)
def test_broken_json_says_where(data: bytes, says: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        parse_json("f.json", data)
    assert says in str(caught.value)
    assert str(caught.value).startswith("f.json: ")
    assert "\n" not in str(caught.value)


def test_depth_at_the_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_json("f", b"[" * 200 + b"]" * 200)
    monkeypatch.setenv("DRAFTWORTH_JSON_DEPTH", "3")
    parse_json("f", b'{"a": [{"b": 1}]}')
    with pytest.raises(UnreadableFile, match="deeper than 3"):
        parse_json("f", b'{"a": [{"b": []}]}')


def test_huge_numbers_become_floats() -> None:
    (value,) = parse_json("f", b"[" + b"9" * 400 + b", " + b"9" * 30 + b"]").values
    assert value == [float("inf"), 1e30]


@pytest.mark.parametrize(
    ("data", "text", "guessed"),
    [
        ("dé".encode(), "dé", False),
        ("dé".encode("utf-16"), "dé", False),
        ("dé".encode("utf-8-sig"), "dé", False),
        ("Durée (s);Débit".encode("cp1252"), "Durée (s);Débit", True),
    ],
)
def test_encodings(data: bytes, text: str, guessed: bool) -> None:
    assert decode("f", data) == (text, guessed)


@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\x89PNG\r\n\x1a\n\x00\x00", b"a\x00b\x00", b"\xff\xfea"]
)
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="UTF-8"):
        decode("f", data)


@pytest.mark.parametrize(
    ("text", "rows", "delimiter"),
    [
        ("a,b\n1,2\n\n3,4\n", [["a", "b"], ["1", "2"], ["3", "4"]], ","),
        ("a;b\n1,5;2,5\n", [["a", "b"], ["1,5", "2,5"]], ";"),
        ("a\tb\n1\t2", [["a", "b"], ["1", "2"]], "\t"),
        ("sep=;\na;b\n1;2", [["a", "b"], ["1", "2"]], ";"),
        ('a,b\n"x\ny",2', [["a", "b"], ["x\ny", "2"]], ","),
    ],
)
def test_rows(text: str, rows: list[list[str]], delimiter: str) -> None:
    assert parse_rows("f", text) == (rows, delimiter)


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MOST_ROWS", 10)
    with pytest.raises(FileTooLarge, match="more than 10 rows"):
        parse_rows("f", "a,b\n" + "1,2\n" * 11)


def test_a_giant_cell_is_one_line_of_error() -> None:
    with pytest.raises(UnreadableFile, match="is not CSV"):
        parse_rows("f", "a,b\n1," + "x" * 2**25)


def test_values() -> None:
    assert as_number("2.5") == 2.5
    assert [as_number(v) for v in (True, None, "x", [], float("nan"), "inf", 10**400)] == [None] * 7
    assert as_count("8.0") == 8
    assert as_count(8.5) is None
    assert as_text("  a\0b ") == "ab"
    assert [as_text(v) for v in ("", " ", None, 1.5, True, [])] == [None] * 6
