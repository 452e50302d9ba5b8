"""How many verify rounds an answer of N tokens takes, and so how long it decodes.

A round emits X = 1..gamma + 1 tokens, bonus token included; rounds are independent and alike. The
number of rounds M(N) is the first n with X_1 + .. + X_n >= N, a renewal process. With one `alpha`
at every position X is the capped geometric of Leviathan, Kalman and Matias 2023, arXiv 2211.17192,
Eq. 1; with measured per-position rates P_k (chance that the first k drafts are all accepted) no
independence between positions is assumed. Moments: E[X] = sum P_k, E[X^2] = sum (2k + 1) P_k over
k = 0..gamma with P_0 = 1. Expected rounds: N/tau + (E[X^2]/tau - 1)/(2 tau) for long answers
(Feller, An Introduction to Probability Theory, vol. I, ch. XIII).

All of it is about the rounds of one request with one acceptance; requests differ among themselves,
which usually spreads latency more (`between_requests_sd`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from lib.errors import InputError
from lib.theory.walltime import Numbers, tau

Array = npt.NDArray[np.float64]

MAX_TOKENS = 32_768
DROPPED = 1e-20  # chances below are dropped from both ends of a sum of rounds
ENDED = 1e-12  # and this much ends the count of rounds
TRIM_EVERY = 16
TILTS = np.geomspace(1e-4, 8.0, 60)


def second_moment(alpha: Numbers, gamma: Numbers) -> Any:
    """E[X^2] of the tokens of a round: sum of (2j + 1) alpha^j for j = 0..gamma."""
    tau(alpha, gamma)  # refuses what is outside its range, by name
    a, g = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(gamma, float))
    j = np.arange(int(g.max()) + 1 if g.size else 1, dtype=np.float64)
    terms = np.where(j <= g[..., None], (2 * j + 1) * a[..., None] ** j, 0.0)
    total = terms.sum(axis=-1)
    return float(total) if np.ndim(total) == 0 else total


def variance(alpha: Numbers, gamma: Numbers) -> Any:
    """Variance of the tokens of a round; equal to
    [a - (2g + 1) a^(g+1) (1 - a) - a^(2g+2)] / (1 - a)^2, without its cancellation near 1.
    """
    found = np.maximum(0.0, second_moment(alpha, gamma) - np.square(tau(alpha, gamma)))
    return float(found) if np.ndim(found) == 0 else found


@dataclass(frozen=True)
class RoundLaw:
    """The tokens of one round by the chances P_1, .., P_gamma that so many drafts are accepted.

    Raises InputError where these are not between 0 and 1 and non-increasing.
    """

    survival: tuple[float, ...]

    def __post_init__(self) -> None:
        before = 1.0
        for place, chance in enumerate(self.survival, start=1):
            if not 0.0 <= chance <= 1.0:
                raise InputError(f"rate at position {place} = {chance}: between 0 and 1 is allowed")
            if chance > before:
                raise InputError(
                    f"rate at position {place} = {chance:g} is above position {place - 1}: give "
                    "P_k, the share of rounds whose first k drafts were all accepted"
                )
            before = chance
        if not self.survival:
            raise InputError("per-position rates: at least one; no drafting is one token a round")

    @classmethod
    def of_alpha(cls, alpha: float, gamma: int) -> "RoundLaw":
        """One alpha at every position: P_k = alpha^k. InputError outside the ranges of tau."""
        tau(alpha, gamma)
        return cls(tuple((float(alpha) ** np.arange(1, int(gamma) + 1)).tolist()))

    @property
    def gamma(self) -> int:
        """Draft tokens a round."""
        return len(self.survival)

    @cached_property
    def chances(self) -> Array:
        """P(X = 1), .., P(X = gamma + 1)."""
        ends = np.array([1.0, *self.survival, 0.0])
        return ends[:-1] - ends[1:]

    @cached_property
    def tau(self) -> float:
        """Mean tokens a round: 1 + sum of P_k."""
        return 1.0 + math.fsum(self.survival)

    @cached_property
    def second_moment(self) -> float:
        """E[X^2]."""
        return 1.0 + math.fsum((2 * k + 1) * p for k, p in enumerate(self.survival, start=1))

    @cached_property
    def variance(self) -> float:
        """Var X."""
        tokens = np.arange(1, self.gamma + 2)
        return float(self.chances @ np.square(tokens - self.tau))

    @property
    def overshoot(self) -> float:
        """Tokens of the last round that a long answer has no use for: (E[X^2]/tau - 1)/2."""
        return (self.second_moment / self.tau - 1.0) / 2.0


def _tokens(tokens: int) -> int:
    if not (isinstance(tokens, int | np.integer) and 1 <= tokens <= MAX_TOKENS):
        raise InputError(f"tokens = {tokens}: a whole number from 1 to {MAX_TOKENS:,}")
    return int(tokens)


@lru_cache(maxsize=256)
def more_than(law: RoundLaw, tokens: int) -> Array:
    """P(an answer of `tokens` tokens takes more than n rounds) for n = 0, 1, ...

    P(M > n) = P(X_1 + .. + X_n < tokens), exact but for chances under 1e-11: the sum of as many
    rounds as are surely needed by one Fourier transform, the rest round by round. Read-only,
    since it is shared.
    """
    top = _tokens(tokens)
    done = _surely_needed(law, top)
    sums, lowest = _sum_of(law, done, top - done), done
    more = [1.0] * (done + 1)
    for n in range(done + 1, top + 1):
        sums = np.convolve(sums, law.chances)[: top - lowest - 1]
        lowest += 1
        if n % TRIM_EVERY == 0:
            kept = np.flatnonzero(sums > DROPPED)
            low, high = (kept[0], kept[-1] + 1) if kept.size else (0, 0)
            sums, lowest = sums[low:high], lowest + int(low)
        left = float(sums.sum())
        if left < ENDED:
            break
        more.append(min(left, 1.0))
    found = np.array([*more, 0.0])
    found.setflags(write=False)
    return found


def _surely_needed(law: RoundLaw, tokens: int) -> int:
    """Rounds within which an answer is done with a chance under ENDED (Chernoff's bound).

    P(X_1 + .. + X_n >= N) <= exp(-t N) E[exp(t X)]^n for every t > 0.
    """
    with np.errstate(over="ignore"):
        growth = np.log(np.exp(np.outer(TILTS, np.arange(1, law.gamma + 2))) @ law.chances)
    most = float(np.max((TILTS * tokens + math.log(ENDED)) / growth))
    return max(0, min(math.floor(most), tokens - 1))


def _sum_of(law: RoundLaw, rounds: int, width: int) -> Array:
    """Chances that a sum of so many rounds exceeds one token a round by 0, 1, .. width - 1.

    The transform is as wide as that: what lies beyond, and would wrap around, is under ENDED.
    """
    if rounds == 0:
        return np.ones(1)
    size = 1 << (max(width, law.gamma + 1) - 1).bit_length()
    chances = np.fft.irfft(np.fft.rfft(law.chances, size) ** rounds, size)
    return np.maximum(chances, 0.0)[:width]


@dataclass(frozen=True)
class Rounds:
    """The number of rounds of an answer of `tokens` tokens, 1 to MAX_TOKENS."""

    law: RoundLaw
    tokens: int

    def __post_init__(self) -> None:
        _tokens(self.tokens)

    @property
    def more(self) -> Array:
        """P(M > n) for n = 0, 1, ..."""
        return more_than(self.law, self.tokens)

    @property
    def chances(self) -> Array:
        """P(M = m) for m = 1, 2, ..."""
        return -np.diff(self.more)

    @property
    def mean(self) -> float:
        """E[M], exact."""
        return float(self.more.sum())

    @property
    def sd(self) -> float:
        """Standard deviation of M over requests that are all alike."""
        n = np.arange(len(self.more))
        return math.sqrt(max(0.0, float((2 * n + 1) @ self.more) - self.mean**2))

    def quantile(self, q: float) -> int:
        """The least m with P(M <= m) >= q, for q in (0, 1)."""
        return int(np.argmax(self.more <= 1.0 - _share(q) + ENDED))

    @property
    def effective_tau(self) -> float:
        """Tokens of the answer over its mean rounds; below tau, since the last round is cut."""
        return self.tokens / self.mean

    @property
    def lost_tokens(self) -> float:
        """Mean tokens cut off at the end of the answer: tau E[M] - N (Wald)."""
        return self.law.tau * self.mean - self.tokens


def quantile_curve(law: RoundLaw, lengths: Sequence[int], q: float) -> Array:
    """The q-quantile of the rounds over answer lengths, to draw: within a round of the exact one.

    The sum of n rounds as normal with its first skewness term (Cornish and Fisher 1938), solved
    for n; not rounded.
    """
    z = NormalDist().inv_cdf(_share(q))
    tokens = np.array([_tokens(n) for n in lengths], dtype=np.float64)
    sd = math.sqrt(law.variance)
    away = np.arange(1, law.gamma + 2) - law.tau
    third = float(law.chances @ away**3) / law.variance if law.variance > 0 else 0.0
    needed = np.maximum(tokens - 0.5 - (z * z - 1) / 6 * third, 0.5)
    root = (z * sd + np.sqrt((z * sd) ** 2 + 4 * law.tau * needed)) / (2 * law.tau)
    return np.clip(np.square(root) + 0.5, 1.0, tokens)


def _share(q: float) -> float:
    if not 0 < q < 1:
        raise InputError(f"quantile = {q}: between 0 and 1, for example 0.95")
    return float(q)


def rounds_sd(law: RoundLaw, tokens: int) -> float:
    """sd of M for long answers: sqrt(N Var X / tau^3). `Rounds(law, tokens).sd` is exact."""
    return math.sqrt(_tokens(tokens) * law.variance / law.tau**3)


def between_requests_sd(law: RoundLaw, tokens: int, tau_sd: float) -> float:
    """sd of M that requests bring whose tau differ with sd `tau_sd`: N tau_sd / tau^2.

    To first order; it grows with N where `rounds_sd` grows with its root.
    """
    if not 0 <= tau_sd < math.inf:
        raise InputError(f"tau_sd = {tau_sd}: at least 0 is allowed")
    return _tokens(tokens) * tau_sd / law.tau**2


@dataclass(frozen=True)
class DecodeTime:
    """Decode time of an answer with and without speculation, time to first token left out.

    A plain token takes `step_ms`, a round `step_ms (gamma c + v)`: with v = 1 as in Theorem 3.8,
    with a measured v no longer that theorem. Times in ms.
    """

    rounds: Rounds
    step_ms: float
    c: float
    v: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("step_ms", 0.0), ("c", 0.0), ("v", 0.0)):
            value = getattr(self, name)
            if not least <= value < math.inf or (name != "c" and value == 0):
                bound = "at least" if name == "c" else "above"
                raise InputError(f"{name} = {value}: {bound} 0 is allowed")

    @property
    def round_ms(self) -> float:
        """One round, in ms."""
        return self.step_ms * (self.rounds.law.gamma * self.c + self.v)

    @property
    def plain_ms(self) -> float:
        """Without speculation every token takes one step: the same at every percentile."""
        return self.rounds.tokens * self.step_ms

    @property
    def mean_ms(self) -> float:
        """With speculation, mean over requests that are all alike."""
        return self.rounds.mean * self.round_ms

    def percentile_ms(self, q: float) -> float:
        """With speculation, the q-quantile (0.95 for p95)."""
        return self.rounds.quantile(q) * self.round_ms
