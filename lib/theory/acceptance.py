"""Acceptance from counts: alpha, tau, their intervals, and what a single alpha is worth.

A round drafts gamma tokens, keeps those before the first rejection and emits one token more. With
A accepted tokens and F rounds that ended in a rejection, alpha = A / (A + F): positions after the
first rejection were never tested. P_k is the share of rounds whose first k drafts were all
accepted (what vLLM calls the per-position acceptance rate); tau(g) = 1 + P_1 + .. + P_g needs no
assumption of independence. Accepted over drafted is (tau - 1) / gamma, not alpha.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from lib.errors import InputError
from lib.theory import walltime
from lib.theory.walltime import Array

LEVEL = 0.95
WHOLE = 0.005  # how near to a whole number draft_tokens / drafts is for a fixed draft length
FIRST_DECIDES = 0.6
MISLEADS = 0.05


class Method(StrEnum):
    """What an alpha and its interval rest on."""

    REQUESTS = "counts by request"
    ALIKE = "assumes every request alike: a lower bound on the uncertainty"
    RATES = "from rates by position: no counts, so no interval"
    INVERTED = "inverted from the accepted length and its interval by request"
    LENGTH = "inverted from the accepted length: no interval"


@dataclass(frozen=True)
class Ratio:
    """A ratio of counts with its standard error and interval, where there are any.

    `low` and `high` are the ends at 95 %; None where the source gives no counts.
    """

    value: float
    method: Method
    se: float | None = None
    low: float | None = None
    high: float | None = None


def alpha_alike(accepted: float, rejected: float, level: float = LEVEL) -> Ratio:
    """alpha from pooled counts, Jeffreys interval Beta(A + 1/2, F + 1/2).

    Every tested draft counts as independent, so the interval is too narrow wherever requests
    differ. The standard error is sqrt(alpha (1 - alpha) / (A + F)).
    """
    a, f = _count("accepted", accepted), _count("rejected", rejected)
    if a + f == 0:
        raise InputError("alpha: no draft was tested; counts of at least one round are needed")
    value = a / (a + f)
    tail = (1 - level) / 2
    low = 0.0 if a == 0 else float(special.betaincinv(a + 0.5, f + 0.5, tail))
    high = 1.0 if f == 0 else float(special.betaincinv(a + 0.5, f + 0.5, 1 - tail))
    return Ratio(value, Method.ALIKE, math.sqrt(value * (1 - value) / (a + f)), low, high)


def request_intervals(
    accepted: npt.ArrayLike, rejected: npt.ArrayLike, level: float = LEVEL, copies: int = 1
) -> tuple[Array, Array, Array, Array]:
    """alpha, its standard error and both ends, over the last axis of R >= 2 requests.

    Residuals e_i = A_i - alpha (A_i + F_i), se = sqrt(R / (R - 1) sum e_i^2) / sum (A_i + F_i), and
    logit(alpha) +- t_{R-1} se / (alpha (1 - alpha)). NaN ends where alpha is 0 or 1. Where each
    request may stand `copies` times among them (repeats ask the same prompts), R is that many times
    fewer: copies narrow nothing.
    """
    a, f = np.asarray(accepted, float), np.asarray(rejected, float)
    requests = a.shape[-1] / copies
    tested = a + f
    value = a.sum(-1) / tested.sum(-1)
    se = _error(a - value[..., None] * tested, copies) / tested.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = special.logit(value)
        half = special.stdtrit(requests - 1, (1 + level) / 2) * se / (value * (1 - value))
        low, high = special.expit(middle - half), special.expit(middle + half)
    return value, se, low, high


def _error(residuals: Array, copies: int) -> Array:
    """Standard error of the total that residuals by request are of."""
    requests = residuals.shape[-1] / copies
    return np.asarray(np.sqrt(requests / (requests - 1) * copies * (residuals**2).sum(-1)))


def alpha_by_request(
    accepted: Sequence[float], rejected: Sequence[float], level: float = LEVEL, copies: int = 1
) -> Ratio:
    """alpha whose interval allows for requests that differ; see `request_intervals`.

    Requests without a tested draft are left out. With fewer than two, or an alpha of exactly 0 or
    1, it is `alpha_alike`.
    """
    pairs = [
        (_count("accepted", a), _count("rejected", f))
        for a, f in zip(accepted, rejected, strict=True)
    ]
    pairs = [p for p in pairs if sum(p) > 0]
    total_a, total_f = sum(a for a, _ in pairs), sum(f for _, f in pairs)
    if len(pairs) < 2 * copies or total_a == 0 or total_f == 0:
        return alpha_alike(total_a, total_f, level)
    columns = np.array(pairs).T
    ends = request_intervals(columns[0], columns[1], level, copies)
    value, se, low, high = (float(x) for x in ends)
    return Ratio(value, Method.REQUESTS, se, low, high)


def tau_by_request(
    accepted: Sequence[float],
    rounds: Sequence[float],
    gamma: int | None = None,
    level: float = LEVEL,
    copies: int = 1,
) -> Ratio:
    """tau as total tokens over total rounds, its interval from residuals by request.

    The interval is on the logit of (tau - 1) / gamma, so that it stays between 1 and gamma + 1, or
    on log(tau - 1) where gamma varies; none with fewer than two requests. `copies` as in
    `request_intervals`.
    """
    a, n = np.asarray(accepted, float), np.asarray(rounds, float)
    used = n > 0
    a, n = a[used], n[used]
    if not n.size:
        raise InputError("tau: no round was counted; at least one is needed")
    kept = float(a.sum() / n.sum())
    if n.size < 2 * copies or kept == 0 or kept == gamma:
        return Ratio(1 + kept, Method.ALIKE)
    se = float(_error(a - kept * n, copies) / n.sum())
    half = float(special.stdtrit(n.size / copies - 1, (1 + level) / 2)) * se / kept
    if gamma is None:
        low, high = kept * math.exp(-half), kept * math.exp(half)
    else:
        half /= 1 - kept / gamma
        middle = special.logit(kept / gamma)
        low, high = (gamma * float(special.expit(middle + x)) for x in (-half, half))
    return Ratio(1 + kept, Method.REQUESTS, se, 1 + low, 1 + high)


def alpha_from_tau(tau: npt.ArrayLike, gamma: npt.ArrayLike) -> Any:
    """The alpha at which (1 - alpha^(gamma+1)) / (1 - alpha) is tau; chains of one length only.

    Raises InputError where tau is below 1 or above gamma + 1.
    """
    t = np.asarray(tau, dtype=np.float64)
    g = np.asarray(gamma, dtype=np.float64)
    walltime.tau(0.5, g)  # checks gamma
    wrong = ~np.isfinite(t) | (t < 1) | (t > (g + 1) * (1 + 1e-12))
    if np.any(wrong):
        first = float(np.broadcast_to(t, wrong.shape)[wrong].flat[0])
        most = float(np.broadcast_to(g, wrong.shape)[wrong].flat[0]) + 1
        hint = "; does the length leave out the bonus token? Add 1" if first < 1 else ""
        raise InputError(
            f"tau = {first:g}: 1 to gamma + 1 = {most:g} tokens a round are possible{hint}"
        )
    return walltime.alpha_of_tau(np.minimum(t, g + 1), g)


def alpha_inverted(tau: Ratio, gamma: int) -> Ratio:
    """alpha of tau by `alpha_from_tau`, and of both its ends: it rises with tau."""
    value, *ends = (
        None if t is None else float(alpha_from_tau(t, gamma))
        for t in (tau.value, tau.low, tau.high)
    )
    assert value is not None
    known = None not in ends
    return Ratio(value, Method.INVERTED if known else Method.LENGTH, None, *ends)


def fixed_gamma(draft_tokens: float, drafts: float) -> int | None:
    """Drafts a round where every round drafts as many, within 0.5 %; None where it varies."""
    if drafts <= 0 or draft_tokens <= 0:
        return None
    mean = draft_tokens / drafts
    whole = round(mean)
    return whole if whole >= 1 and abs(mean / whole - 1) <= WHOLE else None


@dataclass(frozen=True)
class Tested:
    """Sufficient counts of rounds of one draft length (a histogram's, or positions and rounds).

    `accepted` tokens, `rejected` rounds that ended in a rejection, `survival` P_1 .. P_gamma.
    """

    rounds: float
    accepted: float
    rejected: float
    survival: tuple[float, ...]

    @property
    def tau(self) -> float:
        """Mean tokens a round, bonus included."""
        return 1 + self.accepted / self.rounds


def from_histogram(histogram: Sequence[float], gamma: int | None = None) -> Tested:
    """From rounds by accepted drafts (index = accepted), as vLLM's `acceptance_histogram`.

    `gamma` is the draft length where it is more than the last index, as when zeros were trimmed.
    """
    rows = [_count("histogram", n) for n in histogram]
    length = len(rows) - 1 if gamma is None else gamma
    if length < 1 or any(rows[length + 1 :]):
        raise InputError(
            f"histogram of {len(rows)} values: index = accepted drafts, so gamma + 1 values from "
            "0 to gamma are needed"
        )
    rows = (rows + [0.0] * (length + 1))[: length + 1]
    rounds = sum(rows)
    if rounds == 0:
        raise InputError("histogram: all zero; at least one round is needed")
    survival = tuple(sum(rows[k:]) / rounds for k in range(1, length + 1))
    accepted = sum(j * n for j, n in enumerate(rows))
    return Tested(rounds, accepted, rounds - rows[length], survival)


def from_positions(accepted_per_position: Sequence[float], drafts: float) -> Tested:
    """From accepted tokens by position and the number of drafts (rounds)."""
    counts = [_count("accepted per position", n) for n in accepted_per_position]
    rounds = _count("drafts", drafts)
    if not counts or rounds == 0:
        raise InputError("positions: at least one position and one draft are needed")
    steps = [rounds, *counts]
    if any(later > before for before, later in pairwise(steps)):
        raise InputError(
            "accepted per position: no position may exceed the one before it, nor the drafts "
            f"({rounds:g}); give counts, not rates"
        )
    survival = tuple(n / rounds for n in counts)
    return Tested(rounds, sum(counts), rounds - counts[-1], survival)


def tau_from_survival(survival: Sequence[float]) -> Array:
    """tau(1) .. tau(gamma) from P_1 .. P_gamma; no independence is assumed."""
    return 1 + np.cumsum(np.asarray(survival, dtype=np.float64))


def conditional(survival: Sequence[float]) -> tuple[float, ...]:
    """Acceptance at each position, given that it was tested: P_k / P_(k-1); ends at P = 0."""
    found, before = [], 1.0
    for p in survival:
        if before <= 0:
            break
        found.append(p / before)
        before = p
    return tuple(found)


def alpha_of_survival(survival: Sequence[float]) -> float:
    """A / (A + F) from P_1 .. P_gamma: sum P / (sum P + 1 - P_gamma)."""
    total = float(sum(survival))
    tested = total + 1 - float(survival[-1])
    return total / tested


def first_over_later(survival: Sequence[float]) -> float | None:
    """Acceptance at position 1 over the pooled rate of the later ones; None where not tested.

    n-gram and suffix drafts 0.12 to 0.47, EAGLE 0.85 to 1.05 (SpecDecode-Bench, Llama-3.1-8B).
    """
    tested = float(sum(survival[:-1]))
    accepted = float(sum(survival[1:]))
    if len(survival) < 2 or tested <= 0 or accepted <= 0:
        return None
    return float(survival[0]) / (accepted / tested)


def first_decides(survival: Sequence[float]) -> bool | None:
    """Whether the first position decides, so that a single alpha is the wrong kind of number."""
    ratio = first_over_later(survival)
    return None if ratio is None else ratio < FIRST_DECIDES


def single_alpha_errors(lengths: npt.ArrayLike, gammas: npt.ArrayLike, alpha: float) -> Array:
    """What tau(alpha, gamma) promises over the measured lengths, minus 1, at each gamma."""
    return np.asarray(walltime.tau(alpha, gammas), float) / np.asarray(lengths, float) - 1


def best_single_alpha(lengths: npt.ArrayLike, gammas: npt.ArrayLike) -> float:
    """The alpha whose largest relative error over the measured lengths is smallest."""
    y, g = np.asarray(lengths, float)[:, None], np.asarray(gammas, float)[:, None]
    low, high = 0.0, 1.0
    for _ in range(6):
        grid = np.linspace(low, high, 101)
        worst = np.abs(walltime.tau(grid[None, :], g) / y - 1).max(axis=0)
        at, step = int(np.argmin(worst)), (high - low) / 100
        low, high = max(0.0, grid[at] - step), min(1.0, grid[at] + step)
    return float((low + high) / 2)


def _count(name: str, value: float) -> float:
    if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value >= 0):
        raise InputError(f"{name} = {value}: a count of at least 0 is needed")
    return float(value)
