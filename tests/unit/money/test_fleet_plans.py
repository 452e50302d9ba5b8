"""Replicas by hour and their cost: worked stories with their values, and laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence import schedule as schedules
from lib.evidence.findings import Findings, find
from lib.money.capacity import Capacities, Curve, capacities
from lib.money.demand import Demand, Hours, in_tokens, read_spelled
from lib.money.fleet import Plan, Rules, Saved, cheapest, pace, plan, saved, what_if
from lib.money.fleet_day import Day, day_of
from lib.money.fleet_tiers import scheduled
from lib.money.pricing import Rate
from lib.run import Slo
from tests.unit.evidence.builders import SIMULATED, off, on, study

NIGHT, DAYTIME, PEAK = 4, 32, 128
OFF_TPS = {1: 80, NIGHT: 260, DAYTIME: 1700, PEAK: 4200}
ON_TPS = {1: 150, NIGHT: 440, DAYTIME: 2100, PEAK: 3700}
RESERVED = Rules(reserved=True)
PAID = Rate(3.0)


def diurnal() -> Findings:
    """The constructed fleet of the stories, with the pace that follows from its loads."""
    runs = [off(n, t, gpu_count=1, tpot_ms_mean=1000 * n / t) for n, t in OFF_TPS.items()]
    runs += [on(n, t, gpu_count=1, tpot_ms_mean=1000 * n / t) for n, t in ON_TPS.items()]
    return find(study(*runs))


def sizes(found: Findings, rate: Rate = PAID, slo: Slo | None = None) -> Capacities:
    sized = capacities(found, rate, slo)
    assert sized is not None
    return sized


def typed(text: str) -> Demand:
    return in_tokens(read_spelled(text), "typed")


THREE = typed(f"5200@{NIGHT}x8,34000@{DAYTIME}x8,84000@{PEAK}x8")


def diurnal_day(rules: Rules, tax: float | None) -> Day:
    found = diurnal()
    return day_of(sizes(found), THREE, rules, schedules.build(found.comparison, PEAK), tax)


def by_hour(found: Plan) -> list[float]:
    return found.replicas[[0, 8, 16]].tolist()


def test_a_diurnal_fleet_that_scales() -> None:
    day = diurnal_day(Rules(), 0.0)
    assert by_hour(day.off) == [20, 20, 20]
    assert by_hour(day.arms[0]) == [12, 17, 23]
    assert day.schedule is not None
    assert by_hour(day.schedule) == [12, 17, 20]
    assert [p.gpu_hours for p in day.plans] == [480, 416, 392]
    assert [p.usd_per_day for p in day.plans] == [1440, 1248, 1176]
    assert day.best is day.schedule
    assert day.off.usd_per_month == pytest.approx(1440 * 730 / 24)


def test_the_tax_of_k_0_at_the_peak() -> None:
    day = diurnal_day(Rules(), 0.08)
    assert day.schedule is not None
    assert by_hour(day.schedule) == [12, 17, 22]
    assert (day.schedule.gpu_hours, day.schedule.usd_per_day) == (408, 1224)


def test_an_unknown_tax_has_no_price() -> None:
    day = diurnal_day(Rules(), None)
    assert day.schedule is not None
    assert day.schedule.lower_bound
    assert day.schedule.untaxed.tolist() == [False] * 16 + [True] * 8
    assert day.schedule.gpu_hours == 392
    assert day.schedule.usd_per_day is None
    assert day.best is day.arms[0]
    # 23 replicas at the peak serve 84,000 tok/s at 4,200 / 1.15 each.
    assert day.tax_against_fixed == pytest.approx(0.15, abs=1e-9)


def test_the_same_fleet_reserved_for_its_peak() -> None:
    day = diurnal_day(RESERVED, 0.0)
    assert [p.replicas[0] for p in day.plans] == [20, 23, 20]
    assert day.schedule is not None
    free, fixed = day.saved(day.off, day.schedule), day.saved(day.off, day.arms[0])
    assert free is not None
    assert fixed is not None
    assert (free.usd_per_day, fixed.usd_per_day) == (0, -216)
    assert day.arms[0].replicas[0] / day.off.replicas[0] == pytest.approx(1.15)
    faster = pace(day.off, day.schedule, THREE)
    assert faster is not None
    assert faster.hours == 24
    assert faster.after_ms < faster.before_ms
    taxed = diurnal_day(RESERVED, 0.08)
    assert taxed.schedule is not None
    assert taxed.schedule.replicas[0] == 22
    lost = taxed.saved(taxed.off, taxed.schedule)
    assert lost is not None
    assert lost.usd_per_day == -144


def test_always_on_speculation_at_a_peak_that_it_loses() -> None:
    """S = 0.88 at the peak: 1/0.88 = 1.136 times 150 GPUs at $2.65/h all year."""
    found = find(study(off(64, 1000, gpu_count=1), on(64, 880, gpu_count=1)))
    rate = Rate(2.65)
    demand = in_tokens(Hours((150_000.0,) * 8760), "peak all year")
    without, always = (plan(c, demand) for c in sizes(found, rate).curves)
    assert without.replicas[0] == 150
    assert always.fractional[0] - 150 == pytest.approx(20.45, abs=0.005)
    assert always.replicas[0] - 150 == 21
    assert without.usd_per_day is not None
    assert always.usd_per_day is not None
    assert always.fractional_usd_per_day is not None
    extra = 365 * (always.fractional_usd_per_day - without.usd_per_day)
    assert extra == pytest.approx(475_000, abs=500)
    whole = 365 * (always.usd_per_day - without.usd_per_day)
    assert whole == pytest.approx(487_000, abs=500)


def test_the_cheapest_plan_that_meets_a_first_token_in_5_s() -> None:
    """7,083 tok/s at 16 with speculation against 6,322 at 1,024 without and 1,413 s to wait."""
    runs = [
        off(16, 3000, gpu_count=1, ttft_ms_p99=1500, ttft_ms_p50=700),
        on(16, 7083, gpu_count=1, ttft_ms_p99=2000, ttft_ms_p50=900),
        off(1024, 6322, gpu_count=1, ttft_ms_p99=1.413e6, ttft_ms_p50=1e6),
        on(1024, 6000, gpu_count=1, ttft_ms_p99=1.2e6, ttft_ms_p50=9e5),
    ]
    demand = typed("70000x24")
    for slo in (Slo(ttft_ms=5000), None):
        plans = [plan(c, demand) for c in sizes(find(study(*runs)), slo=slo).curves]
        best = cheapest(plans)
        assert best is plans[1]
        assert best.curve.operating_load == 16
        assert best.replicas[0] == 10
    limited = sizes(find(study(*runs)), slo=Slo(ttft_ms=5000)).off
    assert limited.capacity_tps == pytest.approx(3000)


def test_headroom_and_a_spare_are_added_to_every_hour() -> None:
    curve = sizes(diurnal()).off
    demand = typed(f"42000@{PEAK}x24")
    assert plan(curve, demand).replicas[0] == 10
    assert plan(curve, demand, Rules(headroom=0.2)).replicas[0] == 12
    assert plan(curve, demand, Rules(spare=True)).replicas[0] == 11
    with pytest.raises(InputError, match="headroom"):
        Rules(headroom=4)


def test_an_hour_without_demand_keeps_one_replica() -> None:
    found = plan(sizes(diurnal()).off, typed(f"0@{PEAK}x12,4200@{PEAK}x12"))
    assert found.replicas.tolist() == [1.0] * 24
    assert found.fractional.tolist() == [0.0] * 12 + [1.0] * 12


def test_a_load_below_the_measured_range_has_no_plan() -> None:
    found = plan(sizes(diurnal()).off, typed("100@0.5x24"))
    assert "under 1, the lowest measured" in found.why_not
    assert found.gpu_hours is None
    assert found.usd_per_day is None


def test_without_a_price_there_are_gpu_hours() -> None:
    found = plan(sizes(diurnal(), Rate()).off, THREE)
    assert found.gpu_hours == 480
    assert found.usd_per_day is None
    assert found.curve.missing == ("type a $/GPU-h",)


def test_gpus_of_a_replica_are_counted_once() -> None:
    """$2/GPU-h on 8 GPUs that make 2,000 tok/s: $16 an hour a replica."""
    found = find(study(off(8, 2000, gpu_count=8), on(8, 2500, gpu_count=8)))
    made = plan(sizes(found, Rate(2.0)).off, typed("4000x24"))
    assert (made.replicas[0], made.gpu_hours, made.usd_per_day) == (2, 384, 768)


def test_a_saving_has_the_interval_of_m() -> None:
    runs = [off(n, t, gpu_count=1) for n, row in SIMULATED["off"].items() for t in row]
    runs += [on(n, t, k=2, gpu_count=1) for n, row in SIMULATED["k2"].items() for t in row]
    without, fixed = (sizes(find(study(*runs))).curves)[:2]
    demand = typed("1000000@8x24")
    found = saved(plan(without, demand), plan(fixed, demand), demand, Rules())
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    usd = plan(without, demand).usd_per_day or 0
    # M at 8 is 1.702 (1.617 to 1.791): at a thousand replicas rounding is far below that.
    assert found.low / usd == pytest.approx(1 - 1 / 1.617, abs=2e-3)
    assert found.high / usd == pytest.approx(1 - 1 / 1.791, abs=2e-3)
    assert not found.too_close


@pytest.mark.parametrize(
    ("low", "high", "close"),
    [(-10.0, 10.0, True), (-144.0, 0.0, True), (0.0, 60.0, True), (5.0, 60.0, False)],
)
def test_an_interval_that_ends_at_no_difference_tells_nothing_apart(
    low: float, high: float, close: bool
) -> None:
    assert Saved((low + high) / 2, low, high).too_close is close


def test_what_if_moves_one_thing_at_a_time() -> None:
    rows = {r.change: r for r in what_if(sizes(diurnal()).curves, THREE, Rules(), 0.1)}
    assert len(rows) == 6
    longer = rows["tokens a round τ +10 %"]
    assert longer.usd_per_day["off"] == 1440
    # 5,200 / 484, 34,000 / 2,310 and 84,000 / 4,070 whole replicas, 8 hours each at $3.
    assert longer.usd_per_day["eagle3:4"] == 24 * (11 + 15 + 21)
    assert rows["price −10 %"].usd_per_day["off"] == pytest.approx(1296)
    assert rows["demand +10 %"].gpu_hours["off"] == 528
    with pytest.raises(InputError, match="shift"):
        what_if(sizes(diurnal()).curves, THREE, Rules(), 1.0)


def test_k_0_is_held_to_the_service_level_with_its_tax() -> None:
    """Off meets 31 ms at 128; 8 % slower it does not, so the schedule stops at 32."""
    runs = [
        off(n, t, tpot_ms_mean=1000 * n / t, tpot_ms_p99=1000 * n / t) for n, t in OFF_TPS.items()
    ]
    runs += [
        on(n, t, tpot_ms_mean=1000 * n / t, tpot_ms_p99=1000 * n / t) for n, t in ON_TPS.items()
    ]
    found = find(study(*runs))
    slo = Slo(tpot_ms=31)
    built = schedules.build(found.comparison, PEAK)
    free, taxed = (scheduled(built, sizes(found, slo=slo), tax) for tax in (0.0, 0.08))
    assert isinstance(free, Curve)
    assert isinstance(taxed, Curve)
    assert free.top == PEAK
    assert taxed.top == DAYTIME
    assert taxed.binds == f"SLO: missed at {PEAK}"


def test_a_measured_tax_is_used_where_none_is_typed() -> None:
    found = diurnal()
    zero = [on(n, t / 1.1, k=0, gpu_count=1) for n, t in OFF_TPS.items()]
    taxed = find(study(*found.study.runs, *zero))
    built = schedules.build(taxed.comparison, PEAK)
    assert built.tiers[-1].k == 0
    curve = scheduled(built, sizes(taxed), None)
    assert isinstance(curve, Curve)
    assert not curve.untaxed.any()
    assert curve.output_tps[-1] == pytest.approx(4200 / 1.1)


def test_a_tier_at_k_0_is_priced_with_its_tax_and_never_with_the_row_of_off() -> None:
    """H100, Gemma 31B at 189 requests: TPOT 93.820 ms at K = 0, 77.164 off, +21.6 %
    (vllm-project/vllm#49548). At one price an hour a token costs 1.216 times as much.
    """
    runs = [
        off(n, n * 1000 / t, gpu_count=1, tpot_ms_mean=t) for n, t in ((2, 14.374), (189, 77.164))
    ]
    runs += [on(n, n * 1000 / t, gpu_count=1, tpot_ms_mean=t) for n, t in ((2, 9.0), (189, 90.0))]
    found = find(study(*runs))
    built = schedules.build(found.comparison, 189)
    assert (built.tiers[0].k, built.tiers[-1].k) == (4, 0)
    sized, demand = sizes(found), typed("100000@189")
    off_plan = plan(sized.off, demand)

    unknown = scheduled(built, sized, None)
    assert isinstance(unknown, Curve)
    blank = plan(unknown, demand)
    assert blank.lower_bound
    assert (blank.usd_per_day, blank.fractional_usd_per_day) == (None, None)

    tax = 93.820 / 77.164 - 1
    assert round(tax, 3) == 0.216
    for typed_tax, factor in ((0.216, 1.216), (tax, 93.820 / 77.164), (0.0, 1.0)):
        curve = scheduled(built, sized, typed_tax)
        assert isinstance(curve, Curve)
        taxed = plan(curve, demand)
        before, after = off_plan.fractional_usd_per_day, taxed.fractional_usd_per_day
        assert before is not None
        assert after is not None
        assert after / before == pytest.approx(factor)
        assert taxed.tpot_ms[0] == pytest.approx(factor * off_plan.tpot_ms[0], rel=0.01)


def test_one_k_at_every_batch_is_no_schedule() -> None:
    found = find(study(off(4, 100), on(4, 150), off(8, 200), on(8, 300)))
    why = scheduled(schedules.build(found.comparison, 8), sizes(found), 0.0)
    assert why == "one K at every batch: a fixed K, no schedule"


CURVE = sizes(diurnal()).off
TPS = st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(lambda v: max(v) > 0)
RULES = st.builds(Rules, st.floats(0, 3), st.booleans(), st.booleans())


def of(values: list[float]) -> Demand:
    return in_tokens(Hours(tuple(values)), "typed")


@given(TPS, RULES, st.floats(1, 3))
def test_more_demand_never_needs_fewer_replicas(
    values: list[float], rules: Rules, more: float
) -> None:
    less, greater = (plan(CURVE, of(values).scaled(f), rules).replicas for f in (1.0, more))
    assert (greater >= less).all()


@given(TPS, RULES)
def test_whole_replicas_are_at_least_the_fraction_and_serve_the_demand(
    values: list[float], rules: Rules
) -> None:
    found = plan(CURVE, of(values), rules)
    assert (found.fractional <= found.replicas * (1 + 1e-9)).all()
    assert (found.replicas * CURVE.capacity_tps >= np.array(values) * (1 - 1e-6)).all()


@given(TPS, st.floats(0, 3), st.booleans())
def test_reserved_for_the_peak_is_never_cheaper(
    values: list[float], headroom: float, spare: bool
) -> None:
    follows, stays = (plan(CURVE, of(values), Rules(headroom, spare, r)) for r in (False, True))
    assert (stays.replicas >= follows.replicas).all()
    assert len(set(stays.replicas.tolist())) == 1


@given(
    st.lists(st.sampled_from([NIGHT, DAYTIME, PEAK]), min_size=1, max_size=24), st.floats(1, 1e6)
)
def test_a_schedule_at_no_tax_is_as_good_as_the_best_of_its_tiers(
    loads: list[int], tps: float
) -> None:
    """At measured loads; a K within 1 % of the best may hold its tier."""
    found = diurnal()
    sized = sizes(found)
    demand = in_tokens(Hours((tps,) * len(loads), loads=tuple(map(float, loads))), "typed")
    curve = scheduled(schedules.build(found.comparison, PEAK), sized, 0.0)
    assert isinstance(curve, Curve)
    mine = plan(curve, demand)
    rest = np.min([plan(c, demand).fractional for c in sized.curves], axis=0)
    assert (mine.fractional <= rest * 1.0101).all()


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_higher_tax_never_makes_the_schedule_cheaper(first: float, second: float) -> None:
    low, high = sorted((first, second))
    found = diurnal()
    built, sized = schedules.build(found.comparison, PEAK), sizes(found)
    hours = []
    for tax in (low, high):
        curve = scheduled(built, sized, tax)
        assert isinstance(curve, Curve)
        hours.append(plan(curve, THREE).gpu_hours or 0)
    assert hours[0] <= hours[1]


@given(st.floats(0.5, 2))
def test_acceptance_moves_an_arm_and_never_off(factor: float) -> None:
    arm = sizes(diurnal()).arms[0]
    moved = arm.drafting_faster(factor)
    assert moved.capacity_tps == pytest.approx(arm.capacity_tps * factor)
    zero = replace(arm, k=np.zeros_like(arm.k)).drafting_faster(factor)
    assert zero.capacity_tps == arm.capacity_tps
