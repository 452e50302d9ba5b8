"""The proof of a schedule: off, the best fixed K and the schedule, measured side by side."""

import math
from dataclasses import dataclass

from lib.evidence.schedule import Schedule
from lib.run import OFF


@dataclass(frozen=True)
class ProofArm:
    """One server to start: `name` as arms are named elsewhere, and why it is one of the three."""

    name: str
    what: str


@dataclass(frozen=True)
class Proof:
    """Arms and the concurrencies at which each of them is measured."""

    arms: tuple[ProofArm, ...]
    loads: tuple[int, ...]


def proof_of(schedule: Schedule) -> Proof | None:
    """What to measure before the schedule is believed; None where there is no schedule.

    The loads are the measured ones, the first batch of every tier, where K switches, one inside
    each tier that holds none, and the largest batch.
    """
    if schedule.ranges is None:
        return None
    method = schedule.method or "speculation"
    static = schedule.best_fixed_k or schedule.num_speculative_tokens
    arms = (
        ProofArm(OFF, "a server without speculation, the baseline of every gain"),
        ProofArm(f"{method}:{static}", f"K = {static} at every batch, what the schedule must beat"),
        ProofArm(f"{method}:schedule", "the schedule itself, never assumed from the other two"),
    )
    loads = {math.ceil(n) for t in schedule.tiers for n in t.measured}
    for tier in schedule.tiers:
        loads |= {tier.first, tier.last} if tier.last == schedule.max_num_seqs else {tier.first}
        if not tier.measured:
            loads.add(round(math.sqrt(tier.first * tier.last)))
    return Proof(arms, tuple(sorted(n for n in loads if n <= schedule.max_num_seqs)))
