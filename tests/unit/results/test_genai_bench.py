import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.reading import Reading, read
from lib.results.tools import genai_bench
from lib.run import LoadKind, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "genai_bench"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


def of(path: Path) -> Reading:
    return read(path.name, path.read_bytes())


@pytest.fixture
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIXTURES / "D32_48_concurrency_4.json").read_bytes())
    return loaded


def reading(document: object) -> Reading:
    return read("r.json", json.dumps(document).encode())


def codes(found: Reading) -> list[str]:
    return [flag.code for flag in found.flags]


def test_a_run() -> None:
    found = of(FIXTURES / "D32_48_concurrency_4.json")
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("genai-bench", "with _time_unit")
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 4.0)
    assert (run.num_prompts, run.completed, run.failed, run.output_tokens) == (21, 20, 1, 960)
    assert (run.output_tps, run.duration_s) == (320.0, 3.0), "not the sum with the input's"
    assert (run.input_len, run.output_len, run.label) == (30.0, 48.0, "D(32,48)")
    assert (run.ttft_ms_mean, run.tpot_ms_mean) == (pytest.approx(30.0), pytest.approx(9.0))
    assert run.e2e_ms_p99 == pytest.approx(539.07)
    assert (run.itl_ms_mean, run.engine, run.gpu) == (None,) * 3
    assert run.spec_state is SpecState.UNKNOWN


def test_requests_of_a_run() -> None:
    found = of(FIXTURES / "D32_48_concurrency_4.json")
    table = found.requests[found.runs[0].run_id]
    assert table.column("ok").to_pylist() == [True] * 20 + [False]
    assert table.column("tpot_ms")[0].as_py() == pytest.approx(9.0)
    assert table.column("tpot_ms")[20].as_py() is None
    assert "arrival_s" not in table.column_names


def test_milliseconds_are_obeyed(document: dict[str, Any]) -> None:
    document["_time_unit"] = "ms"
    found = reading(document)
    assert found.runs[0].tpot_ms_mean == pytest.approx(0.009)
    table = found.requests[found.runs[0].run_id]
    assert table.column("e2e_ms")[0].as_py() == pytest.approx(0.453)


def test_without_a_unit_it_is_seconds(document: dict[str, Any]) -> None:
    del document["_time_unit"]
    found = reading(document)
    assert found.tool_version == "without _time_unit"
    assert found.runs[0].tpot_ms_mean == pytest.approx(9.0)


def test_an_unknown_unit_is_left_empty(document: dict[str, Any]) -> None:
    document["_time_unit"] = "fortnights"
    found = reading(document)
    assert (found.runs[0].tpot_ms_mean, found.runs[0].output_tps) == (None, 320.0)
    assert "unknown_unit" in codes(found)


def test_rate_mode(document: dict[str, Any]) -> None:
    document["aggregated_metrics"] |= {"iteration_type": "request_rate", "request_rate": 8}
    (run,) = reading(document).runs
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 8.0)
    assert run.achieved_load == pytest.approx(20 / 3)


def test_open_loop_mode(document: dict[str, Any]) -> None:
    document["aggregated_metrics"]["arrival_requests_per_second"] = 3.9
    (run,) = reading(document).runs
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 4.0), "a rate here"
    assert run.achieved_load == 3.9


def test_a_batch_of_texts_is_no_load(document: dict[str, Any]) -> None:
    document["aggregated_metrics"]["iteration_type"] = "batch_size"
    (run,) = reading(document).runs
    assert (run.load_kind, run.offered_load) == (None, None)


def test_embeddings_are_no_run(document: dict[str, Any]) -> None:
    document["aggregated_metrics"]["stats"]["num_output_tokens"] = {"sum": 0, "mean": 0}
    found = reading(document)
    assert (found.runs, codes(found)) == ((), ["not_a_run"])


@pytest.mark.parametrize(
    ("scenario", "lengths"),
    [
        ("D(100,1000)", (100.0, 1000.0)),
        ("N(480,240)/(300,150)", (480.0, 300.0)),
        ("U(100,200)", (None, None)),
        ("dataset", (None, None)),
    ],
)
def test_lengths_of_a_scenario(
    document: dict[str, Any], scenario: str, lengths: tuple[Any, Any]
) -> None:
    document["aggregated_metrics"]["scenario"] = scenario
    for name in ("num_input_tokens", "num_output_tokens"):
        del document["aggregated_metrics"]["stats"][name]
    (run,) = reading(document).runs
    assert (run.input_len, run.output_len) == lengths


def test_warm_up_left_out_understates_the_throughput(document: dict[str, Any]) -> None:
    document["aggregated_metrics"]["stats"]["num_output_tokens"]["sum"] = 48.0 * 16
    (flag,) = (f for f in reading(document).flags if f.code == "understated_throughput")
    assert "16 of 20" in flag.message


def test_metadata_is_protocol() -> None:
    found = of(FIXTURES / "experiment_metadata.json")
    assert (found.runs, found.flags[0].code) == ((), "sidecar")
    assert found.beside is not None
    assert found.beside.tools == ("genai-bench",)
    assert found.beside.fields == {
        "target": "target-8b",
        "engine": "vLLM",
        "engine_version": "0.11.0",
        "gpu": "H100",
        "gpu_count": 4,
        "temperature": 0.0,
        "top_p": 1.0,
    }


def test_the_key_of_the_command_is_not_kept() -> None:
    data = (FIXTURES / "experiment_metadata.json").read_bytes()
    assert data.count(b"a-secret-of-ours") == 2
    found = read("experiment_metadata.json", data)
    assert "a-secret-of-ours" not in repr(found.beside) + repr(found.flags)


def test_levels_are_what_is_read() -> None:
    found = of(FIXTURES / "D32_48_concurrency_4.json")
    table = {(k.field, k.path) for k in genai_bench.LEVELS["with _time_unit"]}
    assert {(k.field, k.path) for k in found.keys} <= table


@needs_corpus
def test_files_of_the_corpus() -> None:
    paths = [*(CORPUS / "genai-bench").glob("*"), *(CORPUS / "generated").glob("genai-bench-*")]
    assert len(paths) == 5
    for path in paths:
        found = of(path)
        assert found.tool == "genai-bench"
        assert bool(found.runs) != bool(found.beside)
    (run,) = of(CORPUS / "generated" / "genai-bench-0.0.5-off-c4.json").runs
    assert (run.output_tps, run.output_tokens) == (pytest.approx(316.326, abs=0.001), 960)
    assert run.output_tokens / run.duration_s == pytest.approx(run.output_tps)
    (old,) = of(CORPUS / "genai-bench" / "mock_run_data.json").runs
    assert old.request_rps == pytest.approx(31.9995 / 60, abs=1e-5), "written a minute"
    assert (old.duration_s, old.completed) == (None, 32)
