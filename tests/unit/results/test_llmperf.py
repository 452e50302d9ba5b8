import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results import bundles
from lib.results.reading import read
from lib.results.tools import llmperf
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "llmperf"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "llmperf"


def summary(**changes: Any) -> dict[str, Any]:
    return json.loads((FIXTURES / "summary.json").read_text()) | changes


def requests() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / "individual.json").read_text())
    return found


def run_of(record: object) -> Run:
    (run,) = read("f.json", json.dumps(record).encode()).runs
    return run


def test_a_summary() -> None:
    found = read("f.json", (FIXTURES / "summary.json").read_bytes())
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("llmperf", "2023-08-31")
    assert (run.target, run.temperature) == ("acme/target-8b", 0.0)
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 2.0)
    assert (run.num_prompts, run.completed, run.failed) == (4, 3, 1)
    assert run.duration_s == pytest.approx(3.0)
    assert run.output_tps == pytest.approx(373 / 3), "of the whole run, not of a request"
    assert (run.input_tokens, run.output_tokens, run.token_count) == (1650, 373, "client")
    assert (run.ttft_ms_mean, run.ttft_ms_p50) == (pytest.approx(250.0), pytest.approx(250.0))
    assert run.e2e_ms_p99 == pytest.approx(1750.0)
    assert run.started_at is not None
    assert (run.started_at.isoformat(), run.zone_known) == ("2026-01-01T00:00:00+00:00", True)
    assert run.spec_state is SpecState.UNKNOWN
    assert set(found.keys) <= set(llmperf.LEVELS["2023-08-31"])


def test_its_inter_token_latency_is_neither_tpot_nor_itl() -> None:
    found = read("f.json", json.dumps(summary()).encode())
    (run,) = found.runs
    latencies = [getattr(run, f"{n}_ms_{s}") for n in ("tpot", "itl") for s in ("mean", "p50")]
    assert latencies == [None] * 4
    assert json.loads(run.extra or "")["results_inter_token_latency_s_mean"] == 0.012
    assert "itl_includes_ttft" in {f.code for f in found.flags}


def test_a_persons_metadata() -> None:
    run = run_of(summary(arm="eagle3", k="3"))
    assert (run.gpu, run.arm) == ("L40S", "eagle3:3")
    assert json.loads(run.extra or "")["team"] == "blue"


def test_records_of_requests_belong_to_their_summary() -> None:
    summed = read("x/summary.json", (FIXTURES / "summary.json").read_bytes())
    individual = read("y/individual.json", (FIXTURES / "individual.json").read_bytes())
    assert not individual.runs
    assert {f.code for f in individual.flags} == {"sidecar"}
    assert individual.beside is not None
    assert individual.beside.run_ids == (summed.runs[0].run_id,)
    (bundle,) = bundles.join([summed, individual]).bundles
    rows = bundle.reading.requests[summed.runs[0].run_id].to_pydict()
    assert rows["ok"] == [True, True, True, False]
    assert rows["ttft_ms"] == [200.0, 250.0, 300.0, None]
    assert rows["tpot_ms"] == [pytest.approx(10.0), pytest.approx(10.0), pytest.approx(10.0), None]


def test_records_of_another_run_do_not() -> None:
    others = [r | {"ttft_s": r["ttft_s"] + 0.001} for r in requests()]
    found = read("f.json", json.dumps(others).encode())
    assert found.beside is not None
    assert found.beside.run_ids != (run_of(summary()).run_id,)


def test_records_without_times_say_nothing_of_a_run() -> None:
    found = read("f.json", json.dumps([r | {"ttft_s": None} for r in requests()]).encode())
    assert found.beside is None


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 0, 1e308, True])
def test_wrong_values_break_nothing(value: object) -> None:
    for key in summary():
        if key != "results_num_completed_requests":
            run_of(summary(**{key: value}))
    with suppress(UnknownFormat):  # where nothing is left that was measured
        read("f", json.dumps(dict.fromkeys(summary(), value)).encode())
    for key in requests()[0]:
        read("f", json.dumps([r | {key: value} for r in requests()]).encode())


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no collected files here")
def test_collected_files() -> None:
    (run,) = read("f", (CORPUS / "groq_70b-summary.json").read_bytes()).runs
    assert (run.offered_load, run.completed, run.failed) == (5.0, 150, 0)
    assert run.output_tps == pytest.approx(441.85, abs=0.01)
    assert run.ttft_ms_p99 == pytest.approx(350.03, abs=0.01)
    assert run.output_tokens == 22500
    individual = read("f", (CORPUS / "groq_70b-individual.json").read_bytes())
    assert individual.beside is not None
    assert individual.beside.run_ids == (run.run_id,)
    (other,) = read("f", (CORPUS / "together_70b-summary.json").read_bytes()).runs
    assert (other.output_tps, other.tpot_ms_mean) == (pytest.approx(216.46, abs=0.01), None)
    assert other.run_id != run.run_id
