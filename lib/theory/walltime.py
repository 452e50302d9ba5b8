"""The walltime theorem of speculative decoding and what follows from it.

Leviathan, Kalman and Matias 2023, "Fast Inference from Transformers via Speculative Decoding",
arXiv 2211.17192. Symbols: `alpha` chance that a draft token is accepted (one value, independent at
every position), `gamma` draft tokens a round, `c` time of one draft step over one plain target
step, `tau` mean tokens emitted a round, bonus token included.

The theorem assumes that verifying gamma + 1 tokens costs one plain target step, which holds at low
batch only. Every function takes scalars or arrays that broadcast, and gives a float for scalars.
"""

from enum import StrEnum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lib.errors import InputError

Numbers = npt.ArrayLike
Array = npt.NDArray[np.float64]

# Measured over predicted in Tables 2 and 4 of the paper itself runs from 0.68 to 1.29: the theorem
# is good to about this much in its own home setting.
MEASURED_OVER_PREDICTED_LOW = 0.68
MEASURED_OVER_PREDICTED_HIGH = 1.3
MAX_GAMMA = 10_000
MAX_ROUNDS = 5_000_000
_PARTS = np.arange(65) / 64
NOTE_LOW_BATCH = "holds at low batch only; measure under load before you deploy or price"


class Verdict(StrEnum):
    """What the theorem says about a load test, given how far it has missed."""

    REJECT = "reject"
    CANDIDATE = "candidate"
    UNDECIDED = "undecided"


def _numbers(name: str, value: Numbers, allowed: str) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: a number is needed ({allowed})") from None
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name}: a finite number is needed ({allowed})")
    return array


def _alpha(value: Numbers) -> Array:
    array = _numbers("alpha", value, "between 0 and 1")
    wrong = array[(array < 0) | (array > 1)]
    if wrong.size:
        first = float(wrong.flat[0])
        hint = f"; was {first:g} % meant, alpha = {first / 100:g}?" if 1 < first <= 100 else ""
        raise InputError(f"alpha = {first:g}: between 0 and 1 is allowed{hint}")
    return array


def _gamma(value: Numbers) -> Array:
    array = _numbers("gamma", value, "a whole number of at least 1")
    wrong = array[(array < 1) | (array != np.floor(array))]
    if wrong.size:
        raise InputError(
            f"gamma = {float(wrong.flat[0]):g}: a whole number of at least 1; no drafting is S = 1"
        )
    return array


def _cost(name: str, value: Numbers) -> Array:
    array = _numbers(name, value, "at least 0")
    if np.any(array < 0):
        raise InputError(f"{name} = {float(array[array < 0].flat[0]):g}: at least 0 is allowed")
    return array


def _out(array: Any) -> Any:
    return float(array) if np.ndim(array) == 0 else array


def _tau(alpha: Array, gamma: Array) -> Array:
    """Sum of alpha^i for i = 0..gamma, without cancellation near 1; gamma may be 0 here."""
    q = 1.0 - alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        log_alpha = np.where(alpha < 0.5, np.log(alpha), np.log1p(-q))
        total = -np.expm1((gamma + 1.0) * log_alpha) / q
    return cast(Array, np.where(q == 0.0, gamma + 1.0, total))


def tau(alpha: Numbers, gamma: Numbers) -> Any:
    """Mean tokens a round, bonus included: (1 - alpha^(gamma+1)) / (1 - alpha). Eq. 1."""
    return _out(_tau(_alpha(alpha), _gamma(gamma)))


def alpha_of_tau(tau_measured: Numbers, gamma: Numbers) -> Any:
    """The alpha whose tau is the measured one: Eq. 1 inverted by bisection.

    NaN above gamma + 1, where no alpha is, and below 1: a length without its bonus token?
    """
    t, g = np.broadcast_arrays(_numbers("tau", tau_measured, "at least 1"), _gamma(gamma))
    low, high = np.zeros(t.shape), np.ones(t.shape)
    for _ in range(60):
        middle = (low + high) / 2
        below = _tau(middle, g) < t
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    root = np.where(t == 1.0, 0.0, np.where(t == g + 1.0, 1.0, (low + high) / 2))
    return _out(np.where((t < 1.0) | (t > g + 1.0), np.nan, root))


def speedup(alpha: Numbers, gamma: Numbers, c: Numbers) -> Any:
    """Walltime factor S = tau / (gamma c + 1) at low batch. Theorem 3.8."""
    g = _gamma(gamma)
    return _out(_tau(_alpha(alpha), g) / (g * _cost("c", c) + 1.0))


def break_even_c(alpha: Numbers, gamma: Numbers) -> Any:
    """The c at which S = 1: (tau - 1) / gamma, written as alpha tau(gamma - 1) / gamma."""
    a, g = _alpha(alpha), _gamma(gamma)
    return _out(a * _tau(a, g - 1.0) / g)


def break_even_alpha(gamma: Numbers, c: Numbers) -> Any:
    """The alpha at which S = 1; NaN where c > 1, since then no acceptance breaks even."""
    g, cost = (x[..., None] for x in np.broadcast_arrays(_gamma(gamma), _cost("c", c)))
    low, width = np.zeros(g.shape), 1.0
    # The break-even c rises with alpha: each pass keeps the 64th part in which it meets c.
    for _ in range(9):
        grid = low + width * _PARTS
        short = (grid * _tau(np.minimum(grid, 1.0), g - 1.0) / g < cost).sum(axis=-1, keepdims=True)
        width /= 64
        low = low + width * np.maximum(short - 1, 0)
    middle, cost = (low + width / 2)[..., 0], cost[..., 0]
    root = np.where(cost == 0.0, 0.0, np.where(cost == 1.0, 1.0, np.minimum(middle, 1.0)))
    return _out(np.where(cost > 1.0, np.nan, root))


def best_gamma(alpha: Numbers, c: Numbers, max_gamma: int = 32) -> Any:
    """Whole gamma in 1..max_gamma with the largest S; the smaller one on an exact tie. Sec. 3.5.

    It is the argmax also where no gamma wins (see `no_gamma_wins`): look at S there.
    """
    limit = max_gamma
    if not (isinstance(limit, int | np.integer) and 1 <= limit <= MAX_GAMMA):
        raise InputError(f"max_gamma = {max_gamma}: a whole number from 1 to {MAX_GAMMA:,}")
    gammas = np.arange(1, limit + 1, dtype=np.float64)
    a, cost = _alpha(alpha)[..., None], _cost("c", c)[..., None]
    best = 1 + np.argmax(_tau(a, gammas) / (gammas * cost + 1.0), axis=-1)
    return int(best) if np.ndim(best) == 0 else best


def no_gamma_wins(alpha: Numbers, c: Numbers) -> Any:
    """True where alpha <= c: then no gamma gives S > 1. Corollary 3.9 and its converse."""
    wins = _alpha(alpha) <= _cost("c", c)
    return bool(wins) if np.ndim(wins) == 0 else wins


def operations_factor(alpha: Numbers, gamma: Numbers, c_hat: Numbers) -> Any:
    """Growth of arithmetic operations (gamma c_hat + gamma + 1) / tau. Theorem 3.11.

    `c_hat` is operations per token of the drafter over those of the target.
    """
    g = _gamma(gamma)
    return _out((g * _cost("c_hat", c_hat) + g + 1.0) / _tau(_alpha(alpha), g))


def verdict(s: float) -> Verdict:
    """Reject where even the best miss stays below 1, candidate where the worst stays above."""
    if s * MEASURED_OVER_PREDICTED_HIGH < 1.0:
        return Verdict.REJECT
    if s * MEASURED_OVER_PREDICTED_LOW > 1.0:
        return Verdict.CANDIDATE
    return Verdict.UNDECIDED


def simulate_speedup(
    alpha: float, gamma: int, c: float, rounds: int, rng: np.random.Generator
) -> tuple[float, float]:
    """S and its standard error from `rounds` simulated rounds, as a check on the closed form.

    Each round tests gamma drafts in order, each accepted with chance alpha, stops at the first
    rejection and emits one token more.
    """
    a, g, cost = float(_alpha(alpha)), int(_gamma(gamma)), float(_cost("c", c))
    if not (isinstance(rounds, int | np.integer) and 2 <= rounds <= MAX_ROUNDS):
        raise InputError(f"rounds = {rounds}: a whole number from 2 to {MAX_ROUNDS:,}")
    n = int(rounds)
    tokens = np.ones(n, dtype=np.int64)
    running = np.ones(n, dtype=bool)
    for _ in range(g):
        running &= rng.random(n) < a
        tokens += running
    per_round = g * cost + 1.0
    return (
        float(tokens.mean()) / per_round,
        float(tokens.std(ddof=1)) / float(np.sqrt(n)) / per_round,
    )
