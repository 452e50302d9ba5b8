"""Whether the reported percentiles decide an objective."""

import pytest

from lib.evidence.goodput import meets
from lib.run import Slo
from tests.unit.evidence.builders import off


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
