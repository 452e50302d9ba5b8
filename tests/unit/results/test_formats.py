"""The page of what is read: every field that a reader sets has a row that says where from."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lib.errors import DraftworthError
from lib.results import formats
from lib.results.fields import STATED
from lib.results.reading import Reading, read
from lib.results.tools import READERS, sglang_batch, sglang_bench
from lib.run import Run, SpecState

TESTS = Path(__file__).resolve().parents[2]
SHARED = TESTS.parent / ".." / "shared"
FIXTURES = sorted(p for p in (TESTS / "fixtures").rglob("*.*") if p.is_file())
# What the import sets itself, and what says nothing of a run.
_OWN = {
    *("run_id", "source_sha256", "tool", "tool_version", "study", "zone_known", "extra"),
}
_BY_TOOL: dict[str | None, list[ModuleType]] = {sglang_batch.TOOL: [sglang_bench]}
for _reader in READERS:
    _BY_TOOL.setdefault(_reader.TOOL, []).append(_reader)


def rows_of(tool: str) -> set[str]:
    """Fields that the page has a row for; where people name fields, the set-up's are among them."""
    keys = [k for r in _BY_TOOL[tool] for level in r.LEVELS.values() for k in level]
    by_hand = any("any field of the set-up" in k.note for k in keys)
    return {k.field for k in keys} | (STATED if by_hand else set())


def set_by(found: Reading) -> Iterator[str]:
    """Fields of the runs that the reader filled, and those that it says of runs beside."""
    for run in found.runs:
        for f in fields(Run):
            if getattr(run, f.name) not in (None, SpecState.UNKNOWN):
                yield f.name
    if found.beside is not None:
        yield from (n for n, value in found.beside.fields.items() if value is not None)


def missing(name: str, data: bytes) -> set[str]:
    try:
        found = read(name, data, keep=False)
    except DraftworthError:
        return set()
    if found.tool == "table":
        return set()
    return set(set_by(found)) - _OWN - rows_of(found.tool)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_field_of_a_fixture_has_a_row(path: Path) -> None:
    assert missing(path.name, path.read_bytes()) == set()


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared files beside the project")
def test_every_field_of_a_shared_file_has_a_row() -> None:
    for folder in ("corpus", "sweeps"):
        for path in sorted((SHARED / folder).rglob("*.*")):
            if path.is_file():
                assert missing(path.name, path.read_bytes()) == set(), path


_TIMINGS = {
    **{"prompt_n": 20, "prompt_ms": 30.0, "predicted_n": 48, "predicted_ms": 480.0},
    **{"predicted_per_second": 100.0, "draft_n": 60, "draft_n_accepted": 30},
}
_ASKED = {
    **{"category": "math", "turns": 1, "ok": True, "latency_s": 0.5, "prompt_tokens": 20},
    **{"completion_tokens": 48, "predicted_ms": 480.0, "draft_n": 60, "draft_n_accepted": 30},
}
_ANSWER = {
    "question_id": 1,
    "model_id": "m",
    "choices": [{"new_tokens": [10], "wall_time": [1.0], "accept_lengths": [3, 3, 4]}],
}
_LLAMA_BENCH = {
    **{"build_commit": "abc", "build_number": 1, "model_filename": "m.gguf", "n_prompt": 0},
    **{"n_gen": 128, "avg_ns": 10**9, "avg_ts": 128.0, "test_time": "2026-01-11T09:48:42Z"},
    "gpu_info": "L4",
}
_SPECFORGE = {
    "model": "acme/EAGLE3-8b",
    "gsm8k": [
        {
            **{"batch_size": 1, "steps": 3, "topk": 1, "num_draft_tokens": 4},
            "metrics": [{"latency": 1.0, "output_throughput": 100.0, "accept_length": 2.5}] * 2,
        }
    ],
}
_SECONDS = {
    **{"date": "20260101-120000", "model_id": "m", "completed": 8, "output_throughput": 100.0},
    **{"duration": 10.0, "total_input_tokens": 80, "total_output_tokens": 1000, "num_prompts": 8},
    **{"request_throughput": 0.8, "request_rate": 1.0, "median_ttft": 0.03, "mean_tpot": 0.01},
}
_METRICS = """# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{model_name="m"} 1000
vllm:spec_decode_num_draft_tokens_total{model_name="m"} 3000
vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 1500
vllm:generation_tokens_total{model_name="m"} 2600
"""
_CONSOLE = "n_draft = 8\nn_predict = 100\nn_drafted = 160\nn_accept = 80\naccept = 50.000%\n"
_LOG = (
    "prompt eval time = 30.0 ms / 20 tokens\neval time = 480.0 ms / 48 tokens\n"
    "draft acceptance rate = 0.5 ( 30 accepted / 60 generated)\n"
)


@pytest.mark.parametrize(
    ("tool", "document"),
    [
        ("llama.cpp", {"model": "m", "timings": _TIMINGS}),
        (
            "llama.cpp",
            {
                "config": {"concurrency": 2, "model": "m", "bench": "qualitative"},
                **{"selected_samples": 1, "completed_samples": 1, "summary": {}},
                "results": [_ASKED, _ASKED],
            },
        ),
        ("llama.cpp", _CONSOLE),
        ("llama.cpp", _LOG),
        ("spec-bench", _ANSWER),
        ("llama-bench", [_LLAMA_BENCH]),
        ("specforge", _SPECFORGE),
        ("inferencex", _SECONDS),
        ("prometheus", _METRICS),
    ],
)
def test_every_field_of_other_tools_has_a_row(tool: str, document: Any) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    found = read("f", text.encode())
    assert found.tool == tool
    assert len(found.runs) > 0
    assert missing("f", text.encode()) == set()


def test_a_row_is_a_field_and_a_place() -> None:
    names = {f.name for f in fields(Run)}
    for reader in READERS:
        for level in reader.LEVELS.values():
            assert all(k.field in names and k.path and all(k.path) for k in level)


def test_what_counts_of_several_rows_is_said_once() -> None:
    assert formats.markdown().count("the first that a file has counts") == 1
