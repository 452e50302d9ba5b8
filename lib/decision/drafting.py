"""What the study itself says of a drafter at low batch: tau and alpha from counts, c from a sweep.

c is one draft step over one plain target step. A study knows it only through several draft
lengths at one load (tau / S = v + c K); else a person types it, and then it is assumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lib.decision.states import State
from lib.estimate import Basis
from lib.evidence.acceptance import Acceptance
from lib.evidence.acceptance_groups import pooled
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.round_cost import MISS, NO_DRAFTER, fits, round_costs
from lib.run import Run
from lib.theory import measured_round, walltime
from lib.theory.acceptance import Method

LOW = 4  # above so many requests at once a round is no longer the single sequence of the theorem

# Evidence is bound to what it was measured on (design law 7).
BOUND = {
    "target": "target",
    "target_revision": "target revision",
    "target_quantization": "quantisation",
    "draft_method": "draft method",
    "draft_model": "drafter",
    "gpu": "GPU",
    "engine": "engine",
    "engine_version": "engine version",
    "dataset": "traffic",
    "domain": "domain",
}


@dataclass(frozen=True)
class ScreenInputs:
    """The theorem's inputs as they stand on the screen page, and where they come from."""

    alpha: float
    gamma: int
    c: float
    basis: Basis
    source: str


@dataclass(frozen=True)
class LowBatch:
    """tau of one arm at the lowest load of the study, and c where it is known.

    `c_basis` is derived (a sweep over K) or assumed (typed); c is None where it is neither.
    `stale` names what differs between these runs and the judged ones.
    """

    arm: str
    load: float
    acceptance: Acceptance
    c: float | None
    c_basis: Basis | None
    c_source: str
    stale: tuple[str, ...] = ()

    @property
    def speedup(self) -> float | None:
        """S = tau / (gamma c + 1), Theorem 3.8 with tau as measured; None where gamma or c is not
        known. A drafter that proposes all positions in one pass pays c once."""
        gamma = self.acceptance.gamma
        if gamma is None or self.c is None:
            return None
        steps = 1 if self.acceptance.flat_cost else gamma
        return float(measured_round.highest_speedup(self.acceptance.tau.value, steps, self.c))

    @property
    def by_request(self) -> bool:
        """Whether tau has an interval that allows for requests that differ."""
        return self.acceptance.tau.method is Method.REQUESTS

    @property
    def state(self) -> State:
        """Passed where tau has an interval by request and c is measured, at low batch."""
        if self.stale:
            return State.STALE
        if self.c is None:
            return State.MISSING
        sound = self.by_request and self.c_basis is not Basis.ASSUMED
        sound = sound and not self.acceptance.untrusted
        return State.PASSED if sound and self.load <= LOW else State.UNDECIDED


def low_batch(found: Findings, arm: str | None, typed: ScreenInputs | None) -> LowBatch | None:
    """What the named arm's runs say at their lowest load with counts; None where none has any.

    Runs that were compared come first; others of the arm may be stale.
    `typed` gives c unless it is still the published example's.
    """
    chosen = next((a for a in found.arms if a.label == arm), None) or found.headline(None)
    if chosen is None:
        return None
    judged = [r for cell in chosen.pairs.cells for r in cell.on]
    own = [*judged, *chosen.pairs.on_only]
    ids = {r.run_id for r in own}
    others = [r for r in found.study.runs if r.arm == chosen.arm and r.run_id not in ids]
    for runs in (own, others):
        for load in sorted({r.offered_load for r in runs if r.offered_load}):
            here = [r for r in runs if r.offered_load == load]
            acceptance = pooled(here, found.study.basis, f"{chosen.arm} at {load:g}")
            if acceptance is not None:
                c, basis, source = _cost(found, chosen, load, typed)
                stale = differing(here, judged)
                return LowBatch(chosen.label, load, acceptance, c, basis, source, stale)
    return None


def differing(evidence: Sequence[Run], judged: Sequence[Run]) -> tuple[str, ...]:
    """What the evidence was measured on and the judged runs were not: `engine version 0.9, not
    0.10`. Fields that either side does not record say nothing.
    """
    said = []
    for field, name in BOUND.items():
        ours, theirs = (
            {v for r in runs if (v := getattr(r, field)) is not None} for runs in (evidence, judged)
        )
        if ours and theirs and not ours & theirs:
            said.append(f"{name} {', '.join(sorted(ours))}, not {', '.join(sorted(theirs))}")
    return tuple(said)


def _cost(
    found: Findings, arm: ArmFinding, load: float, typed: ScreenInputs | None
) -> tuple[float | None, Basis | None, str]:
    method = arm.label.split(":")[0]
    if method in NO_DRAFTER:
        return 0.0, Basis.DERIVED, "drafts are looked up, no draft model runs"
    for fit in fits(round_costs(found)):
        line = fit.line
        sound = line.points > 2 and line.miss < MISS and line.c >= 0
        if fit.method.split(" ")[0] == method and fit.load == load and sound:
            ks = ", ".join(map(str, fit.ks))
            return line.c, Basis.DERIVED, f"slope of τ / S over K = {ks} at {load:g}"
    if typed is None or typed.basis is Basis.PUBLISHED:
        return None, None, ""
    return typed.c, Basis.ASSUMED, "typed on the screen page"


def screen_word(speedup: float) -> State:
    """Passed for a candidate, failed for a reject, undecided between (the theorem's own miss)."""
    return {
        walltime.Verdict.CANDIDATE: State.PASSED,
        walltime.Verdict.REJECT: State.FAILED,
        walltime.Verdict.UNDECIDED: State.UNDECIDED,
    }[walltime.verdict(speedup)]
