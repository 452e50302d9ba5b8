"""What each engine calls acceptance, and what it comes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.theory import acceptance_names as names
from lib.theory.acceptance import alpha_from_tau
from lib.theory.acceptance_names import BY_KEY, NAMES


def test_c01_one_label_four_meanings() -> None:
    """C01."""
    v0 = 10616 / (13311 / 3)
    assert v0 == pytest.approx(2.393, abs=5e-4)
    assert alpha_from_tau(v0, 3) == pytest.approx(0.663, abs=5e-4)
    assert BY_KEY["vllm_v0_efficiency"].tau(0.598, 3) == pytest.approx(v0, abs=2e-3)
    v1 = BY_KEY["vllm_rate"].tau(150 / 387, 3)
    assert v1 == pytest.approx(2.163, abs=5e-4)
    assert alpha_from_tau(v1, 3) == pytest.approx(0.596, abs=5e-4)
    assert BY_KEY["vllm_bench_percent"].tau(38.7597, 3) == pytest.approx(v1, abs=1e-5)
    sglang = BY_KEY["sglang_length"].tau(2.17, 3)
    assert (sglang - 1) / 3 == pytest.approx(0.390)
    assert alpha_from_tau(sglang, 3) == pytest.approx(0.598, abs=5e-4)
    assert BY_KEY["sglang_old_rate"].tau(2.17 / 4, 3) == pytest.approx(sglang)
    assert BY_KEY["sglang_rate"].tau(1.17 / 3, 3) == pytest.approx(sglang)
    assert BY_KEY["trtllm_rate"].tau(2.17, None) == sglang


def test_c01_a_rate_above_1_is_read_as_a_length_or_refused() -> None:
    """C01."""
    with pytest.raises(InputError, match="accepted length"):
        BY_KEY["vllm_rate"].tau(2.16, 3)
    with pytest.raises(InputError, match="percentage"):
        BY_KEY["llamacpp_rate"].tau(38.8, 3)
    with pytest.raises(InputError, match="0 to 100 %"):
        BY_KEY["vllm_bench_percent"].tau(388, 3)


def test_c15_the_bonus_token() -> None:
    """C15."""
    assert BY_KEY["vllm_old_length"].tau(1.92, 5) == pytest.approx(2.92)
    assert BY_KEY["vllm_length"].tau(2.92, 5) == pytest.approx(2.92)
    assert BY_KEY["eagle_no_bonus"].tau(0.92, 3) == pytest.approx(1.92)
    with pytest.raises(InputError, match="leave it out"):
        BY_KEY["vllm_length"].tau(0.92, 3)


def test_c21_and_c45_rounds_without_a_counter() -> None:
    """C21, C45."""
    first = names.inferred_rounds(261, 260, 208)
    assert (first.rounds, first.gamma) == (53, 5)
    assert first.tau == pytest.approx(4.92, abs=5e-3)
    assert alpha_from_tau(first.tau, 5) == pytest.approx(0.92, abs=5e-3)
    assert alpha_from_tau(1 + 208 / 52, 5) == pytest.approx(0.927, abs=5e-4)
    second = names.inferred_rounds(371, 912, 313)
    assert second.rounds == 58
    assert second.tau == pytest.approx(6.40, abs=5e-3)
    assert second.per_round == pytest.approx(15.7, abs=0.05)
    s = second.tau / (second.per_round * 0.113 + 1)
    assert s == pytest.approx(2.30, abs=5e-3)
    assert second.tau / 0.98 - second.per_round * 0.113 == pytest.approx(4.75, abs=5e-3)
    with pytest.raises(InputError, match="accepted"):
        names.inferred_rounds(100, 50, 60)


def test_c43_both_readings_of_a_rate() -> None:
    """C43."""
    real, fell = names.readings(0.852, 3, 1.05)
    assert (real.gamma, fell.gamma) == (3, 1)
    assert real.tau == pytest.approx(3.56, abs=5e-3)
    assert (real.gamma, fell.gamma) == tuple(r.gamma for r in names.readings(0.852, 3))
    assert real.round_cost == pytest.approx(3.39, abs=5e-3)
    assert fell.tau == pytest.approx(1.85, abs=5e-3)
    assert fell.round_cost == pytest.approx(1.76, abs=5e-3)


def test_c56_the_length_of_a_tree() -> None:
    """C56."""
    assert BY_KEY["sglang_length"].tau(2.4, None) == 2.4


def test_c58_two_labs_on_one_drafter() -> None:
    """C58."""
    low, high = (BY_KEY["vllm_rate"].tau(r, 7) for r in (0.35, 0.74))
    assert (low, high) == (pytest.approx(3.45), pytest.approx(6.18))
    assert high / low == pytest.approx(1.79, abs=5e-3)
    speeds = 46.9 / 29.5
    assert speeds == pytest.approx(1.59, abs=5e-3)
    assert high / low > speeds


@given(st.sampled_from(NAMES), st.integers(1, 20), st.floats(0, 1))
def test_every_name_gives_a_possible_tau_or_an_error(
    name: names.Name, gamma: int, share: float
) -> None:
    value = share * name.most(gamma)
    if name.to_tau(value, gamma) < 1 - 1e-9:
        with pytest.raises(InputError, match="bonus token"):
            name.tau(value, gamma)
        return
    assert 1 <= name.tau(value, gamma) <= gamma + 1


@pytest.mark.parametrize("name", [n for n in NAMES if n.gamma_matters], ids=lambda n: n.key)
def test_a_rate_needs_its_draft_length(name: names.Name) -> None:
    with pytest.raises(InputError, match="type γ"):
        name.tau(0.5, None)


def test_drafters_are_recognised() -> None:
    assert all(map(names.is_parallel, ("dflash", "DSpark", "peagle", "P-EAGLE", "medusa")))
    assert not any(map(names.is_parallel, ("eagle3", "mtp", "draft_model", None, "")))
    assert all(map(names.is_lookup, ("ngram", "n-gram", "suffix", "ngram_gpu", "prompt_lookup")))
    assert not any(map(names.is_lookup, ("eagle3", "dflash", None)))
