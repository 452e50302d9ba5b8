"""Everything one study says on one metric: pairs, ratios and crossings, arm by arm."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lib.evidence.competing import GOODPUT
from lib.evidence.crossover import Crossing, Crossover, crossover
from lib.evidence.goodput import WithoutRatio, counted, without_ratio
from lib.evidence.pairing import ArmComparison, Comparison, compare
from lib.evidence.ratio import LogRatio, Metric, derived_ratios, log_ratios, metric_named
from lib.run import LoadKind, Slo, Study


@dataclass(frozen=True)
class ArmFinding:
    """One arm against off: measured points by load, hollow derived ones, and the crossings.

    An infinite request rate is among `points` but never on the curve of the crossings. On goodput
    `without_ratio` are the loads that have no point, with what is known of them.
    """

    arm: str
    pairs: ArmComparison
    points: tuple[LogRatio, ...]
    derived: tuple[LogRatio, ...]
    crossover: Crossover
    without_ratio: tuple[WithoutRatio, ...] = ()

    @property
    def label(self) -> str:
        """The arm's name, with the protocol that tells two comparisons of it apart."""
        return f"{self.arm} ({self.pairs.protocol})" if self.pairs.protocol else self.arm

    @property
    def loads(self) -> set[float]:
        """The loads measured in both arms, with a ratio or without one."""
        return {p.load for p in self.points} | {g.load for g in self.without_ratio}

    @property
    def only_derived(self) -> str:
        """Which way every hollow point lies, "ahead" or "behind"; empty where they do not agree."""
        ups = {p.log_m > 0 for p in self.derived}
        return ("ahead" if ups == {True} else "behind") if len(ups) == 1 else ""

    def at(self, load: float | None) -> LogRatio | None:
        """The measured point at that load, if there is one."""
        return next((p for p in self.points if p.load == load), None)


@dataclass(frozen=True)
class Findings:
    """A study's comparison on one metric; `how` says how goodput was got."""

    comparison: Comparison
    metric: Metric
    arms: tuple[ArmFinding, ...]
    how: str = ""

    @property
    def study(self) -> Study:
        """The study compared."""
        return self.comparison.study

    def headline(self, load: float | None) -> ArmFinding | None:
        """The arm with the largest M at the named load, else with the largest mean log M."""
        measured = [a for a in self.arms if a.points]
        here = [a for a in measured if a.at(load) is not None]

        def strength(arm: ArmFinding) -> float:
            point = arm.at(load) if here else None
            if point is not None:
                return point.log_m
            return sum(p.log_m for p in arm.points) / len(arm.points)

        return max(here or measured, key=strength, default=None)

    @property
    def loads(self) -> tuple[float, ...]:
        """Every load at which some arm and off were both measured, ascending."""
        return tuple(sorted({x for a in self.arms for x in a.loads}))

    @property
    def finite_loads(self) -> tuple[float, ...]:
        """Those loads that lie on a curve: all but an infinite request rate."""
        return tuple(x for x in self.loads if math.isfinite(x))


def load_kinds(study: Study) -> tuple[LoadKind, ...]:
    """The kinds of load the study was measured at, the one with the most runs first."""
    counted = Counter(r.load_kind for r in study.runs if r.load_kind is not None)
    return tuple(kind for kind, _ in counted.most_common())


def find(
    study: Study,
    metric: str = "output_tps",
    overrides: frozenset[str] = frozenset(),
    kind: LoadKind | None = None,
) -> Findings:
    """Pair, compare and look for crossings. Raises NotComparable, InputError for the metric.

    With a `kind` only runs at that kind of load take part: a figure, an operating load and a
    verdict are about one kind.
    """
    chosen = metric_named(metric)
    if kind is not None:
        study = replace(study, runs=tuple(r for r in study.runs if r.load_kind in (kind, None)))
    comparison = compare(study, overrides, metric)
    return Findings(comparison, chosen, tuple(_arm(a, metric) for a in comparison.arms))


def at_slo(found: Findings, slo: Slo | None, good_rps: Mapping[str, float]) -> Findings:
    """What was found on goodput, for an SLO: pairs stay, ratios and crossings are found anew.

    `good_rps` are good requests per second by run id, counted from per-request records. A load at
    which an arm has no goodput, or a run of 0, has no log ratio: it is in `without_ratio`, and no
    crossing or hollow point is drawn across it. Raises InputError where there is nothing to go by.
    """
    comparison, how = counted(found.comparison, slo, good_rps)
    arms = []
    for pairs in comparison.arms:
        arm = _arm(pairs, GOODPUT)
        gaps = without_ratio(pairs, slo)
        alone = [r for r in (*pairs.off_only, *pairs.on_only) if not r.goodput_rps]
        broken = {*(g.load for g in gaps), *(r.offered_load for r in alone)}
        arms.append(
            replace(
                arm,
                derived=tuple(p for p in arm.derived if not _beside(p.load, pairs, broken)),
                crossover=replace(
                    arm.crossover,
                    crossings=tuple(_open(c, gaps) for c in arm.crossover.crossings),
                ),
                without_ratio=gaps,
            )
        )
    return replace(found, comparison=comparison, arms=tuple(arms), how=how)


def _arm(pairs: ArmComparison, metric: str) -> ArmFinding:
    points = log_ratios(pairs, metric)
    return ArmFinding(
        pairs.arm,
        pairs,
        points,
        derived_ratios(pairs, metric),
        crossover([p for p in points if math.isfinite(p.load)]),
    )


def _beside(load: float, pairs: ArmComparison, broken: set[float | None]) -> bool:
    """Whether there is no goodput to interpolate: at this load, or at the next below or above."""
    runs = [*pairs.off_only, *pairs.on_only]
    loads = {*(c.load for c in pairs.cells), *(r.offered_load or load for r in runs)}
    below, above = [x for x in loads if x < load], [x for x in loads if x > load]
    return not broken.isdisjoint({load, max(below, default=None), min(above, default=None)})


def _open(crossing: Crossing, gaps: Sequence[WithoutRatio]) -> Crossing:
    """A crossing without its point, and nothing to measure, where a gap lies inside it."""
    low, high = crossing.between
    if not any(low < g.load < high for g in gaps):
        return crossing
    return replace(crossing, at=None, low=None, high=None, censored_share=None, measure_at=None)
