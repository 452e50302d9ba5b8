"""Which arms compete in one schedule: one draft method, one kind of load, one server."""

import json
import math
from collections.abc import Callable, Sequence
from itertools import combinations

from lib.errors import NotComparable
from lib.evidence.batches import batch_of
from lib.evidence.pairing import ArmComparison, Cell, Comparison
from lib.evidence.protocol import ONE_CURVE, Difference, differences_at
from lib.evidence.ratio import Metric, log_ratios
from lib.run import LoadKind, Run, distinct

LOAD_KINDS = (LoadKind.CONCURRENCY, LoadKind.BATCH, LoadKind.REQUEST_RATE)
GOODPUT = "goodput_rps"


def competing(
    comparison: Comparison,
    metric: Metric,
    method: str | None = None,
    protocol: str | None = None,
) -> tuple[list[ArmComparison], list[str]]:
    """The arms with a fixed K of one draft method, one kind of load and one protocol.

    Batches are concurrent requests, so arms measured over request rates compete only where their
    batch is recorded or follows from Little's law. The second value names, one sentence each, what
    was left out. Raises NotComparable where nothing is left, several methods or protocols are and
    none is chosen, or the allocation differs.
    """
    usable = [a for a in comparison.arms if k_of(a) is not None and cells_of(a, metric)]
    if not usable:
        raise NotComparable(
            "no arm with a fixed K shares a concurrency or batch with off in "
            f"{metric.label.lower()}; import one, for example as eagle3:3"
        )
    used = _only("draft method", method, method_of, usable)
    kind = min((a.load_kind for a in used), key=LOAD_KINDS.index)
    used = [a for a in used if a.load_kind is kind]
    used = _only("protocol", protocol, lambda a: a.protocol, used)
    used = [a for a in used if any(c.off for c in cells_of(a, metric))] or used
    _one_server(used, frozenset(d.field for d in comparison.differences if d.overridden))
    return used, _left_out(comparison, used)


def _left_out(comparison: Comparison, used: list[ArmComparison]) -> list[str]:
    kept = {id(a) for a in used}
    others = [a for a in comparison.arms if id(a) not in kept]
    no_fixed_k = distinct(a.arm for a in others if k_of(a) is None and not scheduled_off(a))
    rest = distinct(f"{a.arm} ({a.load_kind.value})" for a in others if k_of(a) is not None)
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


def k_of(arm: ArmComparison) -> int | None:
    """The fixed K of an arm; None where it is adaptive, scheduled, unknown or 0."""
    runs = _on(arm)
    ks = {r.num_speculative_tokens for r in runs if r.schedule is None}
    if len(ks) != 1 or any(r.schedule is not None for r in runs):
        return None
    return ks.pop() or None


def _on(arm: ArmComparison) -> list[Run]:
    return [*(r for c in arm.cells for r in c.on), *arm.on_only]


def method_of(arm: ArmComparison) -> str:
    """The arm's draft method."""
    return _on(arm)[0].draft_method or arm.arm.split(":")[0]


def scheduled_off(arm: ArmComparison) -> bool:
    """Whether the arm's server speculates and never drafts: METHOD:0, or a schedule of zeros."""
    return all(_never_drafts(r) for r in _on(arm))


def scheduled_k(run: Run, batch: float) -> int | None:
    """The draft length of a run at a batch; None where its schedule does not say."""
    if run.schedule is None:
        return run.num_speculative_tokens
    try:
        ranges = [(first, last, int(k)) for first, last, k in json.loads(run.schedule)]
        return next((k for first, last, k in ranges if first <= batch <= last), None)
    except (ValueError, TypeError):
        return None


def _never_drafts(run: Run) -> bool:
    if run.schedule is None:
        return run.num_speculative_tokens == 0
    try:
        return {k for _, _, k in json.loads(run.schedule)} == {0}
    except (ValueError, TypeError):
        return False


def cells_of(arm: ArmComparison, metric: Metric) -> list[Cell]:
    """The cells with a batch that hold the objective; ratio-only ones where no others do."""
    if metric.name == GOODPUT:
        loads = {c.load for c in arm.cells if all(_stated(r, metric) for r in (c.off, c.on))}
    else:
        loads = {p.load for p in log_ratios(arm, metric.name)}
    cells = [c for c in arm.cells if c.load in loads and math.isfinite(c.load)]
    cells = [c for c in cells if batch_of(arm.load_kind, c.load, c.on) is not None]
    return [c for c in cells if c.off] or cells


def _stated(runs: Sequence[Run], metric: Metric) -> bool:
    return any(getattr(r, metric.attribute) is not None for r in runs)
