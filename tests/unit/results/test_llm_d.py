import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.reading import Reading, read
from lib.results.tools import llm_d
from lib.run import LoadKind, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
HERE = FIXTURES / "llm_d"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


def of(path: Path) -> Reading:
    return read(path.name, path.read_bytes())


@pytest.fixture
def report() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((HERE / "report_v0_2_1.json").read_bytes())
    return loaded


def reading(document: object) -> Reading:
    return read("r.json", json.dumps(document).encode())


def codes(found: Reading) -> list[str]:
    return [flag.code for flag in found.flags]


def aggregate(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["results"]["request_performance"]["aggregate"]
    return found


def component(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["scenario"]["stack"][0]["standardized"]
    return found


def test_a_report() -> None:
    found = of(HERE / "report_v0_2_1.json")
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("llm-d-benchmark", "0.2.1")
    assert run.tool_version == "0.2.1, vllm-benchmark 0.11.0", "who made the load is protocol"
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 16.0)
    assert (run.completed, run.failed, run.output_tokens) == (480, 0, 30720)
    assert run.output_tps == pytest.approx(505.6)
    assert run.duration_s is None, "the report's time is the whole harness's"
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-12-01T02:22:00+00:00"
    assert (run.target, run.dataset) == ("example/target-8b", "sharegpt")
    assert (run.engine, run.engine_version) == ("vLLM", "0.11.0")
    assert (run.gpu, run.gpu_count, run.tensor_parallel) == ("NVIDIA-H100-80GB-HBM3", 8, 4)
    assert run.arm == "eagle3:4"
    assert run.max_num_seqs == 128
    assert not found.flags


def test_units_are_obeyed() -> None:
    """ms, s/token, ms/token and s side by side."""
    (run,) = of(HERE / "report_v0_2_1.json").runs
    assert (run.ttft_ms_mean, run.tpot_ms_mean) == (pytest.approx(30.0), pytest.approx(7.14))
    assert (run.itl_ms_p90, run.e2e_ms_p99) == (pytest.approx(7.92), pytest.approx(576.0))


def test_an_unknown_unit_is_left_empty(report: dict[str, Any]) -> None:
    latency = aggregate(report)["latency"]
    latency["time_to_first_token"]["units"] = "percent"
    del latency["request_latency"]["units"]
    aggregate(report)["throughput"]["output_token_rate"]["units"] = "tokens/min"
    found = reading(report)
    (run,) = found.runs
    assert (run.ttft_ms_mean, run.e2e_ms_mean, run.output_tps) == (None,) * 3
    assert run.tpot_ms_mean == pytest.approx(7.14)
    (flag,) = (f for f in found.flags if f.code == "unknown_unit")
    assert "time_to_first_token in percent" in flag.message


def test_the_normalised_time_is_not_the_canonical_one(report: dict[str, Any]) -> None:
    del aggregate(report)["latency"]["time_per_output_token"]
    (run,) = reading(report).runs
    assert run.tpot_ms_mean is None, "the normalised one includes the first token"


def test_guidellm_names_its_latencies_otherwise(report: dict[str, Any]) -> None:
    report["scenario"]["load"]["standardized"]["tool"] = "guidellm"
    (run,) = reading(report).runs
    assert (run.tpot_ms_mean, run.itl_ms_mean) == (pytest.approx(7.2), None)


def test_end_to_end_seconds_called_milliseconds(report: dict[str, Any]) -> None:
    aggregate(report)["latency"]["request_latency"]["units"] = "ms"
    found = reading(report)
    assert found.runs[0].e2e_ms_mean is None
    assert "unknown_unit" in codes(found)


@pytest.mark.parametrize(
    ("count", "replicas", "parallelism", "gpus"),
    [
        (4, 2, {"tp": 4, "dp_local": 1, "workers": 1}, 8),  # of a replica
        (8, 2, {"tp": 4, "dp_local": 1, "workers": 1}, 8),  # of all
        (8, 1, {"tp": 4, "dp_local": 2, "workers": 2}, 16),  # of one node of two
        (8, 1, {}, 8),
        (8, 2, {}, None),
        (0, 1, {"tp": 1}, None),
    ],
)
def test_gpus_are_counted_once(
    report: dict[str, Any], count: int, replicas: int, parallelism: dict[str, int], gpus: int | None
) -> None:
    component(report)["replicas"] = replicas
    component(report)["accelerator"] |= {"count": count, "parallelism": parallelism}
    found = reading(report)
    assert found.runs[0].gpu_count == gpus
    assert ("gpu_count_unclear" in codes(found)) == (count > 0 and gpus is None)


def test_prefill_and_decode_are_summed(report: dict[str, Any]) -> None:
    second = json.loads(json.dumps(report["scenario"]["stack"][0]))
    second["standardized"] |= {"role": "decode", "replicas": 1}
    second["standardized"]["accelerator"] |= {"count": 2, "parallelism": {"tp": 2}}
    report["scenario"]["stack"].append(second)
    (run,) = reading(report).runs
    assert (run.gpu_count, run.tensor_parallel) == (10, None)
    assert run.gpu == "NVIDIA-H100-80GB-HBM3"


def test_no_speculative_argument_is_no_off(report: dict[str, Any]) -> None:
    del report["scenario"]["stack"][0]["native"]["args"]["speculative-config"]
    assert reading(report).runs[0].spec_state is SpecState.UNKNOWN


@pytest.mark.parametrize(
    ("rate", "concurrency", "tool", "load"),
    [
        (8.0, None, "vllm-benchmark", (LoadKind.REQUEST_RATE, 8.0)),
        (8.0, 64, "vllm-benchmark", (LoadKind.REQUEST_RATE, 8.0)),
        (480.0, 16, "inference-perf", (LoadKind.CONCURRENCY, 16.0)),
        ("inf", None, "vllm-benchmark", (LoadKind.REQUEST_RATE, float("inf"))),
        (None, None, "nop", (None, None)),
    ],
)
def test_loads(
    report: dict[str, Any], rate: object, concurrency: object, tool: str, load: tuple[Any, Any]
) -> None:
    standardized = report["scenario"]["load"]["standardized"]
    standardized |= {"rate_qps": rate, "concurrency": concurrency, "tool": tool}
    (run,) = reading(report).runs
    assert (run.load_kind, run.offered_load) == load


def test_version_0_1() -> None:
    found = of(HERE / "report_v0_1.yaml")
    (run,) = found.runs
    assert found.tool_version == "0.1"
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 8.0), "its own stage's"
    assert (run.gpu, run.gpu_count) == ("NVIDIA-H100-80GB-HBM3", 8), "two hosts of four"
    assert (run.engine, run.engine_version, run.tensor_parallel) == ("vLLM", "0.11.0", 4)
    assert run.output_tps == pytest.approx(505.6)
    assert run.tpot_ms_mean == pytest.approx(7.14)
    assert run.started_at is not None
    assert run.started_at.year == 2025


def test_a_partial_report_is_the_stage_it_tells_of() -> None:
    found = of(HERE / "inference-perf.partial.stage_0.yaml")
    (run,) = found.runs
    (stage,) = of(FIXTURES / "inference_perf" / "stage_0_lifecycle_metrics.json").runs
    assert run.run_id == stage.run_id
    assert (run.load_kind, run.target, run.gpu_count) == (None,) * 3
    assert run.zone_known


def test_a_report_without_performance_is_protocol(report: dict[str, Any]) -> None:
    report["results"] = {"observability": {}}
    found = reading(report)
    assert (found.runs, codes(found)) == ((), ["not_a_run"])
    assert found.beside is not None
    assert found.beside.fields["gpu_count"] == 8
    assert found.beside.fields["spec_state"] is SpecState.ON


def test_secrets_of_the_environment_are_not_kept() -> None:
    data = (HERE / "report_v0_2_1.json").read_bytes()
    assert b"a-secret-of-ours" in data
    found = read("r.json", data)
    assert "a-secret-of-ours" not in repr(found.runs) + repr(found.flags)


def test_levels_are_what_is_read() -> None:
    for name, level in (("report_v0_1.yaml", "0.1"), ("report_v0_2_1.json", "0.2.1")):
        table = {(k.field, k.path) for k in llm_d.LEVELS[level]}
        assert {(k.field, k.path) for k in of(HERE / name).keys} <= table


@needs_corpus
@pytest.mark.parametrize("version", ["0_1", "0_2", "0_2_1"])
def test_schemas_are_told(version: str) -> None:
    found = of(CORPUS / "llm-d" / f"br_v{version}.schema.json")
    assert (found.runs, found.tool, found.flags[0].code) == ((), "llm-d-benchmark", "not_a_run")
    assert "JSON Schema" in found.flags[0].message


def test_a_schema_is_told() -> None:
    schema = {"$defs": {}, "properties": {"version": {}}, "title": "Benchmark Report v0.2"}
    assert "JSON Schema" in reading(schema).flags[0].message
