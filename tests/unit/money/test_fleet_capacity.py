"""What a replica serves: measured points, the service level, and nothing outside the range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.evidence.findings import find
from lib.money.capacity import NO_TPS, Capacities, MostRequests, capacities
from lib.money.pricing import Rate
from lib.run import LoadKind, Run, Slo
from tests.unit.evidence.builders import SIMULATED, off, on, study

RATE = Rate(3.0, 1, 1.0)


def pair(load: float, off_tps: float, on_tps: float, **fields: float) -> list[Run]:
    return [off(load, off_tps, **fields), on(load, on_tps, **fields)]


def sizes_of(
    *runs: Run, slo: Slo | None = None, most: list[MostRequests] | None = None
) -> Capacities:
    found = capacities(find(study(*runs)), RATE, slo, most or [])
    assert found is not None
    return found


def test_between_measured_loads_tok_s_is_straight_over_log2_load() -> None:
    off_curve = sizes_of(*pair(4, 260, 440), *pair(16, 1700, 2100)).off
    assert off_curve.capacity_at(np.array([4.0, 8.0, 16.0])).tolist() == pytest.approx(
        [260.0, 980.0, 1700.0]
    )


def test_nothing_is_said_outside_the_measured_range() -> None:
    curve = sizes_of(*pair(4, 260, 440), *pair(16, 1700, 2100)).off
    low, most, above = curve.capacity_at(np.array([2.0, math.nan, 99.0]))
    assert math.isnan(low)
    assert most == above == pytest.approx(1700)
    assert curve.binds == "measured range: above 16 is not measured"
    assert math.isnan(curve.load_at(np.array([100.0]))[0])


def test_where_throughput_falls_a_replica_is_run_before_the_fall() -> None:
    runs = [*pair(8, 800, 900), *pair(16, 1000, 1200), *pair(32, 900, 700)]
    curve = sizes_of(*runs).arms[0]
    assert curve.capacity_tps == pytest.approx(1200)
    assert curve.operating_load == 16
    assert curve.binds == "throughput: most at 16, less above"
    assert curve.capacity_at(np.array([32.0]))[0] == pytest.approx(1200)


def test_only_points_that_meet_the_service_level_are_proven() -> None:
    runs = [
        *pair(8, 800, 900, tpot_ms_p99=20),
        *pair(16, 1000, 1200, tpot_ms_p99=30),
        *pair(32, 1500, 1600, tpot_ms_p99=60),
    ]
    curve = sizes_of(*runs, slo=Slo(tpot_ms=40)).off
    assert curve.capacity_tps == pytest.approx(1000)
    assert curve.operating_load == 16
    assert curve.binds == "SLO: missed at 32"


def test_the_first_miss_ends_it_even_where_a_higher_load_meets() -> None:
    runs = [
        *pair(8, 800, 900, tpot_ms_p99=20),
        *pair(16, 1000, 1200, tpot_ms_p99=60),
        *pair(32, 1500, 1600, tpot_ms_p99=30),
    ]
    assert sizes_of(*runs, slo=Slo(tpot_ms=40)).off.capacity_tps == pytest.approx(800)


def test_a_service_level_that_no_file_decides_proves_nothing() -> None:
    curve = sizes_of(*pair(8, 800, 900), slo=Slo(ttft_ms=500)).off
    assert math.isnan(curve.capacity_tps)
    assert "SLO unknown" in curve.why_not
    runs = pair(8, 800, 900, ttft_ms_p99=900)
    assert "misses the SLO at 8" in sizes_of(*runs, slo=Slo(ttft_ms=500)).off.why_not


def test_memory_and_max_num_seqs_end_it_too() -> None:
    runs = [*pair(8, 800, 900), *pair(16, 1000, 1200), *pair(64, 1500, 1600)]
    most = [MostRequests(70, 40, "memory"), MostRequests(512, 512, "max_num_seqs")]
    found = sizes_of(*runs, most=most)
    assert found.off.capacity_tps == pytest.approx(1500)
    assert found.arms[0].capacity_tps == pytest.approx(1200)
    assert found.arms[0].binds == "memory holds 40 requests at once"
    few = sizes_of(*runs, most=[MostRequests(70, 4, "memory")]).arms[0]
    assert few.why_not == "memory holds 4 requests at once"


def test_the_interval_of_an_arm_is_that_of_m() -> None:
    runs = [off(n, t) for n, row in SIMULATED["off"].items() for t in row]
    runs += [on(n, t, k=2) for n, row in SIMULATED["k2"].items() for t in row]
    found = sizes_of(*runs)
    arm, base = found.arms[0], found.off
    at = arm.loads.tolist().index(8.0)
    assert arm.low_tps[at] / base.output_tps[at] == pytest.approx(1.617, abs=1e-3)
    assert arm.high_tps[at] / base.output_tps[at] == pytest.approx(1.791, abs=1e-3)
    low = arm.end("low")
    assert low is not None
    assert low.capacity_tps < arm.capacity_tps
    assert sizes_of(*pair(8, 800, 900)).arms[0].end("low") is None


def test_ratios_size_nothing() -> None:
    ratio = on(8, None, multiplier=1.4)
    assert capacities(find(study(ratio)), RATE) is None
    assert NO_TPS.startswith("no tok/s")


def test_random_tokens_need_consent() -> None:
    runs = [off(8, 100, dataset="random"), on(8, 150, dataset="random")]
    found = find(study(*runs))
    refused = capacities(found, RATE)
    assert refused is not None
    assert not refused.arms
    assert "random tokens" in refused.left_out[0]
    agreed = capacities(found, RATE, accept_random=True)
    assert agreed is not None
    assert len(agreed.arms) == 1


def test_request_rates_that_were_kept_up_with_are_sized_by_their_latency() -> None:
    def at(rate: float, tpot: float) -> list[Run]:
        fields = {
            "load_kind": LoadKind.REQUEST_RATE,
            "request_rps": rate,
            "tpot_ms_mean": tpot,
            "tpot_ms_p99": tpot,
        }
        return [off(rate, 100 * rate, **fields), on(rate, 100 * rate, **fields)]

    found = find(study(*at(1, 10), *at(2, 20), *at(4, 50)), "tpot_ms")
    sizes = capacities(found, RATE, Slo(tpot_ms=30))
    assert sizes is not None
    assert sizes.off.capacity_tps == pytest.approx(200)
    assert sizes.off.binds == "SLO: missed at 4"


@given(
    st.lists(st.floats(10, 1e5), min_size=2, max_size=8),
    st.lists(st.floats(1, 200), min_size=1, max_size=6),
)
def test_capacity_never_falls_with_the_load(tps: list[float], asked: list[float]) -> None:
    runs = [r for i, x in enumerate(tps) for r in pair(2.0**i, x, x)]
    curve = sizes_of(*runs).off
    found = curve.capacity_at(np.array(sorted(max(1.0, a) for a in asked)))
    assert (np.diff(found) >= -1e-9 * found[1:]).all()
    assert found.max() <= max(tps) * (1 + 1e-12)
    back = curve.load_at(curve.capacity_at(np.array([curve.operating_load])))
    assert back[0] <= curve.operating_load * (1 + 1e-9)


def test_a_price_of_one_arm_only_prices_neither() -> None:
    found = sizes_of(off(8, 100, usd_per_hour=2.0), on(8, 150))
    assert [c.usd_per_hour for c in found.curves] == [None, None]
    assert "every arm" in found.off.missing[0]
    both = sizes_of(off(8, 100, usd_per_hour=2.0), on(8, 150, usd_per_hour=4.0))
    assert [c.usd_per_hour for c in both.curves] == [2.0, 4.0]
