"""Energy, memory and good tokens: from what the runs recorded, else nothing."""

import pytest

from lib.estimate import Basis
from lib.money.energy import added, energy, joules_per_token
from lib.money.good_tokens import good_price, good_share
from lib.money.pricing import price_arm
from lib.run import Slo
from tests.unit.money.cases import PAID, run

SLO = Slo(ttft_ms=500.0, tpot_ms=40.0)


def test_energy_from_joules_and_from_watts() -> None:
    counted = run("a", 700.0, energy_j=3.6e6, output_tokens=2_000_000, power_w=1.0)
    assert joules_per_token(counted) == pytest.approx(1.8)
    assert joules_per_token(run("b", 700.0, power_w=350.0)) == pytest.approx(0.5)
    assert joules_per_token(run("c", 700.0)) is None


def test_energy_per_million_tokens() -> None:
    # W / X is J per token; over 3.6 it is kWh per 1M.
    runs = [run(n, 700.0, power_w=w) for n, w in (("a", 350.0), ("b", 364.0), ("c", 343.0))]
    found = energy(runs, Basis.MEASURED, 0.227)
    assert found is not None
    assert found.kwh.value == pytest.approx(0.5034 / 3.6, rel=1e-3)
    assert found.kwh.low is not None
    assert found.kwh.low < found.kwh.value < (found.kwh.high or 0)
    assert found.usd is not None
    assert found.usd.value == pytest.approx(found.kwh.value * 0.227)
    assert "power only" in found.usd.unit
    assert found.joules_per_token == pytest.approx(0.5034, rel=1e-3)


def test_energy_that_nobody_recorded_is_not_guessed() -> None:
    assert energy([run("a", 700.0)], Basis.MEASURED, 0.2) is None
    one = energy([run("a", 700.0, power_w=350.0), run("b", 700.0)], Basis.MEASURED)
    assert one is not None
    assert one.usd is None
    assert one.kwh.source.startswith("1 of 2 runs")


def test_what_speculation_takes_more_of() -> None:
    off, on = (
        [run("a", 100.0, gpu_mem_gib=60.0, power_w=300.0)],
        [run("b", 150.0, 4, gpu_mem_gib=64.0, power_w=340.0)],
    )
    found = added(off, on, 4.0, 80.0, 0.25)
    assert (found.memory_gib, found.power_w) == (pytest.approx(4.0), pytest.approx(40.0))
    assert found.memory_usd_per_hour == pytest.approx(4.0 * 4 / 80)
    assert found.power_usd_per_hour == pytest.approx(0.04 * 0.25)
    nothing = added(off, [run("b", 150.0, 4)], 4.0, 80.0, 0.25)
    assert nothing.memory_gib is None
    assert nothing.power_usd_per_hour is None


def test_good_tokens_counted_request_by_request() -> None:
    runs = [run("a", 100.0, request_rps=2.0), run("b", 100.0, completed=200, duration_s=100.0)]
    share = good_share(runs, SLO, {"a": 1.6, "b": 1.2})
    assert share is not None
    assert share.exact
    assert share.value == pytest.approx(0.7)
    priced = price_arm("off", 8, runs, PAID)
    found = good_price(priced, share)
    assert found is not None
    assert priced.price is not None
    assert found.value == pytest.approx(priced.price.value / 0.7)
    assert found.basis is Basis.DERIVED


def test_percentiles_bound_the_good_requests() -> None:
    met = run("a", 100.0, ttft_ms_p99=400.0, tpot_ms_p99=30.0)
    share = good_share([met], SLO, {})
    assert share is not None
    assert (share.exact, share.value) == (False, pytest.approx(0.98))
    found = good_price(price_arm("off", 8, [met], PAID), share)
    assert found is not None
    assert found.unit.endswith("at most")
    half = Slo(ttft_ms=500.0, tpot_ms=40.0, percentile="p50")
    assert good_share([run("a", 1.0, ttft_ms_p50=4.0, tpot_ms_p50=3.0)], half, {}) is None


def test_good_requests_that_are_not_known_have_no_price() -> None:
    missed = run("a", 100.0, ttft_ms_p99=600.0, tpot_ms_p99=30.0)
    assert good_share([missed], SLO, {}) is None
    assert good_share([], SLO, {}) is None
    recorded = run("a", 100.0, request_rps=2.0, goodput_rps=1.0)
    assert good_share([recorded], SLO, {}) is None
    by_file = good_share([recorded], None, {})
    assert by_file is not None
    assert by_file.value == pytest.approx(0.5)
    none = good_share([recorded], SLO, {"a": 0.0})
    assert good_price(price_arm("off", 8, [recorded], PAID), none) is None
