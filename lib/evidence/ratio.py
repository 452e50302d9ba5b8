"""How much better speculation is at a load: the log-ratio M of two arms, with its interval."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from lib.errors import InputError
from lib.evidence.pairing import ArmComparison
from lib.results.checks import blocks_latency
from lib.results.study_checks import NOISE, within
from lib.run import Run

Mark = Literal[
    "wins",
    "too close to call",
    "loses",
    "ahead, one run",
    "behind, one run",
    "within noise, one run",
]
UNSURE: tuple[Mark, ...] = ("too close to call", "within noise, one run")

# Without an interval, arms within 1 % of the better one are not told apart.
LARGEST_LOG = math.log(1e6)
SAME = 1e-13
TIE = -math.log1p(-NOISE[0]) + 1e-9


@dataclass(frozen=True)
class Metric:
    """What is compared: an attribute of Run, its unit, and which way is better."""

    name: str
    label: str
    unit: str
    attribute: str
    higher_is_better: bool

    def values(self, runs: Iterable[Run]) -> list[float]:
        """The positive values that the runs report; a run without one is left out."""
        stated = (getattr(r, self.attribute) for r in runs)
        return [v for v in stated if v is not None and v > 0]


# TPOT, never inter-token latency: under speculation a streamed chunk holds several tokens.
METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("output_tps", "Output throughput", "tok/s", "output_tps", True),
        Metric("tpot_ms", "Mean TPOT", "ms", "tpot_ms_mean", False),
        Metric("goodput_rps", "Goodput", "req/s", "goodput_rps", True),
    )
}


def metric_named(name: str) -> Metric:
    """The metric of that name. Raises InputError that lists the names."""
    if name not in METRICS:
        raise InputError(f"metric {name!r}: one of {', '.join(METRICS)}")
    return METRICS[name]


@dataclass(frozen=True)
class LogMean:
    """Mean of the logs of one arm's values; `variance` is that of the mean, None for one value."""

    mean: float
    variance: float | None
    df: float | None
    n: int


def log_mean(values: Sequence[float]) -> LogMean:
    """Mean of log(values) over repeated runs. `values` are positive, at least one."""
    logs = np.log(np.asarray(values, dtype=float))
    away = logs - logs[0]
    away[np.abs(away) < SAME] = 0  # values equal to the last digit have a variance of exactly 0
    mean, n = float(logs[0] + away.mean()), len(logs)
    if n < 2:
        return LogMean(mean, None, None, n)
    return LogMean(mean, float(away.var(ddof=1)) / n, n - 1, n)


def log_mean_of_runs(runs: Sequence[Run], metric: Metric) -> LogMean | None:
    """One arm at one load: repeated runs, or one published mean ± sd over n runs.

    The sd enters by the delta method: var(log mean) = (sd/mean)²/n. None where no run reports the
    metric, or one reports 0: a log has no place for it.
    """
    if any(getattr(r, metric.attribute) == 0 for r in runs):
        return None
    reporting = [r for r in runs if metric.values([r])]
    if not reporting:
        return None
    only = reporting[0]
    if (
        len(reporting) == 1
        and metric.attribute == "output_tps"
        and only.output_tps_sd is not None
        and (only.output_tps_n or 0) >= 2
    ):
        mean, n = metric.values([only])[0], int(only.output_tps_n or 0)
        return LogMean(math.log(mean), (only.output_tps_sd / mean) ** 2 / n, n - 1, n)
    return log_mean(metric.values(reporting))


def difference(a: LogMean, b: LogMean) -> tuple[float, float | None, float | None]:
    """a - b on the log scale: difference, Welch standard error, Welch-Satterthwaite df.

    Error and df are None where either arm has one value, or where nothing varies at all. Welch
    1947, Biometrika 34:28-35.
    """
    gap = a.mean - b.mean
    if a.variance is None or b.variance is None or a.df is None or b.df is None:
        return gap, None, None
    total = a.variance + b.variance
    if total == 0:  # the same numbers to the last digit are copies of one run, not repeats
        return gap, None, None
    shares = (a.variance / total, b.variance / total)
    return gap, math.sqrt(total), 1 / (shares[0] ** 2 / a.df + shares[1] ** 2 / b.df)


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float | None, float | None]:
    """mean(log a) - mean(log b), its Welch standard error and degrees of freedom.

    `a` and `b` are positive values of repeated runs, at least one each. Error and df are None
    where either has fewer than two, or where nothing varies at all.
    """
    return difference(log_mean(a), log_mean(b))


@dataclass(frozen=True)
class LogRatio:
    """log M at one load. M > 1 always means that speculation is better.

    `n_off` and `n_on` count the runs behind it; a published ratio has n_off = 0. `derived` points
    rest on an interpolated arm: drawn hollow, neither priced nor decisive.
    """

    load: float
    log_m: float
    se: float | None
    df: float | None
    n_off: int
    n_on: int
    derived: bool = False

    def __post_init__(self) -> None:
        if not abs(self.log_m) <= LARGEST_LOG:
            raise InputError(
                f"M at load {self.load:g}: the arms differ by more than a factor 10^6; check units"
            )
        if (self.se is None) != (self.df is None):
            raise InputError("log ratio: a standard error comes with its degrees of freedom")

    @property
    def multiplier(self) -> float:
        """M itself."""
        return math.exp(self.log_m)

    def log_interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Two-sided t interval of log M, or None with one run in either arm."""
        if not 0 < level < 1:
            raise InputError(f"level = {level}: between 0 and 1, for example 0.95")
        if self.se is None or self.df is None:
            return None
        half = float(stdtrit(self.df, (1 + level) / 2)) * self.se
        return self.log_m - half, self.log_m + half

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Two-sided interval of M, or None with one run in either arm."""
        ends = self.log_interval(level)
        return None if ends is None else (math.exp(ends[0]), math.exp(ends[1]))

    def mark(self, level: float = 0.95) -> Mark:
        """The finding at this load alone: decided only where the interval clears 1.

        One run an arm is named so: tied where the worse arm reaches 99 % of the better, within
        noise where it reaches 95 %, as launches differ. A derived point decides nothing.
        """
        ends = self.log_interval(level)
        if self.derived:
            return "too close to call"
        if ends is None:
            if within(NOISE[0], self.log_m):
                return "too close to call"
            if within(NOISE[1], self.log_m):
                return "within noise, one run"
            return "ahead, one run" if self.log_m > 0 else "behind, one run"
        if ends[0] > 0:
            return "wins"
        return "loses" if ends[1] < 0 else "too close to call"


def log_ratios(arm: ArmComparison, metric: str = "output_tps") -> tuple[LogRatio, ...]:
    """M at each load measured in both arms, by load; an infinite rate comes last.

    A cell in which an arm does not report the metric has no point. Queue-bound cells have no
    point for latency: their latency is the queue's. Nor have those with a late first token.
    """
    m = metric_named(metric)
    points = []
    for cell in arm.cells:
        if not cell.off:
            ratios = [r.multiplier for r in cell.on if r.multiplier]
            if m.name == "output_tps" and ratios:
                mean = log_mean(ratios)
                points.append(LogRatio(cell.load, mean.mean, None, None, 0, mean.n))
            continue
        if not m.higher_is_better and any(blocks_latency(r) for r in (*cell.off, *cell.on)):
            continue
        off, on = log_mean_of_runs(cell.off, m), log_mean_of_runs(cell.on, m)
        if off is None or on is None:
            continue
        gap, se, df = difference(on, off) if m.higher_is_better else difference(off, on)
        points.append(LogRatio(cell.load, gap, se, df, off.n, on.n))
    return tuple(sorted(points, key=lambda p: p.load))


def derived_ratios(arm: ArmComparison, metric: str = "output_tps") -> tuple[LogRatio, ...]:
    """M at loads that one arm measured and the other did not, by load.

    The other arm's log value is interpolated over log2 load inside its own measured range; no
    point stands outside it. The count of the interpolated arm is 0.
    """
    m = metric_named(metric)
    off = _curve((*(r for c in arm.cells for r in c.off), *arm.off_only), m)
    on = _curve((*(r for c in arm.cells for r in c.on), *arm.on_only), m)
    points = []
    for load in sorted(off.keys() ^ on.keys()):
        measured, other = (off, on) if load in off else (on, off)
        if not other or not min(other) < load < max(other):
            continue
        xs = sorted(other)
        between = float(np.interp(np.log2(load), np.log2(xs), [other[x].mean for x in xs]))
        gap = between - measured[load].mean
        if (load in off) != m.higher_is_better:
            gap = -gap
        n = measured[load].n
        n_off, n_on = (n, 0) if load in off else (0, n)
        points.append(LogRatio(load, gap, None, None, n_off, n_on, derived=True))
    return tuple(points)


def _curve(runs: Iterable[Run], metric: Metric) -> dict[float, LogMean]:
    by_load: dict[float, list[Run]] = {}
    for run in runs:
        if not metric.higher_is_better and blocks_latency(run):
            continue
        if run.offered_load is not None and math.isfinite(run.offered_load):
            by_load.setdefault(run.offered_load, []).append(run)
    means = {load: log_mean_of_runs(group, metric) for load, group in by_load.items()}
    return {load: mean for load, mean in means.items() if mean is not None}
