"""What a study promises of an arm: measured at the load, priced while it runs, or not at all."""

import pytest

from lib.errors import InputError
from lib.estimate import Basis
from lib.evidence.findings import find
from lib.money.pricing import Rate
from lib.run import Slo
from lib.serving.plan import Plan, plan_of
from tests.unit.evidence.builders import off, on, study

COUNTS = {
    "drafts": 1000,
    "draft_tokens": 4000,
    "accepted_tokens": 1500,
    "accepted_per_position": (700, 450, 250, 100),
    "ttft_ms_mean": 120.0,
    "tpot_ms_mean": 10.0,
}
RUNS = (
    *(off(8, tps, tpot_ms_mean=18.0) for tps in (100.0, 101.0, 99.0)),
    *(on(8, tps, **COUNTS) for tps in (180.0, 182.0, 178.0)),
    *(off(32, 300.0), on(32, 240.0, **COUNTS)),
)


def planned(rate: Rate | None = None, load: float = 8, **given: object) -> Plan:
    found = find(study(*RUNS))
    rate = rate or Rate(2.0, 1, 0.5)
    return plan_of(found, found.arms[0], load, rate, **given)  # type: ignore[arg-type]


def test_a_plan_is_what_was_measured_at_the_load() -> None:
    plan = planned(slo=Slo(tpot_ms=40.0))
    assert (plan.load, plan.gamma, plan.usd_per_hour) == (8, 4, 2.0)
    assert plan.tau is not None
    assert plan.tau.value == pytest.approx(2.5)
    assert plan.alpha is not None
    assert plan.alpha.value == pytest.approx(4500 / (4500 + 3 * 900))
    assert plan.tpot_ms is not None
    assert plan.ttft_ms is not None
    assert (plan.tpot_ms.value, plan.ttft_ms.value) == pytest.approx((10, 120))
    assert plan.output_tps is not None
    assert plan.output_tps.value == pytest.approx(180, rel=1e-3)
    assert plan.output_tps.low is not None
    assert plan.output_tps.low < 178
    assert plan.output_tps.basis is Basis.MEASURED
    assert plan.round_cost[8].value == pytest.approx(2.5 / 1.8, rel=1e-3)
    assert plan.round_cost[32].value == pytest.approx(2.5 / 0.8)


def test_the_price_is_that_of_a_server_that_runs() -> None:
    plan = planned()
    assert plan.usd_per_million is not None
    assert plan.usd_per_million.value == pytest.approx(2e6 / (3600 * 180), rel=1e-3)
    assert plan.usd_per_million.low is not None
    without = planned(Rate())
    assert (without.usd_per_million, without.usd_per_hour) == (None, None)
    assert any("no price: type a $/GPU-h" in line for line in without.sources)


def test_one_run_has_no_interval() -> None:
    plan = planned(load=32)
    assert plan.output_tps is not None
    assert plan.output_tps.low is None


def test_a_load_that_was_not_measured_is_refused() -> None:
    with pytest.raises(InputError, match=r"load 16: .* was measured against off at 8, 32"):
        planned(load=16)


def test_between_measured_loads_the_round_cost_lies_between_theirs() -> None:
    plan = planned()
    at_8, at_32 = plan.round_cost[8], plan.round_cost[32]
    between = plan.break_even(16)
    assert between is not None
    assert (between.low, between.high) == (at_8.low, pytest.approx(at_32.value))
    assert plan.break_even(8.5) == at_8
    assert plan.break_even(64) is None
    assert plan.break_even(2) is None


def test_stored_costs_stand_in_only_where_none_was_measured() -> None:
    bare = Plan("s", "K=5", gamma=5, c=0.1, v=1.0)
    found = bare.break_even(64)
    assert found is not None
    assert found.value == pytest.approx(1.5)
    assert Plan("s", "K=5", gamma=5).break_even(1) is None
    assert planned(c=0.1, v=1.0).break_even(64) is None


def test_the_schedule_at_a_batch() -> None:
    plan = planned(schedule=[(9, 64, 0), (1, 8, 4)])
    assert [plan.k_at(b) for b in (0, 1, 8, 9, 500)] == [None, 4, 4, 0, 0]
    assert planned().k_at(4) is None


def test_a_plan_refuses_impossible_prices() -> None:
    with pytest.raises(InputError, match="usd_per_hour = -1"):
        Plan("s", "K=5", usd_per_hour=-1)
    with pytest.raises(InputError, match="v = 0"):
        Plan("s", "K=5", v=0)
