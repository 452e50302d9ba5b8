"""Lengths over several domains, steps without drafts, and two builds or labs set side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lib.errors import InputError

Z_95 = 1.959964
RATES_AGREE = 0.02
FEW_DRAFTED = 0.9  # share of the output below which tau says little of the whole server
SPEEDS_DIFFER = 0.1


def mixed_tau(taus: Sequence[float], token_weights: Sequence[float]) -> float:
    """tau of a traffic mix: harmonic mean weighted by each domain's share of output tokens."""
    if len(taus) != len(token_weights) or any(w < 0 for w in token_weights):
        raise InputError("mix: one weight of at least 0 for each domain is needed")
    total = sum(token_weights)
    if total <= 0:
        raise InputError("mix: at least one domain needs a weight above 0")
    return total / sum(w / t for w, t in zip(token_weights, taus, strict=True))


@dataclass(frozen=True)
class Coverage:
    """How much of a server's output came from rounds that drafted.

    `share` of the generated tokens, `tokens_per_step` over all steps, plain ones included.
    """

    share: float
    tokens_per_step: float


def coverage(drafts: float, accepted: float, generated: float) -> Coverage:
    """(drafts + accepted) / generated; draft counters do not move in steps that draft nothing."""
    if generated <= accepted or drafts + accepted > generated * 1.01:
        raise InputError(
            f"generated = {generated:g}: at least drafts + accepted = {drafts + accepted:g} tokens"
        )
    share = min((drafts + accepted) / generated, 1.0)
    return Coverage(share, generated / (generated - accepted))


@dataclass(frozen=True)
class Split:
    """A change of speed as acceptance times step time.

    `tau_ratio`, `speed_ratio` and `step_ratio` are second over first; `acceptance_share` is the
    part of the log speed ratio that the log tau ratio makes, above 1 where step time worked
    against it, None where speed did not change.
    """

    tau_ratio: float
    speed_ratio: float
    step_ratio: float
    acceptance_share: float | None


def split(tau_first: float, tau_second: float, speed_ratio: float) -> Split:
    """Two builds: speed = tau / step time, so step ratio = tau ratio / speed ratio.

    `speed_ratio` is tok/s second over first, or TPOT first over second.
    """
    if min(tau_first, tau_second) < 1 or speed_ratio <= 0:
        raise InputError("split: lengths of at least 1 and a speed ratio above 0 are needed")
    ratio = tau_second / tau_first
    log_speed = math.log(speed_ratio)
    share = math.log(ratio) / log_speed if abs(log_speed) > 1e-9 else None
    return Split(ratio, speed_ratio, ratio / speed_ratio, share)


def rate_says_little(rates: Sequence[float], speeds: Sequence[float]) -> bool:
    """Whether accepted over drafted agrees within 2 % while speed differs by over 10 %.

    Then draft lengths vary, and the rate is not alpha.
    """
    return max(rates) / min(rates) - 1 <= RATES_AGREE and max(speeds) / min(speeds) > (
        1 + SPEEDS_DIFFER
    )


def distinguishable(first: float, se_first: float, second: float, se_second: float) -> bool:
    """Whether two measured values differ at 95 %, each with its standard error."""
    return abs(first - second) > Z_95 * math.hypot(se_first, se_second)
