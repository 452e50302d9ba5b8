"""Where speculation stops paying, or starts: the sign changes of log M between measured loads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.evidence.ratio import LogRatio

Direction = Literal["down", "up"]
Floats = NDArray[np.float64]

# A wider bracket leaves the straight line between its ends without support.
WIDEST_BRACKET = 2 * (1 + 1e-9)
LEVEL = 0.95


@dataclass(frozen=True)
class Crossing:
    """One sign change of log M; `down` where speculation stops paying as load rises.

    `between` are the neighbouring measured loads, `at` the load at which the straight line of
    log M over log2 load is 0, None where the bracket is wider than a factor 2; `measure_at` is
    then its geometric middle. Both are None where a load inside was measured and has no ratio.
    `low` and `high` are the ends of the interval of `at` (at 95 % unless another level was asked
    for), -inf or inf where an end is censored by the measured range, None with one run an arm at
    any load. `censored_share` is the share of redraws without this crossing.
    """

    between: tuple[float, float]
    at: float | None
    low: float | None
    high: float | None
    direction: Direction
    censored_share: float | None
    measure_at: float | None


@dataclass(frozen=True)
class Crossover:
    """Every crossing, by load; `outside` says where it must lie when there is none.

    `outside` is "above 64" (wins at every load measured), "below 1" (loses at every load) or None.
    """

    crossings: tuple[Crossing, ...]
    outside: str | None


def crossover(
    points: Sequence[LogRatio], draws: int = 10_000, seed: int = 0, level: float = LEVEL
) -> Crossover:
    """Every sign change of log M, with a seeded interval; nothing outside the measured range.

    Derived points and an infinite request rate take no part.
    """
    if draws < 1:
        raise InputError(f"draws = {draws}: at least 1")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: between 0 and 1, for example 0.95")
    curve = _curve(points)
    if not curve:
        return Crossover((), None)
    raw = np.array([p.log_m for p in curve])
    x, y = np.log2([p.load for p in curve]), _without_zeros(raw)
    changes = np.flatnonzero((y[:-1] > 0) != (y[1:] > 0))
    redraws = _redraws(curve, y, draws, seed) if len(changes) else None
    crossings = tuple(_crossing(curve, x, y, int(i), redraws, level) for i in changes)
    outside = None
    if (raw > 0).all():
        outside = f"above {curve[-1].load:g}"
    elif (raw < 0).all():
        outside = f"below {curve[0].load:g}"
    return Crossover(crossings, outside)


def wins_up_to(points: Sequence[LogRatio], operating_load: float, level: float) -> float | None:
    """The last load of an unbroken row of wins from the lowest measured load upward.

    A fixed-sequence claim: loads are tested in order, each at `level`, and it ends before the
    first whose interval does not clear 1. None unless the interval at the operating load, itself
    measured, clears 1; None where the lowest load does not.
    """

    def clears(point: LogRatio) -> bool:
        ends = point.log_interval(level)
        return ends is not None and ends[0] > 0

    curve = _curve(points)
    if not any(math.isclose(p.load, operating_load) and clears(p) for p in curve):
        return None
    last = None
    for point in curve:
        if not clears(point):
            break
        last = point.load
    return last


def winning(points: Sequence[LogRatio], level: float) -> tuple[tuple[float, float], ...]:
    """Runs of neighbouring measured loads at which the interval of M clears 1, as (first, last).

    A sweep may win, lose and win again: only these loads win, and none between two of them.
    """
    found: list[tuple[float, float]] = []
    open_run = False
    for point in _curve(points):
        ends = point.log_interval(level)
        wins = ends is not None and ends[0] > 0
        if wins:
            first = found.pop()[0] if open_run else point.load
            found.append((first, point.load))
        open_run = wins
    return tuple(found)


def _curve(points: Sequence[LogRatio]) -> list[LogRatio]:
    """The measured points at finite loads, by load."""
    curve = sorted(
        (p for p in points if math.isfinite(p.load) and not p.derived), key=lambda p: p.load
    )
    loads = [p.load for p in curve]
    if len(set(loads)) < len(loads):
        raise InputError("crossover: one point a load; compare one protocol at a time")
    return curve


def _without_zeros(log_m: Floats) -> Floats:
    """log M with each exact 0 on the side of the load before it (at the start: after it), so that
    touching 1 is no crossing and passing through it is one."""
    y = log_m.copy()
    signs = np.sign(y)
    stated = np.flatnonzero(signs)
    for i in np.flatnonzero(signs == 0):
        before, after = stated[stated < i], stated[stated > i]
        nearest = before[-1:] if len(before) else after[:1]
        y[i] = 1e-12 * (signs[nearest[0]] if len(nearest) else 1.0)
    return y


def _redraws(curve: Sequence[LogRatio], y: Floats, draws: int, seed: int) -> Floats | None:
    """Redrawn curves, shape (loads, draws): log M + se·t. None where a load has one run an arm."""
    rng = np.random.default_rng(seed)
    drawn = np.empty((len(curve), draws))
    for row, point, value in zip(drawn, curve, y, strict=True):
        if point.se is None or point.df is None:
            return None
        row[:] = value + point.se * rng.standard_t(point.df, draws)
    return drawn


def _crossing(
    curve: Sequence[LogRatio], x: Floats, y: Floats, i: int, redraws: Floats | None, level: float
) -> Crossing:
    a, b = curve[i].load, curve[i + 1].load
    direction: Direction = "down" if y[i] > 0 else "up"
    if b / a > WIDEST_BRACKET:
        return Crossing((a, b), None, None, None, direction, None, math.sqrt(a * b))
    share = y[i] / (y[i] - y[i + 1])
    at = x[i] + (x[i + 1] - x[i]) * share
    low = high = censored = None
    if redraws is not None:
        drawn = _nearest(x, redraws, i, share, direction)
        ends = ((1 - level) / 2, (1 + level) / 2)
        low, high = (_load(q) for q in np.quantile(drawn, ends, method="inverted_cdf"))
        censored = float(np.isinf(drawn).mean())
    return Crossing((a, b), min(max(_load(at), a), b), low, high, direction, censored, None)


def _nearest(x: Floats, redraws: Floats, i: int, share: float, direction: Direction) -> Floats:
    """log2 load, in each redraw, of the crossing of that direction nearest to the point's own.

    A redraw without one is inf where its curve says, at the point's crossing, that the change is
    still to come, else -inf.
    """
    falling = redraws if direction == "down" else -redraws
    before, after = falling[:-1], falling[1:]
    crosses = (before > 0) & (after <= 0)
    target = x[i] + (x[i + 1] - x[i]) * share
    with np.errstate(divide="ignore", invalid="ignore"):
        where = x[:-1, None] + np.diff(x)[:, None] * (before / (before - after))
    distance = np.where(crosses, np.abs(where - target), np.inf)
    best = distance.argmin(axis=0)[None]
    found = np.take_along_axis(where, best, axis=0)[0]
    missing = np.isinf(np.take_along_axis(distance, best, axis=0)[0])
    to_come = falling[i] * (1 - share) + falling[i + 1] * share > 0
    return np.where(missing, np.where(to_come, np.inf, -np.inf), found)


def _load(log2_load: float) -> float:
    return float(log2_load) if math.isinf(log2_load) else float(2**log2_load)
