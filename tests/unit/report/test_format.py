import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.report import format as text

HOSTILE = (
    ":red[x] ![i](http://192.0.2.9/p.png) [l](javascript:alert(1)) $x$ "
    "<a href=//e.example>z</a> <img src=x onerror=alert(1)>"
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.75, "0.75"),
        (7.0, "7"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "0.0000001"),
        (2.5e13, "25000000000000"),
        (-0.5, "-0.5"),
        (math.inf, "∞"),
        (math.nan, "not a number"),
    ],
)
def test_number(value: float, expected: str) -> None:
    assert text.number(value) == expected


@given(st.floats(1e-9, 1e15))
def test_number_reads_back(value: float) -> None:
    written = text.number(value)
    assert "e" not in written
    assert float(written) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (3.1575, "3.16"),
        (0.012345, "0.0123"),
        (9.996, "10.0"),
        (12_345.6, "12,300"),
        (0.9999, "1.00"),
        (-41.26, "-41.3"),
    ],
)
def test_significant(value: float, expected: str) -> None:
    assert text.significant(value) == expected


@pytest.mark.parametrize(
    ("usd", "expected"),
    [
        (12.3457, "$12.35"),
        (0.58, "$0.580"),
        (0.0123456, "$0.0123"),
        (0.9996, "$1.00"),
        (6.856, "$6.86"),
        (1234.5, "$1,234"),
        (30_417, "$30,417"),
        (-0.5, "-$0.500"),
        (-12.345, "-$12.35"),
        (0, "$0.00"),
        (999.996, "$1,000"),
    ],
)
def test_money(usd: float, expected: str) -> None:
    assert text.money(usd) == expected


def test_small_phrases() -> None:
    assert text.multiplier(1.584) == "1.58×"
    assert text.multiplier(1.584, 1.51, 1.66) == "1.58× (1.51–1.66)"
    assert text.percent(0.444) == "44 %"
    assert text.percent(-0.1234, 1) == "-12.3 %"
    assert text.load(8.0) == "8"
    assert text.load(0.5) == "0.5"
    assert text.load(math.inf) == "no limit"
    assert text.between(16, 32, "concurrent") == "between 16 and 32 concurrent"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Estimate(3.1575, "×", Basis.THEOREM, "s", 2.1, 4.1), "3.16× (2.10–4.10)"),
        (Estimate(12.345, "$/1M output tokens", Basis.MEASURED, "s"), "$12.35/1M output tokens"),
        (Estimate(6.5, "$", Basis.MEASURED, "s", 6.0, 7.0), "$6.50 ($6.00–$7.00)"),
        (Estimate(24.66, "ms", Basis.DERIVED, "s"), "24.7 ms"),
        (Estimate(0.8125, "", Basis.ASSUMED, "s"), "0.8125"),
        (Estimate(7, "", Basis.PUBLISHED, "s"), "7"),
        (Estimate(0.8125, "", Basis.MEASURED, "s"), "0.812"),
    ],
)
def test_estimate(value: Estimate, expected: str) -> None:
    assert text.estimate(value) == expected


def test_markdown_has_no_active_character_left() -> None:
    shown = text.plain_md(HOSTILE)
    assert not re.search(r"[\[\]!<>$*_`]|:\S", shown)
    assert "http://" not in shown


@given(st.text())
def test_markdown_decodes_to_what_was_typed(typed: str) -> None:
    shown = re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text.plain_md(typed))
    control = r"[\x00-\x20\x7f-\x9f\u2028\u2029]"
    assert shown.replace(text.WORD_JOINER, "") == re.sub(control, " ", typed).replace(
        text.WORD_JOINER, ""
    )


@pytest.mark.parametrize("start", ["# h", "- i", "+ i", "1. i", "1) i", "> q", "===", "--- "])
def test_markdown_starts_no_block(start: str) -> None:
    assert not re.match(r"\s*([-+=#>]|\d+[.)])", text.plain_md(start))


def test_ordinary_names_stay_readable() -> None:
    name = "Qwen/Qwen2.5-7B-Instruct (fp8, k=4)"
    assert text.plain_md(name) == name


def test_plotly_label_has_no_tag_entity_template_or_formula() -> None:
    shown = text.plain_plotly("<b>x</b> &amp; %{y} $z$\n")
    assert not re.search(r"[<>$%{}]|&(?!#\d+;)", shown)
    decoded = re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), shown)
    assert decoded == "<b>x</b> &amp; %{y} $z$ "


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_csv_text_runs_nowhere(cell: str) -> None:
    assert text.csv_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", [-1.5, -1, 0, None, "plain", "", "a=b"])
def test_csv_leaves_the_rest(cell: object) -> None:
    assert text.csv_cell(cell) is cell


def test_csv_text() -> None:
    columns = {"=name": ["=evil", 'a,"b"'], "value": np.array([-1.5, 0.1])}
    assert text.csv_text(columns) == '\'=name,value\n\'=evil,-1.5\n"a,""b""",0.1\n'


def test_csv_columns_are_of_one_length() -> None:
    with pytest.raises(InputError, match="one length"):
        text.csv_text({"a": [1], "b": [1, 2]})


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("\"'", "&quot;&#x27;"),
        ("a\nb\x00c\u2028d", "a b c d"),
        ("file\u202etxt.exe", "filetxt.exe"),
        ("\ud800", "?"),
        ("τ = 1.81, 5 % ≤ p", "τ = 1.81, 5 % ≤ p"),
    ],
)
def test_plain_html_shows_text_as_typed(typed: str, shown: str) -> None:
    assert text.plain_html(typed) == shown


@pytest.mark.parametrize(("count", "shown"), [(1, "1 GPU"), (8, "8 GPUs"), (128, "128 GPUs")])
def test_gpus_are_counted_whole(count: float, shown: str) -> None:
    assert text.estimate(Estimate(count, "GPUs", Basis.ASSUMED, "as typed")) == shown
