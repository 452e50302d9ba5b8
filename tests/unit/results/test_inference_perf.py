import copy
import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.reading import Reading, read
from lib.results.tools import inference_perf
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "inference_perf"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
PAIR = CORPUS / "inference-perf"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


def of(path: Path) -> Reading:
    return read(path.name, path.read_bytes())


@pytest.fixture
def stage() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIXTURES / "stage_0_lifecycle_metrics.json").read_bytes())
    return loaded


def reading(document: object) -> Reading:
    return read("s.json", json.dumps(document).encode())


def codes(found: Reading) -> list[str]:
    return [flag.code for flag in found.flags]


def test_a_stage() -> None:
    found = of(FIXTURES / "stage_0_lifecycle_metrics.json")
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("inference-perf", "0.7")
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 8.0)
    assert run.achieved_load == pytest.approx(7.987, abs=0.001)
    assert (run.num_prompts, run.completed, run.failed) == (480, 480, 0)
    assert (run.input_len, run.output_len, run.input_tokens) == (20.0, 64.0, 9600)
    assert (run.output_tokens, run.token_count, run.retokenized_tokens) == (30720, "client", 30720)
    assert run.output_tps == pytest.approx(505.6), "of the output alone"
    assert (run.ttft_ms_mean, run.e2e_ms_p99) == (pytest.approx(30.0), pytest.approx(576.0))
    assert run.tpot_ms_p50 == pytest.approx(7.14), "the median, without the first token"
    assert run.itl_ms_mean == pytest.approx(7.2)
    assert (run.target, run.gpu, run.engine, run.started_at) == (None,) * 4
    assert run.spec_state is SpecState.UNKNOWN
    assert "tpot_understated" not in codes(found)


def test_an_old_stage_has_no_duration() -> None:
    found = of(FIXTURES / "stage_0_old.json")
    (run,) = found.runs
    assert (found.tool_version, run.duration_s) == ("before 0.7", None), "sending is not running"
    assert run.output_tps == pytest.approx(505.6)
    assert (run.output_tokens, run.token_count, run.retokenized_tokens) == (30720, "client", None)
    assert run.input_len == 20.0
    assert json.loads(run.extra or "")["send_duration"] == 60.1


def test_a_concurrent_stage() -> None:
    (run,) = of(FIXTURES / "stage_0_concurrent.json").runs
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 16.0)
    assert run.achieved_load is None, "the rate of a burst is no load"


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("summary_lifecycle_metrics.json", "not_a_run", "all stages of inference-perf in one"),
        ("stage_0_prometheus_metrics.json", "not_a_run", "window that holds more than the stage"),
        ("per_request_lifecycle_metrics.json", "not_a_run", "without their stage"),
        ("validation.json", "sidecar", "checks of its own reports"),
        ("config.yaml", "sidecar", "configuration"),
    ],
)
def test_what_is_no_run_says_what_it_is(name: str, code: str, says: str) -> None:
    found = of(FIXTURES / name)
    assert (found.tool, found.runs) == ("inference-perf", ())
    assert found.flags[0].code == code
    assert says in found.flags[0].message
    assert "stage" in found.flags[0].message


def test_errors_in_the_tools_own_validation_are_told() -> None:
    assert "reports_inconsistent" in codes(of(FIXTURES / "validation.json"))


def test_the_configuration_is_protocol() -> None:
    beside = of(FIXTURES / "config.yaml").beside
    assert beside is not None
    assert beside.tools[0] == "inference-perf"
    assert beside.fields == {
        "target": "example/target-8b",
        "engine": "vLLM",
        "dataset": "shared_prefix",
        "input_len": 192.0,
        "output_len": 64.0,
    }


def test_a_mock_server_names_no_engine() -> None:
    written = (FIXTURES / "config.yaml").read_text().replace("type: vllm", "type: mock")
    beside = read("c.yaml", written.encode()).beside
    assert beside is not None
    assert "engine" not in beside.fields


def test_the_count_that_the_rate_rests_on(stage: dict[str, Any]) -> None:
    """C68"""
    stage["successes"]["output_tokens"]["total"] = 36864.0
    (run,) = reading(stage).runs
    assert (run.output_tokens, run.token_count, run.retokenized_tokens) == (30720, "client", 36864)
    stage["successes"]["throughput"]["output_tokens_per_sec"] *= 1.2
    (run,) = reading(stage).runs
    assert (run.output_tokens, run.token_count, run.retokenized_tokens) == (36864, "server", 30720)
    stage["successes"]["client_fallback_requests"]["output"] = 3
    (run,) = reading(stage).runs
    assert (run.token_count, run.retokenized_tokens) == ("client", None), "a mixed count is none"


def test_understated_time_per_output_token(stage: dict[str, Any]) -> None:
    stage["successes"]["latency"]["time_per_output_token"]["mean"] = 0.0034
    found = reading(stage)
    assert "tpot_understated" in codes(found)
    assert found.runs[0].tpot_ms_mean == pytest.approx(3.4), "as the file states it"


def test_one_run_whichever_form(stage: dict[str, Any]) -> None:
    (first,) = reading(stage).runs
    other = copy.deepcopy(stage)
    other["successes"]["latency"]["request_latency"]["mean"] = 0.481
    (second,), (third,) = reading(dict(reversed(stage.items()))).runs, reading(other).runs
    assert first.run_id == second.run_id != third.run_id


def test_levels_are_what_is_read(stage: dict[str, Any]) -> None:
    assert set(reading(stage).keys) <= set(inference_perf.LEVELS["0.7"])
    assert set(of(FIXTURES / "config.yaml").keys) <= set(inference_perf.LEVELS["config.yaml"])


def stages(arm: str) -> list[Run]:
    return [of(PAIR / arm / f"stage_{n}_lifecycle.json").runs[0] for n in range(7)]


@needs_corpus
def test_the_pair_of_the_corpus() -> None:
    """C62"""
    off, on = stages("kubecon-vllm"), stages("kubecon-vllm_eagle")
    assert [round(r.tpot_ms_mean or 0, 1) for r in (off[0], on[0])] == [3.5, 5.8]
    assert (off[4].offered_load, round(off[4].achieved_load or 0, 1)) == (122.59, 106.5)
    assert [round(max(r.achieved_load or 0 for r in arm)) for arm in (off, on)] == [107, 73]
    assert [r.offered_load for r in on] == [1.0, 18.16, 35.33, 52.49, 69.65, 86.81, 103.98]
    assert len({r.run_id for r in (*off, *on)}) == 14
    assert all(r.output_tps and r.duration_s is None for r in (*off, *on))


@needs_corpus
def test_understated_in_the_corpus() -> None:
    """Its own end-to-end latency makes 7.2 ms of the 3.5, 11.0 of the 5.8: the arms are uneven."""
    for arm in ("kubecon-vllm", "kubecon-vllm_eagle"):
        assert "tpot_understated" in codes(of(PAIR / arm / "stage_0_lifecycle.json"))


@needs_corpus
def test_every_file_of_the_corpus_is_known() -> None:
    paths = [*PAIR.rglob("*.*"), *(CORPUS / "generated").glob("inference-perf-*")]
    assert len(paths) >= 29
    for path in paths:
        found = of(path)
        assert found.runs or found.beside or found.flags[0].code == "not_a_run", path
        assert (len(found.runs) == 1) == ("stage_" in path.name and "prom" not in path.name) or (
            path.suffix == ".yaml"
        )


@needs_corpus
def test_a_benchmark_report_is_its_stage() -> None:
    generated = CORPUS / "generated"
    (stage,) = of(generated / "inference-perf-0.7.0-off-stage_1.json").runs
    (report,) = of(generated / "inference-perf-0.7.0-off-br.yaml").runs
    assert stage.run_id == report.run_id
    assert stage.output_tokens == report.output_tokens == 1921
