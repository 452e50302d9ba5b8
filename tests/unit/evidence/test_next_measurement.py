"""How many repeats settle a load, and which cell is measured next."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from lib.errors import InputError
from lib.evidence.findings import Findings, find
from lib.evidence.next_measurement import (
    MOST_MORE,
    NextMeasurement,
    Repeats,
    Why,
    next_measurements,
    repeats_by_load,
    repeats_to_settle,
)
from lib.evidence.ratio import LogMean
from lib.evidence.schedule import Schedule, Tier
from lib.run import LoadKind
from tests.unit.evidence.builders import SIMULATED, off, on, study

Sweep = Mapping[float, tuple[Sequence[float], Sequence[float]]]


def mean(log: float, sd: float, n: int) -> LogMean:
    return LogMean(log, sd**2 / n, n - 1, n) if n > 1 else LogMean(log, None, None, n)


def findings(sweep: Sweep, k: int = 4, **fields: object) -> Findings:
    runs = [off(x, v, **fields) for x, (a, _) in sweep.items() for v in a]
    runs += [on(x, v, k, **fields) for x, (_, b) in sweep.items() for v in b]
    return find(study(*runs))


def spread(center: float, *, by: float = 0.01, n: int = 3) -> list[float]:
    if n == 1:
        return [center]
    return [center * math.exp(by * (2 * i / (n - 1) - 1)) for i in range(n)]


def sweep_of(ratios: Mapping[float, float], *, n: int = 3, by: float = 0.01) -> Sweep:
    return {x: (spread(100, n=n, by=by), spread(100 * m, n=n, by=by)) for x, m in ratios.items()}


def best(found: Findings, load: float | None = None) -> NextMeasurement:
    return next_measurements(found, load)[0]


# sd 2 % an arm: t(4)·.02·√(2/3) = .0453, t(6)·.02·√(2/4) = .0346, t(8)·.02·√(2/5) = .0292.
@pytest.mark.parametrize(
    ("log_m", "more"), [(0.05, 0), (0.0454, 0), (0.045, 1), (0.03, 2), (0.029, 3)]
)
def test_repeats_that_settle_by_hand(log_m: float, more: int) -> None:
    assert repeats_to_settle(mean(0, 0.02, 3), mean(log_m, 0.02, 3), 8).more == more
    assert repeats_to_settle(mean(0, 0.02, 3), mean(-log_m, 0.02, 3), 8).more == more


def test_one_run_knows_no_spread() -> None:
    found = repeats_to_settle(mean(0, 0.02, 1), mean(0.3, 0.02, 3), 8)
    assert (found.more, found.missing, found.beyond) == (None, 2, False)
    assert repeats_to_settle(None, mean(0.3, 0.02, 1), 8).missing == 3
    copies = LogMean(0.0, 0.0, 2, 3)
    assert repeats_to_settle(copies, copies, 8).missing == 1


def test_a_difference_too_small_for_its_noise_is_bounded() -> None:
    found = repeats_to_settle(mean(0, 0.03, 3), mean(0.001, 0.03, 3), 8)
    assert (found.more, found.beyond, found.missing) == (None, True, None)
    assert repeats_to_settle(mean(0, 0.03, 3), mean(0, 0.03, 3), 8).beyond


@given(
    st.floats(1e-4, 0.1),
    st.floats(1e-4, 0.1),
    st.integers(2, 8),
    st.integers(2, 8),
    st.floats(-0.5, 0.5),
    st.sampled_from((0.95, 0.99)),
)
def test_the_number_is_the_first_whose_interval_leaves_one(
    sd_off: float, sd_on: float, n: int, m: int, log_m: float, level: float
) -> None:
    found = repeats_to_settle(mean(0, sd_off, n), mean(log_m, sd_on, m), 1, level)

    def half(k: int) -> float:
        a, b = sd_off**2 / (n + k), sd_on**2 / (m + k)
        df = (a + b) ** 2 / (a**2 / (n + k - 1) + b**2 / (m + k - 1))
        return float(stdtrit(df, (1 + level) / 2)) * math.sqrt(a + b)

    if found.more is None:
        assert all(half(k) >= abs(log_m) for k in range(MOST_MORE + 1))
    else:
        assert half(found.more) < abs(log_m)
        assert all(half(k) >= abs(log_m) for k in range(found.more))
        assert repeats_to_settle(mean(0, sd_off, n), mean(log_m, sd_on, m), 1, 0.5).more is not None


def test_a_stricter_level_needs_no_fewer() -> None:
    arms = mean(0, 0.02, 3), mean(0.04, 0.02, 3)
    loose, strict = (repeats_to_settle(*arms, 1, level).more for level in (0.95, 0.99))
    assert loose is not None
    assert strict is not None
    assert loose < strict
    with pytest.raises(InputError, match="level"):
        repeats_to_settle(*arms, 1, 1.0)


def test_settled_is_what_the_mark_says() -> None:
    found = findings({x: (SIMULATED["off"][x], SIMULATED["k4"][x]) for x in SIMULATED["off"]})
    (arm,) = found.arms
    for load, repeats in repeats_by_load(arm, found.metric).items():
        assert (repeats.more == 0) == (arm.at(load).mark() in ("wins", "loses"))  # type: ignore[union-attr]
    assert repeats_by_load(arm, found.metric)[32].more is None or repeats.more is not None


def test_no_crossing_asks_for_the_next_load() -> None:
    one = best(findings(sweep_of({1: 1.8, 2: 1.7, 4: 1.5})))
    assert (one.load, one.why, one.arms, one.runs) == (8, Why.BEYOND, ("off", "eagle3:4"), 3)


def test_a_loss_everywhere_asks_below_and_never_below_one() -> None:
    one = best(findings(sweep_of({4: 0.9, 8: 0.8})))
    assert (one.load, one.why) == (2, Why.BEYOND)
    assert next_measurements(findings(sweep_of({1: 0.9, 2: 0.8}))) == ()


def test_nothing_lies_above_what_the_server_admits() -> None:
    assert best(findings(sweep_of({8: 1.5, 16: 1.4}), max_num_seqs=24)).load == 24
    assert next_measurements(findings(sweep_of({8: 1.5, 16: 1.4}), max_num_seqs=16)) == ()


def test_a_wide_bracket_asks_for_its_middle_as_a_whole_load() -> None:
    one = best(findings(sweep_of({1: 1.5, 2: 1.4, 32: 0.8})))
    assert (one.load, one.why, one.between) == (8, Why.BRACKET, (2, 32))
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    one = best(find(study(*_tpot(1.0, 5.0, 4.0, **rate), *_tpot(4.0, 5.0, 8.0, **rate)), "tpot_ms"))
    assert (one.load, one.why) == (2, Why.BRACKET)


def _tpot(load: float, off_ms: float, on_ms: float, **fields: object) -> list:
    values = (0.99, 1.0, 1.01)
    return [off(load, None, tpot_ms_mean=off_ms * v, **fields) for v in values] + [
        on(load, None, tpot_ms_mean=on_ms * v, **fields) for v in values
    ]


def test_a_narrow_bracket_with_one_run_asks_for_three_first() -> None:
    one = best(findings(sweep_of({1: 1.5, 2: 1.2, 4: 0.8}, n=1)))
    assert (one.load, one.why, one.runs) == (2, Why.ONE_RUN, 2)


def test_the_larger_share_of_the_crossing_is_repeated() -> None:
    sweep = sweep_of({16: 1.2, 32: 0.9})
    sweep = {**sweep, 32: (sweep[32][0], spread(90, by=0.05))}
    one = best(findings(sweep))
    assert (one.why, one.load, one.arms) == (Why.CROSSING, 32, ("eagle3:4",))
    assert one.share is not None
    assert one.share > 0.9
    sweep = {**sweep, 16: (spread(100, by=0.2), sweep[16][1])}
    one = best(findings(sweep))
    assert (one.load, one.arms) == (16, ("off",))


def test_the_operating_load_comes_first() -> None:
    curve = {1: 1.8, 2: 1.7, 4: 1.5}
    assert (best(findings(sweep_of(curve)), 3).load, best(findings(sweep_of(curve)), 3).why) == (
        3,
        Why.UNMEASURED,
    )
    close = {**sweep_of(curve), 4: (spread(100, by=0.02), spread(103, by=0.02))}
    one = best(findings(close), 4)
    assert (one.load, one.why) == (4, Why.TOO_CLOSE)
    assert one.runs == 2  # sd 2 %, log 1.03 = .0296
    one = best(findings(sweep_of(curve, n=1)), 2)
    assert (one.load, one.why, one.runs) == (2, Why.ONE_RUN, 2)
    settled = next_measurements(findings(sweep_of(curve)), 2)
    assert settled[0].why is Why.BEYOND


def test_a_load_measured_in_one_arm_needs_the_other_alone() -> None:
    runs = [off(x, v) for x in (1, 2) for v in spread(100)] + [on(1, v) for v in spread(150)]
    assert best(find(study(*runs)), 2).arms == ("eagle3:4",)
    apart = [off(1, v) for v in spread(100)] + [on(4, v) for v in spread(150)]
    one = best(find(study(*apart)))
    assert (one.why, one.load) == (Why.UNPAIRED, 4)
    assert one.arms == ("off",)


def test_a_blocked_pair_comes_first_where_nothing_else_compares() -> None:
    runs = [off(4, v, temperature=0.0) for v in spread(100)]
    runs += [on(4, v, temperature=1.0) for v in spread(150)]
    one = best(find(study(*runs)))
    assert (one.why, one.load) == (Why.BLOCKED, 4)


def scheduled(*tiers: Tier) -> Schedule:
    ranges = tuple((t.first, t.last, t.k) for t in tiers)
    return Schedule(tiers, ranges, 4, None, (), None, 4, 0.1)


def test_an_unmeasured_k_zero_tier_is_named() -> None:
    found = findings(sweep_of({16: 1.5, 32: 0.8}))
    tiers = Tier(1, 24, 4, 1.5, (16.0,), None), Tier(25, 64, 0, None, (32.0,), 0.1, 4)
    asked = [m for m in next_measurements(found, None, scheduled(*tiers)) if m.why is Why.K_ZERO]
    assert [(m.arm, m.load, m.runs) for m in asked] == [("eagle3:0", 32.0, 3)]
    zero = [on(32, v, 0) for v in spread(95)]
    runs = [*found.study.runs, *zero]
    again = next_measurements(find(study(*runs)), None, scheduled(*tiers))
    assert not [m for m in again if m.why is Why.K_ZERO]
    runs = [*found.study.runs, on(32, 95.0, 4, schedule="[[1, 64, 0]]")]
    again = next_measurements(find(study(*runs)), None, scheduled(*tiers))
    assert not [m for m in again if m.why is Why.K_ZERO]


def test_each_cell_is_asked_for_once() -> None:
    found = findings(sweep_of({1: 1.5, 2: 1.2, 4: 0.8}, n=1))
    cells = [(m.load, m.arm) for m in next_measurements(found, 2)]
    assert len(cells) == len(set(cells))


# C64: 1.02 on one launch each is noise; three launches an arm are asked for
def test_c64_asks_for_three_launches() -> None:
    one = best(findings({4: ([100.0], [102.0])}), 4)
    assert (one.why, one.runs, one.repeats) == (Why.ONE_RUN, 2, Repeats(4, 1, 1, None))


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError):
        Repeats(1, 3, 3, 2, beyond=True)
    with pytest.raises(InputError):
        NextMeasurement((), "x", 1, LoadKind.CONCURRENCY, Why.BEYOND)
