"""c, v and the critical batch from samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.probe import ratios
from lib.probe.result import Interval
from lib.probe.timing import Samples


def samples(seed: int, *, rounds: int = 50, noise: float = 0.02, **verify: float) -> Samples:
    """Times of a draft step of 1 ms and a target step of 8 ms, with noise of their own and a
    disturbance that a round shares."""
    rng = np.random.default_rng(seed)
    shared = rng.lognormal(0, 0.05, rounds)

    def times(ms: float) -> tuple[float, ...]:
        return tuple(ms * shared * rng.lognormal(0, noise, rounds))

    return Samples(
        draft_ms=times(1.0),
        target_ms=times(8.0),
        verify_ms={int(n.removeprefix("n")): times(8.0 * v) for n, v in verify.items()},
    )


def test_the_interval_covers() -> None:
    found = [ratios.figures(samples(seed, n2=1.05)) for seed in range(200)]
    for truth, intervals in (
        (0.125, [f.c for f in found]),
        (1.05, [Interval(f.v[0].value, f.v[0].low, f.v[0].high) for f in found]),
    ):
        inside = sum((i.low or 0) <= truth <= (i.high or 0) for i in intervals)
        assert 0.90 <= inside / len(intervals) <= 0.99


def test_pairs_cancel_what_a_round_shares() -> None:
    found = ratios.figures(samples(1))
    assert found.spread_target > 0.05
    assert found.unstable
    assert found.c.low is not None
    assert found.c.high is not None
    assert found.c.high - found.c.low < 0.02 * found.c.value


def test_the_same_samples_give_the_same_interval() -> None:
    assert ratios.figures(samples(3, n2=1.2)) == ratios.figures(samples(3, n2=1.2))


def test_many_samples_are_drawn_in_parts() -> None:
    found = ratios.figures(samples(1, rounds=5000))
    assert found.c.value == pytest.approx(0.125, rel=0.005)
    assert found.c.low is not None
    assert found.c.low < found.c.value


def test_spread() -> None:
    assert ratios.spread([1.0, 1.0, 1.0]) == 0
    assert ratios.spread([0.9, 1.0, 1.1, 1.2]) == pytest.approx(0.15 / 1.05)
    assert not ratios.figures(Samples((1.0,) * 50, (2.0,) * 50, {2: (2.0,) * 50})).unstable


def test_a_crossing_is_linear_in_log_tokens() -> None:
    assert ratios.crossing({2: 1.0, 4: 1.0, 8: 1.2}) == pytest.approx(math.sqrt(32))
    assert ratios.crossing({2: 1.2}) == pytest.approx(math.sqrt(2))
    assert ratios.crossing({2: 1.0, 4: 1.1}) == math.inf
    assert ratios.crossing({}) == math.inf


@given(st.floats(1.5, 6.0), st.floats(0.01, 0.3))
def test_a_crossing_of_a_line_in_log_tokens_is_found_exactly(start: float, slope: float) -> None:
    # v = 1 up to 2^start, from there on linear in log2 n; start lies on a measured point.
    knee = round(start)
    v = {2**k: 1 + max(0.0, slope * (k - knee)) for k in range(1, 31)}
    expected = 2 ** (knee + 0.1 / slope)
    if expected < 2**30:
        assert ratios.crossing(v) == pytest.approx(expected, rel=1e-9)


def test_the_critical_batch_counts_tokens_of_all_requests() -> None:
    steep = samples(5, noise=0.002, n2=1.0, n4=1.0, n8=1.2)
    one, four = (ratios.figures(steep, batch).critical for batch in (1, 4))
    assert one.tokens == pytest.approx(math.sqrt(32), rel=0.03)
    assert four.tokens == pytest.approx(4 * math.sqrt(32), rel=0.03)
    assert one.low is not None
    assert one.high is not None
    assert one.low <= one.tokens <= one.high


def test_a_critical_batch_that_was_not_reached_is_none() -> None:
    flat = ratios.figures(samples(6, n2=1.0, n4=1.01))
    assert flat.critical == ratios.Critical()
    near = ratios.figures(samples(7, noise=0.05, n2=1.0, n4=1.104))
    assert near.critical.low is not None
    assert near.critical.high is None
