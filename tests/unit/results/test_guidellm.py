import copy
import json
import math
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.reading import Reading, read
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "guidellm"
SHARED = Path(__file__).resolve().parents[4] / "shared"
SWEEP = SHARED / "sweeps" / "guidellm-0.8.1"
CORPUS = SHARED / "corpus"
JSON = (FIXTURES / "k4-c8-r1.json").read_bytes()
CSV = (FIXTURES / "k4-c8-r1.csv").read_bytes()
needs_sweep = pytest.mark.skipif(not SWEEP.is_dir(), reason="no shared sweeps beside the project")
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


@pytest.fixture
def report() -> dict[str, Any]:
    document = json.loads(JSON)
    document["benchmarks"][0]["requests"]["successful"] = []
    return document


def reading(report: dict[str, Any]) -> Reading:
    return read("r.json", json.dumps(report).encode())


def test_a_report() -> None:
    found = read("r.json", JSON)
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("guidellm", "0.8.1")
    assert "metadata.version 2" in found.why
    assert not found.flags
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 8.0)
    assert run.output_tps == pytest.approx(1113.5, abs=0.05)
    assert (run.completed, run.failed, run.num_prompts, run.output_tokens) == (32, 0, 32, 2048)
    assert (run.input_len, run.output_len) == (88.8125, 64.0)
    assert run.e2e_ms_mean == pytest.approx(429.89, abs=0.005), "seconds in the file"
    assert run.tpot_ms_mean == pytest.approx(6.287, abs=0.001), "its inter-token latency"
    assert run.itl_ms_mean is None
    assert (run.target, run.dataset, run.seed) == ("sim/target-8b", "synthetic_text", 42)
    assert run.spec_state is SpecState.UNKNOWN
    assert run.engine is None
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-12-01T03:01:16.386246+00:00"
    assert run.zone_known


def test_requests_of_a_report() -> None:
    found = read("r.json", JSON)
    table = found.requests[found.runs[0].run_id]
    assert table.num_rows == 32
    assert table["ok"].to_pylist() == [True] * 32
    assert min(table["arrival_s"].to_pylist()) == 0.0
    for row in table.to_pylist():
        decode_ms = row["e2e_ms"] - row["ttft_ms"]
        assert row["tpot_ms"] == pytest.approx(decode_ms / (row["output_tokens"] - 1), rel=0.02)


def test_csv_and_json_of_a_run_are_one_run() -> None:
    (by_json,), (by_csv,) = read("r.json", JSON).runs, read("r.csv", CSV).runs
    differing = {f.name for f in fields(Run) if getattr(by_json, f.name) != getattr(by_csv, f.name)}
    assert differing == {"source_sha256", "started_at", "zone_known", "extra"}
    assert not by_csv.zone_known, "the CSV writes local time without a zone"


def test_many_benchmarks_are_many_runs(report: dict[str, Any]) -> None:
    strategies = [
        {"type_": "synchronous"},
        {"type_": "concurrent", "streams": 4},
        {"type_": "constant", "rate": 2.5},
        {"type_": "poisson", "rate": 7.0},
        {"type_": "throughput", "max_concurrency": 512},
        {"type_": "unheard of"},
    ]
    (item,) = report["benchmarks"]
    report["benchmarks"] = []
    for number, strategy in enumerate(strategies):
        other = copy.deepcopy(item)
        other["config"] |= {"id_": f"id-{number}", "strategy": strategy}
        report["benchmarks"].append(other)
    found = reading(report)
    rate, streams = LoadKind.REQUEST_RATE, LoadKind.CONCURRENCY
    assert [(r.load_kind, r.offered_load) for r in found.runs] == [
        (streams, 1.0), (streams, 4.0), (rate, 2.5), (rate, 7.0), (rate, math.inf), (None, None),
    ]  # fmt: skip
    assert [r.achieved_load for r in found.runs[:3]] == [
        None,
        None,
        pytest.approx(17.398, abs=0.001),
    ]
    assert len({r.run_id for r in found.runs}) == 6


def test_labels_state_the_set_up(report: dict[str, Any]) -> None:
    report["config"]["metadata"]["labels"] = {"arm": "EAGLE-3 k=4", "gpu": "L4", "team": "x"}
    (run,) = reading(report).runs
    assert (run.arm, run.gpu) == ("eagle3:4", "L4")
    assert json.loads(run.extra or "")["label team"] == "x"


def test_goodput_and_its_slo(report: dict[str, Any]) -> None:
    (item,) = report["benchmarks"]
    item["config"]["slo"] = {"ttft_ms": 500.0, "tpot_ms": 40.0, "e2el_ms": None}
    item["metrics"]["request_goodput"] = {"successful": {"mean": 12.5}}
    (run,) = reading(report).runs
    assert (run.slo, run.goodput_rps) == ("tpot_ms=40.0, ttft_ms=500.0", 12.5)


def test_sampling_settings_of_the_request_body(report: dict[str, Any]) -> None:
    (item,) = report["benchmarks"]
    item["config"]["backend"]["extras"] = {"body": {"temperature": 0.0, "top_p": 0.9}}
    (run,) = reading(report).runs
    assert (run.temperature, run.top_p) == (0.0, 0.9)


def test_errors_count_and_cut_off_requests_do_not(report: dict[str, Any]) -> None:
    totals = {"successful": 32, "errored": 1, "incomplete": 3, "total": 36}
    report["benchmarks"][0]["metrics"]["request_totals"] = totals
    found = reading(report)
    assert found.runs[0].failed == 1
    assert [f.code for f in found.flags] == ["failed_requests"]


def test_a_sample_of_requests_is_said() -> None:
    report = json.loads(JSON)
    requests = report["benchmarks"][0]["requests"]
    requests["errored"] = requests["successful"][:1]
    requests["successful"] = requests["successful"][:10]
    found = reading(report)
    assert found.requests[found.runs[0].run_id]["ok"].to_pylist() == [True] * 10 + [False]
    assert [f.code for f in found.flags] == ["sampled_requests"]


@pytest.mark.parametrize("version", [3, None, "x"])
def test_other_levels_are_named_and_refused(report: dict[str, Any], version: object) -> None:
    report["metadata"] = {"version": version, "guidellm_version": "0.9.9"}
    says = r"guidellm version not recognised .*0\.9\.9.*config, benchmarks"
    with pytest.raises(UnknownFormat, match=says):
        reading(report)
    del report["metadata"], report["config"]
    with pytest.raises(UnknownFormat, match=r"guidellm version not recognised .none stated"):
        reading(report)


def test_a_csv_of_another_level_is_refused() -> None:
    other = CSV.replace(b'""version"":2', b'""version"":3')
    with pytest.raises(UnknownFormat, match=r"guidellm version not recognised .*0\.8\.1"):
        read("r.csv", other)
    headers_only = b"\n".join(CSV.split(b"\n")[:3])
    with pytest.raises(UnknownFormat, match="guidellm"):
        read("r.csv", headers_only)


def test_a_printed_rate_is_looked_up_in_the_profile() -> None:
    text = CSV.decode().replace("concurrent@8", "constant@2.67")
    text = text.replace('""streams"": [8]}"', '""rate"": [1.0, 2.6666666666666665]}"', 1)
    (run,) = read("r.csv", text.encode()).runs
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 2.6666666666666665)


def test_the_kept_copy_holds_no_prompt_and_no_answer() -> None:
    kept = read("r.json", JSON).kept
    assert kept is not None
    assert len(kept) < 40_000


def readme_table() -> Iterator[tuple[str, int, int, float]]:
    """(arm, concurrency, repeat, output tok/s) of the sweep's README."""
    for line in (SWEEP.parent / "README.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"\d+", cells[0]):
            for arm, cell in zip(("base", "k2", "k4"), cells[1:4], strict=True):
                for repeat, value in enumerate(cell.split(), start=1):
                    yield arm, int(cells[0]), repeat, float(value)


@needs_sweep
def test_recorded_sweep_gives_the_values_of_its_readme() -> None:
    expected = list(readme_table())
    assert len(expected) == 63
    seen = set()
    for arm, streams, repeat, output_tps in expected:
        path = SWEEP / f"{arm}-c{streams}-r{repeat}.json"
        (run,) = read(path.name, path.read_bytes()).runs
        assert run.offered_load == streams
        assert run.output_tps == pytest.approx(output_tps, abs=0.05)
        assert run.output_len == 64.0
        seen.add(run.run_id)
    assert len(seen) == 63


@needs_sweep
def test_recorded_csvs_are_runs_of_their_jsons() -> None:
    tables = sorted(SWEEP.glob("*.csv"))
    assert len(tables) == 2
    for path in tables:
        twin = path.with_suffix(".json")
        (by_csv,), (by_json,) = (read(p.name, p.read_bytes()).runs for p in (path, twin))
        assert by_csv.run_id == by_json.run_id


@needs_corpus
@pytest.mark.parametrize("arm", ["off", "on"])
def test_two_points_in_one_file(arm: str) -> None:
    stem = CORPUS / "generated" / f"guidellm-0.8.1-{arm}"
    by_json, by_csv = (
        read(f"f{s}", stem.with_suffix(f".1-{arm}{s}").read_bytes()) for s in (".json", ".csv")
    )
    assert [r.offered_load for r in by_json.runs] == [1.0, 4.0]
    assert [r.run_id for r in by_json.runs] == [r.run_id for r in by_csv.runs]
    assert [r.output_tps for r in by_json.runs] == [r.output_tps for r in by_csv.runs]
    assert {r.spec_state for r in by_json.runs} == {SpecState.ON if arm == "on" else SpecState.OFF}
