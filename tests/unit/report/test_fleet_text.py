"""The fleet in sentences: money, no money, too close to call, and what is not known."""

from dataclasses import replace
from itertools import pairwise

import pytest

from lib.estimate import Basis
from lib.evidence import schedule as schedules
from lib.evidence.findings import find
from lib.money.demand import Demand, Hours, in_tokens
from lib.money.fleet import Rules
from lib.money.fleet_day import Day, day_of
from lib.money.pricing import Rate
from lib.report.fleet_figures import demand_figure, replicas_figure
from lib.report.fleet_text import (
    NO_MONEY,
    fleet_answer,
    fleet_table,
    hour_table,
    latency_lines,
    rests_on,
    schedule_lines,
)
from tests.unit.evidence.builders import SIMULATED, off, on, study
from tests.unit.money.test_fleet_plans import RESERVED, THREE, diurnal, diurnal_day, sizes, typed


def test_the_schedule_of_a_fleet_that_scales() -> None:
    day = diurnal_day(Rules(), 0.0)
    sentence, estimate = fleet_answer(day)
    assert sentence == (
        "$1,176 a day with the schedule instead of $1,440: $264.00 less (18 %), 392 instead of "
        "480 GPU-hours; one run an arm, so no interval."
    )
    assert estimate is not None
    assert (estimate.value, estimate.unit, estimate.basis) == (1176, "$ a day", Basis.DERIVED)
    lines = schedule_lines(day)
    assert "Against no speculation the schedule saves $264.00 a day." in lines
    assert "Against eagle3:4 all day the schedule saves $72.00 a day." in lines
    assert "It costs no more than eagle3:4 all day up to a K = 0 tax of 15.0 %." in lines
    assert "K = 0 is slower than off by 0.0 %, as typed." in lines
    assert rests_on(day, Basis.MEASURED)["average demand"].basis is Basis.ASSUMED


def test_no_money_only_latency() -> None:
    sentence, _ = fleet_answer(diurnal_day(RESERVED, 0.0))
    assert sentence.startswith(f"{NO_MONEY}: 480 GPU-hours a day either way; with the schedule")
    taxed, _ = fleet_answer(diurnal_day(RESERVED, 0.08))
    assert taxed.startswith("$1,584 a day with the schedule instead of $1,440: $144.00 more (10 %)")


@pytest.mark.parametrize("rate", [Rate(0.0, 1), Rate(3.0, 1, extra_usd_per_hour=1.5)])
def test_the_same_bill_for_fewer_gpus_says_so(rate: Rate) -> None:
    found = find(study(off(8, 100), on(8, 150)))
    day = day_of(sizes(found, rate), typed("5000@8x24"), Rules(), "not asked for")
    same = "$3,600" if rate.extra_usd_per_hour else "$0.00"
    if rate.extra_usd_per_hour:
        day = day_of(sizes(found, rate), typed("6000@8x24"), Rules(), "not asked for")
        same = "$4,320"
        assert day.best is not None
        assert day.best.usd_per_day == day.off.usd_per_day == 4320
    hours = "960 instead of 1,440" if rate.extra_usd_per_hour else "816 instead of 1,200"
    sentence, _ = fleet_answer(day)
    assert sentence.startswith(f"No money here: {hours} GPU-hours a day at the same {same}")


def test_an_unknown_tax_is_a_lower_bound_and_no_money() -> None:
    day = diurnal_day(Rules(), None)
    assert fleet_answer(day)[0].startswith("$1,248 a day with eagle3:4 instead of $1,440")
    assert "at least 392 GPU-hours a day: in 8 of 24 hours it is at K = 0" in schedule_lines(day)[0]
    table = fleet_table(day)
    assert table["$ a day"] == [1440, 1248, None]
    assert table["what binds"][2].startswith("at least; the tax of K = 0 is unknown")


def test_a_schedule_that_only_equals_off_has_no_room_for_a_tax() -> None:
    found = diurnal()
    built = schedules.build(found.comparison, 128)
    day = day_of(sizes(found), typed("84000@128x24"), Rules(), built, 0.0)
    assert "It costs no more than off only without a K = 0 tax." in schedule_lines(day)


def test_same_gpus_and_faster_users() -> None:
    (line,) = latency_lines(diurnal_day(RESERVED, None))
    assert line.startswith("Same GPUs: on the replicas that off needs, eagle3:4 is no faster")
    lines = latency_lines(diurnal_day(RESERVED, 0.0))
    assert lines[1].startswith("Same GPUs, faster users: on the replicas that off needs, the sch")


def close(tps: float) -> Day:
    """K = 2 against off with the noise of the simulated sweep, scaled so that M at 8 is near 1."""
    runs = [off(8, t, gpu_count=1) for t in SIMULATED["off"][8]]
    runs += [on(8, t * tps, k=2, gpu_count=1) for t in SIMULATED["k2"][8]]
    found = find(study(*runs))
    demand = in_tokens(Hours((1e6,) * 24), "typed")
    return day_of(sizes(found), demand, Rules(), "not asked for", None)


def test_too_close_to_call() -> None:
    sentence, estimate = fleet_answer(close(0.59))
    assert sentence.startswith("Too close to call: with eagle3:2 the fleet saves between -$")
    assert estimate is not None
    assert estimate.low is not None
    sentence, estimate = fleet_answer(close(1.0))
    assert "less (41 %)" in sentence
    assert "the difference lies between $" in sentence
    assert schedule_lines(close(1.0)) == ["No schedule: not asked for"]


def test_without_a_price_and_without_gpus() -> None:
    found = find(study(off(8, 100), on(8, 150), off(16, 150), on(16, 200)))
    demand = in_tokens(Hours((3000.0,) * 24), "typed")
    sized = sizes(found, Rate())
    day = day_of(sized, demand, Rules(), "none", None)
    sentence, estimate = fleet_answer(day)
    assert sentence == (
        "360 instead of 480 replica-hours a day with eagle3:4: 25 % less. Type a $/GPU-h, type "
        "the GPUs to read dollars."
    )
    assert estimate is not None
    assert estimate.unit == "replica-hours a day"


def test_nothing_that_meets_the_level_is_no_fleet() -> None:
    day = diurnal_day(Rules(), 0.0)
    why = replace(day.off, why_not="misses the SLO at 4, its lowest measured load")
    alone = replace(day, off=why, arms=(), schedule=None, best_fixed=None)
    sentence, estimate = fleet_answer(alone)
    assert sentence.startswith("Nothing is sized: off: misses the SLO at 4")
    assert estimate is None
    only_off = replace(day, arms=(), schedule=None, best_fixed=None)
    assert fleet_answer(only_off)[0].startswith("$1,440 a day without speculation; no arm")
    assert "there is no fleet" in fleet_answer(replace(day, off=why))[0]


def test_a_replica_is_told_at_the_load_that_it_is_run_at() -> None:
    def row(demand: Demand) -> tuple[object, object]:
        table = fleet_table(day_of(sizes(diurnal()), demand, Rules(), "not asked for"))
        return table["tok/s a replica"][0], table["at load"][0]

    assert row(THREE) == (None, None)
    assert row(typed("5200@32x24")) == (pytest.approx(1700), 32)
    assert row(typed("5200@1000x24")) == (pytest.approx(4200), 128)
    assert row(typed("5200x24")) == (pytest.approx(4200), 128)


def test_tables_and_figures_hold_every_hour() -> None:
    day = diurnal_day(Rules(), 0.0)
    table = hour_table(day)
    assert {len(column) for column in table.values()} == {24}
    assert table["off, replicas"] == [20.0] * 24
    figure = replicas_figure(day, "light")
    assert [len(t.x) for t in figure.data] == [25, 25, 25]
    assert figure.layout.height
    year = replace(THREE, output_tps=THREE.output_tps.repeat(365), load=THREE.load.repeat(365))
    figure = demand_figure(year, "dark")
    assert figure.layout.xaxis.title.text == "day"
    assert len(figure.data[0].x) == len(figure.data[0].y) == 366
    assert figure.layout.yaxis.title.text == "tok/s, day's most"


def test_names_at_the_last_hour_stand_apart_and_inside() -> None:
    figure = replicas_figure(diurnal_day(Rules(), 0.0), "light")
    places = sorted(a.y for a in figure.layout.annotations)
    assert len(places) == len(figure.data)
    low, high = figure.layout.yaxis.range
    assert low <= places[0]
    assert places[-1] <= high
    assert min(b - a for a, b in pairwise(places)) > 0.05 * high


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_names_of_arms_are_data(mode: str) -> None:
    day = diurnal_day(Rules(), 0.0)
    evil = replace(day.arms[0], curve=replace(day.arms[0].curve, arm="<b>x</b>%{y}"))
    figure = replicas_figure(replace(day, arms=(evil,), best_fixed=evil), mode)  # type: ignore[arg-type]
    assert "<b>x</b>" not in figure.to_json()
