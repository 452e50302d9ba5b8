import json
from typing import Any

import pytest

from lib.results.acceptance_checks import counted_tau
from lib.results.reading import Reading, read
from lib.results.tools import spec_bench
from lib.run import LoadKind, SpecState


def answer(lengths: list[int] | None, tokens: list[int], **choice: Any) -> dict[str, Any]:
    told = {} if lengths is None else {"accept_lengths": lengths}
    choice = (
        {
            "index": 0,
            "turns": ["a secret answer"] * len(tokens),
            "new_tokens": tokens,
            "wall_time": [n / 50 for n in tokens],
        }
        | told
        | choice
    )
    return {
        "question_id": 81,
        "category": "writing",
        "answer_id": "x",
        "model_id": "target-7b-eagle-temp-0.0",
        "choices": [choice],
        "tstamp": 1.7e9,
    }


def reading(*answers: dict[str, Any]) -> Reading:
    return read("a.jsonl", b"\n".join(json.dumps(a).encode() for a in answers))


ROUNDS = [3, 2, 4, 1, 3, 2, 4, 1, 3, 2] * 20  # 500 tokens, bonus included


def test_lengths_that_add_up_to_the_tokens_hold_the_bonus() -> None:
    found = reading(answer(ROUNDS, [250, 251]), answer(ROUNDS, [250, 251]))
    (run,) = found.runs
    assert (run.drafts, run.accepted_tokens) == (400, 600)
    assert counted_tau(run) == pytest.approx(2.5)
    assert run.histogram == (80, 120, 120, 80), "rounds by accepted tokens"
    assert run.accepted_per_position == (320, 200, 80)
    assert (run.output_tokens, run.completed, run.label) == (1002, 4, "target-7b-eagle-temp-0.0")
    assert run.output_tps == pytest.approx(50.0)
    assert (run.load_kind, run.offered_load) == (LoadKind.BATCH, 1.0)
    assert run.e2e_ms_mean == pytest.approx(5010.0)
    assert [f.code for f in found.flags] == ["bonus_settled"]
    assert "secret" not in (run.extra or "")
    assert found.requests[run.run_id]["output_tokens"].to_pylist() == [250, 251, 250, 251]


def test_lengths_without_the_bonus_give_the_same_run() -> None:
    bare = [n - 1 for n in ROUNDS]
    found = reading(answer(bare, [250, 251]), answer(bare, [250, 251]))
    (run,) = found.runs
    assert (run.drafts, run.accepted_tokens) == (400, 600)
    assert run.histogram == (80, 120, 120, 80)
    (flag,) = found.flags
    assert "leaves out the bonus token" in flag.message


def test_c15_what_the_tokens_do_not_settle_is_a_question() -> None:
    found = reading(answer(ROUNDS, [900]))
    (run,) = found.runs
    assert (run.accept_length, run.drafts, run.histogram) == (2.5, None, None)
    (flag,) = (f for f in found.flags if f.code == "bonus_in_doubt")
    assert "add 1" in flag.message


def test_a_plain_run_accepts_nothing() -> None:
    found = reading(answer([1] * 300, [300]))
    (run,) = found.runs
    assert (run.spec_state, run.drafts, run.accept_length) == (SpecState.UNKNOWN, None, None)
    assert [f.code for f in found.flags] == ["no_speculation"]


def test_eagle_counts_rounds_by_index() -> None:
    found = reading(answer(None, [250, 250], idxs=[99, 99]))
    (run,) = found.runs
    assert run.accept_length == pytest.approx(2.5)
    assert found.tool_version == "idxs"
    assert [f.code for f in found.flags] == ["bonus_in_doubt"]
    plain = reading(answer(None, [250], idxs=[249]))
    assert plain.runs[0].spec_state is SpecState.UNKNOWN


def test_other_files_are_not_claimed() -> None:
    assert not spec_bench.recognise([{"question_id": 1, "choices": [{"text": "x"}]}])
    assert not spec_bench.recognise([{"choices": [{"new_tokens": [], "wall_time": []}]}])
    assert not spec_bench.recognise([])
    assert not spec_bench.recognise([[]])


def drafted(*answers: dict[str, Any]) -> tuple[list[int | None], list[int | None]]:
    found = reading(*answers)
    table = found.requests[found.runs[0].run_id]
    return table["drafts"].to_pylist(), table["accepted_tokens"].to_pylist()


@pytest.mark.parametrize("bonus", [0, 1])
def test_each_turn_has_its_rounds_and_accepted_tokens(bonus: int) -> None:
    """[3, 2, 4, 1] and so on with the bonus: 25 tokens in 10 rounds, 15 of them accepted."""
    lengths = [n - bonus for n in ROUNDS]
    single, double = answer(lengths, [500]), answer(lengths, [250, 250], decoding_steps=[110, 90])
    first = sum(ROUNDS[:110]) - 110
    assert drafted(single, double) == ([200, 110, 90], [300, first, 300 - first])


def test_turns_that_nothing_tells_apart_have_no_counts() -> None:
    unknown = answer(ROUNDS, [250, 250])
    wrong = answer(ROUNDS, [250, 250], decoding_steps=[100, 90])
    assert drafted(answer(ROUNDS, [500]), unknown, wrong) == (
        [200, *[None] * 4],
        [300, *[None] * 4],
    )


def test_a_doubtful_list_gives_no_counts_by_turn() -> None:
    found = reading(answer(ROUNDS, [900]), answer(ROUNDS, [900]))
    assert "drafts" not in found.requests[found.runs[0].run_id].column_names
