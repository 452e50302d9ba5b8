"""The best K at every integer batch, out of the arms that have a fixed K."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from lib.errors import NotComparable
from lib.evidence.batches import axis, sentences
from lib.evidence.competing import GOODPUT, cells_of, k_of, method_of, scheduled_off
from lib.evidence.pairing import ArmComparison, Comparison
from lib.evidence.ratio import (
    TIE,
    LogMean,
    Metric,
    difference,
    log_mean,
    log_mean_of_runs,
    log_ratios,
)
from lib.run import OFF, LoadKind, Run

MOST_RANGES = 6
Floats = NDArray[np.float64]
_RANGE_COST = 1e6  # one range outweighs any sum of log losses


@dataclass(frozen=True)
class Arm:
    """Log objective by running batch, higher is better; off is K = 0.

    `offered` gives the offered load behind a batch where that is another number. An objective of
    0 (no good request) is -inf.
    """

    k: int
    by_load: Mapping[float, LogMean]
    offered: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """Arms by rising K (off first) at every integer batch, -inf outside an arm's own range.

    `batches` n; `values` and `within` arms × n: log objective, and whether that arm is within the
    tie of the best. `values[0]` is off less the measured tax of K = 0; `log_tax` n holds that tax
    and is nan where it is not measured, None where it is nowhere. `unserved` is the first batch at
    which no arm reaches the objective; the grid ends before it.
    """

    arms: tuple[Arm, ...]
    batches: NDArray[np.int64]
    values: Floats
    within: NDArray[np.bool_]
    log_tax: Floats | None = None
    unserved: int | None = None

    @property
    def loads(self) -> tuple[float, ...]:
        """The measured batches of off inside the grid, rising."""
        end = math.inf if self.unserved is None else self.unserved
        return tuple(n for n in sorted(self.arms[0].by_load) if n < end)

    @property
    def off(self) -> Floats:
        """Log objective of a server without speculation, by batch."""
        return self.values[0] if self.log_tax is None else self.values[0] + self._known_tax

    @property
    def _known_tax(self) -> Floats:
        assert self.log_tax is not None
        return np.nan_to_num(self.log_tax, nan=0.0)


def curves(used: Sequence[ArmComparison], metric: Metric) -> tuple[tuple[Arm, ...], list[str]]:
    """Off as K = 0 and each arm, by rising K, and what is derived about their batches.

    Published ratios stand against off = 1.
    """
    kind = used[0].load_kind
    off_runs: dict[float, dict[str, Run]] = {}
    arms, said = [], []
    for arm in used:
        cells = cells_of(arm, metric)
        for cell in cells:
            off_runs.setdefault(cell.load, {}).update({r.run_id: r for r in cell.off})
        runs = {c.load: c.on for c in cells}
        arms.append(_arm(k_of(arm) or 0, runs, metric, kind, not cells[0].off))
        said += sentences(arm.arm, axis(kind, runs), runs)
    ratio_only = not any(off_runs.values())
    at = {n: tuple(runs.values()) for n, runs in off_runs.items()}
    off = _arm(0, at, metric, kind, ratio_only)
    arms = [a for a in arms if a.by_load]
    if not off.by_load or not arms:
        raise NotComparable(
            "the running batch of off or of every arm is not recorded; import files with a running "
            "mean, or measure at a held concurrency"
        )
    said = [*sentences(OFF, axis(kind, at), at), *said]
    return tuple(sorted([off, *arms], key=lambda a: a.k)), said


def _arm(
    k: int,
    runs: Mapping[float, Sequence[Run]],
    metric: Metric,
    kind: LoadKind,
    ratio_only: bool,
) -> Arm:
    if ratio_only:
        ratios = {n: [r.multiplier for r in at if r.multiplier] or [1.0] for n, at in runs.items()}
        return Arm(k, {n: LogMean(log_mean(x).mean, None, None, 1) for n, x in ratios.items()})
    by_load, offered = {}, {}
    sign = 1 if metric.higher_is_better else -1
    for load, batch in axis(kind, runs).items():
        mean = _log_mean(runs[load], metric)
        if mean is not None:
            by_load[batch.value] = replace(mean, mean=sign * mean.mean)
            offered[batch.value] = load
    return Arm(k, by_load, offered)


def _log_mean(runs: Sequence[Run], metric: Metric) -> LogMean | None:
    """As everywhere, but a run without a good request at the SLO sinks its arm at that load."""
    if metric.name == GOODPUT and any(getattr(r, metric.attribute) == 0 for r in runs):
        return LogMean(-math.inf, None, None, len(runs))
    return log_mean_of_runs(runs, metric)


def taxes(
    comparison: Comparison, used: Sequence[ArmComparison], metric: Metric
) -> dict[float, float]:
    """Log tax of a scheduled K = 0 against off by batch, where METHOD:0 was measured beside off.

    The arms are those of the same draft method, kind of load and protocol as `used`.
    """
    names = {method_of(a) for a in used}
    alike = {(a.load_kind, a.protocol) for a in used}
    found: dict[float, float] = {}
    for arm in comparison.arms:
        if not scheduled_off(arm) or method_of(arm) not in names:
            continue
        if (arm.load_kind, arm.protocol) not in alike:
            continue
        off = axis(arm.load_kind, {c.load: c.off for c in arm.cells if math.isfinite(c.load)})
        for point in log_ratios(arm, metric.name):
            if point.load in off:
                found[off[point.load].value] = -point.log_m
    return dict(sorted(found.items()))


def grid_of(
    arms: tuple[Arm, ...],
    max_num_seqs: int,
    noise_ties: bool = True,
    tax: Mapping[float, float] | None = None,
) -> Grid:
    """The arms at every whole batch between lowest and highest load, at most to max_num_seqs.

    The lowest batch stays where max_num_seqs is below it. `tax` is K = 0's measured log tax by
    batch; it holds between its own measured batches. Raises NotComparable where no whole batch
    lies between the loads, or no arm reaches the objective at the lowest.
    """
    low, high = _common_range(arms)
    first = math.ceil(low)
    if first > high:
        raise NotComparable(f"no whole batch between load {low:g} and {high:g}: measure one")
    batches = np.arange(first, max(first, min(math.floor(high), max_num_seqs)) + 1)
    x = np.log2(batches)
    values = np.array([_line(x, {n: m.mean for n, m in a.by_load.items()}, -np.inf) for a in arms])
    log_tax = _line(x, tax, np.nan) if tax else None
    if log_tax is not None and np.isnan(log_tax).all():
        log_tax = None
    if log_tax is not None:
        values[0] -= np.nan_to_num(log_tax, nan=0.0)
    reached = np.isfinite(values).any(axis=0)
    if not reached[0]:
        raise NotComparable(
            f"no arm has a good request at batch {first}: name a looser limit, or measure lower"
        )
    end = len(batches) if reached.all() else int(reached.argmin())
    unserved = None if reached.all() else int(batches[end])
    batches, x, values = batches[:end], x[:end], values[:, :end]
    within = _within(arms, x, values, noise_ties)
    return Grid(arms, batches, values, within, None if log_tax is None else log_tax[:end], unserved)


def _common_range(arms: Sequence[Arm]) -> tuple[float, float]:
    """Where off and at least one arm were measured: off alone does not compete."""
    off, rest = arms[0].by_load, [a.by_load for a in arms[1:]]
    low, high = min(off), max(off)
    if rest:
        low = max(low, min(min(r) for r in rest))
        high = min(high, max(max(r) for r in rest))
    return low, high


def _within(arms: Sequence[Arm], x: Floats, values: Floats, noise_ties: bool) -> NDArray[np.bool_]:
    best = values.argmax(axis=0)
    within = np.zeros(values.shape, dtype=bool)
    for i, j in product(range(len(arms)), repeat=2):
        here = best == j
        tie = np.maximum(TIE, _half_width(arms[i], arms[j], x[here]) if noise_ties else 0.0)
        within[i, here] = values[j, here] - values[i, here] <= tie
    return within


def _line(x: Floats, by_load: Mapping[float, float], outside: float) -> Floats:
    """Straight lines over log2 load between the measured loads."""
    loads = sorted(by_load)
    return np.interp(x, np.log2(loads), [by_load[n] for n in loads], left=outside, right=outside)


def _half_width(a: Arm, b: Arm, x: Floats) -> Floats:
    """Half-width of the 95 % interval of log(a/b); 0 where a load has one run in either arm.

    Where the two arms ran different batches at one offered load, it stands at their geometric mean.
    """
    mine = {a.offered.get(n, n): n for n in a.by_load}
    yours = {b.offered.get(n, n): n for n in b.by_load}
    at: dict[float, float] = {}
    for load in mine.keys() & yours.keys():
        n, m = mine[load], yours[load]
        _, se, df = difference(a.by_load[n], b.by_load[m])
        half = 0.0 if se is None or df is None else float(stdtrit(df, 0.975)) * se
        at[n if n == m else math.sqrt(n * m)] = half
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
