import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.reading import Reading, read
from lib.results.tools import inferencex
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "inferencex"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "inferencex"

SECONDS: dict[str, Any] = {
    "date": "20260214-101500",
    "model_id": "acme/target-8b",
    "num_prompts": 40,
    "request_rate": "inf",
    "max_concurrency": 4,
    "duration": 32.0,
    "completed": 40,
    "good_completed": None,
    "total_input_tokens": 40960,
    "total_output_tokens": 5120,
    "request_throughput": 1.25,
    "request_goodput": None,
    "output_throughput": 160.0,
    "median_ttft": 0.25,
    "p99_ttft": 0.5,
    "median_tpot": 0.02,
    "p99_e2el": 3.5,
}


def aggregated(at: int = 0, **changes: Any) -> dict[str, Any]:
    return json.loads((FIXTURES / "collected.json").read_text())[at] | changes


def reading(record: object) -> Reading:
    return read("f.json", json.dumps(record).encode())


def run_of(record: object) -> Run:
    (run,) = reading(record).runs
    return run


def test_a_collected_list() -> None:
    found = read("f.json", (FIXTURES / "collected.json").read_bytes())
    assert (found.tool, found.tool_version) == ("inferencex", inferencex.AGGREGATED)
    one, many = found.runs
    assert (one.gpu, one.gpu_count, one.tensor_parallel) == ("h200", 8, 8)
    assert one.output_tps == 150.0 * 8, "never tput_per_gpu, which counts input tokens"
    assert (one.load_kind, one.offered_load) == (LoadKind.CONCURRENCY, 16.0)
    assert (one.target, one.target_quantization) == ("acme/target-8b", "fp8")
    assert (one.engine, one.build) == ("vLLM", "acme/vllm:v1")
    assert (one.input_len, one.output_len) == (1024.0, 512.0)
    assert (one.spec_state, one.arm) == (SpecState.OFF, "off")
    assert (one.ttft_ms_mean, one.tpot_ms_p50) == (pytest.approx(200.0), pytest.approx(9.0))
    assert one.e2e_ms_p99 == pytest.approx(3300.0)
    assert (one.power_w, one.energy_j) == (4000.0, 120_000.0)
    assert set(found.keys) <= set(inferencex.LEVELS[inferencex.AGGREGATED])
    assert (many.gpu_count, many.output_tps) == (24, 450.0 * 16), "decode GPUs make the output"
    assert (many.spec_state, many.draft_method) == (SpecState.ON, "mtp")
    assert many.num_speculative_tokens is None
    assert (many.engine, many.tensor_parallel) == ("TensorRT-LLM", None)
    assert (many.power_w, many.energy_j) == (None, None), "power_valid is 0"
    assert not any("intvty" in (r.extra or "") for r in found.runs)
    assert json.loads(many.extra or "")["framework"] == "dynamo-trt"


def test_a_single_object_is_the_same_run() -> None:
    listed = read("f.json", (FIXTURES / "collected.json").read_bytes()).runs
    assert run_of(aggregated()).run_id == listed[0].run_id
    assert run_of(aggregated(output_tput_per_gpu=151.0)).run_id != listed[0].run_id


@pytest.mark.parametrize(
    ("changes", "gpus", "tps"),
    [
        ({"pp": 2}, 16, 2400.0),
        ({"pp": 2, "pcp_size": 2}, 32, 4800.0),
        ({"tp": None}, None, None),
        ({"tp": 0}, None, None),
        ({"disagg": True}, None, None),
        ({"num_prefill_gpu": 8, "num_decode_gpu": 0}, 8, 1200.0),
        ({"num_prefill_gpu": 8}, None, None),
    ],
)
def test_the_gpus_that_the_rate_is_divided_by(
    changes: dict[str, Any], gpus: int | None, tps: float | None
) -> None:
    found = reading(aggregated(**changes))
    (run,) = found.runs
    assert (run.gpu_count, run.output_tps) == (gpus, tps)
    assert ("gpus_unknown" in {f.code for f in found.flags}) is (tps is None)
    if tps is None:
        assert json.loads(run.extra or "")["output_tput_per_gpu"] == 150.0


@pytest.mark.parametrize(
    ("said", "state", "method"),
    [
        ({"spec_decoding": "none"}, SpecState.OFF, None),
        ({"spec_decoding": "mtp"}, SpecState.ON, "mtp"),
        ({"spec_decoding": "eagle"}, SpecState.ON, "eagle"),
        ({"spec_decoding": "novel thing"}, SpecState.ON, "novel thing"),
        ({"spec_decoding": None}, SpecState.UNKNOWN, None),
        ({"spec_decoding": None, "mtp": "on"}, SpecState.ON, "mtp"),
        ({"spec_decoding": None, "mtp": "off"}, SpecState.OFF, None),
    ],
)
def test_what_is_said_of_speculation(
    said: dict[str, Any], state: SpecState, method: str | None
) -> None:
    run = run_of(aggregated(**said))
    assert (run.spec_state, run.draft_method) == (state, method)


def test_a_result_in_seconds() -> None:
    found = reading(SECONDS)
    (run,) = found.runs
    assert found.tool_version == inferencex.SECONDS
    assert (run.ttft_ms_p50, run.ttft_ms_p99, run.ttft_ms_mean) == (250.0, 500.0, None)
    assert (run.tpot_ms_p50, run.e2e_ms_p99) == (20.0, 3500.0)
    assert (run.output_tps, run.output_len, run.completed) == (160.0, 128.0, 40)
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 4.0)
    assert run.started_at is not None
    assert not run.zone_known
    assert run.spec_state is SpecState.UNKNOWN
    rate = run_of(SECONDS | {"request_rate": 2.0})
    assert (rate.load_kind, rate.achieved_load) == (LoadKind.REQUEST_RATE, 1.25)


def test_vllms_own_result_is_not_taken() -> None:
    own = {k: v for k, v in SECONDS.items() if "_ttft" not in k and "tpot" not in k}
    assert reading(own | {"mean_ttft_ms": 250.0, "p99_e2el": 3.5}).tool == "vllm-bench-serve"
    with pytest.raises(UnknownFormat):
        reading({"hw": "h200", "conc": 4, "framework": "vllm"})


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 0, 1e308, True])
def test_wrong_values_break_nothing(value: object) -> None:
    for record in (aggregated(0), aggregated(1), SECONDS):
        for key in record:
            reading(record | {key: value})
        with suppress(UnknownFormat):  # where nothing is left that was measured
            reading(dict.fromkeys(record, value))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no collected files here")
@pytest.mark.parametrize(
    ("load", "tps", "ttft", "tpot"), [(4, 164.73, 265.0, 21.37), (8, 294.1, 263.14, 24.73)]
)
def test_collected_files(load: int, tps: float, ttft: float, tpot: float) -> None:
    (run,) = read("f", (CORPUS / f"glm5-seconds-c{load}.json").read_bytes()).runs
    assert (run.offered_load, run.output_len) == (load, 128.0)
    assert run.output_tps == pytest.approx(tps, abs=0.01)
    assert run.ttft_ms_p50 == pytest.approx(ttft, abs=0.01)
    assert run.tpot_ms_p50 == pytest.approx(tpot, abs=0.01)
    assert run.target == "zai-org/GLM-5-FP8"
