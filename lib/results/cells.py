"""Tables of text from JSON and Parquet, and numbers from cells as people write them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lib.errors import FileTooLarge, UnreadableFile
from lib.results.parsing import MOST_ROWS, as_dict, as_list, counted
from lib.run import LoadKind

Rows = Sequence[Sequence[str]]

MOST_COLUMNS = 1000
FLATTENED_LEVELS = 4
MISSING = {"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "#n/a"}

_DOT = re.compile(r"[-+]?\d+\.\d+")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_DOT_GROUPS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_COMMA_GROUPS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LOAD = re.compile(r"(?:(batch) )?(.+?)(?: (concurrent|requests/s))?")
_KINDS = {
    "concurrent": LoadKind.CONCURRENCY,
    "requests/s": LoadKind.REQUEST_RATE,
    "batch": LoadKind.BATCH,
}
_DRESSING = re.compile(r"^[~≈$\s]+|(?:[x×%]|\s)+$")


@dataclass(frozen=True)
class Numbers:
    """How a table writes numbers: with a decimal comma or a decimal point."""

    decimal_comma: bool = False

    def parse(self, text: str) -> float | None:
        """A cell's number; None where it is missing (`is_missing`) or not one.

        `~1.0`, `$2.50` and `1.81x` are numbers; `inf` is infinite.
        """
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

    def parse_load(self, text: str) -> tuple[float | None, LoadKind | None]:
        """A load and its kind where the cell says it: `8 concurrent`, `batch 4`, `8`.

        `no limit` is infinite.
        """
        match = _LOAD.fullmatch(text.strip().casefold())
        if match is None:
            return None, None
        before, number, after = match.groups()
        value = math.inf if number == "no limit" else self.parse(number)
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
        text = _DRESSING.sub("", cell[2].strip())
        if _COMMA_GROUPS.fullmatch(text):
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
        table = file.read()
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        said = " ".join(str(error).split())[:120]
        raise UnreadableFile(f"{name}: not a whole Parquet file ({said})") from None
    rows = [[_text(v) for v in row] for row in zip(*columns, strict=True)]
    return [[str(n) for n in table.column_names], *rows]


def json_rows(values: Sequence[object], most: int = MOST_ROWS) -> Rows:
    """JSON as a table: a list of objects, an object that holds one, or one object as one row.

    Nested objects become columns `outer.inner`, four levels deep; lists are left out.
    """
    items, shared = _items(values)
    flat = [dict(_flatten(shared)) | dict(_flatten(item)) for item in items[:most]]
    headers = list(dict.fromkeys(key for row in flat for key in row))[:MOST_COLUMNS]
    return [headers, *([row.get(h, "") for h in headers] for row in flat)]


def _items(values: Sequence[object]) -> tuple[list[dict[str, object]], dict[str, object]]:
    """The objects that are rows, and what an enclosing object says of all of them."""
    if len(values) == 1 and (outer := as_dict(values[0])):
        lists = {k: [as_dict(v) for v in as_list(inner)] for k, inner in outer.items()}
        longest = max(lists, key=lambda k: sum(map(bool, lists[k])))
        rows = [row for row in lists[longest] if row]
        return (rows, {k: v for k, v in outer.items() if k != longest}) if rows else ([outer], {})
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
