"""Domains mixed, steps that draft nothing, two builds side by side."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.theory import mixing, walltime


def test_domains_mix_by_tokens_harmonically() -> None:
    taus = [float(walltime.tau(a, 5)) for a in (0.5, 0.9)]
    assert sum(taus) / 2 == pytest.approx(3.327, abs=5e-4)
    assert mixing.mixed_tau(taus, (1, 1)) == pytest.approx(2.773, abs=1e-3)
    assert mixing.mixed_tau(taus, (1, 0)) == taus[0]


@given(st.lists(st.tuples(st.floats(1, 10), st.integers(1, 1000)), min_size=1, max_size=6))
def test_pooled_counts_are_the_mix_at_the_measured_shares(rows: list[tuple[float, int]]) -> None:
    tokens = [tau * rounds for tau, rounds in rows]
    pooled = sum(tokens) / sum(n for _, n in rows)
    assert mixing.mixed_tau([t for t, _ in rows], tokens) == pytest.approx(pooled)


def test_c87_steps_without_drafts() -> None:
    """C87."""
    found = mixing.coverage(1000, 1500, 10000)
    assert found.share == 0.25
    assert found.tokens_per_step == pytest.approx(1.176, abs=5e-4)
    with pytest.raises(InputError, match="generated"):
        mixing.coverage(1000, 1500, 1400)


def test_c27_acceptance_and_step_time() -> None:
    """C27."""
    tau_a, tau_b = 1 + 132 / 68, 1 + 121 / 79
    assert (tau_a, tau_b) == (pytest.approx(2.941, abs=5e-4), pytest.approx(2.532, abs=5e-4))
    found = mixing.split(tau_a, tau_b, 57.67 / 69.23)
    assert found.tau_ratio - 1 == pytest.approx(-0.139, abs=5e-4)
    assert found.speed_ratio - 1 == pytest.approx(-0.167, abs=5e-4)
    assert found.acceptance_share == pytest.approx(0.82, abs=5e-3)
    assert found.step_ratio - 1 == pytest.approx(0.033, abs=5e-4)
    b200 = mixing.split(1 + 2 * 0.1028, 1 + 2 * 0.4938, 7.98 / 5.15)
    assert b200.tau_ratio - 1 == pytest.approx(0.649, abs=1e-3)
    assert b200.step_ratio - 1 == pytest.approx(0.064, abs=1e-3)


@given(st.floats(1, 8), st.floats(1, 8), st.floats(0.2, 5))
def test_the_parts_make_the_whole(first: float, second: float, speed: float) -> None:
    found = mixing.split(first, second, speed)
    whole = math.log(found.tau_ratio) - math.log(found.step_ratio)
    assert whole == pytest.approx(math.log(speed), abs=1e-9)


def test_c58_acceptance_explains_more_than_all() -> None:
    """C58."""
    share = mixing.split(3.45, 6.18, 46.9 / 29.5).acceptance_share
    assert share is not None
    assert share > 1


def test_c49_equal_rates_unequal_speed() -> None:
    """C49."""
    speeds = [84.54 / 51.55, 66.80 / 51.61, 66.12 / 51.61]
    assert speeds == [pytest.approx(x, abs=5e-4) for x in (1.640, 1.294, 1.281)]
    assert mixing.rate_says_little((0.7545, 0.7557, 0.7541), speeds)
    assert not mixing.rate_says_little((0.75, 0.60), speeds[:2])
    assert not mixing.distinguishable(1.103, 0.08, 1.150, 0.08)
    assert mixing.distinguishable(1.10, 0.01, 1.15, 0.01)


@pytest.mark.parametrize("weights", [(0, 0), (1,), (-1, 2)])
def test_a_mix_needs_its_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="mix"):
        mixing.mixed_tau((2.0, 3.0), weights)
