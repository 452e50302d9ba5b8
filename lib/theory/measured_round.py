"""What a verify round really costs, in plain target steps: the arithmetic once tau is measured.

The identity S = tau / R holds with no assumption on acceptance: a round that emits tau tokens and
takes R plain steps is S times as fast (Leviathan et al. 2023, arXiv 2211.17192, proof of Theorem
3.8, whose R is gamma c + 1). Here R = gamma c + v, where `v` is the time of one verify pass over
gamma + 1 tokens over that of one plain step. With v above 1 none of it is Theorem 3.8.

Functions take scalars or arrays that broadcast, and give a float for scalars.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.errors import InputError
from lib.theory.walltime import (
    Array,
    Numbers,
    _cost,
    _gamma,
    _numbers,
    _out,
    alpha_of_tau,
)

VERIFY_IS_NOT_FREE = 1.2  # above, the plain theorem's S is out of its range
LIMITED_SHARE = 0.9


def _above_0(name: str, value: Numbers) -> Array:
    array = _numbers(name, value, "above 0")
    if np.any(array <= 0):
        raise InputError(f"{name} = {float(array[array <= 0].flat[0]):g}: above 0 is allowed")
    return array


def round_cost(tau: Numbers, speedup: Numbers) -> Any:
    """R = tau / S, the plain steps that a round takes by a measured S."""
    return _out(_above_0("tau", tau) / _above_0("speedup", speedup))


def verify_cost(tau: Numbers, speedup: Numbers, gamma: Numbers, c: Numbers) -> Any:
    """v = tau / S - gamma c: what of a round is not drafting."""
    return _out(round_cost(tau, speedup) - _gamma(gamma) * _cost("c", c))


def measured_speedup(tau: Numbers, gamma: Numbers, c: Numbers, v: Numbers) -> Any:
    """S = tau / (gamma c + v) of a measured round."""
    return _out(_above_0("tau", tau) / (_gamma(gamma) * _cost("c", c) + _above_0("v", v)))


def most_speedup(gamma: Numbers, c: Numbers, v: Numbers) -> Any:
    """S with every draft accepted, (gamma + 1) / (gamma c + v): below 1 drafting cannot pay."""
    return measured_speedup(_gamma(gamma) + 1.0, gamma, c, v)


def verify_curve(rows: Numbers, tokens_per_second: Numbers, single_tps: float) -> Any:
    """v(n) = n r_1 / r_n from a batch benchmark.

    `tokens_per_second` r_n is the speed of a pass over n = `rows` tokens, `single_tps` that of
    one. A draft of gamma tokens needs n = gamma + 1.
    """
    n = _numbers("rows", rows, "at least 1")
    if np.any(n < 1):
        raise InputError(f"rows = {float(n[n < 1].flat[0]):g}: at least 1 is allowed")
    speed = _above_0("tokens_per_second", tokens_per_second)
    return _out(n * _above_0("single_tps", single_tps) / speed)


@dataclass(frozen=True)
class Needed:
    """What it takes to break even at one gamma and round cost.

    `rate` is accepted over drafted, (tau - 1) / gamma; `alpha` is None where no acceptance does.
    """

    tau: float
    rate: float
    alpha: float | None


def break_even(gamma: int, c: float, v: float) -> Needed:
    """The tau, rate and alpha at which a round of gamma c + v plain steps breaks even."""
    g = float(_gamma(gamma))
    tau = g * float(_cost("c", c)) + float(_above_0("v", v))
    alpha = 0.0 if tau <= 1 else float(alpha_of_tau(tau, g))
    return Needed(tau, (tau - 1) / g, None if math.isnan(alpha) else alpha)


def rounds_of(tokens: int, accepted: int) -> int:
    """Rounds = tokens - accepted, where nothing counts them: every round adds one token more.

    Plain steps and the token of the prefill count among them. A drafts counter, where there is
    one, wins.
    """
    if not 0 <= accepted < tokens:
        raise InputError(f"accepted = {accepted} of {tokens} tokens: at least 0 and below tokens")
    return tokens - accepted


def limited_by_gamma(tau: float, gamma: int) -> bool:
    """Whether tau is above 0.9 (gamma + 1): drafts run out before acceptance does."""
    return float(_above_0("tau", tau)) > LIMITED_SHARE * (float(_gamma(gamma)) + 1.0)


def highest_speedup(tau: Numbers, gamma: Numbers, c: Numbers) -> Any:
    """Ceiling of S at any load, tau / (gamma c + 1): verifying is free. Theorem 3.8."""
    return measured_speedup(tau, gamma, c, 1.0)


@dataclass(frozen=True)
class RoundFit:
    """A straight line R = v + c gamma through the round costs of several gamma at one load.

    `miss` is the largest distance of a point from the line, relative to the point; `points` how
    many gamma there are. Two points always fit.
    """

    c: float
    v: float
    miss: float
    points: int

    def cost(self, gamma: Numbers) -> Any:
        """R at gamma."""
        return _out(self.v + self.c * _gamma(gamma))


def fit(gammas: Sequence[float], costs: Sequence[float]) -> RoundFit:
    """Least squares of R on gamma; at least two different gamma.

    Step times are a staircase (graph padding): no line goes across the largest captured batch.
    """
    g, r = _gamma(gammas), _above_0("round cost", costs)
    if g.shape != r.shape or len(np.unique(g)) < 2:
        raise InputError("fit of v + c gamma: one round cost a gamma, at least two different gamma")
    away = g - g.mean()
    c = float(away @ r) / float(away @ away)
    v = float(r.mean()) - c * float(g.mean())
    return RoundFit(c, v, float(np.max(np.abs(v + c * g - r) / r)), len(g))


def share_of_acceptance(
    tau_before: float, tau_after: float, speed_before: float, speed_after: float
) -> float:
    """How much of a change of speed is acceptance: log(tau ratio) / log(speed ratio).

    The rest is the cost of a round, log R = log tau - log S. Above 1 or below 0 where the two
    pull apart; NaN where the speed did not change.
    """
    change = math.log(
        float(_above_0("speed", speed_after)) / float(_above_0("speed", speed_before))
    )
    if change == 0:
        return math.nan
    return math.log(float(_above_0("tau", tau_after)) / float(_above_0("tau", tau_before))) / change
