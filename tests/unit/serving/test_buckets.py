"""Latency histograms: what their buckets decide, and what they leave open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.serving.buckets import Histogram, histogram

H = Histogram(20, 1.0, (0.01, 0.025, 0.05), (4, 10, 16))


def test_the_mean_is_exact_and_a_quantile_lies_between_edges() -> None:
    assert H.mean_ms == 50
    assert H.quantile_ms(0.2) == (0.0, 10.0)
    assert H.quantile_ms(0.5) == (10.0, 25.0)
    assert H.quantile_ms(0.51) == (25.0, 50.0)
    assert H.quantile_ms(0.9) == (50.0, None)


@pytest.mark.parametrize("share", [0, 1.1, -1])
def test_a_quantile_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="quantile"):
        H.quantile_ms(share)


@pytest.mark.parametrize(
    ("limit_ms", "within", "around"),
    [
        (25, (10, 10), (25, 25)),
        (12, (4, 10), (10, 25)),
        (5, (0, 4), (0, 10)),
        (80, (16, 20), (50, None)),
    ],
)
def test_a_limit_is_decided_on_an_edge_alone(
    limit_ms: float, within: tuple[float, float], around: tuple[float, float | None]
) -> None:
    assert H.within(limit_ms) == within
    assert H.around_ms(limit_ms) == around


def test_no_samples_and_no_buckets() -> None:
    empty, bare = Histogram(0, 0.0, (0.01,), (0,)), Histogram(4, 0.2)
    assert (empty.mean_ms, empty.quantile_ms(0.5)) == (None, None)
    assert (bare.mean_ms, bare.quantile_ms(0.5)) == (50, None)
    assert bare.within(10) == (0.0, 4)


def test_only_edges_of_both_are_kept() -> None:
    other = Histogram(5, 0.5, (0.01, 0.05, 0.1), (1, 2, 5))
    assert H.plus(other) == Histogram(25, 1.5, (0.01, 0.05), (5, 18))


def test_buckets_that_contradict_leave_the_mean() -> None:
    assert histogram(4, 1.0, [(0.1, 5)]) == Histogram(4, 1.0)
    assert histogram(4, 1.0, [(0.2, 3), (0.1, 1)]) == Histogram(4, 1.0, (0.1, 0.2), (1, 3))
    with pytest.raises(InputError):
        Histogram(4, 1.0, (0.1,), (5,))
    with pytest.raises(InputError):
        Histogram(4, 1.0, (0.2, 0.1), (1, 2))


@given(st.lists(st.floats(0.0001, 2.0), min_size=1, max_size=60), st.floats(0.01, 1.0))
def test_the_true_quantile_lies_between_the_edges(samples: list[float], share: float) -> None:
    edges = (0.001, 0.01, 0.1, 0.5, 1.0)
    rows = [(e, float(sum(s <= e for s in samples))) for e in edges]
    found = histogram(len(samples), sum(samples), rows).quantile_ms(share)
    assert found is not None
    at = next(n for n in range(1, len(samples) + 1) if n >= share * len(samples))
    true_ms = sorted(samples)[at - 1] * 1e3
    assert found[0] <= true_ms * (1 + 1e-9)
    assert found[1] is None or true_ms <= found[1] * (1 + 1e-9)
