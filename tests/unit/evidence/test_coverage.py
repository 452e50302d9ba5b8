"""Intervals cover what they promise, by simulation with a known truth; the bench runs more."""

import math

import pytest

from bench.coverage import claimed, line_crossing, missed, true_crossing, true_multiplier


def slack(share: float, n: int) -> float:
    """Three standard errors of a share of n independent draws."""
    return 3 * math.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize(
    ("batch", "s"), [(1, 1.78), (16, 1.64), (64, 1.38), (128, 1.19), (256, 1.03), (512, 0.90)]
)
def test_the_model_of_the_truth(batch: float, s: float) -> None:
    assert true_multiplier(batch, 2.33, 3) == pytest.approx(s, abs=6e-3)


def test_the_model_crosses_where_it_should() -> None:
    assert true_crossing(2.33, 3) == pytest.approx(290.4, abs=0.5)
    assert 128 < true_crossing(2.57, 5) < 256
    assert 256 < line_crossing(2.33, 3) < 512
    assert true_multiplier(512, 2.33, 3, 4000) > 1.6


def test_intervals_cover_the_truth() -> None:
    sweeps = 150
    found = missed(sweeps, draws=1000, seed=5)
    points = sweeps * 20
    assert 0.03 - slack(0.03, points) <= found.m <= 0.07 + slack(0.07, points)
    assert found.lines <= 0.07 + slack(0.07, 2 * sweeps)
    assert found.curve <= 0.10 + slack(0.10, 2 * sweeps)


def test_a_verdict_on_equal_arms_rarely_claims() -> None:
    studies = 540
    assert claimed(studies, seed=5) <= 0.05 + slack(0.05, studies)
