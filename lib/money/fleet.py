"""Replicas hour by hour for a demand, and what they cost a day.

Replicas follow the hour (autoscaled) or stay at the day's largest number (reserved for the peak).
Whole replicas are what is paid for; the fractional number is what the arithmetic asks for and is
shown beside it, because a saving is quantised. Nothing here knows the theorem: capacities are
measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.money.capacity import Curve
from lib.money.cost import HOURS_PER_MONTH
from lib.money.demand import DAY, Demand, Floats

MOST_HEADROOM = 3.0
ROUNDING = 1e-9  # of a replica: the last digit of a division buys none
MOST_TAX = 1.0


@dataclass(frozen=True)
class Rules:
    """How a fleet is run: `headroom` above the demand as a fraction, one `spare` replica (N+1),
    `reserved` for the peak or following the hour.
    """

    headroom: float = 0.0
    spare: bool = False
    reserved: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.headroom) and 0 <= self.headroom <= MOST_HEADROOM):
            raise InputError(f"headroom = {self.headroom:g}: from 0 to 3 (300 %)")


@dataclass(frozen=True, eq=False)
class Plan:
    """One arm's fleet by hour. Arrays have one value an hour and are nan where nothing is known.

    `replicas` are whole, `fractional` are not rounded up; `load`, `tpot_ms` and `ttft_ms` are what
    one replica sees at the hour's demand, nan below the lowest measured throughput. `untaxed` are
    the hours at a K = 0 whose tax is unknown: the totals are then a lower bound and no money.
    `why_not` says why there is no plan.
    """

    curve: Curve
    replicas: Floats
    fractional: Floats
    load: Floats
    tpot_ms: Floats
    ttft_ms: Floats
    untaxed: NDArray[np.bool_]
    why_not: str = ""

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.curve.arm

    @property
    def lower_bound(self) -> bool:
        """Whether some hour is at a K = 0 whose tax is unknown."""
        return bool(self.untaxed.any())

    @property
    def known(self) -> bool:
        """Whether the plan is a number that may be priced."""
        return not self.why_not and not self.lower_bound

    @property
    def replica_hours(self) -> float | None:
        """Replica-hours a day; at least so many where `lower_bound`."""
        return None if self.why_not else float(self.replicas.mean()) * DAY

    @property
    def gpu_hours(self) -> float | None:
        """GPU-hours a day; None while the GPUs of a replica are not known."""
        hours, gpus = self.replica_hours, self.curve.gpus
        return None if hours is None or gpus is None else hours * gpus

    @property
    def usd_per_day(self) -> float | None:
        """$ a day of whole replicas; None without a price, a plan or the tax of K = 0."""
        return self._usd(self.replicas)

    @property
    def fractional_usd_per_day(self) -> float | None:
        """$ a day if a fraction of a replica could be bought."""
        return self._usd(self.fractional)

    @property
    def cost(self) -> float | None:
        """What plans are ranked by: $ a day, else GPU-hours, else replica-hours."""
        values = (self.usd_per_day, self.gpu_hours, self.replica_hours)
        return next((v for v in values if v is not None), None)

    @property
    def usd_per_month(self) -> float | None:
        """$ a month of 730 hours."""
        day = self.usd_per_day
        return None if day is None else day * HOURS_PER_MONTH / DAY

    def _usd(self, replicas: Floats) -> float | None:
        hourly = self.curve.usd_per_hour
        return float(replicas.mean()) * DAY * hourly if self.known and hourly is not None else None


def plan(curve: Curve, demand: Demand, rules: Rules = Rules()) -> Plan:
    """The fleet of one arm for that demand. At least one replica stays in every hour."""
    capacity = curve.capacity_at(demand.load)
    wanted = demand.output_tps * (1.0 + rules.headroom) / capacity
    whole = np.maximum(np.ceil(wanted - ROUNDING), 1.0)
    if rules.spare:
        wanted, whole = wanted + 1.0, whole + 1.0
    if rules.reserved:
        wanted, whole = np.full_like(wanted, wanted.max()), np.full_like(whole, whole.max())
    load, tpot, ttft = _served(curve, demand, whole)
    why_not = curve.why_not
    if not why_not and np.isnan(capacity).any():
        lowest = float(np.nanmin(demand.load))
        why_not = f"load {lowest:g} is under {curve.loads[0]:g}, the lowest measured"
    return Plan(curve, whole, wanted, load, tpot, ttft, curve.untaxed_at(demand.load), why_not)


def _served(curve: Curve, demand: Demand, replicas: Floats) -> tuple[Floats, Floats, Floats]:
    load = curve.load_at(demand.output_tps / replicas)
    return (load, *curve.latency_at(load))


def cheapest(plans: Sequence[Plan]) -> Plan | None:
    """The plan of fewest $ a day; of fewest GPU-hours (else replica-hours) without a price."""
    known = [(p.cost, p) for p in plans if p.known and p.cost is not None]
    if len({p.usd_per_day is None for _, p in known}) > 1:
        return None
    return min(known, key=lambda row: row[0], default=(0.0, None))[1]


class Saved(NamedTuple):
    """$ a day that one fleet saves on another; the interval is M's, ends swapped, or None."""

    usd_per_day: float
    low: float | None
    high: float | None

    @property
    def too_close(self) -> bool:
        """Whether the interval holds no difference: whole replicas often end it at $0."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


def saved(base: Plan, other: Plan, demand: Demand, rules: Rules) -> Saved | None:
    """What `other` saves a day against `base` in whole replicas; None where either has no price."""
    before, after = base.usd_per_day, other.usd_per_day
    if before is None or after is None:
        return None
    ends = []
    for which in ("low", "high"):
        curve = other.curve.end(which)
        usd = None if curve is None else plan(curve, demand, rules).usd_per_day
        ends.append(None if usd is None else before - usd)
    low, high = ends
    if low is None or high is None:
        return Saved(before - after, None, None)
    return Saved(before - after, min(low, before - after), max(high, before - after))


class Pace(NamedTuple):
    """Mean TPOT of a token of the day in ms, before and after, over the hours that know both."""

    before_ms: float
    after_ms: float
    hours: int


def pace(base: Plan, other: Plan, demand: Demand, *, same_replicas: bool = True) -> Pace | None:
    """How fast users read with `other` instead of `base`, weighted by the hours' tokens.

    With `same_replicas` the other arm runs on the base's replicas: the same hardware, faster users.
    None where no hour knows both latencies.
    """
    after = other.tpot_ms
    if same_replicas:
        after = _served(other.curve, demand, base.replicas)[1]
    known = ~np.isnan(base.tpot_ms) & ~np.isnan(after) & (demand.output_tps > 0)
    if base.why_not or other.why_not or not known.any():
        return None
    weights = demand.output_tps[known]
    before_ms = float(np.average(base.tpot_ms[known], weights=weights))
    return Pace(before_ms, float(np.average(after[known], weights=weights)), int(known.sum()))


@dataclass(frozen=True)
class WhatIf:
    """One change and what every arm would cost a day (None: no price), by arm name."""

    change: str
    usd_per_day: dict[str, float | None]
    gpu_hours: dict[str, float | None]


def what_if(
    curves: Sequence[Curve], demand: Demand, rules: Rules, shift: float
) -> tuple[WhatIf, ...]:
    """Each of acceptance, demand and price alone, down and up by the fraction `shift`.

    Acceptance moves tau at the measured round cost, so tok/s where an arm drafts moves with it;
    whether it would then still meet the service level was not measured.
    """
    if not 0 < shift < 1:
        raise InputError(f"shift = {shift:g}: above 0 and under 1")
    rows = []
    for sign in (-1, 1):
        factor = 1 + sign * shift
        said = f"{'+' if sign > 0 else '−'}{shift:.0%}".replace("%", " %")
        faster = [c if i == 0 else c.drafting_faster(factor) for i, c in enumerate(curves)]
        rows += [
            _row(f"tokens a round τ {said}", [plan(c, demand, rules) for c in faster]),
            _row(f"demand {said}", [plan(c, demand.scaled(factor), rules) for c in curves]),
            _row(f"price {said}", [plan(c, demand, rules) for c in curves], factor),
        ]
    return tuple(sorted(rows, key=lambda r: r.change.split(" ")[0], reverse=True))


def _row(change: str, plans: Sequence[Plan], price: float = 1.0) -> WhatIf:
    usd = {p.arm: None if p.usd_per_day is None else p.usd_per_day * price for p in plans}
    return WhatIf(change, usd, {p.arm: p.gpu_hours if p.known else None for p in plans})
