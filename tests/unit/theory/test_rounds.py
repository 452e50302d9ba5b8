"""Rounds of an answer: checked values, the laws that hold everywhere, and a plain recount."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.theory.rounds import (
    MAX_TOKENS,
    DecodeTime,
    RoundLaw,
    Rounds,
    between_requests_sd,
    more_than,
    quantile_curve,
    rounds_sd,
    second_moment,
    variance,
)
from lib.theory.walltime import speedup, tau

alphas = st.floats(0, 1)
gammas = st.integers(1, 16)
lengths = st.integers(1, 400)
LAW = RoundLaw.of_alpha(0.7, 4)


def recount(law: RoundLaw, tokens: int) -> np.ndarray:
    """P(M > n), round by round, nothing left out."""
    sums, more = np.ones(1), [1.0]
    for _ in range(tokens):
        sums = np.convolve(sums, np.concatenate(([0.0], law.chances)))[:tokens]
        more.append(float(sums.sum()))
    return np.array(more)


@pytest.mark.parametrize(
    ("alpha", "gamma", "expected"), [(0.7, 4, 2.4218), (0.8, 3, 1.4697), (0.3, 7, 0.61084)]
)
def test_variance_of_the_tokens_of_a_round(alpha: float, gamma: int, expected: float) -> None:
    assert variance(alpha, gamma) == pytest.approx(expected, abs=5e-5)
    closed = (
        alpha - (2 * gamma + 1) * alpha ** (gamma + 1) * (1 - alpha) - alpha ** (2 * gamma + 2)
    ) / (1 - alpha) ** 2
    assert variance(alpha, gamma) == pytest.approx(closed, rel=1e-9)
    assert RoundLaw.of_alpha(alpha, gamma).variance == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize(("tokens", "expected"), [(50, 18.5075), (1000, 361.084)])
def test_expected_rounds(tokens: int, expected: float) -> None:
    assert Rounds(LAW, tokens).mean == pytest.approx(expected, abs=5e-4)
    assert (tokens + LAW.overshoot) / LAW.tau == pytest.approx(expected, abs=5e-4)


def test_offset_and_loss_at_the_end() -> None:
    assert Rounds(LAW, 1000).mean - 1000 / LAW.tau == pytest.approx(0.4772, abs=5e-5)
    assert LAW.overshoot == pytest.approx(1.32, abs=5e-3)
    assert Rounds(LAW, 1000).lost_tokens == pytest.approx(LAW.overshoot, abs=1e-6)
    assert Rounds(LAW, 10).effective_tau < Rounds(LAW, 100).effective_tau < LAW.tau


def test_the_spread_of_long_answers() -> None:
    assert Rounds(LAW, 1000).sd == pytest.approx(rounds_sd(LAW, 1000), rel=1e-3)
    assert between_requests_sd(LAW, 1000, 0.36) == pytest.approx(1000 * 0.36 / LAW.tau**2)


def test_per_position_rates_of_an_ngram_drafter() -> None:
    positions = (0.26, 0.23, 0.21, 0.20, 0.19, 0.18, 0.17)
    law = RoundLaw(positions)
    assert law.tau == pytest.approx(1 + sum(positions))
    alike = RoundLaw.of_alpha(0.635, 7)
    assert law.variance > 1.5 * alike.variance
    rounds = Rounds(law, 500)
    assert rounds.mean == pytest.approx((500 + law.overshoot) / law.tau, rel=1e-3)
    assert rounds.mean * law.tau == pytest.approx(500 + rounds.lost_tokens)


def test_decode_time_with_and_without() -> None:
    time = DecodeTime(Rounds(LAW, 1000), step_ms=30.0, c=0.1)
    assert time.round_ms == pytest.approx(42.0)
    assert time.plain_ms == pytest.approx(30_000)
    assert time.mean_ms == pytest.approx(361.084 * 42, abs=0.05)
    p50, p95, p99 = (time.percentile_ms(q) for q in (0.5, 0.95, 0.99))
    assert p50 < p95 < p99 < time.plain_ms
    assert p50 == 361 * time.round_ms
    assert time.plain_ms / time.mean_ms == pytest.approx(speedup(0.7, 4, 0.1), rel=2e-3)
    dear = DecodeTime(Rounds(LAW, 1000), step_ms=30.0, c=0.1, v=2.0)
    assert dear.mean_ms / time.mean_ms == pytest.approx(2.4 / 1.4)


@settings(deadline=None)
@given(alpha=alphas, gamma=gammas)
def test_moments_agree_with_the_law(alpha: float, gamma: int) -> None:
    law = RoundLaw.of_alpha(alpha, gamma)
    tokens = np.arange(1, gamma + 2)
    assert law.chances.sum() == pytest.approx(1)
    assert law.chances @ tokens == pytest.approx(tau(alpha, gamma)) == pytest.approx(law.tau)
    assert law.chances @ tokens**2 == pytest.approx(second_moment(alpha, gamma))
    assert law.second_moment == pytest.approx(second_moment(alpha, gamma))
    assert law.variance == pytest.approx(variance(alpha, gamma), abs=1e-9)


@settings(deadline=None)
@given(alpha=alphas, gamma=gammas, tokens=lengths)
def test_mass_sums_to_one_and_the_mean_is_walds(alpha: float, gamma: int, tokens: int) -> None:
    rounds = Rounds(RoundLaw.of_alpha(alpha, gamma), tokens)
    assert rounds.chances.sum() == pytest.approx(1)
    assert np.all(rounds.chances >= -1e-11)
    m = np.arange(1, len(rounds.chances) + 1)
    assert rounds.chances @ m == pytest.approx(rounds.mean)
    assert math.ceil(tokens / (gamma + 1)) <= rounds.quantile(1e-6)
    assert rounds.quantile(0.5) <= rounds.quantile(0.95) <= rounds.quantile(0.99) <= tokens
    assert -1e-9 <= rounds.lost_tokens <= gamma + 1e-9


@settings(deadline=None, max_examples=60)
@given(alpha=alphas, gamma=gammas, tokens=st.integers(1, 150))
def test_equal_to_a_plain_recount(alpha: float, gamma: int, tokens: int) -> None:
    law = RoundLaw.of_alpha(alpha, gamma)
    found, plain = more_than(law, tokens), recount(law, tokens)
    size = max(len(found), len(plain))
    padded = [np.pad(x, (0, size - len(x))) for x in (found, plain)]
    assert padded[0] == pytest.approx(padded[1], abs=1e-10)


@settings(deadline=None)
@given(low=alphas, high=alphas, gamma=gammas, tokens=lengths)
def test_more_acceptance_never_takes_more_rounds(
    low: float, high: float, gamma: int, tokens: int
) -> None:
    low, high = sorted((low, high))
    worse, better = (Rounds(RoundLaw.of_alpha(a, gamma), tokens) for a in (low, high))
    assert better.mean <= worse.mean + 1e-8
    for q in (0.5, 0.95, 0.99):
        assert better.quantile(q) <= worse.quantile(q)


@settings(deadline=None, max_examples=40)
@given(alpha=st.floats(0, 0.999), tokens=st.integers(1, 60))
def test_unbounded_drafts_are_one_plus_a_binomial(alpha: float, tokens: int) -> None:
    chances = Rounds(RoundLaw.of_alpha(alpha, max(tokens - 1, 1)), tokens).chances
    n = tokens - 1
    for m, found in enumerate(chances, start=1):
        k = m - 1
        binomial = math.comb(n, k) * (1 - alpha) ** k * alpha ** (n - k) if k <= n else 0.0
        assert found == pytest.approx(binomial, abs=1e-10)


@pytest.mark.parametrize(
    ("alpha", "gamma"), [(0.7, 4), (0.1, 4), (0.01, 16), (0.95, 16), (0.5, 16), (0.9, 1), (1, 16)]
)
@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_the_curve_is_within_a_round(alpha: float, gamma: int, q: float) -> None:
    law = RoundLaw.of_alpha(alpha, gamma)
    tokens = (1, 2, 3, 5, 8, 13, 20, 32, 64, 128, 512, 1024, 4096)
    exact = [Rounds(law, n).quantile(q) for n in tokens]
    assert np.abs(quantile_curve(law, tokens, q) - exact).max() < 1


def test_a_second_question_costs_nothing_and_cannot_be_spoilt() -> None:
    assert more_than(LAW, 64) is more_than(RoundLaw.of_alpha(0.7, 4), 64)
    with pytest.raises(ValueError, match="read-only"):
        more_than(LAW, 64)[0] = 2


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Rounds(LAW, 0), "tokens"),
        (lambda: Rounds(LAW, MAX_TOKENS + 1), "32,768"),
        (lambda: Rounds(LAW, 2.5), "tokens"),  # type: ignore[arg-type]
        (lambda: Rounds(LAW, 10).quantile(95), "quantile"),
        (lambda: RoundLaw.of_alpha(80, 4), "80 % meant"),
        (lambda: RoundLaw(()), "at least one"),
        (lambda: RoundLaw((0.5, 0.6)), "position 2"),
        (lambda: RoundLaw((1.5,)), "position 1"),
        (lambda: DecodeTime(Rounds(LAW, 10), 0, 0.1), "step_ms"),
        (lambda: DecodeTime(Rounds(LAW, 10), 30, -0.1), "c = -0.1"),
        (lambda: DecodeTime(Rounds(LAW, 10), 30, 0.1, 0), "v = 0"),
        (lambda: between_requests_sd(LAW, 10, -1), "tau_sd"),
    ],
)
def test_outside_the_range_names_the_argument(call: object, name: str) -> None:
    with pytest.raises(InputError, match=name):
        call()  # type: ignore[operator]
