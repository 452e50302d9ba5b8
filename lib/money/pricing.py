"""Measured cells to dollars: each arm at each load that both arms were measured at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.goodput import meet
from lib.evidence.ratio import METRICS, TIE, LogMean, LogRatio, log_mean_of_runs
from lib.money.cost import (
    MonthlySaving,
    break_even_extra_usd_per_hour,
    cost_per_million,
    monthly_saving,
)
from lib.results.checks import blocks_pricing, saturated
from lib.run import NEEDS_CONSENT, OFF, Run, Slo, drafts_on_random_tokens

UNIT = "$ per 1M output tokens"
SLO_UNKNOWN = "SLO unknown"
SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)
class Rate:
    """What a person pays; None is not typed yet.

    `usd_per_gpu_hour` times `gpu_count` is the deployment's price, unless the runs carry their own
    $/h; without a typed count, or where the arms' recorded counts differ, the recorded one is
    used. Speculation adds `extra_usd_per_hour` and `drafter_gpus` GPUs of its own at
    `drafter_usd_per_gpu_hour`, or at `usd_per_gpu_hour` where that is None. `utilization` is the
    fraction of paid time at the measured load; `on_utilization` that with speculation, None the
    same. `source` is where `usd_per_gpu_hour` comes from: provider, GPU, term, effective date and
    whose word; empty where it was typed.
    """

    usd_per_gpu_hour: float | None = None
    gpu_count: int | None = None
    utilization: float | None = None
    extra_usd_per_hour: float = 0.0
    source: str = ""
    drafter_gpus: int = 0
    drafter_usd_per_gpu_hour: float | None = None
    on_utilization: float | None = None

    def __post_init__(self) -> None:
        for name in (
            *("usd_per_gpu_hour", "gpu_count", "utilization", "extra_usd_per_hour"),
            *("drafter_gpus", "drafter_usd_per_gpu_hour", "on_utilization"),
        ):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} = {value}: a number of at least 0 is needed")
        if self.gpu_count == 0:
            raise InputError("gpu_count = 0: at least 1 GPU is needed")
        for name in ("utilization", "on_utilization"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise InputError(f"{name} = {value:g}: above 0 and at most 1")

    @property
    def drafter_rate(self) -> float | None:
        """$ an hour of one GPU of the drafter's own."""
        own = self.drafter_usd_per_gpu_hour
        return self.usd_per_gpu_hour if own is None else own

    @property
    def added_usd_per_hour(self) -> float | None:
        """What speculation adds an hour; None where the drafter's GPUs have no price."""
        if not self.drafter_gpus:
            return self.extra_usd_per_hour
        each = self.drafter_rate
        return None if each is None else self.extra_usd_per_hour + self.drafter_gpus * each

    def used(self, arm: str) -> float | None:
        """The utilisation of an arm."""
        return self.utilization if arm == OFF or not self.on_utilization else self.on_utilization


@dataclass(frozen=True)
class Priced:
    """One arm at one load: its price, or why it has none. `slo` is met, missed or unknown.

    `usd_per_hour` holds what speculation adds; `output_tps` is the geometric mean over the runs.
    """

    arm: str
    load: float
    price: Estimate | None
    why_not: str
    slo: str
    usd_per_hour: float | None = None
    output_tps: float | None = None
    utilization: float | None = None


@dataclass(frozen=True)
class PricedPair:
    """Off and one arm at one load, with the saving where both have a price.

    `saving` is a fraction of the price without speculation; its interval is M's, ends swapped.
    """

    off: Priced
    on: Priced
    saving: Estimate | None
    ratio: LogRatio

    @property
    def multiplier(self) -> float:
        """Measured M at this load."""
        return self.ratio.multiplier

    @property
    def utilization_ratio(self) -> float:
        """Utilisation with over without; 1 where they do not differ."""
        off, on = self.off.utilization, self.on.utilization
        return on / off if off and on else 1.0

    @property
    def break_even_multiplier(self) -> float | None:
        """M at which both prices are equal: $/h with over without, over that of utilisation."""
        if not self.off.usd_per_hour or self.on.usd_per_hour is None:
            return None
        return self.on.usd_per_hour / self.off.usd_per_hour / self.utilization_ratio

    @property
    def break_even_extra_usd_per_hour(self) -> float | None:
        """$/h that speculation may add to the price without before the gain is gone."""
        if self.off.usd_per_hour is None:
            return None
        gain = self.multiplier * self.utilization_ratio
        return float(break_even_extra_usd_per_hour(self.off.usd_per_hour, gain))

    @property
    def too_close(self) -> bool:
        """Whether the prices are not told apart: the saving's interval holds 0.

        Without an interval, prices within 1 % of each other are not.
        """
        if self.saving is None:
            return True
        if self.saving.low is not None and self.saving.high is not None:
            return self.saving.low <= 0 <= self.saving.high
        return self.saving.value < 1 and abs(math.log1p(-self.saving.value)) <= TIE

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
    met = meet(runs, slo)
    return "unknown" if met is None else "met" if met else "missed"


def queue_bound(runs: Sequence[Run], slo: Slo | None, state: str) -> str:
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
    used = rate.used(arm)
    if used is None:
        missing.append("type the utilisation")
    added = 0.0 if arm == OFF else rate.added_usd_per_hour
    if added is None and "type a $/GPU-h" not in missing:
        missing.append("type the drafter's $/GPU-h")
    refusals = [reason for r in runs if (reason := blocks_pricing(r))]
    if mean is None:
        why = "no tok/s recorded: compared, never priced"
    elif refusals:
        why = refusals[0]
    elif state == "missed":
        why = "misses the SLO"
    elif waits := queue_bound(runs, slo, state):
        why = f"queue-bound ({waits}): not priced while an SLO is named"
    else:
        why = ", ".join(missing)
    hourly = None if hourly is None or added is None else hourly + added
    tps = None if mean is None else math.exp(mean.mean)
    if why or mean is None or hourly is None or tps is None or used is None:
        return Priced(arm, load, None, why, state, hourly, tps, used)
    price = cost_per_million(hourly, tps, used)
    low = high = None
    if (half := half_width(mean)) is not None:
        low, high = price * math.exp(-half), price * math.exp(half)
    estimate = Estimate(
        price,
        UNIT,
        basis,
        _source(arm, load, runs, rate),
        low,
        high,
        f"${hourly:,.6g}/h × 10⁶ ÷ (3600 s/h × {tps:,.6g} tok/s × {used * 100:.6g} % "
        f"utilisation) = ${price:,.4g} per 1M output tokens",
    )
    return Priced(arm, load, estimate, "", state, hourly, tps, used)


def half_width(mean: LogMean, level: float = 0.95) -> float | None:
    """Half the t interval of a mean log; None with one run."""
    if mean.variance is None or mean.df is None:
        return None
    return float(stdtrit(mean.df, (1 + level) / 2)) * math.sqrt(mean.variance)


def _source(arm: str, load: float, runs: Sequence[Run], rate: Rate) -> str:
    text = f"{len(runs)} run{'s' if len(runs) > 1 else ''} of {arm} at {load:g}"
    return f"{text}; $/GPU-h: {rate.source}" if rate.source and not _own_price(runs) else text


def price_pairs(
    findings: Findings,
    arm: ArmFinding,
    rate: Rate,
    slo: Slo | None = None,
    *,
    accept_random: bool = False,
) -> tuple[PricedPair, ...]:
    """Off and one arm at every load measured in both, ascending; derived points have no price.

    An arm that was measured on random tokens has a price only with `accept_random`, a person's
    consent; the price says so.
    """
    pairs = []
    for cell in arm.pairs.cells:
        counts = {recorded_gpus(cell.off), recorded_gpus(cell.on)} - {None}
        basis, own = findings.study.basis, len(counts) > 1
        off = price_arm(OFF, cell.load, cell.off, rate, slo, basis, recorded_first=own)
        on = price_arm(arm.label, cell.load, cell.on, rate, slo, basis, recorded_first=own)
        if _own_price(cell.off) != _own_price(cell.on):
            why = "a $/h is recorded for one arm only: state it for both on the results page"
            off, on = replace(off, price=None, why_not=why), replace(on, price=None, why_not=why)
        if drafts_on_random_tokens(cell.on):
            on = _on_random_tokens(on, accept_random)
        point = arm.at(cell.load)
        if point is not None:
            pairs.append(PricedPair(off, on, _saving(point, off, on), point))
    return tuple(pairs)


def _on_random_tokens(on: Priced, accepted: bool) -> Priced:
    if not accepted:
        return replace(on, price=None, why_not=NEEDS_CONSENT)
    if on.price is None:
        return on
    source = f"{on.price.source}, on random tokens, accepted by a person"
    return replace(on, price=replace(on.price, source=source))


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
        f"off and {on.price.source}",
        low,
        high,
        "1 − (price with ÷ price without); the interval is that of M, ends swapped",
    )


def saving_a_month(
    pair: PricedPair, tokens_a_day: float | None, utilization: float | None
) -> MonthlySaving | None:
    """The saving a month in its three readings; None while an input or a price is missing.

    A server delivers its measured throughput for the share of paid time that its arm is in use, as
    in the price per 1M tokens; `utilization` is that without speculation.
    """
    off, on = pair.off, pair.on
    if tokens_a_day is None or utilization is None:
        return None
    if (
        off.usd_per_hour is None
        or on.usd_per_hour is None
        or not (off.output_tps and on.output_tps)
    ):
        return None
    return monthly_saving(
        tokens_a_day / SECONDS_PER_DAY,
        off.usd_per_hour,
        off.output_tps * utilization,
        on.usd_per_hour,
        on.output_tps * utilization * pair.utilization_ratio,
    )
