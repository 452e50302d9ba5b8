"""Whether a run meets a service-level objective, and how many of its requests do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lib.errors import InputError
from lib.evidence.pairing import ArmComparison, Comparison
from lib.run import PERCENTILES, Run, Slo, distinct


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
            raise InputError(
                "goodput: no SLO is named and the files record none; name a TTFT or TPOT limit"
            )
        named = distinct(r.slo for r in paired)
        return comparison, f"Goodput as recorded, at {'; '.join(named) or 'an SLO not recorded'}."
    if all(r.run_id in good_rps for r in paired):
        counted = _replaced(comparison, slo, lambda r: good_rps.get(r.run_id))
        return counted, f"Goodput counted from per-request records at {slo.text}."
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
