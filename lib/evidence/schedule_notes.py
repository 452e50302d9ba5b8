"""What must be said beside a schedule, one sentence each."""

import math
from collections.abc import Mapping, Sequence

from lib.evidence.best_k import Grid
from lib.evidence.engine_schedule import config, vllm_flag
from lib.evidence.engine_support import data_parallel_drops, engine_warnings
from lib.evidence.ratio import TIE
from lib.evidence.tiers import Tier
from lib.run import Run, distinct

WORTH_A_SCHEDULE = 0.02


def unmeasured(tiers: Sequence[Tier], grid: Grid, max_num_seqs: int) -> list[str]:
    """One sentence for each stretch whose K rests on no measurement."""
    lowest, highest = int(grid.batches[0]), int(grid.batches[-1])
    top = tiers[-1]
    why_not = "are unmeasured"
    if grid.unserved is not None:
        why_not = "have no arm that is known to meet the SLO"
    said = []
    if top.last < max_num_seqs:
        said.append(
            f"Batches {highest + 1} to {max_num_seqs} {why_not} and K = {top.k} wins at "
            f"{highest}: no schedule is written. Choose --tail off (K = 0 there), --tail carry "
            f"(K = {top.k} there) or --max-num-seqs {highest}."
        )
    elif max_num_seqs > highest:
        why = f"carried up from {highest}" if top.first <= highest else "a choice, not a finding"
        said.append(
            f"Batches {highest + 1} to {max_num_seqs} {why_not}: K = {top.k} there is {why}."
        )
    if lowest > 1:
        said.append(
            f"Nothing was measured below batch {lowest}: its K = {tiers[0].k} is carried down to 1."
        )
    gaps = [t for t in tiers if not t.measured and t.last >= lowest and t.first <= highest]
    if gaps:
        named = ", ".join(f"{t.first} to {t.last}" for t in gaps)
        said.append(
            f"Nothing was measured inside batches {named}: the K there comes from straight lines "
            "between the measured loads."
        )
    return said


def advice(
    tiers: Sequence[Tier],
    best_fixed: tuple[int, float],
    decided: bool,
    grid: Grid,
    runs: Sequence[Run],
) -> list[str]:
    """What to run instead, where a fixed K does the same or nearly."""
    k, gain = best_fixed
    measured = {t.k for t in tiers if t.first <= grid.batches[-1]}
    if len(tiers) == 1 and decided:
        k, reason = tiers[0].k, f"K = {tiers[0].k} at every batch needs no schedule"
    elif len(measured) > 1 and gain < WORTH_A_SCHEDULE:
        percent = math.ceil(gain * 1000 - 1e-9) / 10
        reason = f"Nowhere measured is the schedule more than {percent:g} % over a fixed K = {k}"
    else:
        return []
    if k == 0:
        return [f"{reason}: start without --speculative-config."]
    flag = vllm_flag(config(method_of(runs) or "METHOD", draft_model_of(runs), k))
    return [f"{reason}: keep a fixed K = {k}, with {flag}"]


def hypothesis(tiers: Sequence[Tier], highest: int, log_taxes: Mapping[float, float]) -> list[str]:
    """That the schedule is one, and what is known of the tax of its K = 0."""
    said = ["The schedule is a hypothesis until it has been measured as its own arm."]
    taxes = [(batch, math.expm1(tax)) for batch, tax in log_taxes.items()]
    zero = [t for t in tiers if t.k == 0]
    if zero and any(t.gain is None for t in zero):
        elsewhere = f" (it was measured at {_tax_list(taxes)})" if taxes else ""
        said.append(
            "K = 0 is not speculation off: its tax is unmeasured, so its batches have no gain and "
            f"no price here{elsewhere}."
        )
    if zero:
        said.append(
            "Steps at K = 0 move no draft counter: under this schedule an acceptance length speaks "
            "of the drafting steps only."
        )
    measured = [pair for t in zero if t.gain is not None for pair in t.measured_tax]
    if measured:
        said.append(
            "K = 0 is not speculation off: against a server without speculation its tax measured "
            f"{_tax_list(measured)}."
        )
    said += [
        f"Batches {t.first} to {min(t.last, highest)}: K = {t.next_k} wins instead of K = 0 at a "
        f"tax above {100 * t.tax:.1f} %."
        for t in zero
        if t.tax is not None and t.gain is None
    ]
    return [*said, *_apart(tiers)]


def no_gain(tiers: Sequence[Tier]) -> list[str]:
    """Where off has no good request, so that a ratio to it is no number."""
    missed = [f"{t.first} to {t.last}" for t in tiers if t.k and t.measured and t.gain is None]
    if not missed:
        return []
    named = ", ".join(missed)
    return [f"Batches {named}: off misses the SLO somewhere there, so no gain is a number."]


def _apart(tiers: Sequence[Tier]) -> list[str]:
    """Where a server without speculation is better than this one at its best."""
    behind = [t for t in tiers if t.gain is not None and math.log(t.gain) < -TIE]
    if not behind:
        return []
    worst = min(behind, key=lambda t: t.gain or 0)
    best = max(t.gain or 0 for t in tiers)
    named = ", ".join(f"{t.first} to {t.last}" for t in behind)
    said = (
        f"Batches {named}: this server is slower than one without speculation, "
        f"{worst.gain:.2f}× at the worst"
    )
    if 1 / (worst.gain or 1) > best:
        return [
            f"{said}, more than it gains elsewhere ({best:.2f}×): a separate pool without "
            "speculation serves them better."
        ]
    return [f"{said}; a separate pool without speculation would serve them better."]


def _tax_list(taxes: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{100 * tax:.1f} % at {batch:g}" for batch, tax in taxes)


def engine(
    runs: Sequence[Run], tiers: Sequence[Tier], runner: str | None = None
) -> tuple[str, ...]:
    """What vLLM is known to do with a schedule of these runs' method and version."""
    versions = [r.engine_version for r in runs]
    return engine_warnings(
        method_of(runs),
        next(iter(distinct(r.engine for r in runs)), None),
        versions[0] if all(versions) else None,
        any(t.k == 0 for t in tiers),
        runner,
        max((r.pipeline_parallel or 1 for r in runs), default=1),
        [t.k for t in tiers if t.k],
    )


def data_parallel(runs: Sequence[Run], largest: int, best_fixed: int) -> str | None:
    """Why vLLM would not run the ranges on the allocation measured; None where it would."""
    ranks = max(r.data_parallel or 1 for r in runs)
    if ranks == 1:
        return None
    instead = f"K = {best_fixed}" if best_fixed else "no speculation"
    return f"{data_parallel_drops(ranks, largest, instead)} Export is off."


def method_of(runs: Sequence[Run]) -> str | None:
    """The runs' draft method."""
    return next(iter(distinct(r.draft_method for r in runs)), None)


def draft_model_of(runs: Sequence[Run]) -> str | None:
    """The runs' draft model."""
    return next(iter(distinct(r.draft_model for r in runs)), None)
