"""Secrets by their names, places and shapes; ordinary words and settings of a study stay."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.results.findings import shorten, shown
from lib.results.redaction import REDACTED, dump_rows, is_secret, redact, redact_text

S = "Zx9planted7Qw"
LONG = f"{S}0123456789abcdefABCDEF"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Token {S}",
        f"Authorization: ApiKey {S}",
        f"Authorization: AWS4-HMAC-SHA256 Credential=A/b, SignedHeaders=h, Signature={S}",
        f"Proxy-Authorization: Basic {S}",
        f"-H 'X-Auth: Bearer {S}'",
        f'-H "Authorization: Digest username=u, response={S}"',
        f"Cookie: a=1; session={S}",
        f"Set-Cookie: s={S}; Path=/",
        f"Ocp-Apim-Subscription-Key: {S}",
        f"('authorization', 'Token {S}')",
        f"(b'x-api-key', b'{S}')",
        f"http://user:a/{S}@h/x",
        f"http://user:p@{S}@h:80/v1",
        f"https://{S}@host/v1",
        f"redis://:{S}@h:6379",
        f"db_url=postgresql://u:{S}@h/db",
        f"http://h/v1?key={S}",
        f"http://h?a=1&sig={S}",
        f"http://h/?token={S}",
        f"http://h/?api_key={S}&x=1",
        f"OPENAI_KEY={S}",
        f"PGPASSWORD={S}",
        f"DB_PASS={S}",
        f"pwd={S}",
        f"AccountName=a;AccountKey={S}==;End=1",
        f"export HF_TOKEN='{S}'",
        f"run --key {S} x",
        f"run --api-keys {S}",
        f"run --api-key {S} foo",
        f"run --api-key a {LONG} --model m",
        f"['--api-key', '{S}']",
        f'{{\\"api_key\\":\\"{S}\\"}}',
        f'{{\\\\\\"api_key\\\\\\": \\\\\\"{S}\\\\\\"}}',
        f'"X-Api-Key": ["{S}"]',
        f'{{"auths": {{"h": {{"auth": "{S}"}}}}}}',
        f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{S}",
        f"machine h login u password {S}",
        f"curl -u me:{S} http://h",
        f"API key: {S}",
        f"Access token: {S}",
        f"- name: HF_TOKEN\n  value: {S}",
        f"password: {S}",
        f"call with AZURE_OPENAI_API_KEY: '{S}'",
        f'OpenAI(api_key = "{S}", base_url="x")',
    ],
)
def test_secrets_in_texts(text: str) -> None:
    for written in (text, redact({"note": text}), redact([{"a": [text]}]), redact_text(text)):
        if written is not text:
            assert S not in json.dumps(written)
            assert REDACTED in json.dumps(written)


@pytest.mark.parametrize(
    "shape",
    [
        "nvapi-" + LONG,
        "xoxb-1234567890-" + LONG,
        "xoxp-1234567890-" + LONG,
        f"eyJ{LONG}.{LONG}.{LONG}",
        "gsk_" + LONG,
        "AIza" + LONG,
        "glpat-" + LONG,
        "github_pat_" + LONG,
        "ghp_" + LONG,
        "r8_" + LONG,
        "hf_" + LONG,
        "sk-" + LONG,
        "sk-proj-" + LONG,
    ],
)
@pytest.mark.parametrize("around", ["{}", "failed with {} (401)", "a:{},b", '"{}"'])
def test_shapes_of_keys(shape: str, around: str) -> None:
    assert S not in redact_text(around.format(shape))


@pytest.mark.parametrize(
    "key",
    [
        *("openai_key", "wandb_key", "api_keys", "auth", "dsn", "connection_string", "jwt"),
        *("webhook_url", "account_key", "ssh_key", "X-Auth", "tokenValue", "sshKey", "hfToken"),
        *("secretAccessKey", "refresh_token", "PGPASSWORD", "proxy_auth", "DB_PASS", "set-cookie"),
    ],
)
def test_names_of_secrets(key: str) -> None:
    assert is_secret(key)
    assert redact({key: S}) == {key: REDACTED}
    for held in ([S], {"value": S}, [[S]], {"a": [{"b": S}]}):
        assert S not in json.dumps(redact({key: held}))
    assert redact({key: 5.0}) == {key: 5.0}
    assert S not in dump_rows([["a", key], ["1", S]]).decode()


@pytest.mark.parametrize(
    "key",
    [
        *("tokens", "max_tokens", "key", "key_metrics", "primary_key", "sort_key", "tokenizer"),
        *("author", "monkey", "turkey", "keyboard", "target", "engine", "dataset", "gpu", "label"),
        *("eos_token", "first_token", "time_to_first_token", "inter_token", "forward_pass", "pass"),
        *("secretary", "compass", "bypass", "passenger", "token_count", "auth_mode", "cache_key"),
    ],
)
def test_names_that_are_none(key: str) -> None:
    assert not is_secret(key)
    assert redact({key: "kept"}) == {key: "kept"}


@pytest.mark.parametrize(
    "text",
    [
        *("inter-token latency (10 ms)", "first token: 34 ms", "time per output token: 12.5ms"),
        *("tokens: 5", "max_tokens=64", "key metrics: fast", "primary key: id12345678"),
        *("monkey", "turkey: dataset2024", "author: kim2024abcd", "keyboard=qwerty12345"),
        *("basic throughput test", "basic benchmark", "http://h:8000/v1/a@b", "http://[::1]:8000"),
        *("git@github.com:x/y", "token budget: 12345678", "eos_token=</s>", "forward pass=3"),
        *("task-1234567890abcdef", "disk-based-offload-kv2", "sort_key=ttft", "pass: 12/12"),
        *("sk-learn", "auth: none", "oci://reg.io:5000/img@sha256:abc", "--token-budget 5"),
        *("s3://bucket/key=1/x", "dataset: key-value-2024abc", "google/gemma-2-9b", "key=5"),
        *("bonus token: included2", "time per token: 7 ms", "--max-tokens 64 --tokenizer a/b"),
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert redact_text(text) == text
    assert redact({"label": text}) == {"label": text}


def test_statistics_under_a_tokens_name_stay() -> None:
    kept = {"time_per_output_token": {"unit": "ms", "mean": 5.0}, "token": {"mean": 2, "p99": 3}}
    assert redact(kept) == kept
    assert redact({"token": {"value": S, "mean": 5}}) == {"token": {"value": REDACTED, "mean": 5}}
    rows = [["token", "prompt", "n_prompt"], ["128", "512", "7"]]
    assert dump_rows(rows) == b"token,prompt,n_prompt\n128,512,7\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"key": "HF_TOKEN", "value": S}, {"key": "HF_TOKEN", "value": REDACTED}),
        ({"header": "X-Api-Key", "value": S}, {"header": "X-Api-Key", "value": REDACTED}),
        ({"key": "gpu", "value": "H100"}, {"key": "gpu", "value": "H100"}),
        (["--header", "x-api-key", S, "a"], ["--header", "x-api-key", REDACTED, "a"]),
        (["-H", f"Authorization: {S}"], ["-H", f"Authorization: {REDACTED}"]),
        (["x-api-key", S], ["x-api-key", REDACTED]),
        (["--key", S], ["--key", REDACTED]),
        (["--api-key", S, "b"], ["--api-key", REDACTED, "b"]),
        (["concurrency", "api_key", "ttft"], ["concurrency", "api_key", "ttft"]),
        (json.dumps({"a": json.dumps({"api_key": S})}), None),
    ],
)
def test_what_stands_beside_names_it(value: object, expected: object) -> None:
    found = redact(value)
    assert S not in json.dumps(found)
    if expected is not None:
        assert found == expected


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "--a-",
            "--",
            '"key',
            'key=\\"',
            "://a:b",
            "sk-",
            "sk-a",
            "eyJ.",
            "eyJaaaaaa",
            "token   ",
        ),
        *("a.", "basic ", "-----BEGIN PRIVATE KEY", "login a ", " ", "'", "\\", "name: key value "),
        *("x@", "a:", "-u a", "api ", "--key ", "bearer ", 'key"', "key: '", "-", "key\\", "?key="),
        *("name: ", "aaaaaaaaaaaaaaaaaaaa1 ", "key=[", "cookie: ", "http://a:"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "{}token key", "http://{}", "--api-key x {}", "key='{}"])
def test_every_pattern_is_linear(unit: str, around: str) -> None:
    """Without a timer: at this length a quadratic pattern takes minutes, a linear one no time."""
    assert isinstance(redact_text(around.format(unit * 20_000)), str)


@given(st.text("abk-_.=: \"'\\[]@/?&token\n", max_size=200))
def test_any_text_is_read_and_twice_is_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"export OPENAI_API_KEY={S}", f"export OPENAI_API_KEY={REDACTED}"),
        (f"HF_TOKEN={S}", f"HF_TOKEN={REDACTED}"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "0;titlex"),
        ("a\u202eb\u200bc\u2066d\ufeff", "abcd"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        (5, "5"),
        ("x" * 100, "x" * 39 + "…"),
    ],
)
def test_what_a_message_quotes_of_a_file(content: object, expected: str) -> None:
    assert shown(content) == expected
    assert shorten([content, content]) == f"{expected}, {expected}"


@given(st.text(max_size=60))
def test_what_is_quoted_is_one_printable_line(content: str) -> None:
    said = shown(content)
    assert said.isprintable()
    assert len(said) <= 40
