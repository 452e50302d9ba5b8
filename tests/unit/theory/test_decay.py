"""Lengths beyond what was measured, the best gamma, its regret and the margin."""

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.acceptance_presets import presets
from lib.theory import decay, walltime
from lib.theory.acceptance import alpha_from_tau, best_single_alpha, single_alpha_errors
from lib.theory.acceptance import tau_from_survival as taus
from lib.theory.decay import Decay

SPECFORGE = (
    Path(__file__).resolve().parents[4] / "shared" / "published" / "specforge_specbundle.csv"
)
CODE = (0.837, 0.685, 0.562, 0.460, 0.368, 0.283, 0.217, 0.161)
QA = (0.630, 0.389, 0.243, 0.158, 0.097, 0.064, 0.040, 0.025)


def golden() -> list[Mapping[int, float]]:
    return [p.lengths for p in presets() if p.lengths]


def by_gamma(survival: tuple[float, ...]) -> dict[int, float]:
    return dict(enumerate(taus(survival).tolist(), 1))


@given(st.floats(0.1, 0.99), st.floats(0.6, 1.0))
def test_the_fit_finds_the_decay_that_made_the_lengths(a0: float, d: float) -> None:
    lengths = Decay(a0, d).lengths(8)
    found = decay.fit(dict(enumerate(lengths.tolist(), 1)))
    assert found is not None
    assert found.lengths(8) == pytest.approx(lengths, rel=2e-3)


def test_one_length_fits_no_decay() -> None:
    assert decay.fit({3: 2.4}) is None


def test_alpha_read_at_k_1_overstates_k_8() -> None:
    over = [float(walltime.tau(v[1] - 1, 8)) / v[8] - 1 for v in golden()]
    assert len(over) == 14
    assert min(over) == pytest.approx(0.09, abs=5e-3)
    assert max(over) == pytest.approx(1.12, abs=5e-3)
    assert np.median(over) == pytest.approx(0.27, abs=5e-3)


def test_two_parameters_fit_the_golden_curves_better_than_one() -> None:
    one, two = [], []
    for lengths in golden():
        gammas, values = list(lengths), list(lengths.values())
        alpha = best_single_alpha(values, gammas)
        one.append(np.abs(single_alpha_errors(values, gammas, alpha)).max())
        found = decay.fit(lengths)
        assert found is not None
        two.append(np.abs(found.lengths(8) / np.array(values) - 1).max())
    assert np.mean(one) == pytest.approx(0.054, abs=5e-4)
    assert np.mean(two) == pytest.approx(0.024, abs=5e-4)


@pytest.mark.parametrize(
    ("survival", "best"), [(CODE, (7, 6, 4)), (QA, (4, 3, 2))], ids=["code", "qa"]
)
def test_c48_best_gamma_by_cost(survival: tuple[float, ...], best: tuple[int, ...]) -> None:
    """C48."""
    known = decay.complete(by_gamma(survival), 8, None)
    found = [decay.best_gamma(known, c) for c in (0.05, 0.1, 0.2)]
    assert tuple(b.gamma for b in found) == best
    assert all(b.measured for b in found)


def test_c48_positions_without_acceptance_add_nothing() -> None:
    """C48."""
    log = (0.600, 0.385, 0.215, 0.108, 0.062, *(0.0,) * 10)
    for c in (0.001, 0.05, 0.2):
        assert decay.best_gamma(decay.complete(by_gamma(log), 15, None), c).gamma <= 5


def test_past_the_measured_lengths_the_curve_is_extrapolated_and_says_so() -> None:
    fitted = decay.fit(by_gamma(QA))
    curve = decay.complete(by_gamma(QA), 12, fitted)
    assert curve.measured == (True,) * 8 + (False,) * 4
    assert curve.tau[:8] == pytest.approx(taus(QA).tolist())
    assert all(np.diff(curve.tau) >= 0)
    ended = decay.complete(by_gamma(QA), 12, None)
    assert len(ended.tau) == 8
    with pytest.raises(InputError):
        decay.complete({}, 8, None)


def test_rising_rates_are_not_extrapolated_upward() -> None:
    rising = Decay(0.6, 1.1)
    held = rising.lengths(12, 6)
    gains = np.diff(held)[5:]
    assert np.all(gains[1:] / gains[:-1] <= rising.acceptance(6)[-1] + 1e-12)


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.5), st.floats(1.0, 3.0))
def test_a_true_single_alpha_has_no_regret(alpha: float, c: float, v: float) -> None:
    lengths = dict(enumerate(np.asarray(walltime.tau(alpha, np.arange(1, 13))).tolist(), 1))
    curve = decay.complete(lengths, 12, None)
    assert decay.regret(alpha, curve, c, v).share == 0
    if v == 1.0:
        assert decay.best_gamma(curve, c).gamma == walltime.best_gamma(alpha, c, 12)


@pytest.mark.skipif(not SPECFORGE.exists(), reason="no ../shared/published")
def test_regret_of_a_single_alpha_on_the_specforge_chains() -> None:
    curves: dict[tuple[str, ...], dict[int, float]] = {}
    with SPECFORGE.open(newline="") as file:
        for r in csv.DictReader(file):
            if r["topk"] == "1":
                key = (r["target"], r["dataset"], r["batch_size"], r["draft"])
                curves.setdefault(key, {})[int(r["num_steps"])] = float(r["accept_length"])
    curves = {k: v for k, v in curves.items() if set(v) == {3, 5, 7}}
    assert len(curves) > 60
    for c in (0.05, 0.1, 0.2):
        lost = []
        for lengths in curves.values():
            curve = decay.complete(lengths, 7, decay.fit(lengths))
            assert curve.measured == (False, False, True, False, True, False, True)
            lost.append(decay.regret(float(alpha_from_tau(lengths[3], 3)), curve, c).share)
        assert min(lost) >= 0
        assert max(lost) < 0.25
        print(
            f"SpecForge, c = {c}: regret of α read at 3 steps, median {np.median(lost):.2%}, "
            f"largest {max(lost):.2%} over {len(lost)} curves"
        )


def test_the_margin_is_where_it_breaks_even() -> None:
    left = decay.margin(2.39, 3, 0.1)
    assert left.tau == pytest.approx(1.3)
    assert left.alpha is not None
    assert walltime.tau(left.alpha, 3) == pytest.approx(1.3)
    assert left.fall == pytest.approx(1 - left.alpha / left.alpha_now)
    assert decay.margin(2.39, 3, 0.9, 2.0).alpha is None
    losing = decay.margin(1.2, 3, 0.2)
    assert losing.fall is not None
    assert losing.fall < 0


def test_costs_are_checked() -> None:
    curve = decay.complete({1: 1.5}, 1, None)
    with pytest.raises(InputError, match="c of at least 0"):
        decay.best_gamma(curve, -0.1)
    with pytest.raises(InputError, match="v above 0"):
        decay.best_gamma(curve, 0.1, 0)
