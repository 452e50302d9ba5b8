"""What the study itself says of a drafter at low batch: tau and alpha from counts, c from a sweep.

c is one draft step over one plain target step. A probe measures it; a study knows it only through
several draft lengths at one load (tau / S = v + c K); else a person types it: then it is assumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lib.decision.states import State
from lib.estimate import Basis
from lib.evidence.acceptance import Acceptance
from lib.evidence.acceptance_groups import pooled
from lib.evidence.acceptance_requests import ByRun
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.probe_match import basis as probe_basis
from lib.evidence.probe_match import doubts, pick, source
from lib.evidence.round_cost import MISS, NO_DRAFTER, fits, round_costs
from lib.probe.result import Probe
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
class DraftCost:
    """c and where it comes from: measured (a probe), derived (servers, a sweep over K), assumed
    (typed). `stale` names what differs between a probe's setup and the judged runs, `doubts` why
    it cannot be trusted as it stands.
    """

    value: float
    basis: Basis
    source: str
    stale: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether it was measured, on what is judged, and can be trusted."""
        return self.basis is not Basis.ASSUMED and not self.stale and not self.doubts


@dataclass(frozen=True)
class LowBatch:
    """tau of one arm at the lowest load of the study, and c where it is known.

    `stale` names what differs between these runs and the judged ones.
    """

    arm: str
    load: float
    acceptance: Acceptance
    cost: DraftCost | None
    stale: tuple[str, ...] = ()

    @property
    def c(self) -> float | None:
        """One draft step in plain target steps; None where nothing says it."""
        return None if self.cost is None else self.cost.value

    @property
    def due(self) -> bool:
        """Whether part of it was measured on something else than what is judged."""
        return bool(self.stale or (self.cost is not None and self.cost.stale))

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
        if self.due:
            return State.STALE
        if self.cost is None:
            return State.MISSING
        sound = self.by_request and self.cost.settled
        sound = sound and not self.acceptance.untrusted
        return State.PASSED if sound and self.load <= LOW else State.UNDECIDED


def low_batch(
    found: Findings,
    arm: str | None,
    typed: ScreenInputs | None,
    requests: ByRun | None = None,
    probes: Sequence[Probe] = (),
) -> LowBatch | None:
    """What the named arm's runs say at their lowest load with counts; None where none has any.

    Runs that were compared come first; others of the arm may be stale.
    `typed` gives c unless it is still the published example's; `requests` are the counts of drafts
    by request, where runs have them; `probes`, newest first, give c where one is of this setup.
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
            acceptance = pooled(here, found.study.basis, f"{chosen.arm} at {load:g}", requests)
            if acceptance is not None:
                cost = _cost(found, chosen, load, typed, _probed(probes, judged or own))
                stale = differing(here, judged)
                return LowBatch(chosen.label, load, acceptance, cost, stale)
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


def _probed(probes: Sequence[Probe], runs: Sequence[Run]) -> DraftCost | None:
    """c of the newest low-batch probe of what these runs ran on, due again where that differs."""
    picked = pick(probes, runs, LOW)
    if picked is None:
        return None
    probe, match = picked
    c = probe.c
    ends = "" if c.low is None or c.high is None else f", {c.low:.3g} to {c.high:.3g}"
    told = f"{source(probe)}{ends}"
    return DraftCost(c.value, probe_basis(probe), told, match.differs, doubts(probe))


def _cost(
    found: Findings,
    arm: ArmFinding,
    load: float,
    typed: ScreenInputs | None,
    probed: DraftCost | None,
) -> DraftCost | None:
    method = arm.label.split(":")[0]
    if method in NO_DRAFTER:
        return DraftCost(0.0, Basis.DERIVED, "drafts are looked up, no draft model runs")
    if probed is not None and not probed.stale:
        return probed
    for fit in fits(round_costs(found)):
        line = fit.line
        sound = line.points > 2 and line.miss < MISS and line.c >= 0
        if fit.method.split(" ")[0] == method and fit.load == load and sound:
            ks = ", ".join(map(str, fit.ks))
            said = f"slope of τ / S over K = {ks} at {load:g}"
            return DraftCost(line.c, Basis.DERIVED, said)
    if probed is not None:
        return probed
    if typed is None or typed.basis is Basis.PUBLISHED:
        return None
    return DraftCost(typed.c, Basis.ASSUMED, "as the screen page has it")


def screen_word(speedup: float) -> State:
    """Passed for a candidate, failed for a reject, undecided between (the theorem's own miss)."""
    return {
        walltime.Verdict.CANDIDATE: State.PASSED,
        walltime.Verdict.REJECT: State.FAILED,
        walltime.Verdict.UNDECIDED: State.UNDECIDED,
    }[walltime.verdict(speedup)]
