import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.acceptance_checks import tokens_per_round
from lib.results.reading import Reading, read
from lib.results.tools import trtllm_bench
from lib.run import Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "trtllm"


def report(**changes: Any) -> dict[str, Any]:
    return json.loads((FIXTURES / "report.json").read_text()) | changes


def reading(record: object) -> Reading:
    return read("f.json", json.dumps(record).encode())


def run_of(record: object) -> Run:
    (run,) = reading(record).runs
    return run


def codes(found: Reading) -> set[str]:
    return {f.code for f in found.flags}


def test_a_report() -> None:
    found = reading(report())
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("trtllm-bench", "1.2.0")
    assert (run.engine, run.engine_version) == ("TensorRT-LLM", "1.2.0")
    assert (run.target, run.target_quantization) == ("acme/target-8b", "FP8")
    assert (run.gpu, run.gpu_count, run.tensor_parallel) == ("NVIDIA H200", 2, 2)
    assert (run.max_num_seqs, run.dataset) == (64, "chat.jsonl")
    assert (run.completed, run.input_len, run.output_len) == (100, 512.0, 200.0)
    assert (run.duration_s, run.request_rps) == (10.0, 10.0)
    assert run.output_tps == 2000.0, "neither the total nor a rate per GPU or user"
    assert (run.output_tokens, run.token_count) == (20_000, "server")
    assert (run.e2e_ms_mean, run.ttft_ms_mean, run.tpot_ms_mean) == (1540.0, 50.0, 7.5)
    assert run.tpot_ms_p50 == pytest.approx(6.75)
    assert run.tpot_ms_p99 == pytest.approx(10.5)
    assert run.itl_ms_mean is None
    extra = json.loads(run.extra or "")
    assert extra["performance.output_throughput_per_gpu_tok_s"] == 1000.0
    assert extra["performance.system_total_throughput_tok_s"] == 7120.0
    assert set(found.keys) <= set(trtllm_bench.LEVELS[trtllm_bench.NEW])


def test_the_load_is_not_stated() -> None:
    found = reading(report())
    (run,) = found.runs
    assert (run.load_kind, run.offered_load, run.running_mean) == (None, None, 15.4)
    assert "load_not_stated" in codes(found)


def test_counts_of_the_newer_statistics() -> None:
    """Means of the requests times the requests; iterations are output less accepted tokens."""
    run = run_of(report())
    assert (run.spec_state, run.draft_method) == (SpecState.ON, "eagle3")
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (8000, 24_000, 12_000)
    assert (run.num_speculative_tokens, run.accept_rate) == (3, 0.5)
    assert run.accept_length == 2.5 == 20_000 / 8000 == tokens_per_round(run)


@pytest.mark.parametrize(
    "stats",
    [
        {"mode": "Eagle3", "acceptance_percentiles": {"average": 2.4, "p50": 2.3}},
        {"mode": "Eagle3", "acceptance_rate": 2.4},
    ],
)
def test_what_older_versions_call_a_rate_is_a_length(stats: dict[str, Any]) -> None:
    """C01: trtllm-bench's acceptance rate is output tokens over iterations."""
    found = reading(report(decoding_stats=stats))
    (run,) = found.runs
    assert (run.accept_length, run.accept_rate) == (2.4, None)
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (None, None, None)
    assert "rate_is_length" in codes(found)
    assert set(found.keys) <= set(trtllm_bench.LEVELS[trtllm_bench.OLD])


def test_without_decoding_statistics_nothing_is_said_of_speculation() -> None:
    plain = report()
    del plain["decoding_stats"], plain["streaming_metrics"], plain["machine"]
    run = run_of(plain)
    assert run.spec_state is SpecState.UNKNOWN
    assert (run.ttft_ms_mean, run.tpot_ms_mean, run.gpu) == (None, None, None)


def test_counts_that_make_no_whole_k_are_left_out() -> None:
    stats = report()["decoding_stats"]
    run = run_of(report(decoding_stats=stats | {"num_draft_tokens_percentiles": {"average": 200}}))
    assert (run.drafts, run.num_speculative_tokens) == (None, None)
    assert run.accept_length == 2.5


def test_the_same_report_is_the_same_run() -> None:
    found = reading([report(), report()])
    assert len(found.runs) == 1
    assert found.runs[0].run_id == run_of(report()).run_id
    assert "repeated_in_file" in codes(found)


def test_a_file_of_requests_is_no_run() -> None:
    record = {
        "id": 1,
        "num_input_tokens": 10,
        "start_timestamp": 1,
        "end_timestamp": 2,
        "decode_iteration": 3,
        "output": "text",
    }
    found = reading([record])
    assert not found.runs
    assert codes(found) == {"sidecar"}


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 0, 1e308, True])
def test_wrong_values_break_nothing(value: object) -> None:
    whole = report()
    for part, inner in whole.items():
        if part != "performance":
            reading(report(**{part: value}))
        for key in inner:
            reading(report(**{part: inner | {key: value}}))
