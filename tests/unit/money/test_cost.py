"""Money: worked values, the laws of the formula, and published claims that can be checked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.money.cost import (
    break_even_extra_usd_per_hour,
    break_even_multiplier,
    cost_per_million,
    monthly_saving,
    saving_fraction,
    speculative_cost_per_million,
)

money = st.floats(0.01, 1e4)
speed = st.floats(0.1, 1e6)
factor = st.floats(0.05, 20)


def test_worked_values() -> None:
    assert round(cost_per_million(2, 45), 2) == 12.35
    assert round(speculative_cost_per_million(2, 45, 1.8), 2) == 6.86
    assert round(speculative_cost_per_million(2, 45, 0.85), 2) == 14.52
    assert round(speculative_cost_per_million(2, 45, 1.15, 1.20), 2) == 17.18
    assert break_even_extra_usd_per_hour(2, 1.8) == pytest.approx(1.60)
    assert cost_per_million(2, 85) == pytest.approx(6.536, abs=5e-4)


@given(money, speed, factor, factor)
def test_higher_m_is_cheaper(price: float, tps: float, m: float, more: float) -> None:
    low, high = sorted((m, m + more))
    assert speculative_cost_per_million(price, tps, high) < speculative_cost_per_million(
        price, tps, low
    )


@given(money, speed)
def test_m_of_one_is_the_baseline(price: float, tps: float) -> None:
    assert speculative_cost_per_million(price, tps, 1) == cost_per_million(price, tps)


def test_lower_m_is_dearer() -> None:
    assert speculative_cost_per_million(2, 45, 0.85) > cost_per_million(2, 45)


def test_dearer_hardware_can_undo_a_gain() -> None:
    assert speculative_cost_per_million(2, 45, 1.15, 1.2) > cost_per_million(2, 45)


@given(money, speed, st.floats(1, 20))
def test_break_even_is_exact(price: float, tps: float, m: float) -> None:
    extra = break_even_extra_usd_per_hour(price, m)
    assert speculative_cost_per_million(price, tps, m, extra) == pytest.approx(
        cost_per_million(price, tps)
    )
    assert break_even_multiplier(price, extra) == pytest.approx(m)


@given(factor)
def test_saving_is_never_the_throughput_gain(m: float) -> None:
    saving = saving_fraction(m)
    assert saving == pytest.approx(1 - 1 / m)
    if abs(m - 1) > 1e-6:
        assert saving < m - 1


@pytest.mark.parametrize(
    ("gain", "saving"), [(0.10, 0.0909), (0.21, 0.1736), (0.30 / 0.22 - 1, 0.2667)]
)
def test_a_gain_of_x_is_not_a_cut_of_x(gain: float, saving: float) -> None:
    # developers.redhat.com gpt-oss EAGLE3 article; SemiAnalysisAI/InferenceX-app#378
    assert saving_fraction(1 + gain) == pytest.approx(saving, abs=5e-4)


def test_the_gain_that_a_claimed_cut_needs() -> None:
    # A cut of 19.4 % beside a gain of 10 to 21 % does not reconcile: it takes 24.1 %.
    assert saving_fraction(1.241) == pytest.approx(0.194, abs=5e-4)


def test_a_public_savings_claim() -> None:
    # $5/h, 100 against 250 tok/s, 10M tokens a day; claimed: $109,500 a year.
    assert cost_per_million(5, 100) == pytest.approx(13.89, abs=5e-3)
    assert cost_per_million(5, 250) == pytest.approx(5.56, abs=5e-3)
    demand = 10e6 / 86400
    saving = monthly_saving(demand, 5, 100, 5, 250)
    assert saving.hours_scale_usd * 12 == pytest.approx(30_417, abs=1)
    assert (saving.servers_off, saving.servers_on) == (2, 1)
    assert saving.whole_servers_usd * 12 == pytest.approx(43_800)
    assert saving.one_server_usd == 0
    assert saving.short_off == pytest.approx(0.136, abs=5e-4)
    assert saving.short_on == 0


def test_output_and_total_tokens_are_different_prices() -> None:
    # kubernetes-sigs/inference-perf#139: 23,531,562 in, 1,260,603 out, 4 GPUs at $2
    output, total = cost_per_million(8, 186.717), cost_per_million(8, 186.717 + 3485.4)
    assert output == pytest.approx(11.90, abs=5e-3)
    assert total == pytest.approx(0.605, abs=5e-4)
    assert output / total == pytest.approx(19.7, abs=0.05)


def test_gpus_are_counted_once() -> None:
    # $2 a GPU-hour, TP 8, 2,000 tok/s a replica (SemiAnalysisAI/InferenceX-app#391)
    assert cost_per_million(2 * 8, 2000) == pytest.approx(2.22, abs=5e-3)


def test_utilization_divides() -> None:
    assert cost_per_million(2, 45, 0.5) == pytest.approx(2 * cost_per_million(2, 45))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cost_per_million(-1, 45), "usd_per_hour = -1"),
        (lambda: cost_per_million(2, 0), "tokens_per_second = 0"),
        (lambda: cost_per_million(2, float("inf")), "tokens_per_second = inf"),
        (lambda: cost_per_million(2, 45, 0), "utilization = 0"),
        (lambda: cost_per_million(2, 45, 60), "utilization = 60.*60 % meant"),
        (lambda: cost_per_million("two", 45), "usd_per_hour = 'two'"),
        (lambda: speculative_cost_per_million(2, 45, 0), "multiplier = 0"),
        (lambda: break_even_multiplier(0, 1), "base_usd_per_hour = 0"),
    ],
)
def test_bad_input_names_the_argument(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]


def test_a_demand_of_exactly_one_server_needs_one() -> None:
    saving = monthly_saving(31.5, 2, 45 * 0.7, 2, 60)
    assert (saving.servers_off, saving.servers_on) == (1, 1)
    assert saving.whole_servers_usd == 0


def test_a_price_beyond_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="too large"):
        cost_per_million(1e308, 1e-3)
