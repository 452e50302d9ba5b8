"""Whether an objective is met, and goodput as a compared metric."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.findings import Findings, at_slo, find
from lib.evidence.goodput import meets, with_goodput
from lib.evidence.next_measurement import next_measurements
from lib.evidence.pairing import Comparison, compare
from lib.run import Slo
from tests.unit.evidence.builders import off, on, points, study


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"ttft_ms_p95": 400.0}, True),
        ({"ttft_ms_p95": 500.0}, True),
        ({"ttft_ms_p95": 501.0}, False),
        ({"ttft_ms_p99": 450.0}, True),  # a higher percentile meets it
        ({"ttft_ms_p99": 900.0}, None),  # a higher percentile that misses decides nothing
        ({"ttft_ms_p90": 600.0}, False),  # a lower percentile misses it
        ({"ttft_ms_p50": 600.0}, False),
        ({"ttft_ms_p90": 100.0}, None),  # a lower percentile that meets decides nothing
        ({"ttft_ms_p90": 100.0, "ttft_ms_p99": 900.0}, None),
        ({"ttft_ms_p95": 501.0, "ttft_ms_p99": 450.0}, False),  # the named one decides
        ({"ttft_ms_mean": 1.0}, None),
        ({"ttft_ms_mean": 9000.0}, None),
        ({"itl_ms_p95": 1.0}, None),
        ({}, None),
    ],
)
def test_one_limit(reported: dict[str, float], expected: bool | None) -> None:
    assert meets(off(1, **reported), Slo(ttft_ms=500, percentile="p95")) is expected


def test_every_limit_must_hold() -> None:
    slo = Slo(ttft_ms=500, tpot_ms=40)
    assert meets(off(1, ttft_ms_p99=400.0, tpot_ms_p99=30.0), slo) is True
    assert meets(off(1, ttft_ms_p99=400.0, tpot_ms_p99=50.0), slo) is False
    assert meets(off(1, ttft_ms_p99=400.0), slo) is None
    assert meets(off(1, tpot_ms_p99=50.0), slo) is False


def test_no_limit_is_met() -> None:
    assert meets(off(1), Slo()) is True


SLO = Slo(tpot_ms=40)


def sweep(**fields: object) -> Comparison:
    """Off and K = 4 at 8, each with the fields."""
    return compare(study(off(8, **fields), on(8, **fields)))


def goodputs(found: Comparison) -> list[float | None]:
    return [r.goodput_rps for c in found.arms[0].cells for r in (*c.off, *c.on)]


def test_counted_requests_stand_before_percentiles() -> None:
    data = sweep(tpot_ms_p99=90.0, request_rps=5.0)
    counts = {r.run_id: 2.5 for r in data.study.runs}
    found, said = with_goodput(data, SLO, counts)
    assert goodputs(found) == [2.5, 2.5]
    assert "counted from per-request records: TPOT ≤ 40 ms in each request" in said


def test_one_uncounted_run_sends_all_to_the_percentiles() -> None:
    data = sweep(tpot_ms_p99=30.0, request_rps=5.0)
    found, said = with_goodput(data, SLO, {data.study.runs[0].run_id: 2.5})
    assert goodputs(found) == [5.0, 5.0]
    assert "by percentile" in said


def test_percentiles_pass_fail_or_leave_it_undecided() -> None:
    fast, slow = {"tpot_ms_p99": 30.0}, {"tpot_ms_p99": 50.0}
    data = compare(study(off(8, request_rps=5.0, **fast), on(8, request_rps=6.0, **slow)))
    assert goodputs(with_goodput(data, SLO, {})[0]) == [5.0, 0.0]
    found, said = with_goodput(sweep(request_rps=5.0, tpot_ms_mean=1.0), SLO, {})
    assert goodputs(found) == [None, None]
    assert said.endswith("Undecided, so without goodput: off at 8; eagle3:4 at 8.")


def test_requests_per_second_follow_from_completed_over_duration() -> None:
    data = sweep(tpot_ms_p99=30.0, completed=100, duration_s=20.0)
    assert goodputs(with_goodput(data, SLO, {})[0]) == [5.0, 5.0]


def test_without_an_slo_the_recorded_goodput_stands() -> None:
    found, said = with_goodput(sweep(goodput_rps=3.0, slo="ttft 500 ms"), None, {})
    assert goodputs(found) == [3.0, 3.0]
    assert "ttft 500 ms" in said
    with pytest.raises(InputError, match="name a limit on TTFT, TPOT"):
        with_goodput(sweep(), None, {})


# Goodput as a compared metric.
RATES = {  # good requests/s at an SLO, off and K = 4, three repeats by load
    8: ((10.0, 10.1, 9.9), (15.0, 15.2, 14.9)),
    16: ((20.0, 20.2, 19.9), (22.0, 22.3, 21.9)),
    32: ((36.0, 36.3, 35.8), (18.0, 18.2, 17.9)),
}


def goodput_study(
    rates: Mapping[float, tuple[Sequence[float], Sequence[float]]], **fields: object
) -> tuple[Findings, dict[str, float]]:
    """A study of these runs found on goodput, and its good requests per second by run id."""
    counts, runs = {}, []
    for load, (plain, fast) in rates.items():
        for make, values in ((off, plain), (on, fast)):
            for value in values:
                runs.append(make(load, **fields))
                counts[runs[-1].run_id] = value
    return find(study(*runs), "goodput_rps"), counts


def test_counted_goodput_is_compared_like_any_metric() -> None:
    found, counts = goodput_study(RATES)
    (arm,) = at_slo(found, SLO, counts).arms
    assert [round(p.multiplier, 2) for p in arm.points] == [1.50, 1.10, 0.50]
    assert arm.points == points(
        {x: r[0] for x, r in RATES.items()}, {x: r[1] for x, r in RATES.items()}
    )
    assert [c.between for c in arm.crossover.crossings] == [(16, 32)]
    assert arm.without_ratio == ()


def test_an_slo_that_holds_for_fewer_moves_the_crossing() -> None:
    found, loose = goodput_study(RATES)
    slow = {r.run_id for r in found.study.runs if r.arm != "off" and r.offered_load == 16}
    tight = {i: v * (0.5 if i in slow else 1) for i, v in loose.items()}
    ends = [at_slo(found, SLO, c).arms[0].crossover.crossings[0].between for c in (loose, tight)]
    assert ends == [(16, 32), (8, 16)]


def test_zero_goodput_is_named_and_bridged_by_no_crossing() -> None:
    found, counts = goodput_study({**RATES, 16: ((0.0, 0.0, 0.0), (9.0, 9.1, 9.2))})
    (arm,) = at_slo(found, SLO, counts).arms
    (gap,) = arm.without_ratio
    assert (gap.load, gap.off, gap.on, gap.side) == (16, "none", "good", "arm")
    assert (gap.off_rps, gap.on_rps) == (0.0, pytest.approx(9.1))
    (crossing,) = arm.crossover.crossings
    assert crossing.between == (8, 32)
    assert (crossing.at, crossing.low, crossing.measure_at) == (None, None, None)
    cells = [(m.load, m.why) for m in next_measurements(at_slo(found, SLO, counts))]
    assert all(load != 16 for load, _ in cells)


@pytest.mark.parametrize(
    ("plain", "fast", "side"),
    [
        ((0.0,) * 3, (0.0,) * 3, "neither"),
        ((1.0, 2.0, 1.0), (0.0,) * 3, "off"),
        ((0.0, 1.0, 1.0), (2.0,) * 3, "undecided"),  # one launch of three has no good request
    ],
)
def test_sides_of_a_count(plain: Sequence[float], fast: Sequence[float], side: str) -> None:
    found, counts = goodput_study({8: (plain, fast)})
    (arm,) = at_slo(found, SLO, counts).arms
    assert arm.points == ()
    assert [g.side for g in arm.without_ratio] == [side]


@pytest.mark.parametrize(
    ("plain", "fast", "side"),
    [(30.0, 35.0, "both"), (50.0, 35.0, "arm"), (30.0, 50.0, "off"), (50.0, 60.0, "neither")],
)
def test_a_pass_against_a_fail_is_no_ratio(plain: float, fast: float, side: str) -> None:
    runs = (off(8, tpot_ms_p99=plain, request_rps=5.0), on(8, tpot_ms_p99=fast, request_rps=6.0))
    found = at_slo(find(study(*runs), "goodput_rps"), SLO, {})
    (arm,) = found.arms
    assert arm.points == ()
    assert [g.side for g in arm.without_ratio] == [side]
    assert found.how == "Judged by percentile, for want of per-request records: p99 TPOT ≤ 40 ms."
    assert found.loads == (8,)


def test_a_cell_without_records_is_judged_beside_one_with_them() -> None:
    found, counts = goodput_study(RATES, tpot_ms_p99=30.0)
    lacking = {r.run_id for r in found.study.runs if r.offered_load == 16}
    partial = {i: v for i, v in counts.items() if i not in lacking}
    (arm,) = at_slo(found, SLO, partial).arms
    assert [p.load for p in arm.points] == [8, 32]
    assert [(g.load, g.off, g.off_rps) for g in arm.without_ratio] == [(16, "met", None)]


def test_what_nothing_decides_is_said_with_the_way_out() -> None:
    found = find(study(off(8), on(8)), "goodput_rps")
    with pytest.raises(InputError, match="--save-detailed"):
        at_slo(found, SLO, {})
    with pytest.raises(InputError, match="name a limit on TTFT, TPOT or the end-to-end time"):
        at_slo(found, None, {})


def test_recorded_goodput_pairs_at_one_slo_only() -> None:
    alike = study(off(8, goodput_rps=2.0, slo="a"), on(8, goodput_rps=3.0, slo="a"))
    found = at_slo(find(alike, "goodput_rps"), None, {})
    assert found.arms[0].points[0].multiplier == pytest.approx(1.5)
    assert "as recorded, at a" in found.how
    apart = study(off(8, goodput_rps=2.0, slo="a"), on(8, goodput_rps=3.0, slo="b"))
    found = at_slo(find(apart, "goodput_rps"), None, {})
    assert found.arms[0].points == ()
    assert found.arms[0].pairs.blocked == (8,)


def test_one_arm_without_recorded_goodput() -> None:
    found = at_slo(find(study(off(8, goodput_rps=2.0), on(8)), "goodput_rps"), None, {})
    (gap,) = found.arms[0].without_ratio
    assert (gap.off, gap.on, gap.side, gap.off_rps) == ("good", "unrecorded", "undecided", 2.0)


def test_no_hollow_point_is_drawn_across_zero_goodput() -> None:
    found, counts = goodput_study({**RATES, 64: ((40.0,) * 3, (8.0,) * 3)})
    lone = on(24)
    runs = (*found.study.runs, lone)
    for good, drawn in ((36.0, [24]), (0.0, [])):
        rates = {**counts, lone.run_id: 20.0}
        rates |= {
            r.run_id: good for r in found.study.runs if r.arm == "off" and r.offered_load == 32
        }
        (arm,) = at_slo(find(study(*runs), "goodput_rps"), SLO, rates).arms
        assert [p.load for p in arm.derived] == drawn


def test_the_end_to_end_time_is_a_limit() -> None:
    slo = Slo(e2e_ms=900)
    runs = (off(8, e2e_ms_p99=1000.0), on(8, e2e_ms_p99=800.0))
    found = at_slo(find(study(*runs), "goodput_rps"), slo, {})
    assert found.arms[0].without_ratio[0].side == "arm"
    assert slo.per_request == "E2E ≤ 900 ms in each request"


@given(
    counts=st.lists(st.tuples(*[st.integers(0, 5)] * 6), min_size=1, max_size=6),
    recorded=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_every_load_has_a_ratio_or_is_named(
    counts: list[tuple[int, ...]], recorded: list[bool]
) -> None:
    rates = {2.0**i: (c[:3], c[3:]) for i, c in enumerate(counts)}
    found, good = goodput_study(rates, tpot_ms_p99=30.0)
    kept = {r.run_id: good[r.run_id] for r in found.study.runs}
    for i, load in enumerate(rates):
        if not recorded[i]:
            kept = {k: v for k, v in kept.items() if k not in _ids_at(found, load)}
    (arm,) = at_slo(found, SLO, kept).arms
    ratios, gaps = {p.load for p in arm.points}, {g.load for g in arm.without_ratio}
    assert ratios | gaps == set(rates)
    assert not ratios & gaps
    assert ratios == {
        x for i, (x, r) in enumerate(rates.items()) if recorded[i] and all((*r[0], *r[1]))
    }


def _ids_at(found: Findings, load: float) -> set[str]:
    return {r.run_id for r in found.study.runs if r.offered_load == load}
