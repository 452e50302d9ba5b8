"""The price book: what a GPU costs an hour, from whom, on which terms, since when, on whose word.

Published rates ship in data/rates.csv and are read-only. A person's own come from the store with
every version that they ever had, so that what was priced last quarter can be priced again.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.results.rates import StoredRate
from lib.settings import DATA

TERMS = ("on-demand", "reserved", "spot", "marketplace", "index", "ownership model", "other")
STALE_DAYS = 90
PRICE_MISSING = "price missing"


@dataclass(frozen=True, kw_only=True)
class GpuRate:
    """$ for one GPU an hour: `usd_per_gpu_hour` is of one GPU, whatever the instance holds.

    `original` says how it follows from the price that was published or typed. A typed rate has a
    `version` from 1 on; `withdrawn` ends it on its effective date.
    """

    id: str
    provider: str
    gpu: str
    term: str
    usd_per_gpu_hour: float
    effective_date: date
    source: str
    basis: Basis
    item: str = ""
    conditions: str = ""
    original: str = ""
    confidence: str = ""
    note: str = ""
    version: int = 0
    withdrawn: bool = False
    by: str = ""
    saved_at: datetime | None = None

    @property
    def name(self) -> str:
        """`AWS p5en.48xlarge, H200, on-demand`."""
        item = "" if self.item in ("", self.gpu) else f" {self.item}"
        return f"{self.provider}{item}, {self.gpu}, {self.conditions or self.term}"

    @property
    def as_typed(self) -> float:
        """$ per GPU-hour as the input holds it: to 6 digits."""
        return float(f"{self.usd_per_gpu_hour:.6g}")

    def age_days(self, on: date) -> int:
        """Days from the effective date to `on`."""
        return (on - self.effective_date).days

    def stale(self, on: date) -> bool:
        """Whether the rate is older than 90 days at the pricing date."""
        return self.age_days(on) > STALE_DAYS

    def stale_text(self, on: date) -> str:
        """`stale: 191 days old on 2026-12-01`; empty while it is not."""
        return f"stale: {self.age_days(on)} days old on {on}" if self.stale(on) else ""

    def cited(self, on: date) -> str:
        """Provider, GPU, term, effective date and source in one line, as a figure carries it."""
        version = f", version {self.version}" if self.version else ""
        parts = [f"{self.name}, effective {self.effective_date}{version}", self.source]
        return "; ".join(p for p in (*parts, self.stale_text(on)) if p)

    def estimate(self, on: date) -> Estimate:
        """The rate with its basis: published, or assumed where a person typed it."""
        unit = "$ per GPU-hour"
        return Estimate(self.usd_per_gpu_hour, unit, self.basis, self.cited(on), how=self.original)


@dataclass(frozen=True)
class PriceBook:
    """Published rates, and every version of a person's own."""

    published: tuple[GpuRate, ...]
    own: tuple[GpuRate, ...] = ()

    def in_force(self, on: date) -> tuple[GpuRate, ...]:
        """The rates that hold on a day, a person's own first.

        Of a published price its latest date up to then; of an own rate the latest version that
        is effective by then.
        """
        latest: dict[tuple[str, ...], GpuRate] = {}
        for rate in (*self.own, *self.published):
            if rate.effective_date > on:
                continue
            key = _series(rate)
            held = latest.get(key)
            if held is None or _order(rate) > _order(held):
                latest[key] = rate
        return tuple(r for r in latest.values() if not r.withdrawn)

    def find(
        self,
        on: date,
        *,
        gpu: str | None = None,
        provider: str | None = None,
        term: str | None = None,
    ) -> tuple[GpuRate, ...]:
        """The rates in force on a day that match, own first, then the cheapest first.

        Text is compared without case. None found means that the price is missing: never zero.
        """
        wanted = {"gpu": gpu, "provider": provider, "term": term}
        asked = {k: v.casefold() for k, v in wanted.items() if v is not None}
        found = [
            r
            for r in self.in_force(on)
            if all(getattr(r, k).casefold() == v for k, v in asked.items())
        ]
        return tuple(sorted(found, key=lambda r: (not r.version, r.usd_per_gpu_hour, r.name)))

    def by_id(self, rate_id: str) -> GpuRate | None:
        """The rate of that id, of any date and version."""
        return next((r for r in (*self.own, *self.published) if r.id == rate_id), None)

    def not_yet(self, on: date) -> int:
        """How many rates are effective only after that day."""
        return sum(r.effective_date > on for r in (*self.own, *self.published))


def book(stored: Sequence[StoredRate] = ()) -> PriceBook:
    """The price book with a person's own rates, as they are stored."""
    return PriceBook(_published(), tuple(_own(row) for row in stored))


def change(old_usd: float, new_usd: float) -> float:
    """Fraction by which a price moved: new / old - 1; every $ per 1M moves by the same."""
    if not old_usd > 0:
        raise InputError(f"old_usd = {old_usd:g}: a number above 0 is needed")
    return new_usd / old_usd - 1.0


def listed_gpu(recorded: str, listed: Iterable[str]) -> str | None:
    """The GPU of the book that a run records: the longest name whose words it all has.

    `NVIDIA A100-SXM4-80GB` is `A100 80GB`, `NVIDIA L4` is `L4`.
    """
    words = set(_words(recorded))
    fits = [name for name in listed if set(_words(name)) <= words]
    return max(fits, key=lambda name: (len(_words(name)), len(name)), default=None)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.casefold())


def _series(rate: GpuRate) -> tuple[str, ...]:
    if rate.version:
        return (rate.id.partition("-")[0],)
    return (rate.provider, rate.item, rate.gpu, rate.term, rate.conditions, rate.note)


def _order(rate: GpuRate) -> tuple[int, date]:
    return (rate.version, rate.effective_date)


def _own(row: StoredRate) -> GpuRate:
    typed = row.typed
    usd, price = typed.usd_per_gpu_hour, f"{typed.price_per_gpu_hour:g} {typed.currency}"
    original = f"{price} per GPU-hour, as typed"
    if typed.usd_per_unit is not None:
        worth = f"{typed.usd_per_unit:g} $ per {typed.currency}"
        original = f"{price} per GPU-hour × {worth} on {typed.converted_on} = ${usd:.6g}, as typed"
    return GpuRate(
        id=f"{row.rate_id}-{row.version}",
        provider=typed.provider,
        gpu=typed.gpu,
        term=typed.term,
        usd_per_gpu_hour=usd,
        effective_date=typed.effective_date,
        source=typed.source or (f"typed by {row.by}" if row.by else "typed"),
        basis=Basis.ASSUMED,
        item=typed.item,
        original=original,
        note=typed.note,
        version=row.version,
        withdrawn=typed.withdrawn,
        by=row.by,
        saved_at=row.at,
    )


@cache
def _published() -> tuple[GpuRate, ...]:
    with (DATA / "rates.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_row(record) for record in csv.DictReader(file))


def _row(record: dict[str, str]) -> GpuRate:
    if record["currency"] != "USD":
        raise InputError(f"rates.csv: currency {record['currency']}: USD is needed")
    value, unit, gpus = record["original_value"], record["original_unit"], record["gpu_count"]
    divided = "" if unit == "USD/GPU-hour" or gpus == "1" else f" ÷ {gpus} GPUs"
    hours = " ÷ 730 h" if unit.endswith("month") else ""
    text = "\n".join(record.values())
    return GpuRate(
        id=hashlib.sha256(text.encode()).hexdigest()[:10],
        provider=record["provider"],
        gpu=record["gpu"],
        term=record["term"],
        usd_per_gpu_hour=float(record["usd_per_gpu_hour"]),
        effective_date=date.fromisoformat(record["effective_date"]),
        source=record["source"],
        basis=Basis.PUBLISHED,
        item=record["item"],
        conditions=record["conditions"],
        original=f"{value} {unit}{divided}{hours}, as published",
        confidence=record["confidence"],
        note=record["note"],
    )
