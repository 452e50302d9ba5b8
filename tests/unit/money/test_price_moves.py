"""What moves a price: the bridge, break-evens, tornado and draws, held against each other."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.money.break_even import break_evens
from lib.money.bridge import ORDER, TAX, THROUGHPUT, bridge
from lib.money.cost import cost_per_million
from lib.money.pricing import Rate
from lib.money.sensitivity import Range, draw, throughput_ranges, tornado
from tests.unit.money.cases import PAID, case, case_of_runs, run

OFF, ON = [100.0, 102.0, 98.5, 101.0], [150.0, 147.0, 152.0, 149.5]
positive = st.floats(0.01, 1e3)
share = st.floats(0.01, 1.0)


@given(positive, positive, positive, st.integers(1, 8), st.integers(0, 4), positive, share, share)
def test_the_steps_sum_to_the_total(
    off: float,
    on: float,
    usd: float,
    gpus: int,
    own: int,
    extra: float,
    used: float,
    with_it: float,
) -> None:
    rate = Rate(usd, gpus, used, extra, "", own, None, with_it)
    for k in (0, 4):
        found = bridge(case([off], [on], rate, k=k))
        total = found.off_usd + math.fsum(s.usd for s in found.steps)
        assert total == pytest.approx(found.on_usd, rel=1e-9, abs=1e-9)
        assert tuple(s.name for s in found.steps) == ORDER


def test_the_bridge_ends_at_the_prices_of_the_page() -> None:
    made = case(OFF, ON, Rate(2.0, 1, 0.6, 0.3, "", 1, 1.5, 0.5))
    found = bridge(made)
    assert made.pair.off.price is not None
    assert made.pair.on.price is not None
    assert found.off_usd == pytest.approx(made.pair.off.price.value)
    assert found.on_usd == pytest.approx(made.pair.on.price.value)
    assert made.pair.on.usd_per_hour == pytest.approx(2.0 + 0.3 + 1.5)


def test_a_server_at_k_0_loses_by_its_tax_and_not_by_drafting() -> None:
    steps = {s.name: s.usd for s in bridge(case([100.0], [95.0], k=0)).steps}
    assert steps[THROUGHPUT] == 0
    assert steps[TAX] == pytest.approx(cost_per_million(2, 95) - cost_per_million(2, 100))
    at_load = {"num_speculative_tokens": 4, "schedule": "[[1, 4, 4], [5, 64, 0]]"}
    scheduled = case([100.0], [95.0], **at_load)
    assert not scheduled.drafts
    assert {s.name: s.usd for s in bridge(scheduled).steps} == steps


def test_arms_with_their_own_price_differ_in_hardware() -> None:
    runs = [run("a", 100.0, usd_per_hour=5.0), run("b", 200.0, 4, usd_per_hour=8.0)]
    found = bridge(case_of_runs(runs, Rate(None, None, 1.0)))
    assert found.steps[0].usd == pytest.approx(cost_per_million(3, 100))


def at(made: object, name: str) -> object:
    (found,) = [b for b in break_evens(made) if b.name == name]  # type: ignore[arg-type]
    return found


def test_break_evens_of_a_pair() -> None:
    rate = Rate(2.0, 1, 0.6, 0.4)
    made = case(OFF, ON, rate, accept_length=2.5)
    m, (low, high) = made.pair.multiplier, made.pair.ratio.interval() or (0, 0)
    found = {b.name: b for b in break_evens(made)}
    assert found["M"].at is not None
    assert found["M"].at.value == pytest.approx(1.2)
    extra = found["Extra $/h"].at
    assert extra is not None
    assert (extra.low, extra.value, extra.high) == (
        pytest.approx(2 * (low - 1)),
        pytest.approx(2 * (m - 1)),
        pytest.approx(2 * (high - 1)),
    )
    used = found["Utilisation with"].at
    assert used is not None
    assert used.value == pytest.approx(60 * 1.2 / m)
    assert used.low == pytest.approx(60 * 1.2 / high)
    gpu = found["$/GPU-h"].at
    assert gpu is not None
    assert gpu.value == pytest.approx(0.4 / (m - 1))
    tau = found["Tokens a round τ"].at
    assert tau is not None
    assert tau.value == pytest.approx(2.5 * 1.2 / m)
    assert tau.high == pytest.approx(2.5 * 1.2 / low)


def test_at_a_break_even_both_prices_are_equal() -> None:
    rate = Rate(2.0, 2, 0.6, 0.4)
    made = case([100.0], [150.0], rate, accept_length=2.5)
    found = {b.name: b.at.value for b in break_evens(made) if b.at}
    for changed in (
        replace(rate, extra_usd_per_hour=found["Extra $/h"]),
        replace(rate, on_utilization=found["Utilisation with"] / 100),
        replace(rate, usd_per_gpu_hour=found["$/GPU-h"]),
    ):
        pair = case([100.0], [150.0], changed).pair
        assert pair.saving is not None
        assert pair.saving.value == pytest.approx(0, abs=1e-9)
    # At the measured cost of a round M is tau / R.
    fallen = found["Tokens a round τ"] / 2.5 * 150.0
    even = case([100.0], [fallen], rate).pair
    assert even.saving is not None
    assert even.saving.value == pytest.approx(0, abs=1e-9)


def test_a_break_even_that_does_not_exist_says_why() -> None:
    found = {b.name: b for b in break_evens(case([100.0], [150.0]))}
    assert found["$/GPU-h"].at is None
    assert "drops out" in found["$/GPU-h"].why_not
    assert "not known" in found["Tokens a round τ"].why_not
    loses = {b.name: b for b in break_evens(case([100.0], [90.0], Rate(2.0, 1, 1.0, 0.4)))}
    assert "at any price" in loses["$/GPU-h"].why_not
    assert loses["Utilisation with"].says == "more than all of the time: never"


RANGES = (
    Range("usd_per_gpu_hour", "Price", 1.5, 3.0, "typed"),
    Range("extra_usd_per_hour", "Extra cost", 0.1, 0.6, "typed"),
)
USED = Range("utilization", "Utilisation, %", 0.4, 0.7, "typed", 0.6, 100)


def test_a_tornado_moves_one_thing_at_a_time() -> None:
    made = case(OFF, ON, Rate(2.0, 1, 1.0, 0.3))
    bars = tornado(made, RANGES, "with")
    assert [b.label for b in bars] == sorted(
        (b.label for b in bars), key=lambda n: -{b.label: b.swing for b in bars}[n]
    )
    found = {b.label: b for b in bars}
    tps = math.exp(made.on_log.mean)
    assert found["Price"].at_low == pytest.approx(cost_per_million(1.8, tps))
    assert found["Price"].at_high == pytest.approx(cost_per_million(3.3, tps))
    assert found["tok/s without"].swing == 0
    (used,) = [b for b in tornado(made, (USED,), "with") if b.label.startswith("Util")]
    assert (used.low, used.high) == (40, 70)
    assert used.at_low == pytest.approx(cost_per_million(2.3, tps, 0.4))
    assert max(tornado(made, (), "saved"), key=lambda b: b.swing).label == "tok/s without"


def test_one_run_an_arm_has_no_range_and_no_draws() -> None:
    made = case([100.0], [150.0])
    assert throughput_ranges(made) == ()
    assert draw(made, ()) is None
    found = draw(made, RANGES)
    assert found is not None
    assert found.cheaper_share == 1.0


@pytest.mark.parametrize(("off", "on"), [(OFF, ON), (OFF, [103.0, 98.0, 101.5, 99.0])])
def test_the_intervals_are_those_of_the_draws(off: list[float], on: list[float]) -> None:
    made = case(off, on, Rate(2.0, 1, 0.6, 0.1))
    found, saving = draw(made, ()), made.pair.saving
    assert found is not None
    assert saving is not None
    ends = np.quantile(found.saving, (0.025, 0.975))
    assert (saving.low, saving.high) == pytest.approx(tuple(ends), abs=0.01)
    for price, draws in ((made.pair.off.price, found.off_usd), (made.pair.on.price, found.on_usd)):
        assert price is not None
        assert (price.low, price.high) == pytest.approx(
            tuple(np.quantile(draws, (0.025, 0.975))), rel=0.01
        )
    assert found.of("saving").median == pytest.approx(saving.value, abs=0.01)


def test_the_saving_has_the_interval_of_m_with_its_ends_swapped() -> None:
    made = case(OFF, ON, Rate(2.0, 1, 0.6, 0.1))
    saving, ends = made.pair.saving, made.pair.ratio.interval()
    assert saving is not None
    assert ends is not None
    assert saving.low == pytest.approx(1 - 1.05 / ends[0])
    assert saving.high == pytest.approx(1 - 1.05 / ends[1])
    assert not made.pair.too_close


def test_a_saving_whose_interval_holds_nothing_is_too_close() -> None:
    assert case(OFF, [103.0, 98.0, 101.5, 99.0]).pair.too_close
    assert case([100.0], [100.5]).pair.too_close
    assert not case([100.0], [103.0]).pair.too_close


def test_the_same_seed_draws_the_same() -> None:
    made = case(OFF, ON)
    first, again, other = draw(made, RANGES), draw(made, RANGES), draw(made, RANGES, seed=1)
    assert first is not None
    assert again is not None
    assert other is not None
    assert np.array_equal(first.saving, again.saving)
    assert not np.array_equal(first.on_usd, other.on_usd)
    assert len(first.saving) == 10_000


def test_two_runs_an_arm_draw_numbers_only() -> None:
    found = draw(case([100.0, 140.0], [150.0, 90.0]), RANGES)
    assert found is not None
    assert np.isfinite(found.on_usd).all()
    assert 0.2 < found.cheaper_share < 0.9


def test_a_range_upside_down_is_refused() -> None:
    with pytest.raises(InputError, match="Price: at least 3, at most 2"):
        Range("usd_per_gpu_hour", "Price", 3.0, 2.0, "typed")


def test_a_range_that_leaves_out_the_value_in_hand_is_refused() -> None:
    with pytest.raises(InputError, match=r"Price = 2 lies outside 2.5 to 3"):
        Range("usd_per_gpu_hour", "Price", 2.5, 3.0, "typed", 2.0)


def test_the_drafters_own_gpus_are_paid_for() -> None:
    # One GPU more beside four: speculation must gain (4 + 1) / 4.
    made = case([100.0], [125.0], Rate(2.0, 4, 1.0, 0.0, "", 1))
    assert made.pair.break_even_multiplier == pytest.approx(1.25)
    assert made.pair.on.usd_per_hour == pytest.approx(10.0)
    cheap = case([100.0], [125.0], Rate(2.0, 4, 1.0, 0.0, "", 1, 0.5))
    assert cheap.pair.on.usd_per_hour == pytest.approx(8.5)
    assert bridge(cheap).steps[2].usd > 0


def test_no_pair_no_case() -> None:
    with pytest.raises(AssertionError):
        case([100.0], [125.0], replace(PAID, usd_per_gpu_hour=None))
