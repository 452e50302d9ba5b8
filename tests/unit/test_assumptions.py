from dataclasses import replace

import pytest

from lib.assumptions import Input, table
from lib.errors import InputError
from lib.report.screening import presets

ALPHA = table()["alpha"]
GAMMA = table()["gamma"]
PRICE = table()["usd_per_gpu_hour"]


def test_the_screen_starts_on_a_published_row() -> None:
    start = tuple(table()[k].start for k in ("alpha", "gamma", "c"))
    first = presets()[0]
    assert start == (first.alpha, first.gamma, first.c)
    assert all("2211.17192" in table()[k].source for k in ("alpha", "gamma", "c"))


def test_facts_about_a_deployment_start_empty() -> None:
    for row in table().values():
        if row.page != "screen":
            assert row.start is None
            assert row.empty
    assert table()["step_ms"].start is None


@pytest.mark.parametrize("row", table().values(), ids=lambda r: r.key)
def test_every_row_says_what_it_is(row: Input) -> None:
    assert row.label
    assert row.help.endswith(".")
    assert row.page in ("screen", "price", "compare", "fleet")
    assert row.range_text
    assert row.parse(str(row.max)) == row.max
    assert row.parse(str(row.min)) == row.min


@pytest.mark.parametrize("text", ["0.8125", "0", "1", " 0.5 ", "5e-1"])
def test_a_link_spells_a_number(text: str) -> None:
    assert ALPHA.parse(text) == float(text)


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-0.1", "1.01", "1e400", "0,5", "1" * 500])
def test_a_bad_link_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(InputError, match="0 to 1") as caught:
        ALPHA.parse(text)
    assert "alpha" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_percent_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"80 % meant, 0\.8"):
        ALPHA.check(80)


@pytest.mark.parametrize("value", [0, 17, 2.5, True, None, "3"])
def test_gamma_is_a_whole_number(value: object) -> None:
    with pytest.raises(InputError, match="no drafting is S = 1"):
        GAMMA.check(value)


def test_gamma_is_stored_whole() -> None:
    assert isinstance(GAMMA.check(7.0), int)


def test_utilization_is_stored_as_a_fraction_and_shown_in_percent() -> None:
    row = table()["utilization"]
    assert row.range_text == "1 to 100 %"
    assert row.check(0.6) == 0.6
    with pytest.raises(InputError):
        row.check(60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "text"}, "kind"),
        ({"curve": "bent"}, "curve"),
        ({"min": 1.0, "max": 1.0}, "min below max"),
        ({"step": 0.0}, "step"),
        ({"start": 2.0}, "allowed is"),
        ({"source": ""}, "needs a source"),
        ({"low": None}, "both low and high"),
        ({"start": None, "empty": ""}, "what it blocks"),
    ],
)
def test_a_broken_row_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(ALPHA, **change)


def test_a_log_curve_starts_above_zero() -> None:
    with pytest.raises(InputError, match="curve"):
        replace(PRICE, min=0.0, curve="log")
