import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.results.redaction import REDACTED, dump_rows, extra, is_secret, keep, redact, redact_text

SECRET = "s3cr3t-v4lue-0001"


def restored(kept: bytes) -> bytes:
    return pa.input_stream(pa.BufferReader(kept), compression="zstd").read()


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "apiKey",
        "HF_TOKEN",
        "Authorization",
        "db-password",
        "client_secret",
        "token",
        "aws.access_key",
    ],
)
def test_secret_keys(key: str) -> None:
    assert is_secret(key)
    assert redact({key: SECRET}) == {key: REDACTED}


@pytest.mark.parametrize(
    "key",
    [
        "output_tokens",
        "tokenizer",
        "total_token_throughput",
        "max_tokens",
        "num_speculative_tokens",
        "author",
    ],
)
def test_keys_about_tokens_are_no_secrets(key: str) -> None:
    assert redact({key: "kept"}) == {key: "kept"}


def test_statistics_of_a_token_stay() -> None:
    assert redact({"time_per_output_token": {"mean": 5.0}}) == {
        "time_per_output_token": {"mean": 5.0}
    }
    assert redact({"api_key": None}) == {"api_key": None}
    assert redact({"credentials": {"user": SECRET}}) == {"credentials": REDACTED}


@pytest.mark.parametrize(
    "text",
    [
        f"vllm bench serve --api-key {SECRET} --model m",
        f"run --openai-api-key={SECRET}",
        f"run --hf-token '{SECRET}' --seed 1",
        f"OPENAI_API_KEY={SECRET} vllm serve",
        f"Authorization: Bearer {SECRET}",
        f"http://user:{SECRET}@host:8000/v1",
        json.dumps({"headers": {"api-key": SECRET}}),
        f"password: {SECRET}; retry",
    ],
)
def test_secrets_inside_texts(text: str) -> None:
    redacted = redact_text(text)
    assert SECRET not in redacted
    assert REDACTED in redacted


@pytest.mark.parametrize(
    "text",
    [
        "vllm bench serve --max-tokens 64 --tokenizer acme/tok --num-speculative-tokens 4",
        "http://127.0.0.1:8000/v1",
        "time per output token (ms)",
    ],
)
def test_harmless_texts_stay(text: str) -> None:
    assert redact_text(text) == text


def test_known_shapes_of_keys() -> None:
    assert "sk-" not in redact_text("call failed with sk-abcdefghijklmnop1234")
    assert "hf_" not in redact_text("login hf_abcdefghijklmnop1234")


def test_option_and_value_in_a_list() -> None:
    command = ["vllm", "--api-key", SECRET, "--seed", "1"]
    assert redact({"cmd": command}) == {"cmd": ["vllm", "--api-key", REDACTED, "--seed", "1"]}


def test_prompts_and_texts_are_dropped_but_statistics_of_that_name_stay() -> None:
    document = {
        "generated_texts": ["one", "two"],
        "request_args": '{"body": "hello"}',
        "messages": [{"role": "user", "content": "hello"}],
        "output": {"mean": 64.0},
        "text": {"tokens": {"output": {"mean": 1.0}}},
        "prompts": 5,
    }
    assert redact(document) == {
        "output": {"mean": 64.0},
        "text": {"tokens": {"output": {"mean": 1.0}}},
        "prompts": 5,
    }


def test_rows_lose_secrets_and_texts_also_inside_json_cells() -> None:
    rows = [
        ["concurrency", "api_key", "prompt", "backend", "note"],
        ["1", SECRET, "write a poem", json.dumps({"api_key": SECRET, "x": 1}), f"--token {SECRET}"],
    ]
    text = dump_rows(rows).decode()
    assert SECRET not in text
    assert "poem" not in text
    assert text.splitlines()[0] == "concurrency,api_key,prompt,backend,note"
    assert '""x"":1' in text


def test_extra_is_redacted_json_without_lists_of_requests() -> None:
    text = extra({"api_key": SECRET, "burstiness": 1.0, "itls": list(range(1000)), "none": None})
    assert json.loads(text or "") == {"api_key": REDACTED, "burstiness": 1.0}
    assert extra({"x": None}) is None


def test_extra_keeps_to_its_size() -> None:
    text = extra({"large": "x" * 100_000, "small": 1})
    assert json.loads(text or "") == {"small": 1}


def test_kept_copy_is_compressed_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    document = b'{"a": 1}' * 1000
    kept = keep(document)
    assert kept is not None
    assert len(kept) < len(document) / 10
    assert restored(kept) == document
    monkeypatch.setenv("DRAFTWORTH_KEEP_MB", "0")
    assert keep(document) is None


words = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=12, max_size=20)


@given(
    words, st.sampled_from(["api_key", "X-Api-Key", "access_token", "Password", "client-secret"])
)
def test_a_planted_secret_is_nowhere(secret: str, key: str) -> None:
    planted = {"a": [{"b": {key: secret}}], "cmd": f"run --api-key {secret} --seed 1"}
    assert secret not in json.dumps(redact(planted))


@pytest.mark.parametrize(
    "text",
    [
        "its inter-token latency includes the time to first token: 34 ms aside",
        "inter-token latency (10 ms)",
        "time per output token: excluded from the mean",
        "mean first-token: 12.5 ms, output-token rate 8",
    ],
)
def test_ordinary_words_about_tokens_stay(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "serve --hf-token abc",
        "serve -token abc",
        "HF_TOKEN: hf8jk2l1mn",
        "token=abc",
        "api-key: abc",
        "Authorization: abc",
        '{"note": "token: abcd1234ef"}',
    ],
)
def test_what_looks_like_a_secret_goes(text: str) -> None:
    assert not {"abc", "hf8jk2l1mn", "abcd1234ef"} & set(re.findall(r"\w+", redact_text(text)))
