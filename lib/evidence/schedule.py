"""The batch-size schedule: which K to draft at which batch, from the measured arms.

Off competes as K = 0 at no tax. That tax is a fact of the engine that these arms do not hold, so
a schedule stays a hypothesis until it has been measured as its own arm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.evidence.best_k import Grid, choose, competing, curves, grid_of, runs_of
from lib.evidence.engine_schedule import (
    Check,
    Range,
    check,
    config,
    engine_warnings,
    vllm_flag,
)
from lib.evidence.pairing import ArmComparison, Comparison
from lib.evidence.ratio import METRICS
from lib.run import Run, distinct

__all__ = ["Check", "Schedule", "Tier", "build", "check", "speculative_config", "vllm_flag"]

OBJECTIVES = {"throughput": "output_tps", "tpot": "tpot_ms"}
LARGEST_BATCH = 65_536
TAILS = ("off", "carry")
WORTH_A_SCHEDULE = 0.02


@dataclass(frozen=True)
class Tier:
    """Batches `first` to `last` run at K = `k`.

    `gain` is the objective's ratio against off, above 1 where better, its geometric mean over the
    tier's batches within the measured loads; None for K = 0, whose tax is not measured. `measured`
    are the loads inside. `tax` is for K = 0: the fraction by which it may be slower than off
    before `next_k` wins instead on the same mean.
    """

    first: int
    last: int
    k: int
    gain: float | None
    measured: tuple[float, ...]
    tax: float | None
    next_k: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last or self.k < 0:
            raise InputError(f"tier {self.first} to {self.last} at K = {self.k}: not a range")


@dataclass(frozen=True)
class Schedule:
    """What to run at each batch; `tiers` end at the highest load while the tail is open.

    `ranges` is what the engine takes, None where a fixed K (`fixed_k`, 0 is no speculation) does
    the same or the tail is undecided. `best_fixed_k` is the one K that stays closest to the
    schedule within the measured loads, `gain_over_fixed` the schedule's largest gain over it, as a
    fraction. `blocked_export` says why the engine would not run the ranges. Where there are none,
    the first of `warnings` says what to do instead.
    """

    tiers: tuple[Tier, ...]
    ranges: tuple[Range, ...] | None
    num_speculative_tokens: int
    tail_unmeasured: tuple[int, int] | None
    warnings: tuple[str, ...]
    fixed_k: int | None
    best_fixed_k: int
    gain_over_fixed: float
    blocked_export: str | None = None

    def __post_init__(self) -> None:
        if self.ranges is not None and self.fixed_k is not None:
            raise InputError("schedule: ranges or a fixed K, not both")


def build(
    comparison: Comparison,
    max_num_seqs: int,
    objective: str = "throughput",
    tail: str | None = None,
    noise_ties: bool = True,
    method: str | None = None,
    protocol: str | None = None,
) -> Schedule:
    """The schedule for one server with `max_num_seqs` sequences.

    Each arm's mean log objective (`throughput`: output tok/s, `tpot`: mean TPOT) is a straight
    line over log2 load between measured loads; at every integer batch the smallest K within
    max(1 %, half-width of the pair's 95 % log-ratio interval) of the best is taken (1 % alone
    without `noise_ties`, or where either arm has one run). `tail` decides the batches above the
    highest load where off does not win there: `off` or `carry`. `method` and `protocol` choose
    where the arms have several.

    Raises InputError for an argument outside its range, NotComparable where the arms allow no
    schedule.
    """
    if isinstance(max_num_seqs, bool) or not isinstance(max_num_seqs, int) or max_num_seqs < 1:
        raise InputError(f"max_num_seqs = {max_num_seqs!r}: a whole number of at least 1")
    if max_num_seqs > LARGEST_BATCH:
        raise InputError(f"max_num_seqs = {max_num_seqs}: at most {LARGEST_BATCH:,}")
    if objective not in OBJECTIVES:
        raise InputError(f"objective {objective!r}: one of {', '.join(OBJECTIVES)}")
    if tail is not None and tail not in TAILS:
        raise InputError(f"tail {tail!r}: {' or '.join(TAILS)}, or none")
    metric = METRICS[OBJECTIVES[objective]]
    used, warnings = competing(comparison, metric, method, protocol)
    grid = grid_of(curves(used, metric), max_num_seqs, noise_ties)
    choice, reduced_from = choose(grid)
    inside = _tiers(grid, choice)
    if reduced_from:
        warnings.append(f"{reduced_from} ranges became {len(inside)} that lose under 1 %.")
    tiers = _to_the_ends(inside, max_num_seqs, tail)
    warnings = [*_unmeasured(tiers, grid, max_num_seqs), *warnings]
    return _schedule(tiers, _best_fixed(grid, choice), grid, max_num_seqs, used, warnings)


def speculative_config(
    schedule: Schedule, method: str, draft_model: str | None
) -> dict[str, object]:
    """vLLM's speculative_config for a schedule or its fixed K; empty where K = 0 everywhere.

    Raises InputError while the tail is undecided or where the engine would drop the ranges.
    """
    if schedule.blocked_export is not None:
        raise InputError(schedule.blocked_export)
    if schedule.fixed_k is not None:
        return config(method, draft_model, schedule.fixed_k)
    if schedule.ranges is None:
        raise InputError("schedule: the tail is undecided; choose tail off or carry")
    return config(method, draft_model, schedule.num_speculative_tokens, schedule.ranges)


def _tiers(grid: Grid, choice: NDArray[np.intp]) -> list[Tier]:
    """One tier a run of equal K, within the measured loads."""
    tiers = []
    for start, end in runs_of(choice):
        first, last = int(grid.batches[start]), int(grid.batches[end - 1])
        over_off = (grid.values[:, start:end] - grid.values[0, start:end]).mean(axis=1)
        tier = Tier(
            first,
            last,
            grid.arms[choice[start]].k,
            gain=math.exp(over_off[choice[start]]),
            measured=tuple(n for n in grid.loads if first <= n <= last),
            tax=None,
        )
        tiers.append(tier if tier.k else _with_tax(tier, grid, over_off))
    return tiers


def _with_tax(tier: Tier, grid: Grid, over_off: NDArray[np.float64]) -> Tier:
    rival = 1 + int(over_off[1:].argmax())
    if math.isinf(over_off[rival]):
        return replace(tier, gain=None)
    tax = math.expm1(max(0.0, -over_off[rival]))
    return replace(tier, gain=None, tax=tax, next_k=grid.arms[rival].k)


def _to_the_ends(inside: Sequence[Tier], max_num_seqs: int, tail: str | None) -> list[Tier]:
    """The lowest K carried down to batch 1, the top up to max_num_seqs where that is decided."""
    if max_num_seqs < inside[0].first:
        return [Tier(1, max_num_seqs, inside[0].k, None, (), None)]
    tiers = [replace(inside[0], first=1), *inside[1:]]
    top = tiers[-1]
    if top.last < max_num_seqs and (top.k == 0 or tail == "carry"):
        tiers[-1] = replace(top, last=max_num_seqs)
    elif top.last < max_num_seqs and tail == "off":
        tiers.append(Tier(top.last + 1, max_num_seqs, 0, None, (), None))
    return tiers


def _best_fixed(grid: Grid, choice: NDArray[np.intp]) -> tuple[int, float]:
    """The one K whose largest loss against the schedule is smallest, and that loss."""
    chosen = grid.values[choice, np.arange(len(choice))]
    losses = np.maximum(0, (chosen - grid.values).max(axis=1))
    best = int(losses.argmin())
    return grid.arms[best].k, math.expm1(losses[best])


def _unmeasured(tiers: Sequence[Tier], grid: Grid, max_num_seqs: int) -> list[str]:
    """One sentence for each stretch whose K rests on no measurement."""
    lowest, highest = int(grid.batches[0]), math.floor(grid.loads[-1])
    top = tiers[-1]
    said = []
    if top.last < max_num_seqs:
        said.append(
            f"Batches {highest + 1} to {max_num_seqs} are unmeasured and K = {top.k} wins at "
            f"{highest}: no schedule is written. Choose --tail off (K = 0 there), --tail carry "
            f"(K = {top.k} there) or --max-num-seqs {highest}."
        )
    elif max_num_seqs > highest:
        why = f"carried up from {highest}" if top.first <= highest else "a choice, not a finding"
        said.append(
            f"Batches {highest + 1} to {max_num_seqs} are unmeasured: K = {top.k} there is {why}."
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


def _schedule(
    tiers: Sequence[Tier],
    best_fixed: tuple[int, float],
    grid: Grid,
    max_num_seqs: int,
    used: Sequence[ArmComparison],
    warnings: Sequence[str],
) -> Schedule:
    runs = [r for a in used for c in a.cells for r in c.on]
    decided = tiers[-1].last == max_num_seqs
    largest = max(t.k for t in tiers)
    highest = math.floor(grid.loads[-1])
    blocked = _data_parallel(runs, largest, best_fixed[0]) if len(tiers) > 1 else None
    said = [*_advice(tiers, best_fixed, decided, grid, runs), *warnings]
    if len(tiers) > 1:
        said += [
            *_hypothesis(tiers, highest),
            *_engine(runs, tiers),
            *([blocked] if blocked else []),
        ]
    return Schedule(
        tiers=tuple(tiers),
        ranges=tuple((t.first, t.last, t.k) for t in tiers) if decided and len(tiers) > 1 else None,
        num_speculative_tokens=largest,
        tail_unmeasured=(highest + 1, max_num_seqs) if max_num_seqs > highest else None,
        warnings=tuple(said),
        fixed_k=largest if decided and len(tiers) == 1 else None,
        best_fixed_k=best_fixed[0],
        gain_over_fixed=best_fixed[1],
        blocked_export=blocked,
    )


def _advice(
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
    flag = vllm_flag(config(_method(runs) or "METHOD", _draft_model(runs), k))
    return [f"{reason}: keep a fixed K = {k}, with {flag}"]


def _hypothesis(tiers: Sequence[Tier], highest: int) -> list[str]:
    said = ["The schedule is a hypothesis until it has been measured as its own arm."]
    zero = [t for t in tiers if t.k == 0]
    if zero:
        said.append(
            "K = 0 is not speculation off: its tax is unmeasured, so its batches have no gain and "
            "no price here."
        )
    said += [
        f"Batches {t.first} to {min(t.last, highest)}: K = {t.next_k} wins instead of K = 0 at a "
        f"tax above {100 * t.tax:.1f} %."
        for t in zero
        if t.tax is not None
    ]
    return said


def _engine(runs: Sequence[Run], tiers: Sequence[Tier]) -> tuple[str, ...]:
    versions = [r.engine_version for r in runs]
    return engine_warnings(
        _method(runs),
        next(iter(distinct(r.engine for r in runs)), None),
        versions[0] if all(versions) else None,
        has_zero=any(t.k == 0 for t in tiers),
    )


def _data_parallel(runs: Sequence[Run], largest: int, best_fixed: int) -> str | None:
    ranks = max(r.data_parallel or 1 for r in runs)
    if ranks == 1:
        return None
    instead = f"K = {best_fixed}" if best_fixed else "no speculation"
    return (
        f"vLLM drops the schedule with data parallel {ranks} and runs K = {largest} at every "
        f"batch: export is off; use data parallel 1, or {instead} throughout."
    )


def _method(runs: Sequence[Run]) -> str | None:
    return next(iter(distinct(r.draft_method for r in runs)), None)


def _draft_model(runs: Sequence[Run]) -> str | None:
    return next(iter(distinct(r.draft_model for r in runs)), None)
