"""Tokens a round at every draft length: measured, and beyond it a decay; what follows for gamma.

The decay is alpha_i = min(1, a0 d^(i-1)) at position i: two parameters fitted to measured lengths.
Past the longest measured gamma it is an extrapolation and is labelled so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lib.errors import InputError
from lib.theory import walltime
from lib.theory.acceptance import alpha_from_tau
from lib.theory.walltime import Array

LARGEST_D = 1.5
_GRID = 61
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Decay:
    """alpha_i = min(1, a0 d^(i-1)) at position i >= 1."""

    a0: float
    d: float

    def acceptance(self, most: int) -> Array:
        """Acceptance at positions 1 .. most, each given that it is tested."""
        return _acceptance(np.float64(self.a0), np.float64(self.d), most)

    def lengths(self, most: int, measured: int | None = None) -> Array:
        """tau(1) .. tau(most); past the longest measured gamma no rate is above the one there."""
        rates = self.acceptance(most)
        if measured is not None:
            rates[measured:] = np.minimum(rates[measured:], rates[measured - 1])
        return 1 + np.cumsum(np.cumprod(rates))


def _acceptance(a0: npt.ArrayLike, d: npt.ArrayLike, most: int) -> Array:
    with np.errstate(over="ignore"):
        powers = np.asarray(d, float)[..., None] ** np.arange(most)
    return np.minimum(np.asarray(a0, float)[..., None] * powers, 1.0)


def fit(lengths: Mapping[int, float]) -> Decay | None:
    """Least squares of the relative errors of tau over the measured lengths by gamma.

    None with fewer than two lengths. d is at most 1.5.
    """
    return _fit(tuple(sorted(lengths.items()))) if len(lengths) > 1 else None


@lru_cache(maxsize=512)  # redrawn at every step of a drag
def _fit(lengths: tuple[tuple[int, float], ...]) -> Decay:
    gammas = np.array([g for g, _ in lengths])
    wanted = np.array([tau for _, tau in lengths])
    low, high = 0.0, LARGEST_D
    a0 = d = 0.0
    for _ in range(4):
        grid = np.linspace(low, high, _GRID)
        own, loss = _best_a0(grid, gammas, wanted)
        at, step = int(np.argmin(loss)), (high - low) / (_GRID - 1)
        a0, d = float(own[at]), float(grid[at])
        low, high = max(0.0, d - 2 * step), min(LARGEST_D, d + 2 * step)
    return Decay(a0, d)


def _best_a0(d: Array, gammas: Array, wanted: Array) -> tuple[Array, Array]:
    """For each d the a0 with the least loss, by golden section, and that loss."""

    def loss(a0: Array) -> Array:
        chain = _acceptance(a0, d, int(gammas[-1]))
        tau = 1 + np.cumsum(np.cumprod(chain, axis=-1), axis=-1)[:, gammas - 1]
        return np.asarray(((tau / wanted - 1) ** 2).sum(axis=-1))

    low, high = np.zeros_like(d), np.ones_like(d)
    for _ in range(34):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        lower = loss(left) < loss(right)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    middle = (low + high) / 2
    return middle, loss(middle)


@dataclass(frozen=True)
class Lengths:
    """tau(1) .. tau(n) with, for each, whether it was measured.

    `tau[g - 1]` is at draft length g.
    """

    tau: tuple[float, ...]
    measured: tuple[bool, ...]

    @property
    def gammas(self) -> range:
        """1 .. n."""
        return range(1, len(self.tau) + 1)


def complete(measured: Mapping[int, float], most: int, decay: Decay | None) -> Lengths:
    """The measured lengths, and the decay where none was measured up to `most`.

    Beyond the longest measured gamma the decay's gains are added to the measured length, so that
    the curve has no step there. Without a decay it ends at the first gamma that was not measured.
    """
    if not measured:
        raise InputError("lengths: at least one measured length is needed")
    known = {g: t for g, t in measured.items() if g <= most}
    if decay is None:
        last = next((g for g in range(1, most + 1) if g not in known), most + 1) - 1
        return Lengths(tuple(known[g] for g in range(1, last + 1)), (True,) * last)
    top = max(measured)
    fitted = decay.lengths(max(most, top), top)
    taus = [
        known[g]
        if g in known
        else float(fitted[g - 1] + (measured[top] - fitted[top - 1] if g > top else 0.0))
        for g in range(1, most + 1)
    ]
    return Lengths(tuple(taus), tuple(g in known for g in range(1, most + 1)))


@dataclass(frozen=True)
class Best:
    """The draft length with the largest tau / (gamma c + v), and whether it was measured."""

    gamma: int
    speedup: float
    measured: bool


def speedups(lengths: Lengths, c: float, v: float = 1.0) -> Array:
    """tau(g) / (g c + v) at every length; v = 1 is Theorem 3.8 with measured tau."""
    if c < 0 or v <= 0:
        raise InputError(f"c = {c:g}, v = {v:g}: c of at least 0 and v above 0 are allowed")
    return np.array(lengths.tau) / (np.array(lengths.gammas) * c + v)


def best_gamma(lengths: Lengths, c: float, v: float = 1.0) -> Best:
    """The argmax over the lengths; the smaller gamma on an exact tie."""
    s = speedups(lengths, c, v)
    at = int(np.argmax(s))
    return Best(at + 1, float(s[at]), lengths.measured[at])


@dataclass(frozen=True)
class Regret:
    """What choosing gamma by a single alpha costs, as a share of the best speedup."""

    chosen: int
    best: int
    share: float


def regret(alpha: float, lengths: Lengths, c: float, v: float = 1.0) -> Regret:
    """1 - S(gamma that alpha chooses) / S(best gamma), both on the lengths."""
    s = speedups(lengths, c, v)
    gammas = np.array(lengths.gammas)
    chosen = int(np.argmax(np.asarray(walltime.tau(alpha, gammas)) / (gammas * c + v)))
    return Regret(chosen + 1, int(np.argmax(s)) + 1, float(1 - s[chosen] / s.max()))


@dataclass(frozen=True)
class Margin:
    """How far acceptance may fall at one gamma before tau = gamma c + v.

    `tau` and `alpha` are those at break-even; `alpha` is None where no acceptance breaks even.
    `fall` is the share of alpha (now at `alpha_now`) that may be lost, negative where it loses.
    """

    tau: float
    alpha_now: float
    alpha: float | None
    fall: float | None


def margin(tau: float, gamma: int, c: float, v: float = 1.0) -> Margin:
    """The what-if: acceptance may fall by x before speculation loses (chains only)."""
    needed = gamma * c + v
    now = float(alpha_from_tau(tau, gamma))
    if needed > gamma + 1:
        return Margin(needed, now, None, None)
    even = float(alpha_from_tau(max(needed, 1.0), gamma))
    return Margin(needed, now, even, 1 - even / now if now else None)
