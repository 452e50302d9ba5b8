import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.reading import Reading, read
from lib.results.tools import specforge
from lib.run import LoadKind, SpecState

FILE = Path(__file__).resolve().parents[4] / "shared/corpus/specforge/spec_bundle_data.json"
needs_corpus = pytest.mark.skipif(not FILE.is_file(), reason="no shared corpus beside the project")
DRAFT = "someone/SGLang-EAGLE3-Target-8B"


def setting(steps: int | None, topk: int | None, length: float, tps: float) -> dict[str, Any]:
    return {
        "batch_size": 8,
        "steps": steps,
        "topk": topk,
        "num_draft_tokens": None if steps is None else steps + 1,
        "metrics": [
            {"Name": "Wihtout EAGLE3", "output_throughput": 1000.0, "accept_length": 1.0},
            {"Name": DRAFT, "output_throughput": tps, "accept_length": length},
        ],
    }


def page() -> dict[str, Any]:
    results = [setting(3, 1, 2.64, 1488.0), setting(5, 3, 2.53, 1491.0)]
    held = {"benchmark_name": "gsm8k", "results": results}
    return {"Target-8B": {"gsm8k": held, "math500": json.loads(json.dumps(held))}}


def reading(document: object) -> Reading:
    return read("data.json", json.dumps(document).encode())


def test_the_page_counts_its_baseline_once() -> None:
    found = reading(page())
    assert len(found.runs) == 6, "two data sets of a baseline and two settings"
    base, chain, tree = found.runs[:3]
    assert base.spec_state is SpecState.OFF
    assert (base.output_tps, base.num_speculative_tokens, base.draft_model) == (1000.0, None, None)
    assert (chain.spec_state, chain.draft_method, chain.draft_model) == (
        SpecState.ON,
        "eagle3",
        DRAFT,
    )
    assert (chain.num_speculative_tokens, chain.draft_topk, chain.accept_length) == (3, 1, 2.64)
    assert (tree.num_speculative_tokens, tree.draft_topk) == (5, 3)
    assert (chain.load_kind, chain.offered_load) == (LoadKind.BATCH, 8.0)
    assert (chain.target, chain.dataset, chain.domain) == ("Target-8B", "gsm8k", "gsm8k")
    assert chain.engine == "SGLang"
    assert chain.extra == '{"num_draft_tokens":4.0}'
    assert "2 repeats" in next(f.message for f in found.flags if f.code == "repeated_in_file")
    assert len({r.run_id for r in found.runs}) == 6
    assert {k.field for k in found.keys} >= {"target", "dataset", "accept_length", "output_tps"}


def test_a_baseline_that_differs_is_another_run() -> None:
    document = page()
    document["Target-8B"]["gsm8k"]["results"][1]["metrics"][0]["output_throughput"] = 900.0
    off = [r for r in reading(document).runs if r.spec_state is SpecState.OFF]
    assert sorted(r.output_tps or 0 for r in off if r.dataset == "gsm8k") == [900.0, 1000.0]


def test_a_baseline_that_accepted_drafts_is_none() -> None:
    document = page()
    document["Target-8B"]["gsm8k"]["results"][0]["metrics"][0]["accept_length"] = 2.0
    first = reading(document).runs[0]
    assert first.spec_state is SpecState.UNKNOWN


def bench(**metric: Any) -> dict[str, Any]:
    measured = {
        "latency": 12.5,
        "output_throughput": 400.0,
        "accept_length": 2.9,
        "accuracy": 0.8,
        "num_questions": 80,
        "num_valid_predictions": 0,
        "categorical_performance": None,
    } | metric

    def row(steps: int | None, length: float) -> dict[str, Any]:
        return {
            "batch_size": 4,
            "steps": steps,
            "topk": steps and 1,
            "num_draft_tokens": None if steps is None else steps and steps + 1,
            "metrics": [measured | {"accept_length": length}],
            "num_samples": 80,
        }

    return {"model": DRAFT, "mtbench": [row(0, 1.0), row(3, 2.9), row(None, 1.0), row(None, 2.9)]}


def test_bench_eagle3() -> None:
    off, on, silent, told = reading(bench()).runs
    assert off.spec_state is SpecState.OFF, "steps 0 start the server without it"
    assert (on.spec_state, on.num_speculative_tokens, on.draft_model) == (SpecState.ON, 3, DRAFT)
    assert (on.duration_s, on.output_tps, on.num_prompts) == (12.5, 400.0, 80)
    assert (on.dataset, on.target, on.accept_length) == ("mtbench", None, 2.9)
    assert silent.spec_state is SpecState.UNKNOWN
    assert told.spec_state is SpecState.ON, "more than one token a round"
    assert '"accuracy":0.8' in (on.extra or "")


def test_other_files_are_not_claimed() -> None:
    assert not specforge.recognise([{"a": {"b": {"results": [1]}}}])
    assert not specforge.recognise([{"benchmarks": [{"metrics": []}]}])
    assert not specforge.recognise([[]])
    assert not specforge.recognise([{}, {}])


@needs_corpus
def test_the_corpus() -> None:
    found = read("data.json", FILE.read_bytes())
    off = [r for r in found.runs if r.spec_state is SpecState.OFF]
    on = [r for r in found.runs if r.spec_state is SpecState.ON]
    assert (len(off), len(on)) == (60, 440), "one baseline a model and data set"
    assert all(r.accept_length and r.accept_length >= 1 and r.draft_model for r in on)
    assert {r.num_speculative_tokens for r in on} == {3, 5, 7}
    assert {r.offered_load for r in found.runs} == {1.0, 8.0}
