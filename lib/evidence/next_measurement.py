"""What to measure next: how many more runs settle a load, and which cell says most."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit

from lib.errors import InputError
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogMean, LogRatio, Metric, log_mean_of_runs
from lib.evidence.schedule import Schedule, Tier
from lib.run import OFF, LoadKind, Run, SpecState

REPEATS_NEEDED = 3
# More runs than this nobody waits for: the difference is too small for this noise.
MOST_MORE = 100


class Why(StrEnum):
    """Why a cell is worth measuring."""

    BLOCKED = "a protocol difference blocks the pair"
    UNMEASURED = "the operating load was not measured in both arms"
    UNPAIRED = "no load was measured in both arms"
    ONE_RUN = "one run an arm has no interval"
    TOO_CLOSE = "the interval holds 1"
    BEYOND = "no crossing inside the measured range"
    BRACKET = "the bracket of the crossing is wider than a factor 2"
    CROSSING = "this cell carries most of the crossing's uncertainty"
    K_ZERO = "the schedule's K = 0 was never measured"


@dataclass(frozen=True)
class Repeats:
    """How many more runs of each arm would settle one load.

    `more` is the smallest number at which the interval of log M, its width predicted from the
    spread observed so far, no longer holds 0 at the measured mean: 0 where it is settled now.
    None where no spread is known, or where more than MOST_MORE would be needed (`beyond`).
    """

    load: float
    n_off: int
    n_on: int
    more: int | None
    beyond: bool = False

    def __post_init__(self) -> None:
        if self.beyond and self.more is not None:
            raise InputError("repeats: a number beyond the bound is not stated")

    @property
    def missing(self) -> int | None:
        """Runs an arm needed before a spread is known, where it is not."""
        if self.more is not None or self.beyond:
            return None
        return max(1, REPEATS_NEEDED - min(self.n_off, self.n_on))


@dataclass(frozen=True)
class NextMeasurement:
    """One cell to measure: these arms at this load, and why.

    `arms` are names as a run writes its own (`off`, `eagle3:4`); `about` is the arm that the
    measurement decides. `runs` is how many runs of each, None where no number follows from the
    data. `repeats` is set where the load was measured. `between` are the ends of a bracket.
    """

    arms: tuple[str, ...]
    about: str
    load: float
    load_kind: LoadKind
    why: Why
    runs: int | None = None
    repeats: Repeats | None = None
    between: tuple[float, float] | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if not self.arms or not self.load > 0:
            raise InputError("next measurement: at least one arm, and a load above 0")

    @property
    def arm(self) -> str:
        """The arm to run; where both are, the one that speculates."""
        return next((a for a in self.arms if a != OFF), OFF)


def repeats_to_settle(
    off: LogMean | None, on: LogMean | None, load: float, level: float = 0.95
) -> Repeats:
    """Runs of each arm still to add so that the Welch interval of log M leaves 0.

    `off` and `on` are the arms' log means. The spread of one run is taken as observed; with n off
    and m on runs the standard error is √(s²off/n + s²on/m), its degrees of freedom are those of
    Welch and Satterthwaite, and the mean stays where it is. A published ratio (no `off`), or one
    run in either arm, has no spread. Raises InputError for a level outside 0 to 1.
    """
    if not 0 < level < 1:
        raise InputError(f"level = {level}: between 0 and 1, for example 0.95")
    n_off, n_on = (0 if m is None else m.n for m in (off, on))
    if off is None or on is None or off.variance is None or on.variance is None:
        return Repeats(load, n_off, n_on, None)
    if off.variance + on.variance == 0:  # copies of one run, not repeats
        return Repeats(load, n_off, n_on, None)
    more = np.arange(MOST_MORE + 1)
    spread = [off.variance * off.n / (off.n + more), on.variance * on.n / (on.n + more)]
    total = spread[0] + spread[1]
    df = total**2 / (spread[0] ** 2 / (off.n + more - 1) + spread[1] ** 2 / (on.n + more - 1))
    half = stdtrit(df, (1 + level) / 2) * np.sqrt(total)
    settled = np.flatnonzero(half < abs(on.mean - off.mean))
    if not len(settled):
        return Repeats(load, n_off, n_on, None, beyond=True)
    return Repeats(load, n_off, n_on, int(settled[0]))


def repeats_by_load(arm: ArmFinding, metric: Metric, level: float = 0.95) -> dict[float, Repeats]:
    """For every measured load of an arm, how many more runs an arm would settle it."""
    cells = {c.load: c for c in arm.pairs.cells}
    found = {}
    for point in arm.points:
        off, on = (log_mean_of_runs(r, metric) for r in (cells[point.load].off, _on(arm, point)))
        found[point.load] = repeats_to_settle(off, on, point.load, level)
    return found


def next_measurements(
    found: Findings,
    operating_load: float | None = None,
    schedule: Schedule | None = None,
    level: float = 0.95,
) -> tuple[NextMeasurement, ...]:
    """Cells worth measuring, the best first, one a cell; empty where nothing is open.

    The operating load comes first: measured in both arms, three runs of each, then as many as
    settle it. Then the crossing of the arm that leads: beyond the range where there is none, in
    the middle of a bracket wider than a factor 2, else the end and arm that carry most of the
    variance of its straight line. Then K = 0 as `schedule` uses it, loads that a protocol
    difference blocks, and loads with one run. `level` is that of the verdict's intervals.
    """
    if not found.arms:
        return ()
    lead = found.headline(operating_load) or found.arms[0]
    every = [
        *_at_operating_load(found, lead, operating_load, level),
        *_crossing(found, lead),
        *_k_zero(found, lead, schedule),
        *(b for arm in _first(lead, found.arms) for b in _blocked(arm)),
        *(r for arm in _first(lead, found.arms) for r in _one_run(found, arm)),
    ]
    if not lead.points:  # nothing is compared yet: what blocks it comes first
        every.sort(key=lambda m: m.why is not Why.BLOCKED)
    cells: dict[tuple[float, str], NextMeasurement] = {}
    for one in every:
        cells.setdefault((one.load, one.arm), one)
    return tuple(cells.values())


def _first(lead: ArmFinding, arms: Sequence[ArmFinding]) -> list[ArmFinding]:
    return [lead, *(a for a in arms if a is not lead)]


def _on(arm: ArmFinding, point: LogRatio) -> tuple[Run, ...]:
    return next(c.on for c in arm.pairs.cells if c.load == point.load)


def _both(arm: ArmFinding, load: float, why: Why, runs: int | None = None) -> NextMeasurement:
    """Both arms at a load, or the one that is missing there."""
    arms: tuple[str, ...] = (OFF, arm.arm)
    if load in [r.offered_load for r in arm.pairs.off_only]:
        arms = (arm.arm,)
    elif load in [r.offered_load for r in arm.pairs.on_only]:
        arms = (OFF,)
    return NextMeasurement(arms, arm.label, load, arm.pairs.load_kind, why, runs)


def _repeated(arm: ArmFinding, repeats: Repeats, why: Why, runs: int | None) -> NextMeasurement:
    kind = arm.pairs.load_kind
    return NextMeasurement((OFF, arm.arm), arm.label, repeats.load, kind, why, runs, repeats)


def _at_operating_load(
    found: Findings, lead: ArmFinding, load: float | None, level: float
) -> Iterator[NextMeasurement]:
    if load is None or any(r.offered_load == load for r in found.comparison.open_loop):
        return
    here = [(a, p) for a in found.arms if (p := a.at(load)) is not None]
    if not here and any(g.load == load for a in found.arms for g in a.without_ratio):
        return
    if not here:
        blocked = next((a for a in found.arms if load in a.pairs.blocked), None)
        why = Why.UNMEASURED if blocked is None else Why.BLOCKED
        yield _both(blocked or lead, load, why, REPEATS_NEEDED)
        return
    arm = max(here, key=lambda h: h[1].log_m)[0]
    repeats = repeats_by_load(arm, found.metric, level)[load]
    if repeats.missing is not None:
        yield _repeated(arm, repeats, Why.ONE_RUN, repeats.missing)
    elif repeats.more != 0:
        yield _repeated(arm, repeats, Why.TOO_CLOSE, repeats.more)


def _crossing(found: Findings, arm: ArmFinding) -> Iterator[NextMeasurement]:
    finite = [p for p in arm.points if math.isfinite(p.load)]
    if not finite:
        alone = [*arm.pairs.off_only, *arm.pairs.on_only]
        loads = sorted({r.offered_load for r in alone if r.offered_load is not None})
        if loads and not arm.points:
            yield _both(arm, loads[len(loads) // 2], Why.UNPAIRED, REPEATS_NEEDED)
        return
    if not arm.crossover.crossings:
        beyond = _beyond(arm, finite)
        if beyond is not None:
            yield _both(arm, beyond, Why.BEYOND, REPEATS_NEEDED)
        return
    wide = [c for c in arm.crossover.crossings if c.measure_at is not None]
    for crossing in wide:
        if (middle := _middle(crossing.between, arm.pairs.load_kind)) is not None:
            kind = arm.pairs.load_kind
            yield NextMeasurement(
                (OFF, arm.arm),
                arm.label,
                middle,
                kind,
                Why.BRACKET,
                REPEATS_NEEDED,
                between=crossing.between,
            )
    for crossing in arm.crossover.crossings:
        ends = [p for p in finite if p.load in crossing.between]
        repeats = repeats_by_load(arm, found.metric)
        short = [p for p in ends if repeats[p.load].missing is not None]
        for end in short:
            own = repeats[end.load]
            yield _repeated(arm, own, Why.ONE_RUN, own.missing)
        if not short and crossing.at is not None:
            yield _largest_share(found, arm, ends)


def _beyond(arm: ArmFinding, finite: Sequence[LogRatio]) -> float | None:
    """The next load outward: twice the highest, or half the lowest where the arm loses at all.

    None where nothing lies there: below one request, or above what the server admits.
    """
    low, high = finite[0].load, finite[-1].load
    if any(g.load < low or g.load > high for g in arm.without_ratio):
        return None
    whole = arm.pairs.load_kind is not LoadKind.REQUEST_RATE
    if (arm.crossover.outside or "").startswith("below"):
        half = math.ceil(low / 2) if whole else low / 2
        return half if half < low else None
    runs = [r for c in arm.pairs.cells for r in (*c.off, *c.on)]
    limit = min((r.max_num_seqs for r in runs if r.max_num_seqs), default=None)
    if whole and limit is not None and high >= limit:
        return None
    return 2 * high if not (whole and limit) else min(2 * high, float(limit))


def _middle(between: tuple[float, float], kind: LoadKind) -> float | None:
    """√(ab), a whole number of requests or, for a rate, three digits; None where none is new."""
    middle = math.sqrt(between[0] * between[1])
    middle = float(f"{middle:.3g}") if kind is LoadKind.REQUEST_RATE else float(round(middle))
    return middle if between[0] < middle < between[1] else None


def _largest_share(found: Findings, arm: ArmFinding, ends: Sequence[LogRatio]) -> NextMeasurement:
    """The arm and end that carry most of the variance of the straight line's crossing.

    With log M = a and b at the ends, the crossing lies at a/(a - b) of the way, so its variance is
    (b² var a + a² var b)/(a - b)⁴ and each variance is the sum of its two arms' (delta method).
    """
    cells = {c.load: c for c in arm.pairs.cells}
    low, high = ends
    parts: dict[tuple[str, float], float] = {}
    for end, weight in ((low, high.log_m**2), (high, low.log_m**2)):
        for name, runs in ((OFF, cells[end.load].off), (arm.arm, cells[end.load].on)):
            mean = log_mean_of_runs(runs, found.metric)
            variance = 0.0 if mean is None else mean.variance or 0.0
            parts[name, end.load] = (weight or 1e-12) * variance
    (name, load), most = max(parts.items(), key=lambda part: part[1])
    return NextMeasurement(
        (name,),
        arm.label,
        load,
        arm.pairs.load_kind,
        Why.CROSSING,
        repeats=repeats_by_load(arm, found.metric)[load],
        between=(low.load, high.load),
        share=most / sum(parts.values()) if sum(parts.values()) else None,
    )


def _k_zero(
    found: Findings, lead: ArmFinding, schedule: Schedule | None
) -> Iterator[NextMeasurement]:
    """K = 0 at the highest measured load of each tier that no K = 0 run has seen."""
    tiers: Sequence[Tier] = () if schedule is None or schedule.ranges is None else schedule.tiers
    seen = {r.offered_load for r in found.study.runs if _drafts_nothing(r)}
    method = lead.arm.partition(":")[0]
    for tier in tiers:
        if tier.k or any(x is not None and tier.first <= x <= tier.last for x in seen):
            continue
        load = tier.measured[-1] if tier.measured else float(tier.first)
        name, kind = f"{method}:0", lead.pairs.load_kind
        yield NextMeasurement((name,), name, load, kind, Why.K_ZERO, REPEATS_NEEDED)


def _drafts_nothing(run: Run) -> bool:
    """Whether the run speculates with K = 0 throughout, as an arm or as a schedule of zeros."""
    if run.spec_state is not SpecState.ON:
        return False
    if run.schedule is None:
        return run.num_speculative_tokens == 0
    try:
        return {int(k) for _, _, k in json.loads(run.schedule)} == {0}
    except (ValueError, TypeError):
        return False


def _blocked(arm: ArmFinding) -> Iterator[NextMeasurement]:
    for load in arm.pairs.blocked:
        yield _both(arm, load, Why.BLOCKED, REPEATS_NEEDED)


def _one_run(found: Findings, arm: ArmFinding) -> Iterator[NextMeasurement]:
    for repeats in repeats_by_load(arm, found.metric).values():
        if repeats.missing is not None and (repeats.n_off or repeats.n_on):
            yield _repeated(arm, repeats, Why.ONE_RUN, repeats.missing)
