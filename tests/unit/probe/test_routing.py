"""Experts chosen beforehand: as many distinct ones as chance would wake, and each token's k."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.probe.architecture import get
from lib.probe.routing import choices, plan

MOES = ("gpt-oss-20b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v3", "tiny-moe")


@pytest.mark.parametrize(
    ("name", "tokens", "distinct"), [("gpt-oss-120b", 4, 15), ("qwen3-30b-a3b", 4, 29)]
)
def test_a_pass_wakes_the_expected_count(name: str, tokens: int, distinct: int) -> None:
    found = plan(get(name), 1, tokens)
    assert (found.low, found.high) == (0, distinct)


@settings(max_examples=40)
@given(st.sampled_from(MOES), st.integers(1, 8), st.integers(1, 16))
def test_a_plan_seats_every_token_once_with_each_of_its_experts(
    name: str, batch: int, tokens: int
) -> None:
    model = get(name)
    found = plan(model, batch, tokens)
    assert found.high == round(model.distinct_experts(batch * tokens))
    assert len(found.rows) == (found.high - found.low) * found.room
    seats = [place for places in found.places for place in places]
    assert len(seats) == len(set(seats)) == batch * tokens * model.experts_per_token
    for row, (experts, places) in enumerate(zip(found.chosen, found.places, strict=True)):
        assert len(set(experts)) == model.experts_per_token
        assert [place // found.room for place in places] == list(experts)
        assert all(found.rows[place] == row for place in places)
    # The load is even: nobody waits on one crowded expert.
    assert found.room <= 2 + 2 * len(seats) / found.high


@settings(max_examples=40)
@given(st.sampled_from(MOES), st.integers(2, 100))
def test_a_tokens_experts_do_not_depend_on_those_behind_it(name: str, tokens: int) -> None:
    model = get(name)
    assert choices(model, tokens)[: tokens // 2] == choices(model, tokens // 2)
