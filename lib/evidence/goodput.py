"""Whether a run meets a service-level objective, and how many of its requests do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lib.errors import InputError
from lib.evidence.pairing import ArmComparison, Cell, Comparison
from lib.run import PERCENTILES, Run, Slo, distinct

Counted = Literal["good", "none", "partly"]
Judged = Literal["met", "missed", "unknown", "unrecorded"]
Side = Literal["arm", "off", "both", "neither", "undecided"]
HELD: dict[Counted | Judged, bool] = {"good": True, "none": False, "met": True, "missed": False}


NAME_A_LIMIT = "name a limit on TTFT, TPOT or the end-to-end time"


@dataclass(frozen=True)
class WithoutRatio:
    """A load measured in both arms at which goodput has no ratio, and what is known of each arm.

    Counted from records an arm is `good` (every run has good requests), `none` or `partly` (only
    some runs have one); `off_rps` and `on_rps` are then the means over its runs, good requests per
    second. Judged by the percentile it is `met`, `missed` or `unknown`, and `unrecorded` where no
    limit is named and the files do not record goodput.
    """

    load: float
    off: Counted | Judged
    on: Counted | Judged
    off_rps: float | None = None
    on_rps: float | None = None

    @property
    def side(self) -> Side:
        """Which arm alone holds the SLO; a pass against a fail is no multiplier."""
        if self.off not in HELD or self.on not in HELD:
            return "undecided"
        if HELD[self.off] == HELD[self.on]:
            return "both" if HELD[self.off] else "neither"
        return "arm" if HELD[self.on] else "off"


def meets(run: Run, slo: Slo) -> bool | None:
    """True, False, or None where the reported percentiles do not decide it.

    The named percentile decides; without it, a higher percentile within the limit passes and a
    lower one above it fails. A mean never decides a percentile. An objective without limits is
    met by every run.
    """
    answers = [_within(run, name, limit, slo.percentile) for name, limit in slo.limits.items()]
    if False in answers:
        return False
    return None if None in answers else True


def _within(run: Run, latency: str, limit: float, percentile: str) -> bool | None:
    at = PERCENTILES.index(percentile)
    reported = [getattr(run, f"{latency}_{p}") for p in PERCENTILES]
    if reported[at] is not None:
        return bool(reported[at] <= limit)
    if any(v is not None and v <= limit for v in reported[at + 1 :]):
        return True
    if any(v is not None and v > limit for v in reported[:at]):
        return False
    return None


def meet(runs: Sequence[Run], slo: Slo) -> bool | None:
    """True where every run meets it, False where one does not, else None."""
    answers = [meets(r, slo) for r in runs]
    if False in answers:
        return False
    return True if answers and None not in answers else None


def counted(
    comparison: Comparison, slo: Slo | None, good_rps: Mapping[str, float]
) -> tuple[Comparison, str]:
    """The comparison with `goodput_rps` only where it is known, and how it was got.

    `good_rps` are good requests per second by run id, counted from per-request records at the SLO.
    A cell of which a run lacks them has no goodput: percentiles tell a pass from a fail and are no
    number. Without an SLO the recorded goodput stands. Raises InputError where no cell can be told
    anything.
    """
    cells = [c for a in comparison.arms for c in a.cells if c.off]
    paired = [r for c in cells for r in (*c.off, *c.on)]
    if slo is None:
        if paired and all(r.goodput_rps is None for r in paired):
            raise InputError(
                f"Goodput is not recorded in these files and no limit is named: {NAME_A_LIMIT}."
            )
        named = distinct(r.slo for r in paired)
        said = f"Goodput as recorded, at {'; '.join(named) or 'an SLO not recorded'}."
        return comparison, said
    if paired and not any(r.run_id in good_rps or meets(r, slo) is not None for r in paired):
        raise InputError(
            f"Nothing in these files decides {slo.text}: import results that keep every request "
            "(vLLM: --save-detailed) or that percentile, or compare on another metric."
        )
    sure = [all(r.run_id in good_rps for r in (*c.off, *c.on)) for c in cells]
    said = f"Goodput counted from per-request records: {slo.per_request}."
    if not any(sure):
        said = f"Judged by percentile, for want of per-request records: {slo.text}."
    elif not all(sure):
        said += f" Where a load lacks them, judged by percentile: {slo.text}."
    return _known(comparison, slo, good_rps), said


def without_ratio(pairs: ArmComparison, slo: Slo | None) -> tuple[WithoutRatio, ...]:
    """The loads of a `counted` comparison at which an arm has no goodput, or a run of 0."""
    found = []
    for cell in pairs.cells:
        if cell.off and not all(r.goodput_rps for r in (*cell.off, *cell.on)):
            (off, off_rps), (on, on_rps) = _held(cell.off, slo), _held(cell.on, slo)
            found.append(WithoutRatio(cell.load, off, on, off_rps, on_rps))
    return tuple(found)


def _held(runs: Sequence[Run], slo: Slo | None) -> tuple[Counted | Judged, float | None]:
    """What is known of one arm at a load, and its mean goodput where that is."""
    rates = [r.goodput_rps for r in runs if r.goodput_rps is not None]
    if len(rates) == len(runs):
        state: Counted = "good" if all(rates) else "partly" if any(rates) else "none"
        return state, sum(rates) / len(rates)
    if slo is None:
        return "unrecorded", None
    answer = meet(runs, slo)
    return ("unknown" if answer is None else "met" if answer else "missed"), None


def _known(comparison: Comparison, slo: Slo, good_rps: Mapping[str, float]) -> Comparison:
    """Counted goodput in the cells that have it for every run, None in the others."""
    kept: dict[tuple[str, bool], Run] = {}

    def one(run: Run, sure: bool) -> Run:
        key = (run.run_id, sure)
        if key not in kept:
            rate = good_rps.get(run.run_id) if sure else None
            kept[key] = replace(run, goodput_rps=rate, slo=slo.per_request)
        return kept[key]

    def cell(found: Cell) -> Cell:
        sure = all(r.run_id in good_rps for r in (*found.off, *found.on))
        off, on = (tuple(one(r, sure) for r in runs) for runs in (found.off, found.on))
        return replace(found, off=off, on=on)

    def arm(found: ArmComparison) -> ArmComparison:
        off, on = (tuple(one(r, True) for r in rs) for rs in (found.off_only, found.on_only))
        return replace(found, cells=tuple(map(cell, found.cells)), off_only=off, on_only=on)

    return replace(comparison, arms=tuple(map(arm, comparison.arms)))


def with_goodput(
    comparison: Comparison, slo: Slo | None, good_rps: Mapping[str, float]
) -> tuple[Comparison, str]:
    """The comparison with `goodput_rps` of every paired run at the SLO, and how it was got.

    `good_rps` are good requests per second by run id, counted from per-request records. Where it
    lacks a paired run, the percentiles decide for all of them alike: a run that passes counts all
    its requests, one that fails none, an undecided one has no goodput. Without an SLO the recorded
    goodput stands. Raises InputError where there is nothing to go by.
    """
    paired = [r for a in comparison.arms for c in a.cells for r in (*c.off, *c.on)]
    if slo is None:
        if not any(r.goodput_rps is not None for r in paired):
            raise InputError(f"goodput: no SLO is named and the files record none; {NAME_A_LIMIT}")
        named = distinct(r.slo for r in paired)
        return comparison, f"Goodput as recorded, at {'; '.join(named) or 'an SLO not recorded'}."
    if all(r.run_id in good_rps for r in paired):
        counted = _replaced(comparison, slo, lambda r: good_rps.get(r.run_id))
        return counted, f"Goodput counted from per-request records: {slo.per_request}."
    judged = _replaced(comparison, slo, lambda r: _by_percentile(r, slo))
    said = (
        f"Goodput by percentile at {slo.text}: a run that passes counts all its requests, one "
        "that fails none; per-request records would count them."
    )
    open_at = _undecided(judged)
    return judged, f"{said} Undecided, so without goodput: {open_at}." if open_at else said


def _by_percentile(run: Run, slo: Slo) -> float | None:
    passed = meets(run, slo)
    if passed is None:
        return None
    if not passed:
        return 0.0
    if run.request_rps is not None:
        return run.request_rps
    return run.completed / run.duration_s if run.completed and run.duration_s else None


def _replaced(
    comparison: Comparison, slo: Slo, goodput: Callable[[Run], float | None]
) -> Comparison:
    def judged(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(replace(r, goodput_rps=goodput(r), slo=slo.text) for r in runs)

    def arm(found: ArmComparison) -> ArmComparison:
        cells = tuple(replace(c, off=judged(c.off), on=judged(c.on)) for c in found.cells)
        return replace(found, cells=cells)

    return replace(comparison, arms=tuple(arm(a) for a in comparison.arms))


def _undecided(comparison: Comparison) -> str:
    open_at: dict[str, set[float]] = {}
    for arm in comparison.arms:
        for cell in arm.cells:
            for name, runs in (("off", cell.off), (arm.arm, cell.on)):
                if runs and all(r.goodput_rps is None for r in runs):
                    open_at.setdefault(name, set()).add(cell.load)
    return "; ".join(
        f"{name} at {', '.join(f'{x:g}' for x in sorted(loads))}" for name, loads in open_at.items()
    )
