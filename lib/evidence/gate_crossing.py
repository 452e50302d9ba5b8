"""Whether a candidate's crossing lies below the baseline's: speculation stops paying earlier."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lib.errors import NotComparable
from lib.evidence.crossover import Crossing, Crossover, crossover
from lib.evidence.findings import ArmFinding, find
from lib.evidence.gate import Cell, Matched
from lib.evidence.ratio import LogRatio
from lib.run import LoadKind, Run


@dataclass(frozen=True)
class CrossingChange:
    """The load up to which an arm pays, on both sides.

    `baseline` and `candidate` are the loads of the first crossing downward, None where there is
    none with a place. `low` and `high` are the ends of candidate over baseline. `lower` says
    whether the candidate's lies lower beyond noise; None where that is open, and `why` says so.
    """

    arm: str
    baseline: float | None
    candidate: float | None
    low: float | None
    high: float | None
    lower: bool | None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate / self.baseline


def crossed_arms(matched: Matched) -> tuple[str, ...]:
    """The arms whose crossing both sides can have: off beside them, on two shared loads or more."""
    old, new = _arms(matched, "baseline"), _arms(matched, "candidate")
    return tuple(label for label, kind in old if (label, kind) in new)


def crossing_changes(matched: Matched, level: float) -> tuple[CrossingChange, ...]:
    """Of each arm measured beside off on both sides, how its crossing moved, at that level.

    Both sides' multipliers are their own, with over without. The ends of candidate over baseline
    are those of two independent intervals, by squares of their distances on the log scale (Zou and
    Donner 2008, Statistics in Medicine 27:1693-1702). Where a side has no crossing with a place,
    the candidate's is lower if there is a load at which the baseline's multiplier clears 1 and the
    candidate's clears it downward; not lower if the baseline never wins, the candidate always does,
    or both cross between the same two loads; else it is open.
    """
    old, new = _arms(matched, "baseline"), _arms(matched, "candidate")
    return tuple(_change(old[arm], new[arm], level) for arm in old if arm in new)


def _arms(matched: Matched, side: str) -> dict[tuple[str, LoadKind], ArmFinding]:
    runs: list[Run] = [r for c in matched.cells for r in _runs(c, side)]
    try:
        found = find(replace(matched.study, runs=tuple(runs)))
    except NotComparable:  # no run is off, or none is anything else
        return {}
    return {
        (a.label, a.pairs.load_kind): a
        for a in found.arms
        if sum(math.isfinite(p.load) for p in a.points) > 1
    }


def _runs(cell: Cell, side: str) -> Sequence[Run]:
    return cell.baseline if side == "baseline" else cell.candidate


def _change(old: ArmFinding, new: ArmFinding, level: float) -> CrossingChange:
    shared = {p.load for p in old.points} & {p.load for p in new.points}
    points = [[p for p in a.points if p.load in shared] for a in (old, new)]
    before, after = (crossover(p, level=level) for p in points)
    a, b = _first_down(before), _first_down(after)
    known = _ends(a), _ends(b)
    if a and b and a.at and b.at:
        if known[0] is None or known[1] is None:
            return CrossingChange(
                new.label, a.at, b.at, None, None, None, "one run an arm at some load"
            )
        low, high = _ratio_ends(a.at, known[0], b.at, known[1])
        return CrossingChange(new.label, a.at, b.at, low, high, high < 1)
    lower, why = _by_loads(points[0], points[1], before, after, level)
    at = [c.at if c else None for c in (a, b)]
    return CrossingChange(new.label, at[0], at[1], None, None, lower, why)


def _first_down(found: Crossover) -> Crossing | None:
    return next((c for c in found.crossings if c.direction == "down"), None)


def _ends(crossing: Crossing | None) -> tuple[float, float] | None:
    if crossing is None or crossing.low is None or crossing.high is None:
        return None
    return crossing.low, crossing.high


def _ratio_ends(
    a: float, a_ends: tuple[float, float], b: float, b_ends: tuple[float, float]
) -> tuple[float, float]:
    """Ends of b / a from the interval of each, loads all."""
    gap = math.log(b / a)
    down = math.hypot(math.log(b) - _log(b_ends[0]), _log(a_ends[1]) - math.log(a))
    up = math.hypot(_log(b_ends[1]) - math.log(b), math.log(a) - _log(a_ends[0]))
    return math.exp(gap - down), math.exp(gap + up)


def _log(load: float) -> float:
    return load if math.isinf(load) else math.log(load)


def _by_loads(
    old: Sequence[LogRatio],
    new: Sequence[LogRatio],
    before: Crossover,
    after: Crossover,
    level: float,
) -> tuple[bool | None, str]:
    """Whether the candidate stops paying earlier, told load by load, with why it is not a ratio."""
    sides = f"baseline {_words(before)}, candidate {_words(after)}"
    candidate = {p.load: p.log_interval(level) for p in new}
    if not all(p.log_interval(level) for p in (*old, *new)):
        return None, f"{sides}; one run an arm at some load"
    for point in old:
        ours, theirs = point.log_interval(level), candidate.get(point.load)
        if ours and theirs and ours[0] > 0 and theirs[1] < 0:
            return True, f"{sides}; it wins and then loses at {point.load:g}"
    never = (before.outside or "").startswith("below")
    always = (after.outside or "").startswith("above")
    a, b = _first_down(before), _first_down(after)
    same = a is not None and b is not None and a.between == b.between
    return (False if never or always or same else None), sides


def _words(found: Crossover) -> str:
    crossing = _first_down(found)
    if crossing is not None:
        low, high = crossing.between
        return f"crosses between {low:g} and {high:g}"
    if found.outside is None:
        return "does not cross downward"
    side, load = found.outside.split(" ")
    return f"wins up to {load}" if side == "above" else f"loses from {load} on"
