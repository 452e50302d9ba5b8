"""Every sign change between measured loads, its interval, and what may be claimed."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.crossover import Crossing, crossover, wins_up_to
from lib.evidence.ratio import LogRatio, welch
from tests.unit.evidence.builders import (
    EAGLE,
    EAGLE_3,
    L4,
    NON_MONOTONE,
    SIMULATED,
    W4A16,
    one_run_points,
    points,
    ratios,
)

# log M at 1, 2, 4, …, 512; None where a load was not measured.
curves = st.lists(
    st.none() | st.just(0.0) | st.floats(0.001, 1) | st.floats(-1, -0.001), min_size=1, max_size=10
).map(lambda ys: {float(2**i): y for i, y in enumerate(ys) if y is not None})
unhurried = settings(deadline=None)


def points_of(log_m: dict[float, float], se: float | None = None) -> list[LogRatio]:
    df = None if se is None else 4.0
    return [LogRatio(x, v, se, df, 3, 3) for x, v in log_m.items()]


@pytest.mark.parametrize(
    ("arm", "between", "at"), [("k4", (16, 32), 31.45), ("k2", (32, 64), 45.55)]
)
def test_simulated_sweep(arm: str, between: tuple[float, float], at: float) -> None:
    found = crossover(points(SIMULATED["off"], SIMULATED[arm]))
    (c,) = found.crossings
    assert (c.between, c.direction, c.measure_at) == (between, "down", None)
    assert c.at == pytest.approx(at, abs=0.005)
    assert c.low is not None
    assert c.high is not None
    assert 16 < c.low < c.at < c.high < 64
    assert found.outside is None


def test_eagle_has_one_crossing_and_no_second_at_the_later_near_ties() -> None:
    found = crossover(ratios(EAGLE))
    (c,) = found.crossings
    assert (c.between, c.direction) == ((16, 24), "down")
    assert c.at == pytest.approx(17.45, abs=0.005)
    assert (c.low, c.high, c.censored_share) == (None, None, None)


def test_eagle_3_wins_everywhere_measured() -> None:
    found = crossover(ratios(EAGLE_3))
    assert (found.crossings, found.outside) == ((), "above 64")


def test_losing_everywhere_is_below_the_lowest_load() -> None:
    assert crossover(ratios({0.5: 0.9, 4: 0.5})).outside == "below 0.5"


def test_l4_crosses_between_1_and_2() -> None:
    (c,) = crossover(one_run_points(L4)).crossings
    assert c.between == (1, 2)
    assert c.at == pytest.approx(1.37, abs=0.005)


def test_wide_bracket_gives_a_bracket_and_where_to_measure() -> None:
    (c,) = crossover(one_run_points(W4A16)).crossings
    assert c == Crossing((1, 4), None, None, None, "down", None, 2.0)


def test_bracket_of_a_factor_2_is_not_wide_and_one_above_is() -> None:
    (c,) = crossover(ratios({0.1: 1.1, 0.2: 0.9})).crossings
    assert c.at is not None
    (c,) = crossover(ratios({10: 1.1, 21: 0.9}, se=0.01)).crossings
    assert (c.at, c.low, c.high) == (None, None, None)
    assert c.measure_at == pytest.approx(math.sqrt(210))


def test_rising_sweep_crosses_upward_at_the_top_only() -> None:
    found = one_run_points(NON_MONOTONE)
    assert [round(p.multiplier, 3) for p in found] == [0.848, 0.939, 0.994, 0.822, 1.057]
    (c,) = crossover(found).crossings
    assert (c.between, c.direction) == ((32, 64), "up")
    assert [p.load for p in found if p.log_m > 0] == [64]
    assert found[2].mark() == "too close to call"


def test_every_sign_change_is_listed() -> None:
    found = crossover(ratios({1: 1.2, 2: 0.9, 4: 1.1, 8: 0.8}))
    assert [(c.between, c.direction) for c in found.crossings] == [
        ((1, 2), "down"),
        ((2, 4), "up"),
        ((4, 8), "down"),
    ]


@pytest.mark.parametrize("se", [None, 0.0, 0.05])
def test_exactly_one_at_a_load(se: float | None) -> None:
    touching = crossover(points_of({1: 0.2, 2: 0.0, 4: 0.1}, se))
    assert (touching.crossings, touching.outside) == ((), None)
    (through,) = crossover(points_of({1: 0.2, 2: 0.0, 4: -0.1}, se)).crossings
    assert through.at == pytest.approx(2)
    assert crossover(points_of({1: 0.0, 2: 0.1}, se)).crossings == ()
    assert crossover(points_of({1: 0.0, 2: 0.0}, se)).crossings == ()


def test_nothing_measured() -> None:
    found = crossover([])
    assert (found.crossings, found.outside) == ((), None)


def test_infinite_rate_and_derived_points_take_no_part() -> None:
    measured = ratios({1: 1.2, 2: 1.1})
    hollow = LogRatio(4, -1.0, None, None, 1, 0, derived=True)
    margin = LogRatio(math.inf, -1.0, None, None, 1, 1)
    found = crossover([*measured, hollow, margin])
    assert (found.crossings, found.outside) == ((), "above 2")


def test_two_points_at_one_load_are_refused() -> None:
    with pytest.raises(InputError, match="one point a load"):
        crossover([*ratios({1: 1.2}), *ratios({1: 0.9})])


def test_no_interval_when_any_load_has_one_run() -> None:
    mixed = [*ratios({1: 1.2, 2: 0.9}, se=0.02), *ratios({4: 0.8})]
    (c,) = crossover(mixed).crossings
    assert c.at is not None
    assert (c.low, c.high, c.censored_share) == (None, None, None)


def test_censored_end_is_infinite_and_its_share_is_said() -> None:
    (late,) = crossover(ratios({1: 1.5, 2: 1.4, 4: 0.99}, se=0.02)).crossings
    assert late.high == math.inf
    assert late.low is not None
    assert 2 < late.low < 4
    assert late.censored_share == pytest.approx(0.32, abs=0.05)
    (early,) = crossover(ratios({1: 1.01, 2: 0.7, 4: 0.6}, se=0.02)).crossings
    assert early.low == -math.inf
    assert early.high is not None
    assert 1 < early.high < 2


def test_upward_crossing_is_censored_the_same_way_mirrored() -> None:
    (late,) = crossover(ratios({1: 0.7, 2: 0.8, 4: 1.01}, se=0.02)).crossings
    assert (late.direction, late.high) == ("up", math.inf)
    assert late.low is not None
    assert 2 < late.low < 4
    (early,) = crossover(ratios({1: 0.99, 2: 1.3, 4: 1.4}, se=0.02)).crossings
    assert (early.direction, early.low) == ("up", -math.inf)
    assert early.high is not None
    assert 1 < early.high < 2


def test_redraws_without_spread_meet_the_point() -> None:
    (c,) = crossover(ratios({1: 1.2, 2: 0.9, 4: 0.8}, se=0.0)).crossings
    assert c.low == c.high == pytest.approx(c.at)
    assert c.censored_share == 0


def test_each_crossing_takes_the_nearest_of_its_own_direction() -> None:
    sweep = {1: 1.3, 2: 0.8, 4: 1.3, 8: 0.8}
    first, _, last = crossover(ratios(sweep, se=0.01)).crossings
    assert first.high is not None
    assert last.low is not None
    assert first.high < 2
    assert last.low > 4


def test_seeded() -> None:
    sweep = ratios({1: 1.2, 2: 0.9}, se=0.05)
    assert crossover(sweep) == crossover(sweep)
    assert crossover(sweep, seed=1).crossings[0].low != crossover(sweep).crossings[0].low


@unhurried
@given(curves)
def test_crossings_lie_inside_their_bracket_and_the_measured_range(
    curve: dict[float, float],
) -> None:
    found = crossover(points_of(curve))
    loads = sorted(curve)
    for c in found.crossings:
        a, b = c.between
        assert loads.index(b) == loads.index(a) + 1
        inside = c.measure_at if c.at is None else c.at
        assert inside is not None
        assert a <= inside <= b
        assert (c.at is None) == (b / a > 2)
    directions = [c.direction for c in found.crossings]
    assert all(one != two for one, two in pairwise(directions))
    if found.outside:
        assert not found.crossings


@unhurried
@given(curves)
def test_swapping_the_arms_turns_every_crossing(curve: dict[float, float]) -> None:
    there = crossover(points_of(curve)).crossings
    back = crossover(points_of({x: -v for x, v in curve.items()})).crossings
    assert [c.between for c in there] == [c.between for c in back]
    assert [c.at for c in there] == pytest.approx([c.at for c in back])
    assert all(c.direction != d.direction for c, d in zip(there, back, strict=True))


@unhurried
@given(curves, st.floats(0.001, 0.3))
def test_interval_never_leaves_the_measured_range(curve: dict[float, float], se: float) -> None:
    for c in crossover(points_of(curve, se), draws=200).crossings:
        for end in (c.low, c.high):
            assert end is None or math.isinf(end) or min(curve) <= end <= max(curve)


def test_interval_covers_a_known_crossing() -> None:
    rng = np.random.default_rng(3)
    truth = {1: 0.6, 2: 0.58, 4: 0.55, 8: 0.5, 16: 0.3, 32: 0.05, 64: -0.2}
    crosses_at, sweeps, covered = 2 ** (5 + 0.05 / 0.25), 300, 0
    for _ in range(sweeps):
        sweep = [
            LogRatio(
                x, *welch(np.exp(rng.normal(m, 0.03, 3)), np.exp(rng.normal(0, 0.03, 3))), 3, 3
            )
            for x, m in truth.items()
        ]
        falls = [c for c in crossover(sweep, draws=1000).crossings if c.direction == "down"]
        covered += any(
            c.low is not None and c.high is not None and c.low <= crosses_at <= c.high
            for c in falls
        )
    assert covered / sweeps >= 0.93


def test_wins_up_to_ends_before_the_first_that_does_not_clear() -> None:
    sweep = points(SIMULATED["off"], SIMULATED["k4"])
    assert wins_up_to(sweep, 8, 0.95) == 16
    assert wins_up_to(sweep, 1, 0.95) == 16


def test_wins_up_to_claims_nothing_without_the_operating_load() -> None:
    sweep = points(SIMULATED["off"], SIMULATED["k4"])
    assert wins_up_to(sweep, 32, 0.95) is None  # too close there
    assert wins_up_to(sweep, 64, 0.95) is None  # loses there
    assert wins_up_to(sweep, 12, 0.95) is None  # not measured
    assert wins_up_to(one_run_points(L4), 1, 0.95) is None


def test_wins_up_to_is_a_row_from_the_lowest_load() -> None:
    sweep = ratios({1: 1.5, 2: 1.01, 4: 1.5}, se=0.02)
    assert wins_up_to(sweep, 4, 0.95) == 1
    assert wins_up_to(ratios({1: 1.01, 2: 1.5}, se=0.02), 2, 0.95) is None


def test_wins_up_to_at_a_stricter_level_claims_less() -> None:
    sweep = ratios({1: 1.5, 2: 1.08}, se=0.02)
    assert wins_up_to(sweep, 1, 0.95) == 2
    assert wins_up_to(sweep, 1, 0.99) == 1


def test_a_higher_level_has_a_wider_interval() -> None:
    sweep = ratios({16: 1.2, 32: 0.9}, se=0.02)
    ends = []
    for level in (0.9, 0.95, 0.99):
        (found,) = crossover(sweep, level=level).crossings
        ends.append((found.low or 0.0, found.high or 0.0))
    assert ends[2][0] < ends[1][0] < ends[0][0] < ends[0][1] < ends[1][1] < ends[2][1]
    with pytest.raises(InputError, match="level = 95"):
        crossover(sweep, level=95)
