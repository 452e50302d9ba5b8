"""Fewest ranges and joined runs, against a search that knows nothing of the implementation."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.evidence.best_k import MOST_RANGES, Arm, Grid, choose, grid_of, runs_of
from lib.evidence.ratio import LogMean

ONE_PERCENT = -math.log(0.99) + 1e-6


def arm(k: int, **by_load: tuple[float, float | None]) -> Arm:
    """`n4=(mean, variance)`: the log objective at load 4, from three runs or one."""
    return Arm(
        k,
        {
            float(n[1:]): LogMean(mean, var, None if var is None else 2, 1 if var is None else 3)
            for n, (mean, var) in by_load.items()
        },
    )


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Arms at batches 1 to n on a coarse scale, so that ties are common."""
    n = draw(st.integers(1, 24))
    count = draw(st.integers(2, 4))
    level = st.sampled_from([0.0, 0.004, 0.008, 0.015, 0.03])
    values = np.array(
        [draw(st.lists(level, min_size=n, max_size=n)) for _ in range(count)], dtype=float
    )
    arms = tuple(arm(k, n1=(0.0, None)) for k in range(count))
    within = values.max(axis=0) - values <= -math.log(0.99)
    return Grid(arms, np.arange(1, n + 1), values, within)


def fewest_by_stretching(allowed: np.ndarray) -> int:
    """Each range as long as any one arm allows: the least count for interval covering."""
    start = count = 0
    while start < allowed.shape[1]:
        reach = [
            next((i for i in range(start, allowed.shape[1]) if not row[i]), allowed.shape[1])
            for row in allowed
        ]
        start = max(reach)
        count += 1
    return count


@settings(deadline=None)
@given(grids())
def test_the_choice_is_within_the_tie_and_no_run_is_enclosed_needlessly(grid: Grid) -> None:
    choice, _ = choose(grid)
    columns = np.arange(len(choice))
    assert grid.within[choice, columns].all()
    runs = runs_of(choice)
    for (a, _), (start, end), (b, _) in zip(runs, runs[1:], runs[2:], strict=False):
        if choice[a] == choice[b]:
            assert not grid.within[choice[a], start:end].all()


@settings(deadline=None)
@given(grids())
def test_more_than_six_ranges_are_the_fewest_possible(grid: Grid) -> None:
    choice, before = choose(grid)
    if not before:
        return
    smallest = grid.within.argmax(axis=0)
    columns = np.arange(len(choice))
    assert before > MOST_RANGES
    behind = grid.values[smallest, columns] - grid.values[choice, columns]
    assert behind.max() <= 2 * ONE_PERCENT
    best = grid.values.max(axis=0)
    assert (best - grid.values[choice, columns]).max() <= ONE_PERCENT
    assert len(runs_of(choice)) >= fewest_by_stretching(grid.within)


def test_seven_ranges_that_no_k_can_join_stay() -> None:
    values = np.array([[0.0, 0.1] * 3 + [0.0], [0.1, 0.0] * 3 + [0.1]])
    grid = Grid(
        (arm(0, n1=(0, None)), arm(1, n1=(0, None))), np.arange(1, 8), values, values == 0.1
    )
    choice, before = choose(grid)
    assert list(choice) == [1, 0, 1, 0, 1, 0, 1]
    assert before == 0


def test_a_reduced_schedule_is_also_under_one_percent_behind_the_first_choice() -> None:
    # With ties of 5 %, K = 2 is within the tie throughout but 4 % behind K = 0 and K = 1.
    high, low, bad = 0.1, 0.06, -1.0
    zero = [high, bad, high, bad, high, bad, high, bad]
    one = [bad, high, bad, high, bad, high, bad, high]
    values = np.array([zero, one, [low] * 8])
    arms = tuple(arm(k, n1=(0, None)) for k in range(3))
    within = values.max(axis=0) - values <= 0.05
    choice, before = choose(Grid(arms, np.arange(1, 9), values, within))
    assert list(choice) == [0, 1] * 4
    assert before == 0


def test_half_width_is_linear_between_loads_and_one_percent_where_an_arm_ran_once() -> None:
    noisy, lean = (0.0, 0.0003), (0.05, 0.0003)
    off = arm(0, n1=noisy, n4=noisy, n16=(0.0, None))
    k2 = arm(2, n1=lean, n4=lean, n16=(0.05, 0.0003))
    half = 2.776445 * math.sqrt(0.0006)  # t at 4 degrees of freedom
    assert half > 0.05
    grid = grid_of((off, k2), 16)
    # From load 4 to 16 the half-width falls to 0 in a straight line over log2 load.
    turn = 2 ** (2 + 2 * (1 - 0.05 / half))
    assert [b for b in grid.batches if grid.within[0, b - 1]] == list(range(1, int(turn) + 1))
    assert not grid_of((off, k2), 16, noise_ties=False).within[0].any()


def test_the_half_width_reaches_no_further_than_shared_loads() -> None:
    low, mid, high = (-1.0, 0.01), (0.0, 0.01), (0.05, 0.01)
    off = arm(0, n1=low, n2=low, n8=low)
    k2, k3 = arm(2, n1=mid, n8=mid), arm(3, n2=high, n8=high)
    grid = grid_of((off, k2, k3), 8)
    assert grid.values[2, 0] == -np.inf
    assert [int(b) for b in grid.batches if grid.within[1, b - 1]] == [1, 8]
