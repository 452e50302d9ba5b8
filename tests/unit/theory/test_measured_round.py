"""The arithmetic of a measured round, on the numbers that people reported."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.theory.measured_round import (
    VERIFY_IS_NOT_FREE,
    break_even,
    fit,
    highest_speedup,
    limited_by_gamma,
    measured_speedup,
    most_speedup,
    round_cost,
    rounds_of,
    share_of_acceptance,
    verify_cost,
    verify_curve,
)
from lib.theory.walltime import alpha_of_tau, speedup, tau

ROOT = Path(__file__).resolve().parents[3]
EAGLE1 = {2: (2.10, 4.37), 3: (2.29, 4.29), 4: (2.39, 4.48), 5: (2.43, 4.71), 6: (2.45, 4.94)}
EAGLE1[7] = (2.47, 5.20)
EAGLE3 = {2: (2.36, 4.32), 3: (2.79, 4.09), 4: (3.08, 4.05), 5: (3.32, 4.13), 6: (3.46, 4.20)}
EAGLE3[7] = (3.54, 4.29)
PLAIN_MS = 7.07
L4 = {1: (1.8, 1.09), 2: (2.44, 1.18), 4: (3.36, 1.14), 6: (3.82, 1.01), 8: (4.12, 0.90)}


@pytest.mark.parametrize(
    ("sweep", "c", "v", "best", "s"),
    [(EAGLE1, 0.105, 1.087, 3, 1.648), (EAGLE3, 0.144, 1.181, 4, 1.746)],
)
def test_c10_fit_of_a_gamma_sweep(
    sweep: dict[int, tuple[float, float]], c: float, v: float, best: int, s: float
) -> None:
    gammas = list(sweep)
    taus = [t for t, _ in sweep.values()]
    measured = [PLAIN_MS / ms for _, ms in sweep.values()]
    line = fit(gammas, [round_cost(t, m) for t, m in zip(taus, measured, strict=True)])
    assert line.c == pytest.approx(c, abs=5e-4)
    assert line.v == pytest.approx(v, abs=5e-4)
    assert line.points == 6
    assert line.miss < 0.03
    fitted = measured_speedup(taus, gammas, line.c, line.v)
    assert gammas[int(np.argmax(fitted))] == best
    assert max(measured) == pytest.approx(s, abs=5e-4)
    assert gammas[int(np.argmax(measured))] == best
    for gamma, t, m in zip(gammas, taus, measured, strict=True):
        assert measured_speedup(t, gamma, line.c, line.v) == pytest.approx(m, rel=0.03)


def test_fit_on_l4() -> None:
    line = fit(list(L4), [round_cost(t, s) for t, s in L4.values()])
    assert (line.v, line.c) == (pytest.approx(1.241, abs=1e-3), pytest.approx(0.420, abs=1e-3))


def test_the_fits_equal_the_published_table() -> None:
    path = ROOT / ".." / "shared" / "published" / "vllm_issue20780_llama31_8b_bs1.csv"
    if not path.exists():
        pytest.skip("the published tables are not at hand")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        s = float(row["baseline_tpot_ms"]) / float(row["spec_tpot_ms"])
        found = round_cost(float(row["accept_length_tau"]), s)
        assert found == pytest.approx(float(row["implied_round_cost_in_target_steps"]), abs=6e-4)


@pytest.mark.parametrize(
    ("gamma", "length", "draft_ms", "verify_ms", "c", "v", "plain", "with_v"),
    [
        (1, 1.792, 7.69, 30.49, 0.275, 1.09, 1.405, 1.312),
        (7, 3.762, 39.03, 63.54, 0.199, 2.27, 1.570, 1.025),
        (7, 3.955, 40.27, 62.69, 0.206, 2.24, 1.620, 1.074),
    ],
)
def test_c02_verify_cost_missing_from_the_theorem(
    gamma: int,
    length: float,
    draft_ms: float,
    verify_ms: float,
    c: float,
    v: float,
    plain: float,
    with_v: float,
) -> None:
    step_ms = 27.95
    found_c, found_v = draft_ms / gamma / step_ms, verify_ms / step_ms
    assert (found_c, found_v) == (pytest.approx(c, abs=6e-4), pytest.approx(v, abs=5e-3))
    assert highest_speedup(length, gamma, found_c) == pytest.approx(plain, abs=6e-4)
    assert measured_speedup(length, gamma, found_c, found_v) == pytest.approx(with_v, abs=6e-4)
    assert (found_v > VERIFY_IS_NOT_FREE) == (gamma == 7)


def test_c19_unprofitable_at_any_acceptance() -> None:
    assert most_speedup(1, 0, 2.2) == pytest.approx(0.909, abs=5e-4)
    s = measured_speedup(1.9, 1, 0, 2.2)
    assert s == pytest.approx(0.864, abs=5e-4)
    assert 19.7 * s == pytest.approx(17.0, abs=0.05)
    assert break_even(1, 0, 2.2).alpha is None


def test_c20_verify_curve_from_a_batch_benchmark() -> None:
    rows = np.array([2, 3, 4, 6, 8])
    v = verify_curve(rows, [111.52, 145.78, 174.78, 221.85, 266.06], 169.98)
    assert v == pytest.approx([3.05, 3.50, 3.89, 4.60, 5.11], abs=5e-3)
    ceiling = most_speedup(rows - 1, 0, v)
    assert ceiling == pytest.approx([0.66, 0.86, 1.03, 1.31, 1.57], abs=5e-3)
    assert list(rows[ceiling > 1] - 1) == [3, 5, 7]


def test_c21_the_formula_was_right_and_the_inputs_were_not() -> None:
    assert speedup(0.44, 5, 0.11) == pytest.approx(1.144, abs=5e-4)
    length = 261 / rounds_of(261, 208)
    assert rounds_of(261, 208) == 53
    assert length == pytest.approx(4.92, abs=5e-3)
    assert alpha_of_tau(length, 5) == pytest.approx(0.92, abs=5e-3)
    c = 52.5 / 619.43
    assert c == pytest.approx(0.0848, abs=5e-5)
    v = verify_curve(5, 121.7, 52.5)
    assert v == pytest.approx(2.16, abs=5e-3)
    assert highest_speedup(length, 5, c) == pytest.approx(3.46, abs=5e-3)
    assert measured_speedup(length, 5, c, v) == pytest.approx(1.91, abs=5e-3)
    by_drafted = 1 + 208 / (260 / 5)
    assert by_drafted == pytest.approx(5.00)
    assert alpha_of_tau(by_drafted, 5) == pytest.approx(0.927, abs=5e-4)
    assert highest_speedup(by_drafted, 5, c) == pytest.approx(3.51, abs=5e-3)
    assert measured_speedup(by_drafted, 5, c, v) == pytest.approx(1.94, abs=5e-3)


def test_c22_a_change_of_depth_predicted_to_the_percent() -> None:
    alpha = alpha_of_tau(5.6087, 5)
    assert alpha == pytest.approx(0.973, abs=5e-4)
    deeper = tau(alpha, 7)
    assert deeper == pytest.approx(7.28, abs=5e-3)
    # A round of 3.08 ms and 1.365 ms a row, gamma + 1 rows: c and v in ms give tokens a ms.
    before, after = (
        1000 * measured_speedup(length, gamma, 1.365, 3.08 + 1.365)
        for length, gamma in ((5.6087, 5), (deeper, 7))
    )
    assert (before, after) == (pytest.approx(497.7, abs=0.1), pytest.approx(520.2, abs=0.4))
    assert after / before == pytest.approx(1.045, abs=1e-3)
    assert limited_by_gamma(5.6087, 5)
    assert not limited_by_gamma(3.54, 7)


def test_c42_break_even_acceptance() -> None:
    slow, fixed = (break_even(5, 0, ms / 281) for ms in (1699, 817))
    assert slow.tau == pytest.approx(6.046, abs=5e-4)
    assert (slow.rate, slow.alpha) == (pytest.approx(1.009, abs=5e-4), None)
    assert fixed.tau == pytest.approx(2.907, abs=5e-4)
    assert fixed.rate == pytest.approx(0.381, abs=5e-4)
    assert fixed.alpha == pytest.approx(0.695, abs=5e-4)


@pytest.mark.parametrize(("k", "length", "cost"), [(3, 3.56, 3.39), (1, 1.85, 1.76)])
def test_c43_high_acceptance_and_a_tiny_gain(k: int, length: float, cost: float) -> None:
    found = 1 + 0.852 * k
    assert found == pytest.approx(length, abs=5e-3)
    assert round_cost(found, 1.05) == pytest.approx(cost, abs=5e-3)


def test_c45_verify_cost_from_counters() -> None:
    rounds = rounds_of(371, 313)
    drafted = 912 / rounds
    length = 371 / rounds
    c = 10.30 / (1000 / 11)
    assert (rounds, drafted) == (58, pytest.approx(15.7, abs=0.05))
    assert length == pytest.approx(6.40, abs=5e-3)
    assert c == pytest.approx(0.113, abs=5e-4)
    assert length / (drafted * c + 1) == pytest.approx(2.30, abs=5e-3)
    assert highest_speedup(length, 16, c) == pytest.approx(2.27, abs=5e-3)
    measured = 10.78 / 11
    assert measured == pytest.approx(0.98, abs=5e-3)
    assert round_cost(length, measured) - drafted * c == pytest.approx(4.75, abs=5e-3)
    assert verify_cost(length, measured, 16, c) == pytest.approx(4.71, abs=0.02)


def test_c60_and_c65_a_round_and_its_tokens() -> None:
    assert measured_speedup(3.0, 1, 0, 3.2) == pytest.approx(0.94, abs=5e-3)
    assert round_cost(1.21, 1.10) == pytest.approx(1.1)
    assert round_cost(1.615, 0.85) == pytest.approx(1.9)


def test_c27_a_loss_is_mostly_acceptance() -> None:
    before, after = 200 / 68, 200 / 79
    share = share_of_acceptance(before, after, 69.23, 57.67)
    assert share == pytest.approx(0.82, abs=5e-3)
    change = round_cost(after, 57.67) / round_cost(before, 69.23) - 1
    assert change == pytest.approx(0.033, abs=5e-4)
    assert math.isnan(share_of_acceptance(2, 3, 1, 1))


def test_the_ceiling_is_the_theorem() -> None:
    assert highest_speedup(tau(0.7, 4), 4, 0.1) == pytest.approx(speedup(0.7, 4, 0.1))


lengths = st.floats(1, 12)
costs = st.floats(0, 1)


@given(tau=lengths, gamma=st.integers(1, 16), c=costs, v=st.floats(1, 8))
def test_speed_and_cost_are_each_others_inverse(tau: float, gamma: int, c: float, v: float) -> None:
    s = measured_speedup(tau, gamma, c, v)
    assert round_cost(tau, s) == pytest.approx(gamma * c + v)
    assert verify_cost(tau, s, gamma, c) == pytest.approx(v)
    assert s <= highest_speedup(tau, gamma, c) * (1 + 1e-12)


@given(alpha=st.floats(0, 1), gamma=st.integers(1, 32))
def test_alpha_of_tau_inverts_tau(alpha: float, gamma: int) -> None:
    found = alpha_of_tau(tau(alpha, gamma), gamma)
    assert tau(found, gamma) == pytest.approx(tau(alpha, gamma), rel=1e-9)


def test_alpha_of_tau_outside_is_nan() -> None:
    assert np.isnan(alpha_of_tau([0.9, 6.1], 5)).all()
    assert (alpha_of_tau(1, 3), alpha_of_tau(4, 3)) == (0, 1)


@given(c=costs, v=st.floats(0.5, 5), gammas=st.lists(st.integers(1, 12), min_size=2, unique=True))
def test_a_line_is_found_again(c: float, v: float, gammas: list[int]) -> None:
    line = fit(gammas, [v + c * g for g in gammas])
    assert (line.c, line.v) == (pytest.approx(c, abs=1e-9), pytest.approx(v, abs=1e-8))
    assert line.miss < 1e-9


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: round_cost(0, 1), "tau"),
        (lambda: round_cost(2, -1), "speedup"),
        (lambda: measured_speedup(2, 0, 0.1, 1), "gamma"),
        (lambda: measured_speedup(2, 3, 0.1, 0), "v = 0"),
        (lambda: verify_curve(0, 100, 50), "rows"),
        (lambda: rounds_of(10, 10), "accepted"),
        (lambda: fit([3], [1.2]), "two different gamma"),
        (lambda: fit([3, 3], [1.2, 1.3]), "two different gamma"),
    ],
)
def test_outside_the_range_names_the_argument(call: object, name: str) -> None:
    with pytest.raises(InputError, match=name):
        call()  # type: ignore[operator]
