"""The best K at every integer batch, out of the arms that have a fixed K."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from lib.errors import NotComparable
from lib.evidence.pairing import ArmComparison, Cell, Comparison
from lib.evidence.protocol import ONE_CURVE, Difference, differences_at
from lib.evidence.ratio import (
    TIE,
    LogMean,
    Metric,
    difference,
    log_mean,
    log_mean_of_runs,
    log_ratios,
)
from lib.run import LoadKind, Run, distinct

LOAD_KINDS = (LoadKind.CONCURRENCY, LoadKind.BATCH)
MOST_RANGES = 6
Floats = NDArray[np.float64]
_RANGE_COST = 1e6  # one range outweighs any sum of log losses


@dataclass(frozen=True)
class Arm:
    """Log objective by measured load, higher is better; off is K = 0."""

    k: int
    by_load: Mapping[float, LogMean]


@dataclass(frozen=True)
class Grid:
    """Arms by rising K (off first) at every integer batch, -inf outside an arm's own range.

    `batches` n; `values` and `within` arms × n: log objective, and whether that arm is within the
    tie of the best.
    """

    arms: tuple[Arm, ...]
    batches: NDArray[np.int64]
    values: Floats
    within: NDArray[np.bool_]

    @property
    def loads(self) -> tuple[float, ...]:
        """The measured loads, rising."""
        return tuple(sorted(self.arms[0].by_load))


def competing(
    comparison: Comparison,
    metric: Metric,
    method: str | None = None,
    protocol: str | None = None,
) -> tuple[list[ArmComparison], list[str]]:
    """The arms with a fixed K of one draft method, one kind of load and one protocol.

    Batches are concurrent requests, so arms measured over request rates do not compete. The
    second value names, one sentence each, what was left out. Raises NotComparable where nothing
    is left, several methods or protocols are and none is chosen, or the allocation differs.
    """
    usable = [
        a
        for a in comparison.arms
        if _k(a) is not None and a.load_kind in LOAD_KINDS and _cells(a, metric)
    ]
    if not usable:
        raise NotComparable(
            "no arm with a fixed K shares a concurrency or batch with off in "
            f"{metric.label.lower()}; import one, for example as eagle3:3"
        )
    used = _only("draft method", method, _method, usable)
    kind = min((a.load_kind for a in used), key=LOAD_KINDS.index)
    used = [a for a in used if a.load_kind is kind]
    used = _only("protocol", protocol, lambda a: a.protocol, used)
    used = [a for a in used if any(c.off for c in _cells(a, metric))] or used
    _one_server(used, frozenset(d.field for d in comparison.differences if d.overridden))
    return used, _left_out(comparison, used)


def _left_out(comparison: Comparison, used: list[ArmComparison]) -> list[str]:
    kept = {id(a) for a in used}
    others = [a for a in comparison.arms if id(a) not in kept]
    no_fixed_k = distinct(a.arm for a in others if _k(a) is None)
    rest = distinct(f"{a.arm} ({a.load_kind.value})" for a in others if _k(a) is not None)
    warnings = []
    if no_fixed_k:
        warnings.append(f"Without a fixed K these do not compete: {', '.join(no_fixed_k)}.")
    if rest:
        warnings.append(
            "Left out, of another method, kind of load or protocol, or without a load shared "
            f"with off: {', '.join(rest)}."
        )
    return warnings


def _only(
    what: str,
    chosen: str | None,
    name_of: Callable[[ArmComparison], str],
    arms: list[ArmComparison],
) -> list[ArmComparison]:
    """The arms of the chosen name, and those without one."""
    names = distinct(name_of(a) for a in arms)
    if chosen is None and len(names) > 1:
        raise NotComparable(
            f"{what}s {'; '.join(names)}: a schedule rests on one; choose the {what}, or import "
            "each as its own study"
        )
    if chosen is not None and chosen not in names:
        raise NotComparable(f"{what} {chosen!r}: one of {'; '.join(names) or 'none'}")
    return [a for a in arms if chosen is None or name_of(a) in (chosen, "")]


def _one_server(used: Sequence[ArmComparison], overridden: frozenset[str]) -> None:
    """A schedule switches K on one server, so all arms must be that server (design law 7)."""
    models = distinct(r.draft_model for a in used for r in _on(a))
    if len(models) > 1:
        raise NotComparable(
            f"draft models {', '.join(models)}: one server drafts with one; import each as its "
            "own study"
        )
    off_on = [("off", a.arm, d) for a in used for d in a.differences if d.verdict == "allocation"]
    between = [
        (a.arm, b.arm, d)
        for a, b in combinations(used, 2)
        for d in _between(a, b, overridden)
        if d.verdict != "noted" and not d.overridden
    ]
    for first, second, d in (*off_on, *between):
        raise NotComparable(
            f"{d.field} is {d.off} for {first} and {d.on} for {second}: a schedule switches K on "
            "one server; measure them on the same"
        )


def _between(a: ArmComparison, b: ArmComparison, overridden: frozenset[str]) -> list[Difference]:
    """How two arms differ: along their curves, and at each load that both measured."""
    along = [d for d in differences_at(_on(a), _on(b), overridden) if d.field in ONE_CURVE]
    others = {c.load: c.on for c in b.cells}
    shared = [(c.on, others[c.load]) for c in a.cells if c.load in others]
    return along + [d for mine, yours in shared for d in differences_at(mine, yours, overridden)]


def _k(arm: ArmComparison) -> int | None:
    """The fixed K of an arm; None where it is adaptive, scheduled, unknown or 0."""
    runs = _on(arm)
    ks = {r.num_speculative_tokens for r in runs if r.schedule is None}
    if len(ks) != 1 or any(r.schedule is not None for r in runs):
        return None
    return ks.pop() or None


def _on(arm: ArmComparison) -> list[Run]:
    return [*(r for c in arm.cells for r in c.on), *arm.on_only]


def _method(arm: ArmComparison) -> str:
    return _on(arm)[0].draft_method or arm.arm.split(":")[0]


def _cells(arm: ArmComparison, metric: Metric) -> list[Cell]:
    """The cells at finite loads that hold the objective; ratio-only ones where no others do."""
    loads = {p.load for p in log_ratios(arm, metric.name) if math.isfinite(p.load)}
    cells = [c for c in arm.cells if c.load in loads]
    return [c for c in cells if c.off] or cells


def curves(used: Sequence[ArmComparison], metric: Metric) -> tuple[Arm, ...]:
    """Off as K = 0 and each arm, by rising K. Published ratios stand against off = 1."""
    off_runs: dict[float, dict[str, Run]] = {}
    arms = []
    for arm in used:
        cells = _cells(arm, metric)
        for cell in cells:
            off_runs.setdefault(cell.load, {}).update({r.run_id: r for r in cell.off})
        arms.append(_arm(_k(arm) or 0, {c.load: c.on for c in cells}, metric, not cells[0].off))
    ratio_only = not any(off_runs.values())
    off = _arm(0, {n: tuple(runs.values()) for n, runs in off_runs.items()}, metric, ratio_only)
    return tuple(sorted([off, *arms], key=lambda a: a.k))


def _arm(k: int, runs: Mapping[float, Sequence[Run]], metric: Metric, ratio_only: bool) -> Arm:
    if ratio_only:
        ratios = {n: [r.multiplier for r in at if r.multiplier] or [1.0] for n, at in runs.items()}
        return Arm(k, {n: LogMean(log_mean(x).mean, None, None, 1) for n, x in ratios.items()})
    means = {n: log_mean_of_runs(at, metric) for n, at in runs.items()}
    sign = 1 if metric.higher_is_better else -1
    return Arm(k, {n: replace(m, mean=sign * m.mean) for n, m in means.items() if m is not None})


def grid_of(arms: tuple[Arm, ...], max_num_seqs: int, noise_ties: bool = True) -> Grid:
    """The arms at every whole batch between lowest and highest load, at most to max_num_seqs.

    The lowest batch stays where max_num_seqs is below it. Raises NotComparable where no whole
    batch lies between the loads.
    """
    loads = sorted(arms[0].by_load)
    first = math.ceil(loads[0])
    if first > loads[-1]:
        raise NotComparable(
            f"no whole batch between load {loads[0]:g} and {loads[-1]:g}: measure one"
        )
    batches = np.arange(first, max(first, min(math.floor(loads[-1]), max_num_seqs)) + 1)
    x = np.log2(batches)
    values = np.array([_line(x, {n: m.mean for n, m in a.by_load.items()}, -np.inf) for a in arms])
    best = values.argmax(axis=0)
    within = np.zeros(values.shape, dtype=bool)
    for i, j in product(range(len(arms)), repeat=2):
        here = best == j
        tie = np.maximum(TIE, _half_width(arms[i], arms[j], x[here]) if noise_ties else 0.0)
        within[i, here] = values[j, here] - values[i, here] <= tie
    return Grid(arms, batches, values, within)


def _line(x: Floats, by_load: Mapping[float, float], outside: float) -> Floats:
    """Straight lines over log2 load between the measured loads."""
    loads = sorted(by_load)
    return np.interp(x, np.log2(loads), [by_load[n] for n in loads], left=outside, right=outside)


def _half_width(a: Arm, b: Arm, x: Floats) -> Floats:
    """Half-width of the 95 % interval of log(a/b); 0 where a load has one run in either arm."""
    at: dict[float, float] = {}
    for load in a.by_load.keys() & b.by_load.keys():
        _, se, df = difference(a.by_load[load], b.by_load[load])
        at[load] = 0.0 if se is None or df is None else float(stdtrit(df, 0.975)) * se
    return _line(x, at, 0.0) if at else np.zeros(len(x))


def choose(grid: Grid) -> tuple[NDArray[np.intp], int]:
    """Index of the arm for each batch, and how many ranges there were if they were reduced."""
    choice = _join(grid.within.argmax(axis=0), grid.within)
    count = len(runs_of(choice))
    if count <= MOST_RANGES:
        return choice, 0
    fewest = _fewest(choice, grid)
    return fewest, count if len(runs_of(fewest)) < count else 0


def runs_of(choice: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Start and end (not included) of each stretch of equal values."""
    edges = [0, *(np.flatnonzero(np.diff(choice)) + 1), len(choice)]
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _join(choice: NDArray[np.intp], within: NDArray[np.bool_]) -> NDArray[np.intp]:
    """A run between two of the same other K joins them where that K is within the tie in it."""
    joined = choice.copy()
    i = 1
    while i < len(runs := runs_of(joined)) - 1:
        start, end = runs[i]
        around = joined[start - 1]
        if around == joined[end] and within[around, start:end].all():
            joined[start:end] = around
            i = 1
        else:
            i += 1
    return joined


def _fewest(choice: NDArray[np.intp], grid: Grid) -> NDArray[np.intp]:
    """The fewest ranges whose K is within the tie of the best and under 1 % behind `choice`.

    Among equally few, the smallest sum of log losses (Viterbi over the batches).
    """
    columns = np.arange(len(choice))
    behind = grid.values[choice, columns] - grid.values
    allowed = grid.within & (behind <= TIE)
    loss = np.where(allowed, grid.values.max(axis=0) - grid.values, np.inf)
    cost, sources = loss[:, 0], []
    for column in columns[1:]:
        cheapest = int(cost.argmin())
        enter = cost[cheapest] + _RANGE_COST
        sources.append(np.where(cost <= enter, np.arange(len(cost)), cheapest))
        cost = np.minimum(cost, enter) + loss[:, column]
    path = [int(cost.argmin())]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return np.array(path[::-1])
