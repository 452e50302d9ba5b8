"""A schedule as tables and lines, for the page and for CSV alike."""

import math
from collections.abc import Sequence

from lib.estimate import Basis, Estimate
from lib.evidence.engine_schedule import Range
from lib.evidence.schedule import Schedule, Tier
from lib.evidence.three_arms import Proof
from lib.report.format import number, percent

OBJECTIVE_NAMES = {"throughput": "output tok/s", "tpot": "mean TPOT", "goodput": "goodput"}
Columns = dict[str, list[object]]
SHOWN = 0.0005  # the smallest gain that one decimal of a percent shows


def tier_table(found: Schedule) -> Columns:
    """One row a tier: its range, K, gains and what the range rests on."""
    table: Columns = {
        "from batch": [t.first for t in found.tiers],
        "to batch": [t.last for t in found.tiers],
        "K": [t.k for t in found.tiers],
        "gain against off": [t.gain for t in found.tiers],
        f"against fixed K = {found.best_fixed_k}": [t.gain_over_fixed for t in found.tiers],
        "evidence": [evidence(t) for t in found.tiers],
    }
    if any(t.k == 0 for t in found.tiers):
        table["K = 0 tax"] = [tax(t) for t in found.tiers]
    return table


def evidence(tier: Tier) -> str:
    """`measured at 16, 32`, or that nothing inside was."""
    if not tier.measured:
        return "nothing measured inside"
    return f"measured at {', '.join(number(n) for n in tier.measured)}"


def tax(tier: Tier) -> str:
    """`6.6 % at 2`, or `unmeasured; K = 2 wins above 4.1 %`; empty for a tier that drafts."""
    if tier.k:
        return ""
    if tier.measured_tax:
        pairs = ", ".join(f"{100 * t:.1f} % at {number(n)}" for n, t in tier.measured_tax)
        return f"tax measured {pairs}"
    if tier.gain is not None:
        return "between measured taxes"
    if tier.tax is None:
        return "unmeasured"
    return f"unmeasured; K = {tier.next_k} wins above {100 * tier.tax:.1f} %"


def verdict(found: Schedule) -> str:
    """What the schedule is worth against the best fixed K, in one line."""
    if found.fixed_k == 0:
        return "No draft length wins at any batch: start without --speculative-config."
    if found.fixed_k is not None:
        return f"K = {found.fixed_k} at every batch: a fixed K, no schedule."
    against = "no speculation" if found.best_fixed_k == 0 else f"a fixed K = {found.best_fixed_k}"
    name = OBJECTIVE_NAMES[found.objective]
    known, free = found.measured_gain_over_fixed, found.gain_over_fixed
    if math.isinf(free):
        return f"The schedule reaches batches at which {against} has no good request."
    if found.keep_fixed:
        keep = "start without speculation" if found.best_fixed_k == 0 else "keep the fixed K"
        if free < SHOWN:
            return f"No gain over {against} on {name}: {keep}."
        most = percent(math.ceil(free * 1000 - 1e-9) / 1000, 1)
        return f"At most {most} over {against} on {name}, under 2 % everywhere: {keep}."
    most = "No gain" if known < SHOWN else f"Up to {percent(known, 1)}"
    said = f"{most} over {against} on {name}"
    if free > known:
        return f"{said} where it drafts; {percent(free, 1)} at K = 0 if that cost nothing."
    return f"{said}, at the batch where they differ most."


def worth(found: Schedule, basis: Basis) -> Estimate | None:
    """The measured gain over the best fixed K as an estimate; None where it is no number."""
    if found.fixed_k is not None or not math.isfinite(found.measured_gain_over_fixed):
        return None
    return Estimate(
        1 + found.measured_gain_over_fixed,
        "×",
        Basis.DERIVED,
        f"{basis} arms, straight lines between their loads: a hypothesis until it is its own arm",
        how=f"largest ratio of the schedule to K = {found.best_fixed_k} over the batches within "
        "the measured loads, those at K = 0 with an unmeasured tax left out",
    )


def range_table(ranges: Sequence[Range]) -> Columns:
    """What an engine uses at every batch."""
    return {
        "from batch": [r[0] for r in ranges],
        "to batch": [r[1] for r in ranges],
        "K": [r[2] for r in ranges],
    }


def filled_in(ranges: Sequence[Range]) -> str:
    """`1 to 8: K = 4; 9 to 38: K = 2; 39 to 64: K = 0`."""
    return "; ".join(
        f"{first} to {last}: K = {k}" if last > first else f"{first}: K = {k}"
        for first, last, k in ranges
    )


def proof_lines(proof: Proof) -> list[str]:
    """The arms and the loads of the proof."""
    loads = ", ".join(str(n) for n in proof.loads)
    return [*(f"{a.name}: {a.what}" for a in proof.arms), f"each at concurrency {loads}"]
