"""A recognised file whose outcomes have moved is refused; so is a log, as what it is."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results import outcomes
from lib.results.findings import Findings
from lib.results.reading import read
from lib.run import Run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def load(path: str) -> Any:
    return json.loads((FIXTURES / path).read_bytes())


def guidellm() -> Any:
    return load("guidellm/k4-c8-r1.json")


def refused(document: Any) -> UnknownFormat:
    with pytest.raises(UnknownFormat) as caught:
        read("f.json", json.dumps(document).encode())
    assert "\n" not in str(caught.value)
    return caught.value


def renamed_group(report: Any) -> Any:
    for item in report["benchmarks"]:
        item["outcome"] = item.pop("metrics")
    return report


def renamed_metrics(report: Any) -> Any:
    for item in report["benchmarks"]:
        item["metrics"] = {f"{k}_new": v for k, v in item["metrics"].items()}
    return report


@pytest.mark.parametrize("change", [renamed_group, renamed_metrics])
def test_a_report_of_guidellm_with_outcomes_elsewhere(change: Callable[[Any], Any]) -> None:
    error = refused(change(guidellm()))
    said = str(error)
    assert said.startswith("f.json: recognised as guidellm 0.8.1 (")
    assert "but nothing was measured where that version writes it; keys found: " in said
    assert error.columns, "a person may map it by hand"


def test_a_stage_of_inference_perf_with_outcomes_elsewhere() -> None:
    stage = load("inference_perf/stage_0_lifecycle_metrics.json")
    for name in ("latency", "throughput"):
        stage["successes"][f"{name}_s"] = stage["successes"].pop(name)
    assert "recognised as inference-perf 0.7 (load_summary, succ" in str(refused(stage))


def test_other_tools_with_outcomes_elsewhere() -> None:
    run = load("genai_bench/D32_48_concurrency_4.json")
    aggregated = run["aggregated_metrics"]
    for name in ("mean_output_throughput_tokens_per_s", "requests_per_second"):
        aggregated.pop(name, None)
    aggregated.pop("requests_per_minute", None)
    aggregated["stats"] = {f"{k}_new": v for k, v in aggregated["stats"].items()}
    run["individual_request_metrics"] = []
    assert "recognised as genai-bench" in str(refused(run))


def test_what_completed_nothing_is_no_other_version() -> None:
    record = load("vllm/off-c8.json") | {"completed": 0, "failed": 20}
    found = read("f.json", json.dumps(record).encode())
    assert "nothing_completed" in {f.code for f in found.flags}
    assert len(found.runs) == 1


def test_one_run_of_several_without_an_outcome_is_flagged() -> None:
    report = guidellm()
    second = copy.deepcopy(report["benchmarks"][0])
    second["config"]["id_"] = "another"
    second["metrics"] = {f"{k}_new": v for k, v in second["metrics"].items()}
    second["requests"] = {}
    report["benchmarks"].append(second)
    found = read("f.json", json.dumps(report).encode())
    (flag,) = [f for f in found.flags if f.code == "no_outcome"]
    assert (flag.severity, flag.run_id) == ("warns", found.runs[1].run_id)


@pytest.mark.parametrize(
    "held",
    [
        *({"output_tps": 1.0}, {"request_rps": 1.0}, {"goodput_rps": 0.0}, {"multiplier": 1.1}),
        *({"ttft_ms_p95": 1.0}, {"tpot_ms_mean": 1.0}, {"itl_ms_p50": 1.0}, {"e2e_ms_p99": 1.0}),
        *({"drafts": 1}, {"accepted_tokens": 1}, {"accept_length": 2.0}, {"histogram": (1, 2)}),
    ],
)
def test_what_counts_as_an_outcome(held: dict[str, Any]) -> None:
    plain = Run(run_id="r", output_tokens=5, output_len=5.0, duration_s=1.0, failed=0)
    assert not outcomes.is_measured(plain)
    assert outcomes.is_measured(Run(run_id="r", **held))
    empty = Findings("t", "1", "why", (plain,))
    assert outcomes.of_findings(empty) is None
    sidecar = Findings("t", "1", "why", ())
    assert outcomes.of_findings(sidecar) is sidecar


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            {"metadata": {"guidellm_version": "0.9.0", "version": 3}, "points": [{"x": 1}]},
            "guidellm version not recognised (version 3, guidellm_version 0.9.0)",
        ),
        (
            {"metadata": {"guidellm_version": "0.8.1", "version": 2}, "points": []},
            "guidellm version not recognised (version 2, guidellm_version 0.8.1)",
        ),
        (
            {"metadata": {"guidellm_version": "0.8.1", "version": 2}, "benchmarks": []},
            "a GuideLLM report without a benchmark in it",
        ),
    ],
)
def test_a_report_of_guidellm_in_another_shape(document: Any, says: str) -> None:
    assert says in str(refused(document))


SGLANG = """[2026-03-01 12:00:00] server_args=ServerArgs(model_path='m')
[2026-03-01 12:00:01 TP0] Decode batch. #running-req: 8, accept len: 2.17, gen throughput: 900
[2026-03-01 12:00:02 TP0] Decode batch. #running-req: 8, accept len: 2.18, gen throughput: 901
"""
VLLM = """INFO 03-01 12:00:00 [loggers.py:116] Engine 000: Avg generation throughput: 90.1 tokens/s
(EngineCore_0 pid=12) INFO 03-01 12:00:01 [core.py:1] SpecDecoding metrics: accept length: 2.16
(APIServer pid=1) INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK
"""
TRTLLM = "[03/01/2026-12:00:00] [TRT-LLM] [I] iter = 1, num_scheduled_requests: 8\n"


@pytest.mark.parametrize(
    "text",
    [
        *(SGLANG, VLLM, TRTLLM * 3),
        *(f"\ufeff\n{SGLANG}", f"Launching the server\n\n{VLLM}"),
        VLLM.splitlines()[2].partition(") ")[2] + "\n",
        "\x1b[36m(EngineCore pid=1)\x1b[0m INFO 03-01 12:00:00 [core.py:1] ready\n",
        "vllm-1  | INFO 03-01 12:00:00 [api_server.py:1] started\n" * 3,
        "2026-03-01 12:00:00,123 - vllm - INFO - started\n" * 2,
        "2026-03-01T12:00:00.123Z INFO router: ready\n",
        "[2026-03-01 12:00:00] only one line, cut",
    ],
)
def test_a_log_is_refused_as_a_log(text: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        read("server.log", text.encode())
    said = str(caught.value)
    assert said.startswith("server.log: looks like a log (")
    assert "import the result file that the benchmark wrote" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    [
        "started_at,concurrency,arm,tok/s\n2026-03-01 12:00:00,1,off,10\n"
        "2026-03-01 12:00:00,8,off,60\n",
        "started_at\tconcurrency\ttok/s\n2026-03-01T12:00:00Z\t1\t10\n",
        "info,concurrency,tok/s\nINFO,1,10\nINFO,2,20\n",
    ],
)
def test_tables_of_times_are_no_logs(text: str) -> None:
    assert read("t.csv", text.encode()).runs


def test_an_understated_tpot_is_not_called_the_one_that_compares() -> None:
    stage = load("inference_perf/stage_0_lifecycle_metrics.json")
    latency = stage["successes"]["latency"]
    latency["inter_token_latency"]["mean"] = 0.012
    latency["inter_token_latency"]["median"] = 0.012
    said = {f.code for f in read("f.json", json.dumps(stage).encode()).flags}
    assert "chunked_itl" in said
    latency["time_per_output_token"]["mean"] = 0.0034
    said = {f.code for f in read("f.json", json.dumps(stage).encode()).flags}
    assert "tpot_understated" in said
    assert "chunked_itl" not in said


def test_understated_tpot_says_which_way_and_by_how_much() -> None:
    stage = load("inference_perf/stage_0_lifecycle_metrics.json")
    stage["successes"]["latency"]["time_per_output_token"]["mean"] = 0.0034
    found = read("f.json", json.dumps(stage).encode())
    messages = {f.code: f.message for f in found.flags}
    run = found.runs[0]
    e2e, ttft, length = run.e2e_ms_mean, run.ttft_ms_mean, run.output_len
    made = ((e2e or 0) - (ttft or 0)) / ((length or 0) - 1)
    said = messages["tpot_understated"]
    assert f"is stated {1 - 3.4 / made:.0%} too low: 3.4 ms" in said
    assert f"(tokens - 1) is {made:.3g} ms, which is the one to compare" in said
    assert "compare end-to-end latency" not in said
