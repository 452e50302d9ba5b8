"""Whether the reported percentiles decide an objective."""

import pytest

from lib.errors import InputError
from lib.evidence.goodput import meets, with_goodput
from lib.evidence.pairing import Comparison, compare
from lib.run import Slo
from tests.unit.evidence.builders import off, on, study


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
    assert "counted from per-request records at p99 TPOT ≤ 40 ms" in said


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
    with pytest.raises(InputError, match="name a TTFT or TPOT limit"):
        with_goodput(sweep(), None, {})
