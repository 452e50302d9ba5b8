"""From samples to c, v(n) and the critical batch, each with its 95 % interval.

Ratios are taken within a round and their median over the rounds: a drift of the clock meets both
sides of a ratio, and a round that was disturbed is one of many. Intervals are percentiles of a
bootstrap over rounds, seeded.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lib.probe.result import Interval, VerifyCost
from lib.probe.timing import LEAVES, Samples

UNSTABLE = 0.05  # IQR over median
DRAWS = 2000
_SEED = 1729
_AT_ONCE = 2_000_000  # values of one step held while drawing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Critical:
    """Verified tokens, all requests together, where v leaves 1 by more than 10 %.

    Where to look in a load sweep. None was not reached: a value that is None lies above the passes
    that were timed, and an end that is None likewise.
    """

    tokens: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figures:
    """What samples say. Spreads are IQR over median."""

    c: Interval
    v: tuple[VerifyCost, ...]
    critical: Critical
    spread_draft: float
    spread_target: float

    @property
    def unstable(self) -> bool:
        """Whether a step's time spreads by more than 5 %."""
        return max(self.spread_draft, self.spread_target) > UNSTABLE


def figures(samples: Samples, batch: int = 1) -> Figures:
    """c = T_D / T_T(1) and v(n) = T_T(n) / T_T(1) from the rounds of a measurement."""
    target = np.asarray(samples.target_ms)
    tokens = sorted(samples.verify_ms)
    paired = np.stack(
        [np.asarray(samples.draft_ms) / target]
        + [np.asarray(samples.verify_ms[n]) / target for n in tokens]
    )
    values, drawn = np.median(paired, axis=1), _drawn_medians(paired)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=1)
    v = tuple(
        VerifyCost(n, float(values[i]), float(low[i]), float(high[i]))
        for i, n in enumerate(tokens, start=1)
    )
    return Figures(
        c=Interval(float(values[0]), float(low[0]), float(high[0])),
        v=v,
        critical=_critical(tokens, values[1:], drawn[1:], batch),
        spread_draft=spread(samples.draft_ms),
        spread_target=spread(samples.target_ms),
    )


def spread(times: Sequence[float]) -> float:
    """IQR over median."""
    low, middle, high = np.percentile(times, [25, 50, 75])
    return float((high - low) / middle)


def crossing(v_by_tokens: Mapping[int, float], level: float = LEAVES) -> float:
    """Tokens at which v first exceeds `level`, between measured points linear in log n; v(1) = 1.

    Infinite where no point does.
    """
    before, v_before = 1, 1.0
    for n, v in sorted(v_by_tokens.items()):
        if v > level:
            share = (level - v_before) / (v - v_before)
            return math.exp(math.log(before) + share * math.log(n / before))
        before, v_before = n, v
    return math.inf


def _critical(tokens: Sequence[int], values: Floats, drawn: Floats, batch: int) -> Critical:
    """`values` by tokens, `drawn` by tokens and draw."""

    def reached(at: float) -> float | None:
        return batch * at if math.isfinite(at) else None

    def of(column: Floats) -> float:
        return crossing(dict(zip(tokens, column.tolist(), strict=True)))

    ordered = sorted(of(column) for column in drawn.T)
    tail = round(0.025 * len(ordered))
    return Critical(reached(of(values)), reached(ordered[tail]), reached(ordered[-1 - tail]))


def _drawn_medians(paired: Floats) -> Floats:
    """Medians of each row over rounds drawn with replacement, (rows, DRAWS); the same rounds for
    every row of a draw."""
    rounds = paired.shape[1]
    rng = np.random.default_rng(_SEED)
    parts, left = [], DRAWS
    while left:
        count = min(left, max(1, _AT_ONCE // rounds))
        picks = rng.integers(rounds, size=(count, rounds))
        parts.append(np.stack([np.median(row[picks], axis=1) for row in paired]))
        left -= count
    return np.concatenate(parts, axis=1)
