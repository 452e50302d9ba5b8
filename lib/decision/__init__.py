"""Should this deployment speculate? The one room that sees theory, evidence and money."""

from lib.decision.claims import Claim, Money, claim
from lib.decision.drafting import LowBatch, ScreenInputs, low_batch
from lib.decision.failure_modes import LIGHTS, Guardrail, Light, guardrails
from lib.decision.flips import Flip, Stands, stands
from lib.decision.judging import level, share_of_redraws, share_of_redraws_below, verdict
from lib.decision.path import gates
from lib.decision.states import (
    MARKS,
    PRACTITIONER_REPORT,
    PRACTITIONER_SOURCE,
    Gate,
    Live,
    State,
    Verdict,
)

__all__ = [
    "LIGHTS",
    "MARKS",
    "PRACTITIONER_REPORT",
    "PRACTITIONER_SOURCE",
    "Claim",
    "Flip",
    "Gate",
    "Guardrail",
    "Light",
    "Live",
    "LowBatch",
    "Money",
    "ScreenInputs",
    "Stands",
    "State",
    "Verdict",
    "claim",
    "gates",
    "guardrails",
    "level",
    "low_batch",
    "share_of_redraws",
    "share_of_redraws_below",
    "stands",
    "verdict",
]
