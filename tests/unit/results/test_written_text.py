"""Prompts and answers are dropped, whatever their keys; what says how a run was set up stays."""

import json

import pytest

from lib.results.redaction import dump_rows, extra, redact
from lib.results.written_text import is_prose

PROMPT = "planted: tell me of the old mill"
STORY = f"{PROMPT}. " + "It stood beside the river, and nobody had seen its owner for years. " * 5
FORMS = (PROMPT, [PROMPT], [{"role": "user", "x": PROMPT}], [[PROMPT]])


@pytest.mark.parametrize(
    "key",
    [
        *("user_prompt", "prompt_text", "instruction", "instructions", "context", "contexts"),
        *("reference", "references", "model_output", "generation", "generations", "ground_truth"),
        *("reasoning_content", "conversation", "conversations", "turns", "raw_response", "errors"),
        *("completion_text", "request", "userPrompt", "System Prompt", "data.user-prompt"),
        *("error_message", "final_answer", "assistant_response", "expected_output"),
    ],
)
def test_texts_by_their_keys(key: str) -> None:
    for form in FORMS:
        assert redact({"a": {key: form}, "b": 1}) == {"a": {}, "b": 1}
    assert "planted" not in dump_rows([["n", key], ["1", PROMPT]]).decode()
    assert redact({key: 5}) == {key: 5}
    assert redact({key: [1, 2.5]}) == {key: [1, 2.5]}
    assert redact({key: {"mean": 5}}) == {key: {"mean": 5}}


@pytest.mark.parametrize("value", ["Ampere", "lab-context", "4096"])
def test_one_word_of_set_up_stays(value: str) -> None:
    for key in ("generation", "context", "reference"):
        assert redact({key: value}) == {key: value}


def test_the_path_of_an_api_stays() -> None:
    routes = {"text_completions": "/v1/completions", "chat_completions": "/v1/chat/completions"}
    assert redact(routes) == routes


def test_a_long_text_in_words_goes_whatever_its_key() -> None:
    expected = f"[text, {len(STORY):,} characters]"
    assert redact({"anything": STORY, "deep": [{"x": STORY}]}) == {
        "anything": expected,
        "deep": [{"x": expected}],
    }
    assert json.loads(extra({"own_field": STORY}) or "") == {"own_field": expected}
    assert "river" not in dump_rows([["own"], [STORY]]).decode()
    assert "planted" not in json.dumps(redact({"own": json.dumps({"unknown": STORY})}))


@pytest.mark.parametrize(
    "text", ["水車小屋の古い話を聞かせてください。" * 20, "расскажи мне о старой мельнице " * 20]
)
def test_a_long_text_of_any_script(text: str) -> None:
    assert redact({"own": text}) == {"own": f"[text, {len(text):,} characters]"}


def test_a_list_of_texts_one_a_request() -> None:
    texts = [f"planted: the number {n} was drawn by the clerk" for n in range(40)]
    assert "clerk" not in json.dumps(redact({"own": texts}))
    names = [f"org/model-{n}" for n in range(40)]
    assert redact({"own": names}) == {"own": names}


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve org/model --port 8000 --max-num-seqs 256 --gpu-memory-utilization 0.9 " * 6,
        "/data/results/run 1/part 2/file " * 20,
        "CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO VLLM_USE=1 python -m x --a=1 " * 6,
        "0.1 0.2 0.3 " * 100,
        "Measured on one node after ten minutes of warm-up; the clock was locked.",
        "x" * 1000,
    ],
)
def test_command_lines_and_notes_stay(text: str) -> None:
    assert not is_prose(text)
    assert redact({"note": text}) == {"note": text}
