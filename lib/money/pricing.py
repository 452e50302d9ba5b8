"""Measured cells to dollars: each arm at each load that both arms were measured at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.goodput import meets
from lib.evidence.ratio import METRICS, LogRatio, log_mean_of_runs
from lib.money.cost import break_even_extra_usd_per_hour, cost_per_million
from lib.results.checks import blocks_pricing, saturated
from lib.run import OFF, Run, Slo

UNIT = "$ per 1M output tokens"
SLO_UNKNOWN = "SLO unknown"


@dataclass(frozen=True)
class Rate:
    """What a person pays; None is not typed yet.

    `usd_per_gpu_hour` times `gpu_count` is the deployment's price, unless the runs carry their own
    $/h; without a typed count, or where the arms' recorded counts differ, the recorded one is
    used. `extra_usd_per_hour` is what speculation adds. `utilization` is the fraction of paid time
    at the measured load.
    """

    usd_per_gpu_hour: float | None = None
    gpu_count: int | None = None
    utilization: float | None = None
    extra_usd_per_hour: float = 0.0

    def __post_init__(self) -> None:
        for name in ("usd_per_gpu_hour", "gpu_count", "utilization", "extra_usd_per_hour"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} = {value}: a number of at least 0 is needed")
        if self.gpu_count == 0:
            raise InputError("gpu_count = 0: at least 1 GPU is needed")
        if self.utilization is not None and not 0 < self.utilization <= 1:
            raise InputError(f"utilization = {self.utilization:g}: above 0 and at most 1")


@dataclass(frozen=True)
class Priced:
    """One arm at one load: its price, or why it has none. `slo` is met, missed or unknown."""

    arm: str
    load: float
    price: Estimate | None
    why_not: str
    slo: str
    usd_per_hour: float | None = None
    output_tps: float | None = None


@dataclass(frozen=True)
class PricedPair:
    """Off and one arm at one load, with the saving where both have a price.

    `saving` is a fraction of the price without speculation; its interval is M's, ends swapped.
    """

    off: Priced
    on: Priced
    saving: Estimate | None
    multiplier: float

    @property
    def break_even_multiplier(self) -> float | None:
        """M at which both prices are equal: $/h with over $/h without."""
        if not self.off.usd_per_hour or self.on.usd_per_hour is None:
            return None
        return self.on.usd_per_hour / self.off.usd_per_hour

    @property
    def break_even_extra_usd_per_hour(self) -> float | None:
        """$/h that speculation may add to the price without before the gain is gone."""
        if self.off.usd_per_hour is None:
            return None
        return float(break_even_extra_usd_per_hour(self.off.usd_per_hour, self.multiplier))

    @property
    def complete(self) -> tuple[Estimate, Estimate, Estimate] | None:
        """Price without, price with and saving, where all three are known."""
        off, on, saving = self.off.price, self.on.price, self.saving
        return None if off is None or on is None or saving is None else (off, on, saving)


def usd_per_hour(
    runs: Sequence[Run], rate: Rate, *, recorded_first: bool = False
) -> tuple[float | None, list[str]]:
    """The $/h of the deployment behind these runs, or None and what to type for it.

    A run's own $/h wins. A typed GPU count wins over the recorded one, unless `recorded_first`:
    arms on different allocations each keep their own.
    """
    own = {r.usd_per_hour for r in runs}
    if len(own) == 1 and None not in own:
        return own.pop(), []
    recorded = recorded_gpus(runs)
    gpus = recorded or rate.gpu_count if recorded_first else rate.gpu_count or recorded
    missing = ["type a $/GPU-h"] if rate.usd_per_gpu_hour is None else []
    if gpus is None:
        missing.append("type the GPUs")
    if rate.usd_per_gpu_hour is None or gpus is None:
        return None, missing
    return rate.usd_per_gpu_hour * gpus, []


def _own_price(runs: Sequence[Run]) -> bool:
    return any(r.usd_per_hour is not None for r in runs)


def recorded_gpus(runs: Sequence[Run]) -> int | None:
    """The GPU count that all of these runs record, if they agree."""
    counts = {r.gpu_count for r in runs}
    return counts.pop() if len(counts) == 1 else None


def slo_state(runs: Sequence[Run], slo: Slo | None) -> str:
    """met where every run meets it, missed where one misses it, else unknown."""
    if slo is None or not slo.limits:
        return "unknown"
    found = [meets(r, slo) for r in runs]
    if any(m is False for m in found):
        return "missed"
    return "met" if found and all(m is True for m in found) else "unknown"


def _queue_bound(runs: Sequence[Run], slo: Slo | None, state: str) -> str:
    """Why a queue keeps the runs from a price under a service level; empty where it does not.

    A limit on TTFT or end-to-end time that every run is known to meet has judged the queue.
    """
    if slo is None or not slo.limits:
        return ""
    if state == "met" and (slo.ttft_ms is not None or slo.e2e_ms is not None):
        return ""
    return next((reason for r in runs if (reason := saturated(r))), "")


def price_arm(
    arm: str,
    load: float,
    runs: Sequence[Run],
    rate: Rate,
    slo: Slo | None = None,
    basis: Basis = Basis.MEASURED,
    *,
    recorded_first: bool = False,
) -> Priced:
    """$ per 1M output tokens of one arm at one load, with the interval of its own repeats."""
    state = slo_state(runs, slo)
    mean = log_mean_of_runs(runs, METRICS["output_tps"])
    hourly, missing = usd_per_hour(runs, rate, recorded_first=recorded_first)
    if rate.utilization is None:
        missing.append("type the utilisation")
    refusals = [reason for r in runs if (reason := blocks_pricing(r))]
    if mean is None:
        why = "no tok/s recorded: compared, never priced"
    elif refusals:
        why = refusals[0]
    elif state == "missed":
        why = "misses the SLO"
    elif waits := _queue_bound(runs, slo, state):
        why = f"queue-bound ({waits}): not priced while an SLO is named"
    else:
        why = ", ".join(missing)
    if arm != OFF and hourly is not None:
        hourly += rate.extra_usd_per_hour
    tps = None if mean is None else math.exp(mean.mean)
    if why or mean is None or hourly is None or tps is None or rate.utilization is None:
        return Priced(arm, load, None, why, state, hourly, tps)
    price = cost_per_million(hourly, tps, rate.utilization)
    low = high = None
    if mean.variance is not None and mean.df is not None:
        half = float(stdtrit(mean.df, 0.975)) * math.sqrt(mean.variance)
        low, high = price * math.exp(-half), price * math.exp(half)
    estimate = Estimate(
        price,
        UNIT,
        basis,
        f"{len(runs)} run{'s' if len(runs) > 1 else ''} of {arm} at {load:g}",
        low,
        high,
        f"${hourly:,.4g}/h × 10⁶ ÷ (3600 s/h × {tps:,.4g} tok/s × {rate.utilization:.0%} "
        f"utilization) = ${price:,.4g} per 1M output tokens",
    )
    return Priced(arm, load, estimate, "", state, hourly, tps)


def price_pairs(
    findings: Findings, arm: ArmFinding, rate: Rate, slo: Slo | None = None
) -> tuple[PricedPair, ...]:
    """Off and one arm at every load measured in both, ascending; derived points have no price."""
    pairs = []
    for cell in arm.pairs.cells:
        counts = {recorded_gpus(cell.off), recorded_gpus(cell.on)} - {None}
        basis, own = findings.study.basis, len(counts) > 1
        off = price_arm(OFF, cell.load, cell.off, rate, slo, basis, recorded_first=own)
        on = price_arm(arm.label, cell.load, cell.on, rate, slo, basis, recorded_first=own)
        if _own_price(cell.off) != _own_price(cell.on):
            why = "a $/h is recorded for one arm only: state it for both on the results page"
            off, on = replace(off, price=None, why_not=why), replace(on, price=None, why_not=why)
        point = arm.at(cell.load)
        if point is not None:
            pairs.append(PricedPair(off, on, _saving(point, off, on), point.multiplier))
    return tuple(pairs)


def _saving(point: LogRatio, off: Priced, on: Priced) -> Estimate | None:
    if off.price is None or on.price is None or not off.price.value:
        return None
    hardware = on.price.value / off.price.value * point.multiplier
    low = high = None
    if (ends := point.interval()) is not None:
        low, high = 1 - hardware / ends[0], 1 - hardware / ends[1]
    return Estimate(
        1 - hardware / point.multiplier,
        "fraction of the price without speculation",
        on.price.basis,
        f"off and {on.arm} at {off.load:g}",
        low,
        high,
        "1 − (price with ÷ price without); the interval is that of M, ends swapped",
    )
