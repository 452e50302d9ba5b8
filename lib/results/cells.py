"""Tables of text from JSON and Parquet, and numbers from cells as people write them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lib.errors import FileTooLarge, InputError, UnreadableFile
from lib.results.parsing import MOST_ROWS, as_dict, as_list, counted
from lib.run import LoadKind

Rows = Sequence[Sequence[str]]

MOST_COLUMNS = 1000
LONGEST_NUMBER = 64
BATCH = 1000  # rows of a Parquet file at a time: a cell may be a long text, a thousand times over
FLATTENED_LEVELS = 4
ITEM = "[]."  # in a column's name: of an item of the list before it
MISSING = {"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "#n/a"}

_DOT = re.compile(r"[-+]?\d+\.\d+")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_DOT_GROUPS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_COMMA_GROUPS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_POINT_SURE = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3}){2,}(?:\.\d+)?|(?:,\d{3})+\.\d+)")
_COMMA_SURE = re.compile(r"[-+]?\d{1,3}(?:(?:\.\d{3}){2,}(?:,\d+)?|(?:\.\d{3})+,\d+)")
_LOAD = re.compile(r"(?:(batch) )?(.+?)(?: (concurrent|requests/s))?")
_KINDS = {
    "concurrent": LoadKind.CONCURRENCY,
    "requests/s": LoadKind.REQUEST_RATE,
    "batch": LoadKind.BATCH,
}
_DRESSING = re.compile(r"^[~≈$\s]+|(?:[x×%]|pct|percent|\s)+$")
_MARKS = {"x": "x", "×": "x", "%": "%", "$": "$", "p": "%"}  # `pct` and `percent` are %


@dataclass(frozen=True)
class Numbers:
    """How a table writes numbers: with a decimal comma or a decimal point."""

    decimal_comma: bool = False

    def parse(self, text: str) -> float | None:
        """A cell's number; None where it is missing (`is_missing`) or not one.

        `~1.0`, `$2.50` and `1.81x` are numbers; `inf` is infinite.
        """
        if len(text) > LONGEST_NUMBER:
            return None
        bare = _DRESSING.sub("", text.strip().casefold())
        if self.decimal_comma:
            bare = bare.replace(".", "") if _DOT_GROUPS.fullmatch(bare) else bare
            bare = bare.replace(",", ".")
        elif _COMMA_GROUPS.fullmatch(bare):
            bare = bare.replace(",", "")
        try:
            number = float(bare)
        except ValueError:
            return None
        return None if math.isnan(number) else number

    def dressing(self, text: str) -> set[str]:
        """What is written around a cell's number: `x` of a ratio, `%`, `$`."""
        found = " ".join(_DRESSING.findall(text[:LONGEST_NUMBER].strip().casefold()))
        return {mark for letter, mark in _MARKS.items() if letter in found}

    def parse_load(self, text: str) -> tuple[float | None, LoadKind | None]:
        """A load and its kind where the cell says it: `8 concurrent`, `batch 4`, `8`.

        `no limit` is infinite.
        """
        match = _LOAD.fullmatch(text.strip().casefold())
        if match is None:
            return None, None
        before, number, after = match.groups()
        value = None if self.dressing(number) else self.parse(number)
        value = math.inf if number == "no limit" else value
        return value, _KINDS.get(before or after or "")


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.strip().casefold() in MISSING


def numbers_of(name: str, cells: Iterable[tuple[int, str, str]], delimiter: str) -> Numbers:
    """The convention of a table's numeric cells, given as (line, header, text).

    Raises UnreadableFile where decimal commas and decimal points are mixed.
    """
    comma = dot = groups = None
    for cell in cells:
        text = _DRESSING.sub("", cell[2][:LONGEST_NUMBER].strip())
        if _POINT_SURE.fullmatch(text):
            dot = dot or cell
        elif _COMMA_SURE.fullmatch(text):
            comma = comma or cell
        elif _COMMA_GROUPS.fullmatch(text):
            groups = groups or cell
        elif _COMMA.fullmatch(text):
            comma = comma or cell
        elif _DOT.fullmatch(text) and not _DOT_GROUPS.fullmatch(text):
            dot = dot or cell
    if comma and dot:
        raise UnreadableFile(
            f"{name}: decimal comma in {comma[2]!r} (line {comma[0]}, column {comma[1]!r}) and "
            f"point in {dot[2]!r} (line {dot[0]}, column {dot[1]!r}); use one of them"
        )
    semicolons = delimiter == ";" and groups is not None and dot is None
    return Numbers(decimal_comma=comma is not None or semicolons)


def doubtful(
    cells: Iterable[tuple[int, str, str]], numbers: Numbers, delimiter: str
) -> list[tuple[str, str]]:
    """Columns whose mark is a decimal one or groups thousands: `1,500` is 1.5 or 1500.

    In text that commas separate a point is the decimal mark. Elsewhere a cell such as `12,5`
    anywhere in the table settles it. Given as a flag's code and text.
    """
    if delimiter == ",":
        return []
    columns: dict[str, str] = {}
    for _, header, cell in cells:
        text = _DRESSING.sub("", cell[:LONGEST_NUMBER].strip())
        groups = _COMMA_GROUPS.fullmatch(text) or _DOT_GROUPS.fullmatch(text)
        if (_COMMA.fullmatch(text) or _DOT.fullmatch(text)) and not groups:
            return []
        if _POINT_SURE.fullmatch(text) or _COMMA_SURE.fullmatch(text):
            return []
        if groups and not text.startswith(("0", "-0")):
            columns.setdefault(header, text)
    return [_doubt(header, text, numbers) for header, text in columns.items()]


def _doubt(header: str, text: str, numbers: Numbers) -> tuple[str, str]:
    value, mark = numbers.parse(text), "comma" if "," in text else "point"
    whole = float(re.sub(r"[.,]", "", text))
    decimal = value != whole
    other = whole if decimal else whole / 1000
    use = "decimal mark" if decimal else "mark of thousands"
    code = f"decimal_{mark}_assumed" if decimal else "thousands_assumed"
    said = f"column {header!r}: {text} is read as {value:g}, its {mark} as a {use}"
    return code, f"{said}; if {other:g} is meant, write it so"


def parquet_rows(name: str, data: bytes) -> Rows:
    """A Parquet file's header and rows as text. Raises UnreadableFile, FileTooLarge."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        count = file.metadata.num_rows
        if count > MOST_ROWS or file.metadata.num_columns > MOST_COLUMNS:
            raise FileTooLarge(
                f"{name}: {counted(count, 'row')}; at most {MOST_ROWS:,} rows and "
                f"{MOST_COLUMNS} columns are read, one row a run"
            )
        rows = [
            [_text(v) for v in row]
            for batch in file.iter_batches(BATCH)
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
    except (pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        said = " ".join(str(error).split())[:120]
        raise UnreadableFile(f"{name}: not a whole Parquet file ({said})") from None
    return [[str(n) for n in file.schema_arrow.names], *rows]


def json_rows(values: Sequence[object], chosen: Iterable[str] = (), most: int = MOST_ROWS) -> Rows:
    """JSON as a table, its leaves as columns: `outer.inner`, or `list[].inner` in a list.

    A list at the top, or several values, are rows. Else the items of the one list that `chosen`
    columns lie in are, beside what the enclosing object says; without one the object is one row.
    Four levels deep; other lists are left out. Raises InputError for columns of two lists.
    """
    inside = sorted({column.partition(ITEM)[0] for column in chosen if ITEM in column})
    if len(inside) > 1:
        raise InputError(
            f"columns of two lists ({inside[0]}, {inside[1]}): rows can come from one of them"
        )
    items, shared = _items(values, inside[0] if inside else None)
    flat = [shared | dict(_flatten(item)) for item in items[:most]]
    headers = list(dict.fromkeys(key for row in flat for key in row))[:MOST_COLUMNS]
    return [headers, *([row.get(h, "") for h in headers] for row in flat)]


def json_leaves(values: Sequence[object]) -> list[Rows]:
    """Every leaf that a person may choose: the table of the objects, then one of each list."""
    tables = [json_rows(values, most=50)]
    if len(values) == 1 and (outer := as_dict(values[0])):
        for key, inner in outer.items():
            if any(as_dict(v) for v in as_list(inner)):
                inside, _ = _items(values, key)
                rows = [dict(_flatten(item)) for item in inside[:50]]
                headers = list(dict.fromkeys(h for row in rows for h in row if ITEM in h))
                tables.append([headers, *([row.get(h, "") for h in headers] for row in rows)])
    return tables


def _items(
    values: Sequence[object], inside: str | None
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """The objects that are rows, and what an enclosing object says of all of them."""
    if len(values) == 1 and (outer := as_dict(values[0])):
        if inside is None:
            return [outer], {}
        items = [as_dict(v) for v in as_list(outer.get(inside))]
        return [{f"{inside}{ITEM[:-1]}": item} for item in items if item], dict(_flatten(outer))
    found = [as_dict(v) for value in values for v in (as_list(value) or [value])]
    return [row for row in found if row], {}


def _flatten(
    item: Mapping[str, object], prefix: str = "", level: int = 1
) -> Iterator[tuple[str, str]]:
    for key, value in item.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            if level < FLATTENED_LEVELS:
                yield from _flatten(value, f"{path}.", level + 1)
        elif not isinstance(value, list):
            yield path, _text(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:1000]
