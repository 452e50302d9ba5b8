"""Which runs may be compared: every arm against off, at equal load, under an equal protocol."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lib.errors import InputError, NotComparable
from lib.evidence.protocol import (
    Difference,
    agreeing,
    belongs,
    by_protocol,
    differences_at,
    grouped,
    known,
    load_list,
    merged,
    not_recorded,
    require_fields,
)
from lib.results.checks import blocks_latency, blocks_pairing, open_loop, saturated
from lib.results.study_checks import copies
from lib.run import OFF, LoadKind, Run, Study, distinct

THROUGHPUT = "output_tps"


@dataclass(frozen=True)
class Cell:
    """One load measured in both arms; a published ratio has no off run (`off` is empty)."""

    load: float
    off: tuple[Run, ...]
    on: tuple[Run, ...]


@dataclass(frozen=True)
class ArmComparison:
    """One arm against off, for one kind of load, under one protocol.

    `cells` are ordered by load, an infinite request rate last. `blocked` are the loads that a
    difference refuses; their runs are in no other field. `off_only` and `on_only` were measured
    in one arm. `protocol` names what tells two comparisons of the same arm apart ("dataset qa");
    it is empty where there is one.
    """

    arm: str
    load_kind: LoadKind
    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...] = ()
    off_only: tuple[Run, ...] = ()
    on_only: tuple[Run, ...] = ()
    blocked: tuple[float, ...] = ()
    protocol: str = ""


@dataclass(frozen=True)
class Comparison:
    """Every arm of a study against its off runs.

    `not_recorded` are protocol fields that some pair does not state in both arms. `unassigned`
    are runs that do not say whether they speculated. `open_loop` are runs left out on throughput:
    the server kept up with their request rate, so it equals the demand; `open_loop_note` says what
    to do instead. `notes` are one line each.
    """

    study: Study
    arms: tuple[ArmComparison, ...]
    not_recorded: tuple[str, ...] = ()
    unassigned: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()
    open_loop: tuple[Run, ...] = ()
    open_loop_note: str = ""

    @property
    def baseline(self) -> str:
        """The arm that every other is compared with."""
        return OFF

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Those of all arms, each once."""
        return tuple(dict.fromkeys(d for a in self.arms for d in a.differences))

    @property
    def allocation_differs(self) -> bool:
        """Whether some pair sets one allocation against another."""
        return any(d.verdict == "allocation" for d in self.differences)

    def arm(self, name: str) -> ArmComparison:
        """The comparison of that arm; of several, the one with the most loads.

        Raises InputError that lists the arms.
        """
        named = [a for a in self.arms if a.arm == name]
        if not named:
            raise InputError(
                f"arm {name!r}: one of {', '.join(distinct(a.arm for a in self.arms))}"
            )
        return max(named, key=lambda a: len(a.cells))


def compare(
    study: Study, overrides: frozenset[str] = frozenset(), metric: str = THROUGHPUT
) -> Comparison:
    """Pair every arm with off, load by load (design law 7).

    `overrides` are field names whose difference a person accepts. On throughput, runs at a
    request rate that the server kept up with are left out. Raises NotComparable where no run is
    off or no run is anything else, with the way to state it; InputError for an override of what
    is no protocol field.
    """
    require_fields(overrides)
    usable, notes = usable_runs(study.runs)
    left_out, note = [], ""
    if metric == THROUGHPUT and (left_out := [r for r in usable if r.arm and open_loop(r)]):
        _require_two_arms(study, *_by_state(usable))
        ids = {r.run_id for r in left_out}
        usable = [r for r in usable if r.run_id not in ids]
        note = _open_loop_note(left_out, usable)
        notes.append(note)
    off, on = _by_state(usable)
    if note and not (off and on):
        raise NotComparable(f"study {study.name!r}: {note}")
    _require_two_arms(study, off, on)
    arms = [
        replace(_compare_arm(alike, off, overrides), protocol=protocol)
        for runs in sorted(grouped(on, lambda r: (r.arm, r.load_kind)).values(), key=_arm_order)
        for protocol, alike in by_protocol(runs, overrides).items()
    ]
    return Comparison(
        study=study,
        arms=tuple(arms),
        not_recorded=not_recorded([r for a in arms for c in a.cells for r in (*c.off, *c.on)]),
        unassigned=tuple(r for r in study.runs if r.arm is None),
        notes=(*notes, *distinct(n for a in arms for n in _arm_notes(a))),
        open_loop=tuple(left_out),
        open_loop_note=note,
    )


def _by_state(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """The runs without speculation, and those of every other arm."""
    named = [r for r in runs if r.arm is not None]
    return [r for r in named if r.arm == OFF], [r for r in named if r.arm != OFF]


def _open_loop_note(left_out: Sequence[Run], rest: Iterable[Run]) -> str:
    """What is left out on throughput, what to compare instead, and the ceilings if both show."""
    count = len(left_out)
    text = (
        f"{count} run{'s' if count > 1 else ''} left out of throughput and price: the server kept "
        "up with the request rate, so tok/s equals the demand; compare on Mean TPOT, or ask for "
        "more than it can serve"
    )
    ceilings: dict[str, float] = {}
    for run in rest:
        if run.arm and run.output_tps and run.load_kind == LoadKind.REQUEST_RATE and saturated(run):
            ceilings[run.arm] = max(ceilings.get(run.arm, 0.0), run.output_tps)
    if OFF not in ceilings or len(ceilings) < 2:
        return text
    best = ", ".join(f"{arm} {tps:.6g}" for arm, tps in ceilings.items())
    return f"{text}; most tok/s of a saturated server: {best}"


def usable_runs(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """The runs that have an outcome and a load, and a note on those left out."""
    usable, empty, loadless = [], 0, 0
    refused: list[str] = []
    runs = list(runs)
    twice = copies(runs)
    for run in runs:
        if run.completed == 0:
            empty += 1
        elif run.run_id in twice:
            refused.append("the same run under a second id")
        elif reason := blocks_pairing(run):
            refused.append(reason)
        elif run.arm is not None and (run.load_kind is None or run.offered_load is None):
            loadless += 1
        else:
            usable.append(run)
    notes = [
        f"{count} run{'s' if count > 1 else ''} left out: {reason}"
        for reason, count in Counter(refused).items()
    ]
    if empty:
        notes.append(f"{empty} of the runs completed no request: left out")
    if loadless:
        notes.append(
            f"{loadless} of the runs state no load: left out; state load_kind and offered_load in "
            "the edit table"
        )
    return usable, notes


def _require_two_arms(study: Study, off: Sequence[Run], on: Sequence[Run]) -> None:
    if not off and not any(_ratio_only(r) for r in on):
        raise NotComparable(
            f"study {study.name!r}: no usable run is off, so there is no baseline; set spec_state "
            "to off in the edit table, or import with --arm 'GLOB=off'"
        )
    if not on:
        raise NotComparable(
            f"study {study.name!r}: no usable run is an arm other than off; name the speculative "
            "runs in the edit table, or import with --arm 'GLOB=METHOD:K'"
        )


def _ratio_only(run: Run) -> bool:
    return run.multiplier is not None and run.output_tps is None


def _compare_arm(on: Sequence[Run], off: Sequence[Run], overrides: frozenset[str]) -> ArmComparison:
    """One arm, one kind of load, one protocol, against the off runs of that kind."""
    kind = on[0].load_kind
    assert kind is not None
    kinds = distinct(r.load_kind for r in off)
    off_at = grouped((r for r in off if r.load_kind == kind), lambda r: r.offered_load)
    cells: list[Cell] = []
    found: list[Difference] = []
    on_only: list[Run] = []
    blocked: list[float] = []
    for load, runs in sorted(grouped(on, lambda r: r.offered_load).items()):
        measured = [r for r in runs if not _ratio_only(r)]
        if not measured:
            cells.append(Cell(load, (), tuple(runs)))
        elif load in off_at:
            chosen = agreeing(off_at[load], measured, overrides)
            differences = differences_at(chosen, measured, overrides)
            found += differences
            if any(d.verdict == "blocks" and not d.overridden for d in differences):
                blocked.append(load)
            else:
                cells.append(Cell(load, tuple(chosen), tuple(measured)))
        elif kinds and not off_at:
            blocked.append(load)
            found.append(
                Difference("load_kind", "workload", ", ".join(kinds), kind, (load,), "blocks")
            )
        else:
            on_only += measured
    seen = {*blocked, *(c.load for c in cells)}
    rest = [r for load, runs in off_at.items() if load not in seen for r in runs]
    paired = [r for c in cells for r in c.off]
    return ArmComparison(
        arm=on[0].arm or "",
        load_kind=kind,
        cells=tuple(cells),
        differences=merged(found),
        off_only=tuple(r for r in rest if belongs(r, on, paired, overrides)),
        on_only=tuple(on_only),
        blocked=tuple(blocked),
    )


def _arm_notes(arm: ArmComparison) -> Iterable[str]:
    if arm.protocol:
        yield f"{arm.arm}: several protocols, each compared on its own: {arm.protocol}"
    if any(not c.off for c in arm.cells):
        yield f"{arm.arm}: published ratios without tok/s: compared, never priced"
    if any(math.isinf(c.load) for c in arm.cells):
        yield f"{arm.arm}: the infinite request rate stands at the margin, outside the curve"
    batched = [c for c in arm.cells if arm.load_kind != LoadKind.REQUEST_RATE]
    for limit in dict.fromkeys(known([r for c in batched for r in c.on], "graph_max_batch")):
        above = [c.load for c in batched if c.load > limit and c.on[0].graph_max_batch == limit]
        if above:
            yield (
                f"{arm.arm} at {load_list(above)}: baseline and speculation both ran without "
                f"graphs above {limit}"
            )
    if any(c.load > 1 and (c.on[0].draft_topk or 0) > 1 for c in batched):
        yield f"{arm.arm}: a tree draft above load 1, where EAGLE's authors advise no tree"
    waiting = [c.load for c in arm.cells if any(saturated(r) for r in (*c.off, *c.on))]
    if waiting:
        yield (
            f"{arm.arm} at {load_list(waiting)}: queue-bound (requests wait more than they run, "
            "or the asked rate was not reached): left out of latency comparisons"
        )
    late = [c.load for c in arm.cells if any(blocks_latency(r) for r in (*c.off, *c.on))]
    if late := [x for x in late if x not in waiting]:
        yield (
            f"{arm.arm} at {load_list(late)}: decoding is under 10 % of the end-to-end time, "
            "reasoning tokens may count as time to first token: left out of latency comparisons"
        )


def _arm_order(runs: Sequence[Run]) -> tuple[str, float, str, str]:
    run = runs[0]
    k = run.num_speculative_tokens
    return run.draft_method or "", math.inf if k is None else k, run.arm or "", run.load_kind or ""
