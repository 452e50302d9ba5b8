"""Numbers and names as text: for pages, figures, tables and documents alike."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.numbers import number

WORD_JOINER = "\u2060"
# Streamlit and GFM rewrite these in finished text, after all escaping: shortcodes, addresses and
# its own name. An invisible joiner after the first character leaves the text as typed.
REWRITTEN = re.compile(r":(?=[\w+-])|(?<=http|ttps)(?=:)|(?<=www)(?=\.)|@", re.IGNORECASE)
ARROWS = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")
MARKUP = re.compile(r"[!#$&*<>\[\\\]`{|}~@]|:(?=\S)|(?<![^\W_])_|_(?![^\W_])")
BLOCK = re.compile(r"^(\s*\d*)([-+=.)])")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

LONGEST_LABEL = 20  # characters of an arm's name beside its curve; the page and hover have it all


def significant(value: float, digits: int = 3) -> str:
    """`digits` significant figures, thousands separated, no exponent: 3.16, 0.0123, 12,300."""
    if value == 0 or not math.isfinite(value):
        return number(value)
    places = digits - 1 - math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{round(value, places):,.{max(places, 0)}f}"


def money(usd: float) -> str:
    """`$12.35`, `$1,234`; three significant figures under $1."""
    sign, size = ("-", -usd) if usd < 0 else ("", usd)
    if 0 < size < 0.9995:
        return f"{sign}${significant(size)}"
    return f"{sign}${size:,.2f}" if size < 999.995 else f"{sign}${size:,.0f}"


def tokens(count: float) -> str:
    """A count of tokens to three figures: `850`, `12,300`, `2.28 million`, `1.55 billion`."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if abs(count) >= 0.9995 * size:
            return f"{significant(count / size)} {word}"
    return significant(count)


def multiplier(value: float, low: float | None = None, high: float | None = None) -> str:
    """`1.58×`, with its interval `1.58× (1.51–1.66)`."""
    if low is None or high is None:
        return f"{value:.2f}×"
    return f"{value:.2f}× ({low:.2f}–{high:.2f})"


def percent(fraction: float, digits: int = 0) -> str:
    """`44 %`, from a fraction."""
    return f"{fraction * 100:.{digits}f} %"


def load(value: float) -> str:
    """An offered load: `8`, `0.5`, or `no limit` for an infinite request rate."""
    return "no limit" if math.isinf(value) else number(value)


def between(low: float, high: float, unit: str) -> str:
    """`between 16 and 32 concurrent`."""
    return f"between {load(low)} and {load(high)} {unit}".rstrip()


def estimate(value: Estimate) -> str:
    """An estimate in one line, by its unit: money when it begins with $, a multiplier for ×.

    A plain number that a person typed or a publication printed is shown as it stands, and so is
    a count of GPUs.
    """
    if value.unit == "GPUs":
        return f"{number(value.value)} GPU{'' if value.value == 1 else 's'}"
    if not value.unit and value.basis in (Basis.ASSUMED, Basis.PUBLISHED) and value.low is None:
        return number(value.value)
    if value.unit == "×":
        return multiplier(value.value, value.low, value.high)
    priced = value.unit.startswith("$")
    unit = value.unit[1:] if priced else f" {value.unit}".rstrip()

    def one(x: float) -> str:
        return money(x) if priced else significant(x)

    text = one(value.value)
    if value.low is not None and value.high is not None:
        text += f" ({one(value.low)}–{one(value.high)})"
    return text + unit


def plain_md(text: str) -> str:
    """Markdown that shows `text` as typed: no markup, HTML, directive, formula, link or image.

    Line breaks and other control characters become spaces.
    """
    flat = re.sub(r"[\x00-\x20\x7f-\x9f\u2028\u2029]", " ", text)
    flat = ARROWS.sub(lambda m: m[0][0] + WORD_JOINER + m[0][1:], flat)
    flat = REWRITTEN.sub(lambda m: m[0] + WORD_JOINER, flat)
    flat = MARKUP.sub(lambda m: f"&#{ord(m[0])};", flat)
    return BLOCK.sub(lambda m: f"{m[1]}&#{ord(m[2])};", flat)


def plain_plotly(text: str) -> str:
    """A plotly label that shows `text` as typed: no tag, entity, template or formula."""
    flat = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    return re.sub(r"[&<>$%{}]", lambda m: f"&#{ord(m[0])};", flat)


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Each name as drawn: a long one keeps its ends, the K with them, if no two then look alike.

    A name that holds a character reference is data that was escaped, and is left whole.
    """
    half = (LONGEST_LABEL - 1) // 2
    drawn = {
        n: n if len(n) <= LONGEST_LABEL or "&" in n else f"{n[:half]}…{n[-half:]}" for n in names
    }
    return drawn if len(set(drawn.values())) == len(drawn) else {n: n for n in names}


def plain_html(text: str) -> str:
    """HTML or SVG that shows `text` as typed: no markup, no control or direction mark."""
    flat = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    flat = re.sub(r"[\u202a-\u202e\u2066-\u2069]", "", flat)
    return escape(flat.encode("utf-8", "replace").decode())


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet runs: text that would start a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def csv_text(columns: Mapping[str, Sequence[object] | Iterable[object]]) -> str:
    """CSV of equally long columns under their names."""
    values = [list(c) for c in columns.values()]
    if len({len(v) for v in values}) > 1:
        raise InputError("csv: columns of one length are needed")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([csv_cell(name) for name in columns])
    writer.writerows([csv_cell(cell) for cell in row] for row in zip(*values, strict=True))
    return out.getvalue()
