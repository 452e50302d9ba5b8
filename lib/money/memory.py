"""What the drafter's weights and KV cache take from the requests that a replica can hold.

Sizes are those of data/models.csv. The result is an upper bound: activations, graphs and the
fragmentation of the cache are not in it.
"""

import math
from dataclasses import dataclass

from lib.errors import InputError
from lib.money.capacity import MostRequests
from lib.probe.architecture import HEADS, Architecture

GIB = 2.0**30


@dataclass(frozen=True)
class Room:
    """GPU memory of one replica and what a request needs of it.

    `usable` is the share of the memory that the engine may take, `tokens_a_request` input and
    output of one request, `lookahead` the slots that it holds for drafts beside.
    """

    gpu_gib: float
    gpus: int
    usable: float
    tokens_a_request: float
    lookahead: int = 0
    bytes_per_value: float = 2.0

    def __post_init__(self) -> None:
        for name in ("gpu_gib", "gpus", "tokens_a_request", "bytes_per_value"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value:g}: a number above 0")
        if not 0 < self.usable <= 1:
            raise InputError(f"usable = {self.usable:g}: above 0 and at most 1")


@dataclass(frozen=True)
class Held:
    """Requests that fit at once without and with the drafter, and where the memory goes, in GiB."""

    off: float
    on: float
    target_gib: float
    draft_gib: float
    kv_gib_a_request: float
    draft_kv_gib_a_request: float

    @property
    def lost(self) -> float:
        """Share of the concurrency that the drafter takes."""
        return 1.0 - self.on / self.off if self.off else 0.0

    @property
    def most(self) -> MostRequests:
        """As a limit on the loads that a replica may be run at."""
        return MostRequests(self.off, self.on, "memory")


def own_parameters(draft: Architecture) -> float:
    """Weights that a drafter adds: a head uses its target's embedding, and its target's lm_head
    too unless it has a vocabulary of its own.
    """
    if draft.kind not in HEADS:
        return draft.parameters
    shared = draft.vocab * draft.hidden
    if draft.head_vocab == draft.vocab and not draft.tied:
        shared += draft.head_vocab * draft.hidden
    return draft.parameters - shared


def held(target: Architecture, draft: Architecture, room: Room) -> Held:
    """How many requests fit. Raises InputError where the weights alone do not."""
    if draft.kind in HEADS and draft.for_target != target.name:
        raise InputError(f"{draft.label}: drafts for {draft.for_target}, not for {target.name}")
    total = room.gpu_gib * GIB * room.gpus * room.usable
    weights = target.parameters * room.bytes_per_value
    drafter = own_parameters(draft) * room.bytes_per_value
    if weights + drafter >= total:
        raise InputError(
            f"{target.label} and its drafter weigh {(weights + drafter) / GIB:.0f} GiB, the "
            f"replica gives {total / GIB:.0f} GiB: type more GPUs or memory"
        )
    kv = target.kv_bytes_per_token(room.bytes_per_value)
    own = kv * room.tokens_a_request
    # The lookahead is reserved by the engine in the target's cache and in the drafter's alike.
    slots = room.tokens_a_request + room.lookahead
    both = (kv + draft.kv_bytes_per_token(room.bytes_per_value)) * slots
    return Held(
        off=math.floor((total - weights) / own),
        on=math.floor((total - weights - drafter) / both),
        target_gib=weights / GIB,
        draft_gib=drafter / GIB,
        kv_gib_a_request=own / GIB,
        draft_kv_gib_a_request=(both - own) / GIB,
    )
