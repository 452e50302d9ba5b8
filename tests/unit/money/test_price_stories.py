"""What people ask of a price, with the numbers they hold it against."""

import math

import pytest

from lib.estimate import Basis, Estimate
from lib.evidence.findings import find
from lib.money.api import ApiPrice, api_price, api_prices, bill, break_even
from lib.money.bases import input_per_output, overall_speedup, token_prices
from lib.money.cost import (
    cost_per_million,
    monthly_saving,
    saving_fraction,
    tokens_freed_per_hour,
    training_break_even_tokens,
    training_usd_per_hour,
    training_usd_per_million,
)
from lib.money.pricing import Rate, price_pairs
from lib.run import Slo, Study
from tests.unit.money.cases import case, run


def measured(usd: float) -> Estimate:
    return Estimate(usd, "$ per 1M output tokens", Basis.MEASURED, "runs")


@pytest.mark.parametrize(("m", "price", "share"), [(1.0, 0.992, 1.102), (1.24, 0.80, 0.889)])
def test_build_or_buy(m: float, price: float, share: float) -> None:
    # One H100 at $2.50/h makes 700 output tok/s; the API sells at $0.90 per 1M.
    own = measured(cost_per_million(2.5, 700 * m))
    assert own.value == pytest.approx(price, abs=2e-3)
    api = api_price(ApiPrice(0.0, 0.90), 0.0)
    found = break_even(own, 1.0, 2.5, 700 * m, api)
    assert found.utilization == pytest.approx(share, abs=1e-3)
    assert found.reached == (m > 1)
    assert found.tokens_per_month <= found.most_per_month if m > 1 else not found.reached
    assert found.tokens_per_month == pytest.approx(2.5 * 730 / 0.90 * 1e6)


def test_an_idle_server_is_ten_times_as_dear() -> None:
    assert cost_per_million(2.5, 700, 0.10) == pytest.approx(9.92, abs=5e-3)


def test_the_break_even_load_does_not_depend_on_the_load_in_hand() -> None:
    api = api_price(ApiPrice(0.0, 0.90), 0.0)
    shares = [
        break_even(measured(cost_per_million(2.5, 700, u)), u, 2.5, 700, api).utilization
        for u in (1.0, 0.3)
    ]
    assert shares[0] == pytest.approx(shares[1])


def test_a_break_even_between_the_ends_of_its_interval_is_too_close() -> None:
    own = Estimate(0.9, "$ per 1M output tokens", Basis.MEASURED, "runs", 0.8, 1.0)
    found = break_even(own, 1.0, 2.5, 771, api_price(ApiPrice(0.0, 0.90), 0.0))
    assert found.too_close
    assert (found.low, found.high) == (
        pytest.approx(0.889, abs=1e-3),
        pytest.approx(1.111, abs=1e-3),
    )


def test_a_vendor_headline_is_reconciled() -> None:
    # "19.4 % lower cost" beside "10 to 21 % more throughput".
    assert saving_fraction(1.10) == pytest.approx(0.091, abs=5e-4)
    assert saving_fraction(1.21) == pytest.approx(0.1736, abs=5e-4)
    needed = 1 / (1 - 0.194) - 1
    assert needed == pytest.approx(0.241, abs=5e-4)
    assert saving_fraction(1 + needed) == pytest.approx(0.194)
    assert saving_fraction(0.30 / 0.22) == pytest.approx(0.267, abs=5e-4)


def test_a_savings_memo_has_three_readings_and_a_committed_one() -> None:
    # $5/h, 100 against 250 tok/s, 10M tokens a day; the memo says $109,500 a year.
    found = monthly_saving(10e6 / 86_400, 5, 100, 5, 250)
    assert 12 * found.hours_scale_usd == pytest.approx(30_417, abs=1)
    assert 12 * found.whole_servers_usd == pytest.approx(43_800)
    assert found.one_server_usd == 0
    assert tokens_freed_per_hour(100, 250, found.servers_off) == 2 * 150 * 3600
    assert tokens_freed_per_hour(100, 80) == -20 * 3600


@pytest.mark.parametrize(
    ("before", "after", "cut"), [(63.296, 54.92, 0.132), (10.4926, 6.610, 0.370)]
)
def test_last_quarter_repriced(before: float, after: float, cut: float) -> None:
    old, new = (case([700.0], [868.0], Rate(usd / 8, 8, 0.6)).pair for usd in (before, after))
    for then, now in ((old.off.price, new.off.price), (old.on.price, new.on.price)):
        assert then is not None
        assert now is not None
        assert 1 - now.value / then.value == pytest.approx(cut, abs=5e-4)
    assert old.saving is not None
    assert new.saving is not None
    assert new.saving.value == pytest.approx(old.saving.value)


def test_a_trained_drafter_is_paid_back_or_never() -> None:
    # Break-even tokens = D / (price without - price with).
    assert training_break_even_tokens(5000, 12.35, 6.86) == pytest.approx(910.7e6, rel=1e-3)
    assert training_break_even_tokens(5000, 6.86, 12.35) == math.inf
    assert training_usd_per_hour(7300, 10) == pytest.approx(1.0)
    assert training_usd_per_million(5000, 10e9) == pytest.approx(0.50)


def test_the_cheapest_plan_that_meets_the_service_level() -> None:
    # 7,083 tok/s a GPU with speculation at 16 against 6,322 without at 1,024 and 1,413 s of TTFT.
    runs = [
        run("a", 6000.0, load=16, ttft_ms_p99=1500.0),
        run("b", 7083.0, 3, load=16, ttft_ms_p99=2000.0),
        run("c", 6322.0, load=1024, ttft_ms_p99=1_413_000.0),
        run("d", 6000.0, 3, load=1024, ttft_ms_p99=1_500_000.0),
    ]
    found = find(Study("s", tuple(runs)))
    small, large = price_pairs(found, found.arms[0], Rate(2.0, 1, 1.0), Slo(ttft_ms=5000))
    assert small.on.price is not None
    assert large.off.price is None
    assert large.off.why_not == "misses the SLO"
    everything = price_pairs(found, found.arms[0], Rate(2.0, 1, 1.0))
    prices = [s.price.value for p in everything for s in (p.off, p.on) if s.price]
    assert small.on.price.value == min(prices)


def test_input_heavy_traffic_on_both_bases() -> None:
    # kubernetes-sigs/inference-perf#139: 4 GPUs at $2.
    asked = run("a", 186.717, input_tokens=23_531_562, output_tokens=1_260_603, duration_s=6751.4)
    ratio = input_per_output([asked])
    assert ratio is not None
    found = token_prices(measured(cost_per_million(4 * 2, 186.717)), ratio, 0.25)
    assert found.output.value == pytest.approx(11.90, abs=5e-3)
    assert found.total.value == pytest.approx(0.605, abs=5e-4)
    assert found.output.value / found.total.value == pytest.approx(19.7, abs=0.05)
    assert found.weighted is not None
    assert found.total.value < found.weighted.value < found.output.value
    assert {e.unit for e in (found.output, found.total, found.weighted)} == {
        "$ per 1M output tokens",
        "$ per 1M total tokens (input and output)",
        "$ per 1M weighted tokens (an input token as 0.25)",
    }


def test_a_faster_decode_cannot_halve_a_bill_of_prefill() -> None:
    assert 1 - 1 / overall_speedup(0.3, 2.0) == pytest.approx(0.15)
    assert 1 - 1 / overall_speedup(0.3, math.inf) == pytest.approx(0.3)
    assert overall_speedup(1.0, math.inf) == math.inf
    assert overall_speedup(0.0, 5.0) == 1.0


def test_cached_input_is_billed_at_its_own_price() -> None:
    # redhat-performance/configiq#10: 300M in, 60 % of it cached, 100M out.
    price = ApiPrice(3.0, 15.0, 0.3)
    assert bill(price, 300e6, 100e6, 0.6) == pytest.approx(1914)
    assert bill(price, 300e6, 100e6) == pytest.approx(2400)
    assert bill(ApiPrice(3.0, 15.0), 300e6, 100e6, 0.6) == pytest.approx(2400)
    assert 100 * api_price(price, 3.0, 0.6).value == pytest.approx(1914)


def test_no_rate_no_price() -> None:
    # archestra-ai/archestra#6906: an unknown price is missing, never zero and never a guess.
    found = find(Study("s", (run("a", 45.0), run("b", 81.0, 4))))
    (pair,) = price_pairs(found, found.arms[0], Rate(None, 1, 1.0))
    assert pair.off.price is pair.on.price is pair.saving is None
    assert pair.off.why_not == "type a $/GPU-h"


def test_a_replica_of_eight_gpus_is_priced_once() -> None:
    # SemiAnalysisAI/InferenceX-app#391: $2 a GPU-hour, TP 8, 2,000 tok/s a replica.
    found = case([2000.0], [3000.0], Rate(2.0, 8, 1.0))
    assert found.pair.off.price is not None
    assert found.pair.off.price.value == pytest.approx(2.22, abs=5e-3)


def test_list_prices_ship_with_date_and_source() -> None:
    rows = api_prices()
    assert len(rows) > 50
    assert all(r.effective_date and r.source and r.name for r in rows)
    assert api_price(rows[0], 1.0).basis is Basis.PUBLISHED
