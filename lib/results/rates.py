"""Statements about the rates that a person typed: every version of each, none ever overwritten."""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime
from uuid import uuid4

from duckdb import DuckDBPyConnection

from lib.errors import InputError
from lib.results.tables import now

TEXT_LENGTH = 200
LEAST_USD, MOST_USD = 1e-6, 1e6


@dataclass(frozen=True, kw_only=True)
class TypedRate:
    """The price of one GPU for an hour, as a person typed it.

    `price_per_gpu_hour` is in `currency`. One that is not USD needs what a unit of it was worth in
    US dollars, and the day of that. `withdrawn`: it holds no longer from `effective_date` on.
    """

    provider: str
    gpu: str
    term: str
    price_per_gpu_hour: float
    effective_date: date
    currency: str = "USD"
    usd_per_unit: float | None = None
    converted_on: date | None = None
    item: str = ""
    source: str = ""
    note: str = ""
    withdrawn: bool = False

    def __post_init__(self) -> None:
        for name in ("provider", "gpu", "term", "currency"):
            if not getattr(self, name).strip():
                raise InputError(f"rate: {name} is empty; type it")
        for name in ("provider", "gpu", "term", "currency", "item", "source", "note"):
            text = getattr(self, name)
            if len(text) > TEXT_LENGTH or not text.isprintable():
                raise InputError(f"rate: {name}: up to {TEXT_LENGTH} printable characters")
        for name in ("price_per_gpu_hour", "usd_per_unit"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(f"rate: {name} = {value:g}: a number above 0 is needed")
        if self.currency != "USD" and None in (self.usd_per_unit, self.converted_on):
            raise InputError(
                f"rate: currency {self.currency}: prices are in USD; type what 1 {self.currency} "
                "was worth in USD and the day of that"
            )
        if self.currency == "USD" and self.usd_per_unit not in (None, 1):
            raise InputError("rate: usd_per_unit: a price in USD is not converted; leave it empty")
        if not LEAST_USD <= self.usd_per_gpu_hour <= MOST_USD:
            raise InputError(
                f"rate: {self.usd_per_gpu_hour:g} $ per GPU-hour: {LEAST_USD:f} to {MOST_USD:,.0f} "
                "are allowed; check the price and its currency"
            )

    @property
    def usd_per_gpu_hour(self) -> float:
        """The price in US dollars, converted where it is not in them."""
        return self.price_per_gpu_hour * (self.usd_per_unit or 1.0)


@dataclass(frozen=True)
class StoredRate:
    """One version of a typed rate: versions count from 1, `at` is UTC without a zone."""

    rate_id: str
    version: int
    typed: TypedRate
    by: str
    at: datetime


_FIELDS = tuple(f.name for f in fields(TypedRate))
_COLUMNS = ("rate_id", "version", *_FIELDS, "saved_by", "saved_at")


def insert(
    cursor: DuckDBPyConnection, changes: Sequence[tuple[str | None, TypedRate]], by: str
) -> tuple[StoredRate, ...]:
    """Insert each rate as the next version of its rate_id; None begins a new rate.

    Raises InputError for a rate_id that is not there.
    """
    if len(by) > TEXT_LENGTH or (by and not by.isprintable()):
        raise InputError(f"rate: by: up to {TEXT_LENGTH} printable characters")
    stored = []
    for rate_id, typed in changes:
        row = StoredRate(rate_id or uuid4().hex, _next(cursor, rate_id), typed, by, now())
        values = [row.rate_id, row.version, *astuple(typed), by, row.at]
        marks = ", ".join("?" * len(values))
        cursor.execute(f"INSERT INTO rates ({', '.join(_COLUMNS)}) VALUES ({marks})", values)
        stored.append(row)
    return tuple(stored)


def _next(cursor: DuckDBPyConnection, rate_id: str | None) -> int:
    if rate_id is None:
        return 1
    query = "SELECT max(version) FROM rates WHERE rate_id = ?"
    (last,) = cursor.execute(query, [rate_id]).fetchone() or (None,)
    if last is None:
        raise InputError(f"rate {rate_id[:100]!r}: there is none; save it as a new one")
    return int(last) + 1


def select(cursor: DuckDBPyConnection) -> tuple[StoredRate, ...]:
    """Every version of every rate: the rates in the order of their first version."""
    rows = cursor.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM rates "
        "ORDER BY min(saved_at) OVER (PARTITION BY rate_id), rate_id, version"
    ).fetchall()
    last = len(_COLUMNS) - 2
    return tuple(
        StoredRate(
            row[0], row[1], TypedRate(**dict(zip(_FIELDS, row[2:last], strict=True))), *row[last:]
        )
        for row in rows
    )
