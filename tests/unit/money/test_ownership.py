"""Owned hardware: the recovery of capital, its limits, and what is never counted twice."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.estimate import Basis
from lib.money.ownership import (
    OwnedHardware,
    capital_recovery_factor,
    owned_cost,
    owned_estimate,
    power_only,
    suggestions,
)
from lib.ui.inputs import table

SERVER = OwnedHardware(
    capex_usd=280_000,
    gpus=8,
    life_years=4,
    residual=0.1,
    capital_rate=0.08,
    power_kw=1.275,
    pue=1.3,
    usd_per_kwh=0.0929,
    hosting_usd_per_gpu_month=100,
)
rate = st.floats(0, 0.5)
years = st.floats(1, 10)


def test_a_worked_server() -> None:
    # 0.08 × 1.08^4 / (1.08^4 - 1) = 0.301921; 280,000 × (1 - 0.1 / 1.08^4) × 0.301921 / 8 / 8,760
    assert capital_recovery_factor(0.08, 4) == pytest.approx(0.301921, abs=5e-7)
    cost = owned_cost(SERVER)
    assert cost.capital_usd == pytest.approx(1.117685, abs=5e-5)
    assert cost.power_usd == pytest.approx(1.275 * 1.3 * 0.0929)
    assert cost.hosting_usd == pytest.approx(100 / 730)
    assert cost.total_usd == pytest.approx(1.4087, abs=5e-4)
    assert cost.in_use_usd(0.7) == pytest.approx(cost.total_usd / 0.7)


def test_hosting_by_the_kw() -> None:
    cost = owned_cost(replace(SERVER, hosting_usd_per_kw_month=150, hosting_usd_per_gpu_month=0))
    assert cost.hosting_usd == pytest.approx(150 * 1.275 / 730)


@given(years)
def test_without_a_cost_of_capital_it_is_straight_line_depreciation(life: float) -> None:
    assert capital_recovery_factor(0, life) == pytest.approx(1 / life)
    assert capital_recovery_factor(1e-12, life) == pytest.approx(1 / life, rel=1e-9)
    cost = owned_cost(replace(SERVER, life_years=life, capital_rate=0.0))
    assert cost.capital_usd == pytest.approx(280_000 * 0.9 / life / 8 / 8760)


@given(st.floats(1e-6, 0.5), st.integers(1, 10))
def test_the_payments_are_worth_the_price_today(r: float, n: int) -> None:
    payment = capital_recovery_factor(r, n)
    assert sum(payment / (1 + r) ** k for k in range(1, n + 1)) == pytest.approx(1)


@given(rate, rate, years)
@example(0.0, 2e-313, 3.0)  # too small for the quotient to keep a digit
@example(5e-324, 1e-12, 10.0)
@example(9.9e-13, 1e-12, 1.0)
def test_dearer_capital_never_costs_less(a: float, b: float, life: float) -> None:
    low, high = sorted((a, b))
    cheap = owned_cost(replace(SERVER, capital_rate=low, life_years=life)).capital_usd
    dear = owned_cost(replace(SERVER, capital_rate=high, life_years=life)).capital_usd
    assert cheap <= dear * (1 + 1e-12)


@given(rate, years, years)
def test_a_longer_life_never_recovers_faster(r: float, a: float, b: float) -> None:
    short, long = sorted((a, b))
    assert capital_recovery_factor(r, long) <= capital_recovery_factor(r, short) * (1 + 1e-12)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_residual_value_never_costs_more(a: float, b: float) -> None:
    less, more = sorted((a, b))
    assert (
        owned_cost(replace(SERVER, residual=more)).capital_usd
        <= owned_cost(replace(SERVER, residual=less)).capital_usd
    )


def test_facility_overhead_is_counted_once() -> None:
    included = replace(SERVER, power_kw=1.73, pue=1.0, all_in=True)
    assert owned_cost(included).power_usd == pytest.approx(1.73 * 0.0929)
    with pytest.raises(InputError, match="includes facility overhead already; type PUE 1"):
        replace(included, pue=1.3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capex_usd": 0}, "capex_usd = 0"),
        ({"gpus": 0}, "gpus = 0"),
        ({"life_years": -1}, "life_years = -1"),
        ({"residual": 1.5}, "residual = 1.5"),
        ({"capital_rate": float("nan")}, "capital_rate"),
        ({"pue": 0.9}, "pue = 0.9"),
        ({"power_kw": -1}, "power_kw"),
    ],
)
def test_what_cannot_be_owned_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SERVER, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0, 1.01, -1])
def test_the_share_of_hours_in_use_is_a_share(share: float) -> None:
    with pytest.raises(InputError, match="hours in use"):
        owned_cost(SERVER).in_use_usd(share)


def test_the_estimate_says_how_it_was_found() -> None:
    found = owned_estimate(SERVER)
    assert found.basis is Basis.ASSUMED
    assert found.unit == "$ per GPU-hour"
    for part in ("0.301921", "$280,000.00", "÷ 8 GPUs ÷ 8760 h", "PUE 1.3", "$0.0929/kWh"):
        assert part in found.how


def test_electricity_alone_is_labelled() -> None:
    # 64 kWh at $0.227 over 1.136 B tokens (ArthurVardevanyan/HomeLab#686)
    found = power_only(64, 0.227, 1.136e9)
    assert round(found.value, 4) == 0.0128
    assert found.unit == "$ per 1M tokens, power only"
    assert "64 kWh × $0.227/kWh = $14.53" in found.how


def test_every_published_figure_fits_the_input_that_it_fills() -> None:
    rows = suggestions()
    assert {r.key for r in rows} == {
        "owned_capex_usd",
        "owned_life_years",
        "owned_power_kw",
        "owned_pue",
        "owned_usd_per_kwh",
    }
    for row in rows:
        table()[row.key].check(row.value)
        assert row.effective_date in row.cited
        assert row.source in row.cited


def test_a_node_or_rack_is_divided_by_its_gpus_once() -> None:
    by = {(r.key, r.gpu, r.gpus): r for r in suggestions() if not r.all_in}
    assert by["owned_power_kw", "H100", 8].value == pytest.approx(10.2 / 8)
    assert by["owned_power_kw", "GB200", 72].value == pytest.approx(120 / 72, rel=1e-6)
    assert by["owned_capex_usd", "GB200", 72].value == 3_400_000
    assert all(r.key == "owned_power_kw" for r in suggestions() if r.all_in)
    assert sum(r.all_in for r in suggestions()) == 7
