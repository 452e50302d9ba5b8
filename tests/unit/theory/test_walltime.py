"""Values of the paper's tables, both boundaries, and the laws that hold everywhere."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.theory.walltime import (
    Verdict,
    best_gamma,
    break_even_alpha,
    break_even_c,
    no_gamma_wins,
    operations_factor,
    simulate_speedup,
    speedup,
    tau,
    verdict,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "theory"
alphas = st.floats(0, 1)
gammas = st.integers(1, 32)
costs = st.floats(0, 2)


def rows(name: str) -> list[dict[str, str]]:
    with (FIXTURES / name).open() as f:
        return list(csv.DictReader(f))


@pytest.mark.parametrize("row", rows("leviathan_table1.csv"))
def test_table_1_to_print_precision(row: dict[str, str]) -> None:
    a, g = float(row["alpha"]), int(row["gamma"])
    assert round(speedup(a, g, 0), 2) == float(row["paper_speed_x"])
    assert round(operations_factor(a, g, 0), 2) == float(row["paper_operations_x"])


@pytest.mark.parametrize("row", rows("leviathan_table2_table4.csv"))
def test_tables_2_and_4_within_007(row: dict[str, str]) -> None:
    s = speedup(float(row["alpha"]), int(row["gamma"]), float(row["c"]))
    assert abs(s - float(row["paper_predicted"])) <= 0.07
    assert s == pytest.approx(float(row["thm38_recomputed"]), abs=5e-5)


def test_all_twelve_rows_are_there() -> None:
    assert len(rows("leviathan_table2_table4.csv")) == 12
    assert len(rows("leviathan_table1.csv")) == 6


@pytest.mark.parametrize("row", rows("derived_optimal_gamma.csv"))
def test_best_gamma_table(row: dict[str, str]) -> None:
    a, c = float(row["alpha"]), float(row["c"])
    best = best_gamma(a, c, 200)
    assert best == int(row["optimal_gamma_int"])
    assert speedup(a, best, c) == pytest.approx(float(row["S_at_opt"]), abs=6e-5)


def test_break_even_c_value() -> None:
    assert break_even_c(0.75, 4) == pytest.approx(0.512695, abs=5e-7)


@pytest.mark.parametrize(("a", "g", "c"), [(0.7, 4, 0.1), (0.5, 3, 0.3), (0.9, 6, 0.05)])
def test_monte_carlo_agrees(a: float, g: int, c: float) -> None:
    s, se = simulate_speedup(a, g, c, 300_000, np.random.default_rng(11))
    assert abs(s - speedup(a, g, c)) < 0.02
    assert abs(s - speedup(a, g, c)) < 5 * se
    assert 0 < se < 0.01


def test_monte_carlo_variance_matches_closed_form() -> None:
    # Var of tokens a round at (0.7, 4) is 2.4218 (capped geometric).
    _, se = simulate_speedup(0.7, 4, 0.0, 300_000, np.random.default_rng(5))
    assert se * math.sqrt(300_000) == pytest.approx(math.sqrt(2.4218), rel=0.01)


@given(gammas, costs)
def test_both_boundaries_are_exact(g: int, c: float) -> None:
    assert tau(1.0, g) == g + 1
    assert tau(0.0, g) == 1.0
    assert speedup(0.0, g, c) == 1 / (g * c + 1)
    assert speedup(1.0, g, c) == (g + 1) / (g * c + 1)


@given(st.floats(0, 1), gammas)
def test_tau_equals_the_sum(a: float, g: int) -> None:
    assert tau(a, g) == pytest.approx(math.fsum(a**i for i in range(g + 1)), rel=1e-13)


@given(st.floats(1e-16, 1e-3), gammas)
def test_no_cancellation_near_one(gap: float, g: int) -> None:
    a = 1 - gap
    exact = math.fsum(a**i for i in range(g + 1))
    assert tau(a, g) == pytest.approx(exact, rel=1e-13)


@given(st.floats(0.01, 1), gammas)
def test_break_even_c_from_both_sides(a: float, g: int) -> None:
    c = break_even_c(a, g)
    assert speedup(a, g, c) == pytest.approx(1, rel=1e-12)
    assert speedup(a, g, c * 0.99) > 1 > speedup(a, g, c * 1.01)


@given(gammas, st.floats(0, 1))
def test_break_even_alpha_undoes_break_even_c(g: int, c: float) -> None:
    a = break_even_alpha(g, c)
    assert 0 <= a <= 1
    assert break_even_c(a, g) == pytest.approx(c, abs=1e-12)


def test_no_alpha_breaks_even_above_c_one() -> None:
    assert math.isnan(break_even_alpha(4, 1.01))
    assert break_even_alpha(4, 1.0) == 1.0
    assert break_even_alpha(4, 0.0) == 0.0


@given(st.floats(0.01, 1), gammas, st.floats(0, 1), st.floats(0.001, 1))
def test_speedup_falls_strictly_with_c(a: float, g: int, c: float, more: float) -> None:
    assert speedup(a, g, c + more) < speedup(a, g, c)


@given(alphas, gammas, costs)
def test_corollary_3_9(a: float, g: int, c: float) -> None:
    if no_gamma_wins(a, c):
        assert speedup(a, g, c) <= 1 + 1e-12
    else:
        assert speedup(a, 1, c) == pytest.approx((1 + a) / (1 + c), rel=1e-12)
        assert speedup(a, best_gamma(a, c), c) >= (1 + a) / (1 + c) - 1e-12


@given(alphas, costs)
def test_best_gamma_is_the_argmax(a: float, c: float) -> None:
    s = [speedup(a, g, c) for g in range(1, 17)]
    assert s[best_gamma(a, c, 16) - 1] == max(s)


def test_ngram_row_of_the_paper() -> None:
    assert speedup(0.2, 3, 0) == pytest.approx(1.248, abs=5e-4)


@pytest.mark.parametrize(
    ("a", "g", "c", "s"),
    [(1, 4, 0.1, 3.571), (0, 5, 0.1, 0.667), (0.8, 4, 0, 3.362), (0.44, 5, 0.11, 1.144)],
)
def test_reported_edges(a: float, g: int, c: float, s: float) -> None:
    # ggml-org/llama.cpp#3649, dilab-zju/self-speculative-decoding#22
    assert speedup(a, g, c) == pytest.approx(s, abs=5e-4)


def test_arrays_broadcast() -> None:
    s = speedup(np.array([[0.5], [0.9]]), np.array([1, 2, 3]), 0.1)
    assert s.shape == (2, 3)
    assert s[1, 2] == pytest.approx(speedup(0.9, 3, 0.1))
    assert best_gamma(np.array([0.5, 0.9]), 0.05).tolist() == [3, 13]
    assert isinstance(speedup(0.5, 2, 0.1), float)


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        (1 / 1.3 - 1e-9, Verdict.REJECT),
        (1 / 1.3 + 1e-9, Verdict.UNDECIDED),
        (1 / 0.68 - 1e-9, Verdict.UNDECIDED),
        (1 / 0.68 + 1e-9, Verdict.CANDIDATE),
    ],
)
def test_verdict_thresholds(s: float, expected: Verdict) -> None:
    assert verdict(s) is expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: speedup(80, 4, 0.1), "alpha = 80.*80 % meant"),
        (lambda: speedup(-0.1, 4, 0.1), "alpha = -0.1"),
        (lambda: speedup(101, 4, 0.1), "alpha = 101: between 0 and 1 is allowed$"),
        (lambda: tau(0.5, 0), "gamma = 0: .*at least 1; no drafting is S = 1"),
        (lambda: tau(0.5, 2.5), "gamma = 2.5"),
        (lambda: speedup(0.5, 2, -0.1), "c = -0.1"),
        (lambda: operations_factor(0.5, 2, -1), "c_hat = -1"),
        (lambda: tau(float("nan"), 2), "alpha: a finite number"),
        (lambda: tau("many", 2), "alpha = 'many'"),
        (lambda: simulate_speedup(0.5, 2, 0.1, 1, np.random.default_rng(0)), "rounds = 1"),
    ],
)
def test_bad_input_names_the_argument(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]
