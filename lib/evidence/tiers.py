"""The ranges of a schedule with the evidence behind each: measured loads, gains, the K = 0 tax."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.evidence.best_k import Floats, Grid, runs_of


@dataclass(frozen=True)
class Tier:
    """Batches `first` to `last` run at K = `k`.

    `gain` is the objective's ratio against a server without speculation, above 1 where better, its
    geometric mean over the tier's batches within the measured loads; `gain_over_fixed` the same
    against the best fixed K. Both are None where they are no measured number: at K = 0 while its
    tax is unmeasured, and where the other side has no good request. `measured` are the batches
    measured inside. For K = 0, `tax` is the fraction by which it may be slower than off before
    `next_k` wins instead on the same mean, and `measured_tax` the tax itself by batch where a
    server that never drafts was measured beside off.
    """

    first: int
    last: int
    k: int
    gain: float | None
    measured: tuple[float, ...]
    tax: float | None
    next_k: int | None = None
    gain_over_fixed: float | None = None
    measured_tax: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last or self.k < 0:
            raise InputError(f"tier {self.first} to {self.last} at K = {self.k}: not a range")


def tiers_of(
    grid: Grid, choice: NDArray[np.intp], best_fixed: int, log_taxes: Mapping[float, float]
) -> list[Tier]:
    """One tier a run of equal K, within the measured loads; `best_fixed` is an index of arms."""
    tiers = []
    for start, end in runs_of(choice):
        first, last = int(grid.batches[start]), int(grid.batches[end - 1])
        chosen = grid.values[choice[start], start:end]
        tier = Tier(
            first,
            last,
            grid.arms[choice[start]].k,
            gain=_ratio(chosen, grid.off[start:end]),
            measured=tuple(n for n in grid.loads if first <= n <= last),
            tax=None,
            gain_over_fixed=_ratio(chosen, grid.values[best_fixed, start:end]),
        )
        tiers.append(tier if tier.k else _with_tax(tier, grid, slice(start, end), log_taxes))
    return tiers


def _ratio(ours: Floats, theirs: Floats) -> float | None:
    """Geometric mean of ours over theirs; None where theirs is 0 somewhere."""
    mean = float((ours - theirs).mean())
    return math.exp(mean) if math.isfinite(mean) else None


def _with_tax(tier: Tier, grid: Grid, span: slice, log_taxes: Mapping[float, float]) -> Tier:
    """A K = 0 tier: its gain only where its tax is measured, and the tax that it could bear."""
    behind = (grid.off[span] - grid.values[1:, span]).mean(axis=1)
    rival = int(behind.argmin())
    known = grid.log_tax is not None and not np.isnan(grid.log_tax[span]).any()
    found = replace(
        tier,
        gain=tier.gain if known else None,
        gain_over_fixed=tier.gain_over_fixed if known else None,
        measured_tax=tuple(
            (n, math.expm1(tax)) for n, tax in log_taxes.items() if tier.first <= n <= tier.last
        ),
    )
    if math.isinf(behind[rival]):
        return found
    return replace(
        found, tax=math.expm1(max(0.0, float(behind[rival]))), next_k=grid.arms[1 + rival].k
    )


def to_the_ends(inside: Sequence[Tier], max_num_seqs: int, tail: str | None) -> list[Tier]:
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


@dataclass(frozen=True)
class BestFixed:
    """The arm whose largest loss against the schedule is smallest.

    `gain` is that loss as a fraction, `measured_gain` the same without the batches at which the
    schedule has K = 0 at an unmeasured tax.
    """

    index: int
    k: int
    gain: float
    measured_gain: float


def best_fixed_of(grid: Grid, choice: NDArray[np.intp]) -> BestFixed:
    """The one K to run where the engine cannot switch."""
    chosen = grid.values[choice, np.arange(len(choice))]
    losses = np.maximum(0, (chosen - grid.values).max(axis=1))
    best = int(losses.argmin())
    known = choice > 0
    if grid.log_tax is not None:
        known |= ~np.isnan(grid.log_tax)
    over = np.where(known, chosen - grid.values[best], 0.0)
    return BestFixed(
        best, grid.arms[best].k, float(np.expm1(losses[best])), float(np.expm1(over.max(initial=0)))
    )
