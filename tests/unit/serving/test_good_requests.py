"""Good requests of a window, bounded by the buckets of its histograms."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.run import Slo
from lib.serving.buckets import Histogram, histogram
from lib.serving.good_requests import goodput
from lib.serving.metrics import Counters, Gauges
from lib.serving.windows import Window

TTFT_EDGES, TPOT_EDGES = (0.1, 0.25, 0.5), (0.01, 0.025, 0.05)


def window(
    ttft: Histogram | None, tpot: Histogram | None, running: float | None = 0, engine: str = "vLLM"
) -> Window:
    counters = Counters(completed=10, ttft=ttft, tpot=tpot)
    return Window("", engine, 0.0, 5.0, counters, Gauges(), running)


def test_limits_on_edges_with_nothing_running_before() -> None:
    found = goodput(
        window(Histogram(10, 1, TTFT_EDGES, (6, 9, 10)), Histogram(10, 1, TPOT_EDGES, (2, 8, 10))),
        Slo(ttft_ms=500, tpot_ms=25),
    )
    assert found is not None
    assert (found.low, found.high, found.decided, found.rps) == (8, 8, True, (1.6, 1.6))
    assert found.undecided == ()


def test_two_latencies_bound_how_many_meet_both() -> None:
    w = window(Histogram(10, 1, TTFT_EDGES, (6, 9, 10)), Histogram(10, 1, TPOT_EDGES, (2, 8, 10)))
    found = goodput(w, Slo(ttft_ms=250, tpot_ms=25))
    assert found is not None
    assert (found.low, found.high) == (7, 8)
    assert "counted apart" in found.undecided[0]


def test_a_limit_between_edges_is_undecided() -> None:
    w = window(None, Histogram(10, 1, TPOT_EDGES, (2, 8, 10)))
    found = goodput(w, Slo(tpot_ms=12))
    assert found is not None
    assert (found.low, found.high, found.decided) == (2, 8, False)
    assert found.undecided == ("TPOT ≤ 12 ms lies between 10 and 25 ms, where the server counts",)


def test_requests_that_ran_before_may_have_been_late() -> None:
    w = window(Histogram(10, 1, TTFT_EDGES, (6, 9, 10)), None, running=3)
    found = goodput(w, Slo(ttft_ms=250))
    assert found is not None
    assert (found.low, found.high) == (6, 10)
    assert "3 requests ran when the window began" in found.undecided[0]
    unknown = goodput(replace(w, running_before=None), Slo(ttft_ms=250))
    assert unknown is not None
    assert (unknown.low, unknown.high) == (0, 10)


def test_a_latency_by_token_says_nothing_of_requests() -> None:
    w = window(None, Histogram(500, 1, TPOT_EDGES, (2, 8, 400)), engine="SGLang")
    found = goodput(w, Slo(tpot_ms=25))
    assert found is not None
    assert (found.low, found.high) == (0, 10)
    assert found.undecided == ("TPOT: SGLang counts none by request",)


def test_no_request_is_no_goodput() -> None:
    w = window(None, None)
    assert goodput(replace(w, counters=Counters(completed=0)), Slo(tpot_ms=25)) is None


request = st.tuples(st.floats(0.01, 1), st.floats(0.001, 0.1), st.booleans(), st.booleans())


@given(st.lists(request, max_size=40), st.floats(50, 900), st.floats(5, 90))
def test_the_truth_lies_within(
    requests: list[tuple[float, float, bool, bool]], ttft_ms: float, tpot_ms: float
) -> None:
    """Each request: TTFT, TPOT, whether it began before the window, whether it ended in it."""
    begun = [ttft for ttft, _, before, _ in requests if not before]
    ended = [(a, b) for a, b, _, ends in requests if ends]

    def counted(samples: list[float], edges: tuple[float, ...]) -> Histogram:
        rows = [(e, float(sum(s <= e for s in samples))) for e in edges]
        return histogram(len(samples), sum(samples), rows)

    w = window(
        counted(begun, TTFT_EDGES),
        counted([b for _, b in ended], TPOT_EDGES),
        sum(before for _, _, before, _ in requests),
    )
    found = goodput(w, Slo(ttft_ms=ttft_ms, tpot_ms=tpot_ms))
    good = sum(a <= ttft_ms / 1e3 and b <= tpot_ms / 1e3 for a, b in ended)
    if not ended:
        assert found is None
        return
    assert found is not None
    assert found.low <= good <= found.high <= len(ended)


def test_percentile_is_of_no_matter_here() -> None:
    w = window(None, Histogram(10, 1, TPOT_EDGES, (2, 8, 10)))
    one, two = (goodput(w, Slo(tpot_ms=25, percentile=p)) for p in ("p50", "p99"))
    assert one == two
    assert one is not None
    assert one.finished == pytest.approx(10)
