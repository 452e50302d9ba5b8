"""alpha and tau from counts; values of published measurements and of the cases named."""

import csv
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulated_requests import simulate
from lib.errors import InputError
from lib.theory import acceptance as theory
from lib.theory import walltime
from lib.theory.acceptance import Method

PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "published"
BENCH = PUBLISHED / "specdecodebench_acceptance_llama31_8b.csv"
needs_published = pytest.mark.skipif(not BENCH.exists(), reason="no ../shared/published")

SURVIVAL = st.lists(st.floats(0.01, 1), min_size=1, max_size=8).map(
    lambda rates: tuple(np.cumprod(rates).tolist())
)
COUNTS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=2, max_size=12
).filter(lambda rows: sum(a for a, _ in rows) > 0 and sum(f for _, f in rows) > 0)


def bench_rows() -> list[dict[str, str]]:
    with BENCH.open(newline="") as file:
        return list(csv.DictReader(file))


def floats(text: str) -> tuple[float, ...]:
    return tuple(float(x) for x in text.split())


# Counts


def test_positions_of_the_worked_example() -> None:
    tested = theory.from_positions((477, 319, 195), 713)
    found = theory.alpha_alike(tested.accepted, tested.rejected)
    assert (tested.accepted, tested.rejected) == (991, 518)
    assert found.value == pytest.approx(0.6567, abs=5e-5)
    assert found.se == pytest.approx(0.0122, abs=5e-5)
    assert tested.tau == pytest.approx(2.3899, abs=5e-5)
    assert (tested.tau - 1) / 3 == pytest.approx(0.4633, abs=5e-5)
    assert found.method is Method.ALIKE
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_positions_of_the_second_example() -> None:
    tested = theory.from_positions((680, 461, 296), 1005)
    found = theory.alpha_alike(tested.accepted, tested.rejected)
    assert found.value == pytest.approx(0.6696, abs=5e-5)
    assert found.se == pytest.approx(0.0102, abs=5e-5)
    assert tested.tau == pytest.approx(2.4299, abs=5e-5)


def test_histogram_of_the_documentation() -> None:
    tested = theory.from_histogram([39, 1, 0, 3])
    assert tested.tau == pytest.approx(1.2326, abs=5e-5)
    assert tested.accepted == 10
    assert tested.accepted / (tested.rounds * 3) == pytest.approx(10 / 129)


def test_histogram_and_positions_agree() -> None:
    by_histogram = theory.from_histogram([236, 158, 124, 195])
    by_position = theory.from_positions((477, 319, 195), 713)
    assert by_histogram == by_position


def test_a_trimmed_histogram_needs_its_gamma() -> None:
    assert theory.from_histogram([30, 5], gamma=3).rejected == 35
    with pytest.raises(InputError, match="gamma"):
        theory.from_histogram([30, 5, 2], gamma=1)


@pytest.mark.parametrize("rows", [[], [4], [0, 0, 0]])
def test_an_empty_histogram_is_refused(rows: list[int]) -> None:
    with pytest.raises(InputError, match="histogram"):
        theory.from_histogram(rows)


@pytest.mark.parametrize(
    ("positions", "drafts"), [((5, 6), 10), ((11,), 10), ((), 10), ((1,), 0), ((-1,), 3)]
)
def test_impossible_positions_are_refused(positions: tuple[int, ...], drafts: int) -> None:
    with pytest.raises(InputError):
        theory.from_positions(positions, drafts)


@given(SURVIVAL)
def test_alpha_of_rates_is_alpha_of_counts(survival: tuple[float, ...]) -> None:
    accepted, rejected = sum(survival), 1 - survival[-1]
    value = theory.alpha_of_survival(survival)
    assert value == pytest.approx(accepted / (accepted + rejected))
    assert 0 <= value <= 1


def test_alpha_of_exactly_0_and_1_has_one_sided_intervals() -> None:
    none, every = theory.alpha_alike(0, 40), theory.alpha_alike(504, 0)
    assert (none.value, none.low) == (0, 0)
    assert (every.value, every.high) == (1, 1)
    assert none.high is not None
    assert 0 < none.high < 0.1
    assert every.low is not None
    assert every.low > 0.99
    with pytest.raises(InputError, match="no draft was tested"):
        theory.alpha_alike(0, 0)


# Intervals by request


@given(COUNTS)
def test_the_interval_by_request_holds_its_value(rows: list[tuple[int, int]]) -> None:
    found = theory.alpha_by_request([a for a, _ in rows], [f for _, f in rows])
    pooled = theory.alpha_alike(sum(a for a, _ in rows), sum(f for _, f in rows))
    assert found.value == pytest.approx(pooled.value)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1


def test_the_standard_error_by_request_is_that_of_the_residuals() -> None:
    accepted, rejected = [30, 50, 20], [20, 10, 30]
    found = theory.alpha_by_request(accepted, rejected)
    alpha = 100 / 160
    squares = sum((a - alpha * (a + f)) ** 2 for a, f in zip(accepted, rejected, strict=True))
    assert found.method is Method.REQUESTS
    assert found.se == pytest.approx((3 / 2 * squares) ** 0.5 / 160)


def test_one_request_is_pooled_and_says_so() -> None:
    assert theory.alpha_by_request([30], [20]).method is Method.ALIKE
    assert theory.alpha_by_request([30, 0], [20, 0]).method is Method.ALIKE
    assert theory.alpha_by_request([30, 20], [0, 0]).method is Method.ALIKE


def test_tau_by_request_stays_between_1_and_gamma_plus_1() -> None:
    found = theory.tau_by_request([4, 99], [43, 34], gamma=3)
    assert found.value == pytest.approx(1 + 103 / 77)
    assert found.low is not None
    assert found.high is not None
    assert 1 < found.low < found.value < found.high < 4
    free = theory.tau_by_request([40, 90, 60], [43, 50, 44])
    assert free.low is not None
    assert 1 < free.low < free.value
    with pytest.raises(InputError, match="no round"):
        theory.tau_by_request([], [])


@pytest.mark.parametrize("requests", [10, 20, 40, 100])
def test_intervals_cover_what_they_promise(requests: int) -> None:
    rng = np.random.default_rng(20261201 + requests)
    differ = simulate(requests, logit_sd=0.6, rounds=25, draws=6000, rng=rng)
    alike = simulate(requests, logit_sd=0.0, rounds=25, draws=6000, rng=rng)
    assert 0.93 <= differ.by_request <= 0.97
    assert differ.alike < 0.8
    assert 0.93 <= alike.alike <= 0.97
    assert 0.93 <= alike.by_request <= 0.97


# tau back to alpha


@given(st.floats(0, 1), st.integers(1, 20))
def test_inverting_tau_gives_alpha_back(alpha: float, gamma: int) -> None:
    back = theory.alpha_from_tau(walltime.tau(alpha, gamma), gamma)
    assert back == pytest.approx(alpha, abs=1e-7)


def test_accepted_over_drafted_is_converted() -> None:
    assert theory.alpha_from_tau(1 + 0.2522 * 7, 7) == pytest.approx(0.6499, abs=5e-5)
    assert theory.alpha_from_tau(1 + 0.252 * 7, 7) == pytest.approx(0.649, abs=1e-3)


@pytest.mark.parametrize(("tau", "said"), [(0.92, "bonus token"), (4.2, "4 tokens"), (-1, "1 to")])
def test_an_impossible_tau_is_refused(tau: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        theory.alpha_from_tau(tau, 3)


def test_a_draft_length_is_fixed_within_half_a_percent() -> None:
    assert theory.fixed_gamma(387, 129) == 3
    assert theory.fixed_gamma(1004, 200) == 5
    assert theory.fixed_gamma(1010, 200) is None
    assert theory.fixed_gamma(912, 58) is None
    assert theory.fixed_gamma(0, 0) is None


# By position


@given(SURVIVAL)
def test_conditional_rates_multiply_back(survival: tuple[float, ...]) -> None:
    rates = theory.conditional(survival)
    assert np.cumprod(rates) == pytest.approx(survival[: len(rates)])
    assert theory.tau_from_survival(survival)[-1] == pytest.approx(1 + sum(survival))


def test_c48_positions_give_tau() -> None:
    """C48."""
    code = (0.837, 0.685, 0.562, 0.460, 0.368, 0.283, 0.217, 0.161)
    log = (0.600, 0.385, 0.215, 0.108, 0.062, *(0.0,) * 10)
    assert theory.tau_from_survival(code)[-1] == pytest.approx(4.573)
    assert theory.tau_from_survival(log)[-1] == pytest.approx(2.37)
    assert sum(log) / 15 == pytest.approx(0.091, abs=5e-4)
    assert theory.tau_from_survival(log)[4] == theory.tau_from_survival(log)[-1]


@needs_published
def test_n_gram_rows_are_decided_by_the_first_position_and_eagle_rows_are_not() -> None:
    ratios: dict[str, list[float]] = {"acc_ngram": [], "acc_eagle": []}
    for row in bench_rows():
        ratio = theory.first_over_later(floats(row["cum_accept_by_pos"]))
        if ratio is not None:
            ratios[row["drafter"]].append(ratio)
            decides = theory.first_decides(floats(row["cum_accept_by_pos"]))
            assert decides is (row["drafter"] == "acc_ngram")
    assert max(ratios["acc_ngram"]) == pytest.approx(0.47, abs=5e-3)
    assert min(ratios["acc_eagle"]) == pytest.approx(0.85, abs=5e-3)


@needs_published
def test_alpha_of_the_published_rows() -> None:
    for row in bench_rows():
        survival = floats(row["cum_accept_by_pos"])
        stated = float(row["alpha_mle_truncgeom"])
        assert theory.alpha_of_survival(survival) == pytest.approx(stated, abs=2e-3)


@needs_published
def test_a_single_alpha_misleads_for_instructcoder() -> None:
    row = next(
        r
        for r in bench_rows()
        if (r["dataset"], r["drafter"], r["gamma"]) == ("instructcoder", "acc_eagle", "7")
    )
    taus = theory.tau_from_survival(floats(row["cum_accept_by_pos"]))
    errors = theory.single_alpha_errors(taus, range(1, 8), float(row["alpha_mle_truncgeom"]))
    assert np.abs(errors).max() == pytest.approx(0.072, abs=1e-3)
    assert np.abs(errors).max() > theory.MISLEADS


@needs_published
def test_every_published_vector_adds_up_to_its_length() -> None:
    with (PUBLISHED / "per_position.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    off = [
        abs(1 + sum(floats(r["values"])) - float(r["mean_acceptance_length_reported"]))
        for r in rows
        if r["mean_acceptance_length_reported"]
    ]
    assert len(off) == 70
    assert sum(o > 0.03 for o in off) == 1  # the row whose source rounds to 2.8


def test_the_best_single_alpha_is_the_minimax_one() -> None:
    gammas = np.arange(1, 9)
    lengths = walltime.tau(0.7, gammas)
    assert theory.best_single_alpha(lengths, gammas) == pytest.approx(0.7, abs=1e-5)


def test_copies_of_requests_narrow_no_interval() -> None:
    """Three repeats of the same prompts say as much as one."""
    accepted, rejected, rounds = [40, 90, 60, 20], [30, 25, 28, 33], [43, 50, 44, 40]
    once = theory.alpha_by_request(accepted, rejected)
    thrice = theory.alpha_by_request(accepted * 3, rejected * 3, copies=3)
    assert astuple(thrice) == pytest.approx(astuple(once))
    assert theory.alpha_by_request(accepted * 3, rejected * 3).high < once.high
    tau = theory.tau_by_request(accepted * 3, rounds * 3, gamma=3, copies=3)
    assert tau.se == pytest.approx(theory.tau_by_request(accepted, rounds, gamma=3).se)
    assert theory.tau_by_request([4, 9, 5], [8, 9, 8], copies=3).method is Method.ALIKE


def test_alpha_inverted_has_the_ends_of_tau() -> None:
    """gamma = 2: tau = 1 + a + a^2, so a = 0.5, 0.4, 0.6 are tau = 1.75, 1.56, 1.96."""
    tau = theory.Ratio(1.75, Method.REQUESTS, 0.1, 1.56, 1.96)
    found = theory.alpha_inverted(tau, 2)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.4, 0.6))
    assert found.method is Method.INVERTED
    assert theory.alpha_inverted(theory.Ratio(1.75, Method.ALIKE), 2).method is Method.LENGTH
