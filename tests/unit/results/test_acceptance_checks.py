"""What a run's own counts, rates and lengths contradict; false alarms are as bad as misses."""

from typing import Any

import pytest

from lib.results.acceptance_checks import acceptance_rate, tokens_per_round
from lib.results.checks import blocks_pairing, inspect
from lib.run import LoadKind, Run, SpecState

ON: dict[str, Any] = {"spec_state": SpecState.ON, "draft_method": "eagle3"}


def codes(**fields: Any) -> list[str]:
    return [f.code for f in inspect(Run(run_id="r", **fields))]


def message(**fields: Any) -> str:
    (found,) = inspect(Run(run_id="r", **fields))
    return found.message


def test_a_sound_run_has_no_flag() -> None:
    assert not codes(
        **ON, num_speculative_tokens=3, drafts=129, draft_tokens=387, accepted_tokens=150,
        accepted_per_position=(80, 45, 25), accept_length=2.163, accept_rate=0.388,
    )  # fmt: skip


# C01: one label, four meanings


def test_c01_a_length_is_no_rate() -> None:
    """trtllm-bench: output tokens over iterations, called a rate."""
    assert codes(**ON, accept_rate=2.4) == ["acceptance_in_doubt"]
    assert "above 1" in message(**ON, accept_rate=2.4)


def test_c01_sglang_rate_over_draft_tokens() -> None:
    """4 draft tokens, length 2.17, rate 0.54: the length counts, its rate is 0.390."""
    said = message(**ON, num_speculative_tokens=3, accept_length=2.17, accept_rate=0.54)
    assert "0.54 is accepted length over draft tokens" in said
    assert said.endswith("is 0.39")


def test_c01_counts_decide() -> None:
    run = Run(run_id="r", num_speculative_tokens=3, drafts=129, accepted_tokens=150)
    assert tokens_per_round(run) == pytest.approx(2.163, abs=1e-3)
    assert acceptance_rate(run) == pytest.approx(0.388, abs=1e-3)


def test_c21_rounds_without_a_drafts_counter() -> None:
    """llama.cpp: 261 tokens, 260 drafted, 208 accepted are 53 rounds and tau 4.92."""
    counts = {"output_tokens": 261, "draft_tokens": 260, "accepted_tokens": 208}
    run = Run(run_id="r", num_speculative_tokens=5, **counts)  # type: ignore[arg-type]
    assert tokens_per_round(run) == pytest.approx(4.92, abs=5e-3)
    fewer = Run(run_id="r", num_speculative_tokens=5, draft_tokens=260, accepted_tokens=208)
    assert tokens_per_round(fewer) == pytest.approx(5.0)


def test_percent_or_fraction() -> None:
    counts = {"draft_tokens": 387, "accepted_tokens": 150}
    assert message(**ON, **counts, accept_rate=38.8).startswith("an acceptance rate of 38.8")
    assert message(**ON, **counts, accept_rate=0.00388).endswith("percent or fraction?")
    assert message(**ON, accept_rate=0.0031) == (
        "an acceptance rate of 0.0031: was 0.31 a fraction, not percent?"
    )
    assert not codes(**ON, accept_rate=0.091)
    assert not codes(**ON, **counts, accept_rate=0.39)
    assert "the counts say 0.3876" in message(**ON, **counts, accept_rate=0.62)


# C15: the bonus token


def test_c15_the_counts_say_whether_the_bonus_token_is_in() -> None:
    """Accepted over drafts 1.92, stated 1.92 or 2.92: tau is 2.92 both times."""
    counts = {"drafts": 1000, "draft_tokens": 3000, "accepted_tokens": 1920}
    old, new = (
        Run(run_id="r", **ON, num_speculative_tokens=3, accept_length=x, **counts)  # type: ignore[arg-type]
        for x in (1.92, 2.92)
    )
    assert [f.code for f in inspect(old)] == ["bonus_in_doubt"]
    assert inspect(old)[0].message.endswith("leaves out the bonus token: by the counts τ is 2.92")
    assert not [f for f in inspect(new) if f.code != "limited_by_gamma"]
    assert tokens_per_round(old) == tokens_per_round(new) == pytest.approx(2.92)


def test_c15_below_one_asks_for_the_bonus_token() -> None:
    assert codes(**ON, accept_length=0.92) == ["bonus_in_doubt"]
    assert message(**ON, accept_length=0.92).endswith("does it include the bonus token?")
    assert not codes(**ON, accept_length=1.92)
    assert tokens_per_round(Run(run_id="r", accept_length=0.92)) is None


def test_a_length_that_the_counts_contradict() -> None:
    counts = {"drafts": 1000, "accepted_tokens": 1200}
    assert codes(**ON, **counts, accept_length=2.9) == ["length_in_doubt"]
    assert not codes(**ON, **counts, accept_length=2.21)


# C22: limited by gamma


def test_c22_limited_by_gamma() -> None:
    """5.6087 of at most 6 tokens a round at depth 5."""
    assert message(**ON, num_speculative_tokens=5, accept_length=5.6087).startswith(
        "limited by γ: 5.609 of at most 6 tokens a round at K = 5"
    )
    assert not codes(**ON, num_speculative_tokens=5, accept_length=5.4)
    assert not codes(**ON, accept_length=5.6087)
    tree = {"num_speculative_tokens": 5, "accept_length": 5.6087, "draft_topk": 8}
    assert codes(**ON, **tree) == ["tree_draft"]


def test_more_than_k_can_give() -> None:
    assert codes(**ON, num_speculative_tokens=2, accept_length=3.5) == ["impossible_length"]
    assert not codes(**ON, num_speculative_tokens=2, accept_length=3.5, schedule="[[1,8,4]]")


def test_a_k_that_the_server_contradicts() -> None:
    counts = {"drafts": 100, "draft_tokens": 400, "accepted_tokens": 120}
    assert codes(**ON, num_speculative_tokens=2, **counts) == ["k_contradicted"]
    assert "4 tokens a round" in message(**ON, num_speculative_tokens=2, **counts)
    assert not codes(**ON, num_speculative_tokens=4, **counts)
    assert not codes(**ON, num_speculative_tokens=8, **counts)  # adaptive drafters draft less


# C51: too good, too bad


def test_c51_everything_accepted() -> None:
    """504 of 504 at gamma 3 is warned of, 480 of 504 is not."""
    k = {"num_speculative_tokens": 3, "draft_tokens": 504}
    assert codes(**ON, **k, accepted_tokens=504) == ["perfect_acceptance"]
    assert message(**ON, **k, accepted_tokens=504).startswith("504 of 504 drafted tokens accepted")
    assert "perfect_acceptance" not in codes(**ON, **k, accepted_tokens=480)


def test_c51_nothing_accepted() -> None:
    """A length of exactly 1.00 over 100 drafts or more."""
    assert codes(**ON, drafts=100, draft_tokens=300, accepted_tokens=0) == ["no_acceptance"]
    assert codes(**ON, drafts=100, accept_length=1.0) == ["no_acceptance"]
    assert codes(drafts=150, accept_length=1.0) == ["no_acceptance"]
    assert not codes(**ON, drafts=99, draft_tokens=297, accepted_tokens=0)
    assert not codes(**ON, drafts=99, accept_length=1.0)
    assert not codes(**ON, drafts=100, draft_tokens=300, accepted_tokens=1)


def test_c51_a_length_of_exactly_gamma_plus_one() -> None:
    assert codes(**ON, num_speculative_tokens=4, accept_length=5.0) == ["perfect_acceptance"]
    assert codes(**ON, accept_rate=1.0) == ["perfect_acceptance"]
    assert codes(**ON, accept_rate=0.0) == ["no_acceptance"]


def test_few_drafts_prove_nothing() -> None:
    assert not codes(**ON, draft_tokens=40, accepted_tokens=40)
    assert not codes(**ON, drafts=10, draft_tokens=40, accepted_tokens=0)


def test_off_and_k_0_do_not_draft() -> None:
    off = {"spec_state": SpecState.OFF}
    assert not codes(**off, accept_length=1.0, accept_rate=0.0)
    assert not codes(**ON, num_speculative_tokens=0, accept_length=1.0, accept_rate=0.0)
    assert not codes(accept_length=1.0)  # unknown: it may well be off


def test_c52_random_tokens() -> None:
    """A badge; the run is paired and priced all the same."""
    assert codes(dataset="random") == ["random_tokens"]
    assert not blocks_pairing(Run(run_id="r", dataset="random"))


def test_c54_input_beyond_the_drafters_positions() -> None:
    """Inputs of 1024 and 4096 tokens with 2048 positions: the second only."""
    near, far = (
        codes(**ON, draft_max_positions=2048, input_len=x, tpot_ms_mean=8.0)
        for x in (1024.0, 4096.0)
    )
    assert (near, far) == ([], ["beyond_draft_positions"])
    off = {"spec_state": SpecState.OFF, "draft_max_positions": 2048, "input_len": 4096.0}
    assert not codes(**off)


# C56, C60: trees


def test_c56_no_alpha_for_a_tree() -> None:
    """Length 2.4, 2 steps, 4 draft tokens, top-k 4: the rate 0.60 is length over draft tokens."""
    tree = {"num_speculative_tokens": 2, "draft_topk": 4}
    said = message(**ON, **tree, accept_length=2.4, accept_rate=0.6)
    assert "α is not defined" in said
    assert "the accepted length 2.4 counts" in said
    assert "not the stated rate 0.6" in said
    run = Run(run_id="r", accept_length=2.4, accept_rate=0.6, **tree)  # type: ignore[arg-type]
    assert tokens_per_round(run) == 2.4


def test_c60_a_tree_at_load() -> None:
    """32 draft tokens, top-k 10: advised against above batch 1."""
    at = {"draft_topk": 10, "load_kind": LoadKind.CONCURRENCY}
    assert "no tree above batch 1" in message(**ON, **at, offered_load=8.0)
    assert "no tree above batch 1" not in message(**ON, **at, offered_load=1.0)
    assert not codes(**ON, draft_topk=1)


# positions


def test_positions_add_up() -> None:
    k = {"drafts": 500, "draft_tokens": 1500, "num_speculative_tokens": 3}
    assert codes(**ON, **k, accepted_tokens=650, accepted_per_position=(300, 200, 100)) == [
        "position_mismatch"
    ]
    assert not codes(**ON, **k, accepted_tokens=602, accepted_per_position=(300, 200, 100))


def test_positions_do_not_rise() -> None:
    k = {"drafts": 500, "draft_tokens": 1500, "num_speculative_tokens": 3, "accepted_tokens": 600}
    assert codes(**ON, **k, accepted_per_position=(250, 200, 150)) == []
    assert codes(**ON, **k, accepted_per_position=(200, 250, 150)) == ["positions_increase"]
    assert codes(**ON, **k, accepted_per_position=(600, 0, 0)) == ["positions_increase"]
    assert not codes(**ON, accepted_per_position=())
