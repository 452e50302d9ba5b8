"""A candidate against a baseline: the runs of both matched, and each metric where both have it.

Matched are runs of one arm at one load. Where each side holds a single arm, these two are matched
whatever their names: a new draft length, or speculation against none. What is under test may differ
(engine version, build, the draft's own fields, a $/h); every other protocol field must agree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from lib.errors import InputError, NotComparable
from lib.estimate import Basis
from lib.evidence.acceptance import of_run
from lib.evidence.acceptance_groups import pooled
from lib.evidence.acceptance_requests import ByRun
from lib.evidence.pairing import usable_runs
from lib.evidence.protocol import (
    differences_at,
    grouped,
    known,
    load_list,
    merged,
    not_recorded,
    require_fields,
)
from lib.evidence.ratio import (
    METRICS,
    LogMean,
    LogRatio,
    difference,
    log_mean,
    log_mean_of_runs,
)
from lib.results.checks import blocks_latency, blocks_pricing
from lib.run import GROUPS, OFF, LoadKind, Run, Study, distinct
from lib.theory.acceptance import Method

UNDER_TEST = ("engine_version", "build")
ONE_A_SIDE = (*UNDER_TEST, *GROUPS.speculation)  # two values on one side are no repeats
SHOWN = 8
UNIT = {
    LoadKind.CONCURRENCY: "concurrent",
    LoadKind.REQUEST_RATE: "requests/s",
    LoadKind.BATCH: "in a batch",
}


class _Place(NamedTuple):
    arm: str
    kind: LoadKind
    load: float


@dataclass(frozen=True)
class Cell:
    """One arm at one load on both sides; `arm` is the candidate's name of it."""

    arm: str
    kind: LoadKind
    load: float
    baseline: tuple[Run, ...]
    candidate: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.baseline or not self.candidate:
            raise InputError("gate: a matched load has runs on both sides")

    @property
    def runs(self) -> tuple[Run, ...]:
        return *self.baseline, *self.candidate

    @property
    def text(self) -> str:
        """`eagle3:4 at 32 concurrent`."""
        return _text(_Place(self.arm, self.kind, self.load))


@dataclass(frozen=True)
class Matched:
    """The cells of both sides, by arm and load.

    `not_measured` are cells of the baseline that the candidate lacks: nothing passes while there
    are any. `differences` are what was under test or noted, `not_recorded` the protocol fields that
    some run does not state, one line or name each.
    """

    study: Study
    cells: tuple[Cell, ...]
    not_measured: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    not_recorded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One metric at one cell: means of logs on both sides, and which way is better.

    A side is None where it has no value, `why` says so. `repeatable` is whether more runs narrow
    the interval. `steady` is whether repeats that agree to the last digit are the truth, as they
    are of greedy decoding, rather than copies of one run. `absolute` is whether both values mean
    something by themselves; else only their ratio does.
    """

    name: str
    cell: Cell
    baseline: LogMean | None
    candidate: LogMean | None
    higher_is_better: bool
    why: str = ""
    repeatable: bool = True
    steady: bool = False
    absolute: bool = True

    @property
    def change(self) -> LogRatio | None:
        """Log-ratio of the candidate over the baseline; None where a side has no value."""
        if self.baseline is None or self.candidate is None:
            return None
        gap, se, df = difference(self.candidate, self.baseline)
        n_off, n_on = self.baseline.n, self.candidate.n
        if se is None and self.steady and min(n_off, n_on) > 1:
            se, df = 0.0, 1.0
        return LogRatio(self.cell.load, gap, se, df, n_off, n_on)


def chosen(study: Study, side: str, text: str) -> tuple[Run, ...]:
    """The runs that a text names: run ids, or globs on labels and ids, separated by commas.

    Raises InputError where a part names none, with the labels that there are.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"--{side}: name runs, by a glob on their label or by their ids")
    found: dict[str, Run] = {}
    for part in parts:
        named = [r for r in study.runs if r.run_id == part] or [
            r for r in study.runs if any(fnmatchcase(n, part) for n in (r.label or "", r.run_id))
        ]
        if not named:
            names = distinct(r.label or r.run_id for r in study.runs)
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            shown = ", ".join(names[:SHOWN]) or "none"
            raise InputError(
                f"--{side} {part!r}: no run of study {study.name!r} has that label or id; there "
                f"are {shown}{more}"
            )
        found |= {r.run_id: r for r in named}
    return tuple(found.values())


def match(
    study: Study,
    baseline: Sequence[Run],
    candidate: Sequence[Run],
    overrides: frozenset[str] = frozenset(),
) -> Matched:
    """The cells that both sides measured.

    `overrides` are protocol fields whose difference a person accepts. Raises InputError where a run
    is on both sides or an override names no field, NotComparable where the protocols differ or no
    cell is shared.
    """
    require_fields(overrides)
    both = {r.run_id for r in baseline} & {r.run_id for r in candidate}
    if both:
        raise InputError(
            f"--candidate: {len(both)} of its runs are the baseline's too "
            f"({', '.join(sorted(both)[:3])}); a run stands on one side"
        )
    usable, notes = usable_runs((*baseline, *candidate))
    unnamed = sum(r.arm is None for r in usable)
    if unnamed:
        notes.append(f"{unnamed} of the runs do not say whether they speculated: left out")
    ids = {r.run_id for r in candidate}
    old = grouped((r for r in usable if r.arm and r.run_id not in ids), _place)
    new = grouped((r for r in usable if r.arm and r.run_id in ids), _place)
    arms = [distinct(place.arm for place in side) for side in (old, new)]
    if len(arms[0]) == len(arms[1]) == 1 and arms[0] != arms[1]:
        notes.append(f"the arms differ: baseline {arms[0][0]}, candidate {arms[1][0]}")
        old = {place._replace(arm=arms[1][0]): runs for place, runs in old.items()}
    places = sorted(old.keys() & new.keys(), key=_order)
    if not places:
        raise NotComparable(
            f"study {study.name!r}: no arm was measured at one load on both sides; the baseline "
            f"has {_list(old)}, the candidate {_list(new)}"
        )
    cells = tuple(Cell(p.arm, p.kind, p.load, tuple(old[p]), tuple(new[p])) for p in places)
    differing = _differences(cells, overrides)
    if alone := sorted(new.keys() - old.keys(), key=_order):
        notes.append(f"not in the baseline, left out: {_list(alone)}")
    return Matched(
        study,
        cells,
        tuple(_text(p) for p in sorted(old.keys() - new.keys(), key=_order)),
        differing,
        not_recorded([r for c in cells for r in c.runs]),
        tuple(notes),
    )


def checks(matched: Matched, requests: ByRun | None = None) -> tuple[Check, ...]:
    """Output tok/s, mean TPOT and tau at every cell; tau has no side where one drafts nothing.

    `requests` are counts of drafts by request, by run id: where all runs of a side have them, tau
    has its interval from these, else from the repeats.
    """
    found = []
    for cell in matched.cells:
        found += [
            _speed(cell, "output_tps"),
            _speed(cell, "tpot_ms"),
            _length(cell, matched.study.basis, requests or {}),
        ]
    return tuple(found)


def _speed(cell: Cell, name: str) -> Check:
    metric = METRICS[name]
    refuses = blocks_pricing if name == "output_tps" else blocks_latency
    means: list[LogMean | None] = []
    said: list[str] = []
    for side, runs in (("baseline", cell.baseline), ("candidate", cell.candidate)):
        reason = next((text for r in runs if (text := refuses(r))), "")
        mean = None if reason else log_mean_of_runs(runs, metric)
        if mean is None:
            said.append(f"{side}: {reason or f'states no {metric.label.lower()}'}")
        means.append(mean)
    return Check(name, cell, means[0], means[1], metric.higher_is_better, "; ".join(said))


def _length(cell: Cell, basis: Basis, requests: ByRun) -> Check:
    if any(r.arm == OFF or r.num_speculative_tokens == 0 for r in cell.runs):
        return Check("tau", cell, None, None, True, "a side drafts nothing")
    means = [_tau(runs, basis, requests) for runs in (cell.baseline, cell.candidate)]
    sides = zip(("baseline", "candidate"), means, strict=True)
    said = [f"{side}: states no counts and no length" for side, mean in sides if mean is None]
    counted = any(all(r.run_id in requests for r in s) for s in (cell.baseline, cell.candidate))
    return Check(
        "tau",
        cell,
        means[0],
        means[1],
        True,
        "; ".join(said),
        repeatable=not counted,
        steady=True,
    )


def _tau(runs: Sequence[Run], basis: Basis, requests: ByRun) -> LogMean | None:
    """Mean log tau of one side: by request where that is counted, else over its repeats.

    By request the error is the delta method's, se / tau; the repeats may ask the same prompts, so
    their degrees of freedom are those of one run.
    """
    found = pooled(runs, basis, "", requests)
    if found is None:
        return None
    tau = found.tau
    if tau.method is Method.REQUESTS and tau.se is not None:
        counted = sum(int((requests[r.run_id].drafts > 0).sum()) for r in runs)
        spread = (tau.se / tau.value) ** 2
        return LogMean(math.log(tau.value), spread, counted / len(runs) - 1, len(runs))
    return log_mean([a.tau.value for r in runs if (a := of_run(r, basis)) is not None])


def _differences(cells: Sequence[Cell], overrides: frozenset[str]) -> tuple[str, ...]:
    """What differs and may, in words. Raises NotComparable where something may not."""
    found, refused, changed = [], [], dict[str, None]()
    for cell in cells:
        for name in ONE_A_SIDE:
            sides = [known(runs, name) for runs in (cell.baseline, cell.candidate)]
            if mixed := next((s for s in sides if len(s) > 1), None):
                side = "baseline" if mixed is sides[0] else "candidate"
                values = ", ".join(map(str, mixed))
                refused.append(f"{name} varies within the {side} at {cell.text}: {values}")
            elif all(sides) and sides[0] != sides[1]:
                changed[f"{name}: baseline {sides[0][0]}, candidate {sides[1][0]}"] = None
        found += differences_at(cell.baseline, cell.candidate, overrides)
    own = (*UNDER_TEST, "usd_per_hour")
    for d in merged(d for d in found if d.field not in own):
        text = f"{d.field}: baseline {d.off}, candidate {d.on} at {load_list(d.loads)}"
        accepted = d.field in overrides
        if d.verdict != "noted" and not accepted:  # another allocation is no equal $/h
            refused.append(text)
        else:
            changed[f"{text} (overridden by a person)" if accepted else text] = None
    if refused:
        raise NotComparable(
            f"baseline and candidate differ in more than what is under test: {'; '.join(refused)}; "
            "name runs that agree, or accept a difference with --override FIELD"
        )
    return tuple(changed)


def _place(run: Run) -> _Place:
    assert run.arm is not None
    assert run.load_kind is not None
    assert run.offered_load is not None
    return _Place(run.arm, run.load_kind, run.offered_load)


def _order(place: _Place) -> tuple[bool, str, str, float]:
    return place.arm != OFF, place.arm, place.kind, place.load


def _text(place: _Place) -> str:
    return f"{place.arm} at {place.load:g} {UNIT[place.kind]}"


def _list(places: "Sequence[_Place] | dict[_Place, list[Run]]") -> str:
    names = [_text(p) for p in sorted(places, key=_order)]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN]) or 'nothing'}{more}"
