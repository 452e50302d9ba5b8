"""What SGLang can and cannot do in place of a batch-size schedule.

It has no table from batch size to draft length. It has a fixed number of steps, and an adaptive
mode whose tiers follow the accepted length.
"""

import json
from collections.abc import Sequence

from lib.errors import InputError
from lib.evidence.engine_schedule import Range

ALGORITHMS = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "draft_model": "STANDALONE",
    "ngram": "NGRAM",
    "dflash": "DFLASH",
}
ADAPTIVE_METHODS = ("eagle", "eagle3")
CANNOT = (
    "SGLang takes no table from batch size to draft length: this schedule cannot be written for "
    "it. A server runs a fixed number of steps, or adapts between candidate steps by accepted "
    "length, whatever the batch; none of its tiers is 0."
)
ADAPTIVE_LIMITS = (
    "--speculative-adaptive works with EAGLE and EAGLE3 and top-k 1 only, not with dp-attention; "
    "it is its own arm to measure, not this schedule."
)


def fixed_flags(method: str, draft_model: str | None, k: int) -> str:
    """The flags of a server that drafts K tokens in a chain; empty at K = 0.

    SGLang counts the root too: K drafts are num_steps K, top-k 1 and num_draft_tokens K + 1.
    Raises InputError for a method that SGLang lacks.
    """
    if k == 0:
        return ""
    flags = [f"--speculative-algorithm {_algorithm(method)}"]
    if draft_model:
        flags.append(f"--speculative-draft-model-path {json.dumps(draft_model)}")
    if _name(method) == "ngram":
        return " ".join([*flags, f"--speculative-num-draft-tokens {k + 1}"])
    return " ".join(
        [
            *flags,
            f"--speculative-num-steps {k}",
            "--speculative-eagle-topk 1",
            f"--speculative-num-draft-tokens {k + 1}",
        ]
    )


def adaptive_config(method: str, ranges: Sequence[Range]) -> dict[str, object]:
    """The adaptive mode's file with the schedule's own K as candidate steps.

    Raises InputError where the method has no adaptive mode or fewer than two K are drafted.
    """
    if _name(method) not in ADAPTIVE_METHODS:
        raise InputError(f"method {method}: SGLang adapts with EAGLE and EAGLE3 only")
    steps = sorted({k for _, _, k in ranges if k})
    if len(steps) < 2:
        raise InputError("adaptive steps: the schedule drafts one K only, so use a fixed one")
    return {"candidate_steps": steps}


def _algorithm(method: str) -> str:
    name = _name(method)
    if name not in ALGORITHMS:
        raise InputError(f"method {method}: not one of SGLang's, {', '.join(ALGORITHMS.values())}")
    return ALGORITHMS[name]


def _name(method: str) -> str:
    return "mtp" if "mtp" in method.lower() else method.lower()
