"""M at a load: values, intervals, marks, coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.ratio import (
    METRICS,
    LogRatio,
    derived_ratios,
    log_mean_of_runs,
    log_ratios,
    welch,
)
from lib.run import LoadKind
from tests.unit.evidence.builders import (
    EAGLE,
    L4,
    PRINTED,
    SIMULATED,
    W4A16,
    off,
    on,
    one_run_points,
    only_arm,
    points,
    ratios,
)

repeats = st.lists(st.floats(1, 1e5), min_size=2, max_size=6)
unhurried = settings(deadline=None)


@pytest.mark.parametrize("arm", ["k2", "k4"])
def test_simulated_sweep_to_the_printed_digits(arm: str) -> None:
    for p in points(SIMULATED["off"], SIMULATED[arm]):
        ends = p.interval()
        assert ends is not None
        assert tuple(round(v, 3) for v in (p.multiplier, *ends)) == PRINTED[arm][int(p.load)]


def test_simulated_sweep_from_runs_to_marks() -> None:
    runs = [off(x, tps) for x, group in SIMULATED["off"].items() for tps in group]
    runs += [on(x, tps) for x, group in SIMULATED["k4"].items() for tps in group]
    found = log_ratios(only_arm(*runs))
    assert found == points(SIMULATED["off"], SIMULATED["k4"])
    assert [p.mark() for p in found] == [*["wins"] * 5, "too close to call", "loses"]
    assert {(p.n_off, p.n_on) for p in found} == {(3, 3)}


def test_one_run_an_arm_has_no_interval_and_says_so() -> None:
    found = one_run_points(L4)
    assert [round(p.multiplier, 2) for p in found] == [1.14, 0.85, 0.64, 0.52]
    assert [p.interval() for p in found] == [None] * 4
    assert [p.mark() for p in found] == ["ahead, one run", *["behind, one run"] * 3]


def test_one_run_an_arm_within_one_percent_is_too_close() -> None:
    found = one_run_points(W4A16)
    assert found[0].multiplier == pytest.approx(1.0067, abs=1e-4)
    near, far = "within noise, one run", "behind, one run"
    assert [p.mark() for p in found] == ["too close to call", near, *[far] * 3]
    last = ratios({64: EAGLE[64]})[0]  # 0.99
    assert last.mark() == "too close to call"
    assert ratios({64: 0.989})[0].mark() == near
    assert ratios({64: 1.011})[0].mark() == near


# C64: 3.33 % an arm from launch to launch, so about 4.7 % on the ratio
def test_one_run_an_arm_within_five_percent_is_within_noise() -> None:
    marks = {m: ratios({4: m})[0].mark() for m in (0.949, 0.95, 1.02, 1 / 0.95, 1.06)}
    assert marks[0.949] == "behind, one run"
    assert {marks[m] for m in (0.95, 1.02, 1 / 0.95)} == {"within noise, one run"}
    assert marks[1.06] == "ahead, one run"


@unhurried
@given(st.floats(0.5, 2))
def test_one_run_an_arm_is_judged_alike_both_ways(m: float) -> None:
    swapped = {"ahead, one run": "behind, one run", "behind, one run": "ahead, one run"}
    there, back = (LogRatio(1, x * math.log(m), None, None, 1, 1).mark() for x in (1, -1))
    assert back == swapped.get(there, there)


def test_one_run_in_either_arm_is_enough_to_lose_the_interval() -> None:
    assert welch([1.0, 1.1], [1.0])[1:] == (None, None)
    assert welch([1.0], [1.0, 1.1])[1:] == (None, None)


def test_published_mean_and_sd_by_the_delta_method() -> None:
    def pair(load: float, base: tuple[float, float], spec: tuple[float, float]) -> LogRatio:
        runs = [
            make(load, mean, output_tps_sd=sd, output_tps_n=3)
            for make, (mean, sd) in ((off, base), (on, spec))
        ]
        return log_ratios(only_arm(*runs))[0]

    one = pair(1, (109.7, 0.57), (30.6, 0.14))
    assert one.multiplier == pytest.approx(0.2789, abs=5e-5)
    assert one.se == pytest.approx(0.0040, abs=5e-5)
    eight = pair(8, (180.0, 15.21), (28.1, 0.66))
    assert eight.multiplier == pytest.approx(0.1561, abs=5e-5)
    assert eight.se == pytest.approx(0.0506, abs=5e-5)
    assert eight.df == pytest.approx(2.3, abs=0.05)
    ends = eight.interval()
    assert ends is not None
    assert [round(v, 2) for v in ends] == [0.13, 0.19]
    assert eight.mark() == "loses"
    assert (eight.n_off, eight.n_on) == (3, 3)


def test_sd_of_one_run_gives_no_interval() -> None:
    lone = off(1, 100.0, output_tps_sd=3.0, output_tps_n=1)
    spread = on(1, output_tps_sd=3.0, output_tps_n=3)
    assert log_ratios(only_arm(lone, spread))[0].se is None


def test_equal_to_the_last_digit_is_a_copy_not_a_repeat() -> None:
    gap, se, df = welch([150.3] * 3, [100.1] * 3)
    assert (se, df) == (None, None)
    point = LogRatio(1, gap, se, df, 3, 3)
    assert point.interval() is None
    assert point.mark() == "ahead, one run"


def test_a_recorded_zero_is_not_dropped_from_the_mean() -> None:
    arm = only_arm(
        *(off(1, goodput_rps=g) for g in (5.0, 5.1, 5.2)),
        *(on(1, goodput_rps=g) for g in (0.0, 0.0, 6.0)),
    )
    assert log_ratios(arm, "goodput_rps") == ()


def test_spread_in_one_arm_takes_its_degrees_of_freedom() -> None:
    assert welch([1.0, 1.1, 1.2], [2.0, 2.0, 2.0, 2.0])[2] == pytest.approx(2)


def test_latency_is_inverted_and_reads_mean_tpot_never_itl() -> None:
    arm = only_arm(
        off(1, tpot_ms_mean=12.0, itl_ms_mean=12.0), on(1, tpot_ms_mean=6.0, itl_ms_mean=24.0)
    )
    (point,) = log_ratios(arm, "tpot_ms")
    assert point.multiplier == pytest.approx(2)
    assert "itl" not in METRICS["tpot_ms"].attribute


def test_goodput_and_unknown_metric() -> None:
    arm = only_arm(off(1, goodput_rps=2.0), on(1, goodput_rps=3.0))
    assert log_ratios(arm, "goodput_rps")[0].multiplier == pytest.approx(1.5)
    with pytest.raises(InputError, match="output_tps, tpot_ms, goodput_rps"):
        log_ratios(arm, "itl_ms")


def test_cell_without_the_metric_has_no_point() -> None:
    arm = only_arm(off(1), on(1), off(2, None), on(2), off(4, 0.0), on(4))
    assert [p.load for p in log_ratios(arm)] == [1]
    assert log_ratios(arm, "tpot_ms") == ()


def test_queue_bound_cell_has_a_throughput_point_and_no_latency_point() -> None:
    queued = {"ttft_ms_p50": 5_899_711.0, "e2e_ms_p50": 6_000_000.0, "tpot_ms_mean": 30.0}
    arm = only_arm(
        off(4096, **queued),
        on(4096, **queued),
        off(1, tpot_ms_mean=9.0),
        on(1, **{"ttft_ms_p50": 40.0, "e2e_ms_p50": 900.0, "tpot_ms_mean": 6.0}),
    )
    assert [p.load for p in log_ratios(arm)] == [1, 4096]
    assert [p.load for p in log_ratios(arm, "tpot_ms")] == [1]


def test_published_ratio_needs_no_off_run() -> None:
    arm = only_arm(*(on(x, None, multiplier=m) for x, m in EAGLE.items()))
    found = log_ratios(arm)
    assert [round(p.multiplier, 2) for p in found] == list(EAGLE.values())
    assert {(p.n_off, p.n_on, p.se) for p in found} == {(0, 1, None)}
    assert log_ratios(arm, "tpot_ms") == ()


def test_infinite_rate_comes_last() -> None:
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    arm = only_arm(*(make(x, **rate) for x in (math.inf, 2.0) for make in (off, on)))
    assert [p.load for p in log_ratios(arm)] == [2.0, math.inf]


def test_derived_points_stay_inside_the_other_arms_range() -> None:
    arm = only_arm(
        *(off(x, 100.0 * x) for x in (1, 4, 16)),
        *(on(x, 150.0 * x) for x in (0.5, 1, 2, 16, 32)),
    )
    found = derived_ratios(arm)
    assert [(p.load, p.n_off, p.n_on) for p in found] == [(2, 0, 1), (4, 1, 0)]
    assert [p.multiplier for p in found] == pytest.approx([1.5, 1.5])
    assert all(p.derived and p.interval() is None for p in found)
    assert {p.mark() for p in found} == {"too close to call"}
    assert not {p.load for p in found} & {p.load for p in log_ratios(arm)}


def test_derived_latency_is_inverted_too() -> None:
    arm = only_arm(
        *(off(x, tpot_ms_mean=10.0) for x in (1, 2, 4)),
        *(on(x, tpot_ms_mean=5.0) for x in (1, 3, 4)),
    )
    assert [p.multiplier for p in derived_ratios(arm, "tpot_ms")] == pytest.approx([2, 2])


@unhurried
@given(st.lists(st.integers(1, 12), min_size=1, max_size=8, unique=True), st.data())
def test_derived_points_never_extrapolate(loads: list[int], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=8, unique=True))
    arms = [off(x) for x in loads] + [on(x) for x in others]
    arm = only_arm(*arms)
    for p in derived_ratios(arm):
        assert max(min(loads), min(others)) <= p.load <= min(max(loads), max(others))


@unhurried
@given(repeats, repeats)
def test_swapping_the_arms_inverts_m_and_its_interval(a: list[float], b: list[float]) -> None:
    there, back = LogRatio(1, *welch(a, b), 1, 1), LogRatio(1, *welch(b, a), 1, 1)
    assert there.log_m == pytest.approx(-back.log_m, abs=1e-9)
    low, high = there.log_interval() or (0, 0)
    assert (low, high) == pytest.approx([-v for v in reversed(back.log_interval() or (0, 0))])
    swapped = {"wins": "loses", "loses": "wins"}
    swapped |= {"ahead, one run": "behind, one run", "behind, one run": "ahead, one run"}
    assert back.mark() == swapped.get(there.mark(), there.mark())


@unhurried
@given(repeats, repeats, st.floats(0.01, 100))
def test_scaling_both_arms_changes_nothing(a: list[float], b: list[float], by: float) -> None:
    scaled, plain = welch([v * by for v in a], [v * by for v in b]), welch(a, b)
    if plain[1] is None:
        assert scaled[1:] == (None, None)
    else:
        assert scaled == pytest.approx(plain, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("repeats_an_arm", [3, 5])
def test_interval_covers_a_known_truth(repeats_an_arm: int) -> None:
    rng = np.random.default_rng(20)
    cells, truth, sds = 4000, math.log(1.3), (0.02, 0.03)
    a = np.exp(rng.normal(truth, sds[0], (cells, repeats_an_arm)))
    b = np.exp(rng.normal(0, sds[1], (cells, repeats_an_arm)))
    covered = 0
    for spec, base in zip(a, b, strict=True):
        ends = LogRatio(1, *welch(spec, base), repeats_an_arm, repeats_an_arm).log_interval()
        covered += ends is not None and ends[0] <= truth <= ends[1]
    assert 0.93 <= covered / cells <= 0.97


def test_log_mean_of_runs_without_the_metric() -> None:
    assert log_mean_of_runs([off(1, None)], METRICS["output_tps"]) is None


def test_levels_and_values_are_checked() -> None:
    with pytest.raises(InputError, match="level"):
        ratios({1: 1.2}, se=0.1)[0].interval(95)
    with pytest.raises(InputError, match="check units"):
        LogRatio(1, math.nan, None, None, 1, 1)
    with pytest.raises(InputError, match="degrees of freedom"):
        LogRatio(1, 0.0, 0.1, None, 1, 1)
