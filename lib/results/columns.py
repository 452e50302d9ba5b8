"""A run as a row: its columns, Arrow tables of runs and requests, values from text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa

from lib.errors import InputError
from lib.run import LoadKind, Run, SpecState


def _kind(hint: Any) -> type:
    """The type behind `X | None` and `tuple[int, ...]`."""
    if isinstance(hint, UnionType):
        (hint,) = (a for a in get_args(hint) if a is not type(None))
    return get_origin(hint) or hint


KINDS: dict[str, type] = {
    f.name: _kind(get_type_hints(Run)[f.name]) for f in fields(Run)
}  # field → str, int, float, bool, datetime, tuple (of int), SpecState, LoadKind

_CONVERTED = {name: kind for name, kind in KINDS.items() if kind in (tuple, SpecState, LoadKind)}

ARROW_TYPES: dict[type, pa.DataType] = {
    str: pa.string(),
    SpecState: pa.string(),
    LoadKind: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us"),
    tuple: pa.list_(pa.int64()),
}

REQUEST_COLUMNS: dict[str, pa.DataType] = {
    "arrival_s": pa.float64(),
    "input_tokens": pa.int64(),
    "output_tokens": pa.int64(),
    "ttft_ms": pa.float64(),
    "tpot_ms": pa.float64(),
    "e2e_ms": pa.float64(),
    "ok": pa.bool_(),
    "drafts": pa.int64(),
    "draft_tokens": pa.int64(),
    "accepted_tokens": pa.int64(),
    "rejected_rounds": pa.int64(),
}


def runs_to_table(runs: Sequence[Run]) -> pa.Table:
    """One row a run, one column a field. `started_at` is in UTC where the zone is known.

    Raises InputError where a value does not fit its column, such as a seed of 2^63 or more.
    """
    return pa.table({name: _column(name, [getattr(r, name) for r in runs]) for name in KINDS})


def runs_from_columns(columns: Sequence[Sequence[Any]]) -> list[Run]:
    """The runs that columns of the store stand for, in the order of KINDS.

    The store holds only what `Run` has validated; doing it again would take ten times as long as
    the rest of a study's query.
    """
    by_name = dict(zip(KINDS, columns, strict=True))
    for name, kind in _CONVERTED.items():
        by_name[name] = [None if v is None else kind(v) for v in by_name[name]]
    by_name["started_at"] = [
        at.replace(tzinfo=UTC) if known and at is not None else at
        for at, known in zip(by_name["started_at"], by_name["zone_known"], strict=True)
    ]
    names = tuple(KINDS)
    return [_run(dict(zip(names, row, strict=True))) for row in zip(*by_name.values(), strict=True)]


def _run(values: dict[str, Any]) -> Run:
    run = object.__new__(Run)
    object.__setattr__(run, "__dict__", values)
    return run


def requests_to_table(requests: Mapping[str, pa.Table], keys: Mapping[str, int]) -> pa.Table:
    """The requests of the runs that have a request_key, in the order of `keys`, with that key."""
    schema = pa.schema({"request_key": pa.int64(), **REQUEST_COLUMNS})
    parts = []
    for run_id, key in keys.items():
        table = requests[run_id]
        rows = len(table)
        arrays: list[Any] = [pa.repeat(pa.scalar(key, pa.int64()), rows)]
        for name, kind in REQUEST_COLUMNS.items():
            known = name in table.column_names
            arrays.append(table.column(name).cast(kind) if known else pa.nulls(rows, kind))
        parts.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def checked(name: str, value: object) -> object:
    """The value as the field's own type; blank text and None mean not stated.

    Raises InputError that names the field and what it takes.
    """
    kind = KINDS[name]
    if value is None or (isinstance(value, str) and not value.strip()):
        return SpecState.UNKNOWN if kind is SpecState else None
    if kind in (SpecState, LoadKind):
        allowed = [str(choice) for choice in kind]
        if value not in allowed:
            raise InputError(f"{name} = {value!r}: one of {', '.join(allowed)}")
        return kind(value)
    if kind is str and isinstance(value, str):
        return value
    if kind is bool and isinstance(value, bool):
        return value
    if kind is float and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise InputError(f"{name} = {value!r}: {_TAKES[kind]} is allowed")


def from_text(name: str, text: str) -> object:
    """A field's value from a cell of text; an empty cell is not stated.

    Raises InputError that names the field and what it takes.
    """
    kind = KINDS[name]
    if not text or kind not in _PARSE:
        return checked(name, text)
    try:
        return checked(name, _PARSE[kind](text))
    except (ValueError, KeyError):
        raise InputError(f"{name} = {text!r}: {_TAKES[kind]} is allowed") from None


_TAKES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    datetime: "no editing",
    tuple: "no editing",
}
_PARSE: dict[type, Callable[[str], object]] = {
    int: int,
    float: float,
    bool: {"true": True, "false": False}.__getitem__,
}


def _column(name: str, values: list[Any]) -> pa.Array:
    kind = KINDS[name]
    try:
        if kind is datetime:
            values = [_utc(v) for v in values]
        elif kind is float:
            values = [v if v is None else float(v) for v in values]
        return pa.array(values, ARROW_TYPES[kind])
    except (pa.ArrowException, OverflowError, UnicodeError):
        raise InputError(
            f"{name}: a value of these runs cannot be stored; {_STORED[kind]} is allowed"
        ) from None


_STORED = {
    **_TAKES,
    str: "text in valid Unicode",
    int: "a whole number below 2^63",
    tuple: "a list of whole numbers below 2^63",
    datetime: "a date of the years 1 to 9999",
}


def _utc(at: datetime | None) -> datetime | None:
    return at.astimezone(UTC).replace(tzinfo=None) if at and at.tzinfo else at
