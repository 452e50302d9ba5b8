"""Everything one study says on one metric: pairs, ratios and crossings, arm by arm."""

import math
from collections import Counter
from dataclasses import dataclass, replace

from lib.evidence.crossover import Crossover, crossover
from lib.evidence.pairing import ArmComparison, Comparison, compare
from lib.evidence.ratio import LogRatio, Metric, derived_ratios, log_ratios, metric_named
from lib.run import LoadKind, Study


@dataclass(frozen=True)
class ArmFinding:
    """One arm against off: measured points by load, hollow derived ones, and the crossings.

    An infinite request rate is among `points` but never on the curve of the crossings.
    """

    arm: str
    pairs: ArmComparison
    points: tuple[LogRatio, ...]
    derived: tuple[LogRatio, ...]
    crossover: Crossover

    @property
    def label(self) -> str:
        """The arm's name, with the protocol that tells two comparisons of it apart."""
        return f"{self.arm} ({self.pairs.protocol})" if self.pairs.protocol else self.arm

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
    """A study's comparison on one metric."""

    comparison: Comparison
    metric: Metric
    arms: tuple[ArmFinding, ...]

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
        return tuple(sorted({p.load for a in self.arms for p in a.points}))

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
    arms = []
    for pairs in comparison.arms:
        points = log_ratios(pairs, metric)
        arms.append(
            ArmFinding(
                pairs.arm,
                pairs,
                points,
                derived_ratios(pairs, metric),
                crossover([p for p in points if math.isfinite(p.load)]),
            )
        )
    return Findings(comparison, chosen, tuple(arms))
