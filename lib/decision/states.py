"""The words of the decision: how a step stands, and what the verdict claims."""

from dataclasses import dataclass
from enum import StrEnum

from lib.estimate import Basis, Estimate

# Unreplicated and not peer reviewed: shown as a warning, never as a threshold.
PRACTITIONER_REPORT = (
    "A practitioner measured EAGLE-3 on Llama-3.1-8B, one 48 GB GPU, 500 ShareGPT prompts: "
    "τ 1.81 and about 45 tok/s, slower than without speculation. Unreplicated and not peer "
    "reviewed; no threshold here uses it. It shows that a drafter can be accepted and still lose."
)
PRACTITIONER_SOURCE = "Vizuara, case study on speculative decoding (blog; numbers unconfirmed)"


class State(StrEnum):
    """How a step stands. `stale` evidence was measured on something else than what is judged."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    STALE = "stale"
    MISSING = "missing"


MARKS = {
    State.PASSED: "✓",
    State.FAILED: "✕",
    State.UNDECIDED: "≈",
    State.STALE: "↻",
    State.MISSING: "○",
}


@dataclass(frozen=True)
class Gate:
    """One step of the way: what is known and from where, what is missing, which page fills it."""

    title: str
    state: State
    known: str
    basis: Basis | None
    missing: str
    page: str


@dataclass(frozen=True)
class Live:
    """What a watched server does now, what is wrong with it, and what keeps that from being told.

    All are sentences, the worst first; `said` is empty where nothing of it could be read.
    """

    said: str
    alerts: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The sentence at the operating load and what it claims.

    `state` is passed where speculation wins there, failed where it loses, undecided where the
    evidence does not decide, missing where no load is named. `share` is the fraction of redraws
    of the measured ratios in which the sentence holds.
    """

    state: State
    sentence: str
    arm: str | None = None
    multiplier: Estimate | None = None
    up_to: float | None = None
    share: float | None = None
    open_points: tuple[str, ...] = ()
    load: float | None = None
