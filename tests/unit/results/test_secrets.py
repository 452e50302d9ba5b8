"""What a document says in confidence is nowhere afterwards: store, exports, report, log."""

import csv
import io
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lib.results.importing import import_paths
from lib.results.store import EXPORTS, Store

KEY = "sk-planted0123456789abcdefPLANTED"
PASSWORD = "hunter2-planted-PASSWORD"
PROMPT = "planted prompt: who stole the cookies"
REPLY = "planted reply: it was the planted butler"
PLANTED = (KEY, PASSWORD, PROMPT, REPLY)


def a_record() -> dict[str, Any]:
    count = 4
    return {
        "date": "20260501-120000",
        "model_id": "a/model",
        "num_prompts": count,
        "request_rate": "inf",
        "max_concurrency": 4,
        "duration": 10.0,
        "completed": count,
        "total_input_tokens": 400,
        "total_output_tokens": 400,
        "output_throughput": 40.0,
        "mean_ttft_ms": 10.0,
        "input_lens": [100] * count,
        "output_lens": [100] * count,
        "ttfts": [0.01] * count,
        "itls": [[0.001] * 99] * count,
        "generated_texts": [REPLY] * count,
        "errors": ["", f"401 Authorization: Bearer {KEY}", "", ""],
        # Where people leave them.
        "api_key": KEY,
        "OPENAI_API_KEY": KEY,
        "headers": {"Authorization": f"Bearer {KEY}", "X": [{"x-api-key": KEY}]},
        "command": f"vllm bench serve --api-key {KEY} --header password={PASSWORD} --model m",
        "argv": ["vllm", "bench", "serve", "--api-key", KEY, f"--token={KEY}"],
        "env": {"HF_TOKEN": KEY, "DB_PASSWORD": PASSWORD, "nested": {"deep": {"secret": KEY}}},
        "base_url": f"https://user:{PASSWORD}@host.example/v1?api_key={KEY}&x=1",
        "label": f"run with --api-key {KEY}",
        "backend": f"openai?token={KEY}",
        "extra_body": json.dumps({"api_key": KEY, "password": PASSWORD, "prompt": PROMPT}),
        "curl": f"curl -u me:{PASSWORD} -H 'Authorization: Token {KEY}' http://h/v1?key={KEY}",
        "config": {"auths": {"h": {"auth": PASSWORD}}, "token": {"value": KEY}, "jwt": [KEY]},
        "variables": [{"key": "HF_TOKEN", "value": PASSWORD}, ["x-api-key", PASSWORD]],
        "escaped": json.dumps(json.dumps({"openai_key": PASSWORD})),
        "user_prompt": PROMPT,
        "conversation": [PROMPT, REPLY],
        "unknown": f"{PROMPT} and nobody ever knew what had become of the tin. " * 5,
        "prompt": PROMPT,
        "prompts": [PROMPT],
        "messages": [{"role": "user", "content": PROMPT}],
        "requests": [{"prompt": PROMPT, "outputs": [{"text": REPLY}], "response": REPLY}],
        "metadata": {"note": f"api_key={KEY}", "question": PROMPT, "answer": REPLY},
    }


def as_csv() -> str:
    headers = ["engine", "max_concurrency", "output_throughput", "api_key", "prompt", "command"]
    row = ["vllm", "4", "40.0", KEY, PROMPT, f"serve --api-key {KEY} --password {PASSWORD}"]
    out = io.StringIO()
    csv.writer(out).writerows([headers, row])
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "files"
    place.mkdir()
    (place / "r.json").write_text(json.dumps(a_record()))
    (place / "nan.json").write_text(json.dumps(a_record() | {"duration": 11.0, "x": float("nan")}))
    (place / "r.csv").write_text(as_csv())
    (place / "unknown.json").write_text(json.dumps({"api_key": KEY, "prompt": PROMPT}))
    (place / "env.txt").write_text(f"export OPENAI_API_KEY={KEY}\nexport DB_PASS={PASSWORD}\n")
    (place / "headers.csv").write_text(f"HF_TOKEN={KEY},PGPASSWORD={PASSWORD},x\n1,2,3\n")
    (place / "keys.json").write_text(json.dumps({f"api_key={KEY}": 1, "x": PASSWORD[:3]}))
    (place / "broken.json").write_text(json.dumps(a_record())[:-40])
    return place


def holds(data: bytes) -> list[str]:
    """Which of the planted texts, or a part that gives them away, are in some bytes."""
    parts = {text[:12]: text for text in PLANTED} | {text[-12:]: text for text in PLANTED}
    return sorted({text for part, text in parts.items() if part.encode() in data})


def test_planted_secrets_and_texts_are_nowhere(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture
) -> None:
    path = tmp_path / "store.duckdb"
    with caplog.at_level(logging.DEBUG):
        store = Store.open(path)
        report = import_paths(store, [folder], "s")
        assert report.imported >= 2
        revised = {r.run_id: r for r in store.study("s").runs}
        exports = {table: store.export(table) for table in EXPORTS}
        with store._cursor() as cursor:
            kept = cursor.execute("SELECT redacted FROM sources WHERE redacted IS NOT NULL")
            documents = [
                pa.CompressedInputStream(pa.BufferReader(blob), "zstd").read()
                for (blob,) in kept.fetchall()
            ]
            tables = cursor.execute("SELECT table_name FROM information_schema.tables").fetchall()
            rows = [cursor.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables]
    assert len(documents) >= 2
    for table, data in exports.items():
        found = pa.parquet.read_table(io.BytesIO(data)).to_pylist()
        assert not holds(data + repr(found).encode()), table
    for document in documents:
        assert not holds(document)
    assert not holds(repr(rows).encode())
    assert not holds(repr(list(revised.values())).encode())
    files = [path, path.with_suffix(".duckdb.wal")]
    assert files[0].exists()
    assert not any(holds(file.read_bytes()) for file in files if file.exists())
    store.close()
    assert not holds(path.read_bytes())
    printed = capfd.readouterr()
    assert not holds((caplog.text + printed.out + printed.err).encode())
    assert not holds(repr(asdict(report)).encode())
