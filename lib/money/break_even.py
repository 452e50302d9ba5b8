"""How far each thing may move before speculation stops paying, with M's interval where it has one.

Speculation is cheaper exactly where M is above B = ($/h with over without) ÷ (utilisation with over
without).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from lib.estimate import Basis, Estimate
from lib.evidence.round_cost import mean_tau
from lib.money.case import Case

NOT_KNOWN = "not known: no run states counts or an accepted length"


@dataclass(frozen=True)
class BreakEven:
    """One break-even: where it lies, or why there is none."""

    name: str
    at: Estimate | None
    why_not: str = ""
    says: str = ""


def break_evens(case: Case) -> tuple[BreakEven, ...]:
    """M, extra $/h, utilisation with speculation, $/GPU-h and tokens a round."""
    return (_multiplier(case), _extra(case), _utilization(case), _gpu_price(case), _tau(case))


def _over_m(case: Case, at: Callable[[float], float], unit: str, how: str) -> Estimate:
    """A break-even that M moves, at M and at the ends of its interval."""
    ratio = case.pair.ratio
    ends = ratio.interval()
    low = high = None
    if ends is not None:
        low, high = sorted((at(ends[0]), at(ends[1])))
    source = f"{ratio.n_off} runs of off and {ratio.n_on} of {case.pair.on.arm} at {ratio.load:g}"
    return Estimate(at(ratio.multiplier), unit, Basis.DERIVED, source, low, high, how)


def _needed(case: Case) -> float:
    """B, the M at which both prices are equal."""
    return float(case.pair.break_even_multiplier or math.inf)


def _multiplier(case: Case) -> BreakEven:
    needed = _needed(case)
    if not math.isfinite(needed):
        return BreakEven("M", None, "the price without is $0")
    at = Estimate(needed, "×", Basis.DERIVED, "$/h and utilisation of both arms")
    return BreakEven("M", at, says="cheaper above")


def _extra(case: Case) -> BreakEven:
    off, _on = case.hardware_usd
    gain = case.pair.utilization_ratio

    def at(m: float) -> float:
        return off * (m * gain - 1.0)

    how = "$/h without × (M × utilisation with ÷ without − 1)"
    found = _over_m(case, at, "$ per hour", how)
    return BreakEven("Extra $/h", found, says="cheaper below")


def _utilization(case: Case) -> BreakEven:
    off_used, _on = case.utilization
    hours = _needed(case) * case.pair.utilization_ratio
    if not math.isfinite(hours):
        return BreakEven("Utilisation with", None, "the price without is $0")

    def at(m: float) -> float:
        return 100.0 * off_used * hours / m

    how = "utilisation without × $/h with ÷ $/h without ÷ M"
    found = _over_m(case, at, "%", how)
    says = "cheaper above" if found.value <= 100 else "more than all of the time: never"
    return BreakEven("Utilisation with", found, says=says)


def _gpu_price(case: Case) -> BreakEven:
    name, rate = "$/GPU-h", case.rate
    shared = rate.drafter_usd_per_gpu_hour is None
    fixed = rate.extra_usd_per_hour
    fixed += 0.0 if shared else rate.drafter_gpus * (rate.drafter_usd_per_gpu_hour or 0.0)
    on_gpus = case.on_gpus + (rate.drafter_gpus if shared else 0)
    if case.off_own_usd or case.on_own_usd:
        return BreakEven(name, None, "the runs carry their own $/h")
    gain = case.pair.utilization_ratio
    room = [case.off_gpus * m * gain - on_gpus for m in _ms(case)]
    if not fixed:
        return BreakEven(name, None, "it drops out: every cost is per GPU-hour")
    if room[0] <= 0:
        return BreakEven(name, None, "none: M does not pay for the GPUs at any price of them")
    if min(room) <= 0:
        return BreakEven(name, None, "open: M's interval reaches where no price of a GPU would do")

    def at(m: float) -> float:
        return fixed / (case.off_gpus * m * gain - on_gpus)

    how = "fixed $/h that speculation adds ÷ (GPUs without × M − GPUs with)"
    found = _over_m(case, at, "$ per GPU-hour", how)
    return BreakEven(name, found, says="cheaper above")


def _ms(case: Case) -> tuple[float, ...]:
    ratio = case.pair.ratio
    return (ratio.multiplier, *(ratio.interval() or ()))


def _tau(case: Case) -> BreakEven:
    name, tau, needed = "Tokens a round τ", mean_tau(case.on_runs), _needed(case)
    if not case.drafts or not math.isfinite(needed):
        return BreakEven(name, None, "nothing is drafted at this load")
    if tau is None:
        return BreakEven(name, None, NOT_KNOWN)

    def at(m: float) -> float:
        return tau * needed / m

    how = f"measured τ {tau:.4g} × break-even M ÷ M: the round costs R = τ ÷ M as measured"
    found = _over_m(case, at, "tokens", how)
    if found.value < 1:
        says = "cheaper even where nothing is accepted, if the round costs no more"
    elif found.value <= tau:
        says = f"may fall by {1 - found.value / tau:.0%} from {tau:.3g}"
    else:
        says = f"must rise by {found.value / tau - 1:.0%} from {tau:.3g}"
    return BreakEven(name, found, says=says)
