import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.results import tools
from lib.results.bundles import join
from lib.results.reading import Reading, read
from lib.results.tools import aiperf
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "aiperf"
SHARED = Path(__file__).resolve().parents[4] / "shared"
SWEEP = SHARED / "sweeps" / "aiperf-0.13.0"
CORPUS = SHARED / "corpus"
needs_sweep = pytest.mark.skipif(not SWEEP.is_dir(), reason="no shared sweeps beside the project")
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")

Export = dict[str, Any]
GPU_ROW = "Endpoint,GPU_Index,GPU_Name,GPU_UUID,Platform,Metric,avg,min,max"


@pytest.fixture
def export() -> Export:
    document: Export = json.loads((FIXTURES / "k4-c8.json").read_bytes())
    return document


@pytest.fixture
def server() -> Export:
    document: Export = json.loads((FIXTURES / "k4-c8-server.json").read_bytes())
    return document


def fixture(name: str) -> Reading:
    return read(name, (FIXTURES / name).read_bytes())


def reading(document: object) -> Reading:
    return read("a.json", json.dumps(document).encode())


def run_of(document: object) -> Run:
    (run,) = reading(document).runs
    return run


def codes(found: Reading) -> set[str]:
    return {f.code for f in found.flags}


def without_usage(export: Export) -> Export:
    return {k: v for k, v in export.items() if "usage" not in k}


# the run


def test_c73_an_export_with_units() -> None:
    """C73: statistics by their unit, tool and version kept, unknown metrics listed."""
    found = fixture("k4-c8.json")
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("aiperf", "0.13.0")
    assert (run.tool, run.tool_version) == ("aiperf", "0.13.0")
    assert "aiperf_version" in found.why
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 8.0)
    assert (run.target, run.dataset) == ("sim/target-8b", "synthetic")
    assert (run.completed, run.failed, run.num_prompts) == (40, 0, 40)
    assert run.duration_s == pytest.approx(2.2008064)
    assert run.ttft_ms_mean == pytest.approx(29.695398)
    assert run.e2e_ms_p99 == pytest.approx(500.697, abs=1e-3)
    assert run.itl_ms_mean == pytest.approx(16.774, abs=1e-3), "its inter-chunk latency"
    assert run.running_mean == pytest.approx(7.3255, abs=1e-4)
    assert run.goodput_rps == pytest.approx(18.118, abs=1e-3)
    assert run.slo == "inter_token_latency=20, time_to_first_token=200"
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-12-01T02:22:19.252833+00:00"
    assert not run.zone_known
    assert (run.spec_state, run.engine, run.arm, run.label) == (SpecState.UNKNOWN, None, None, None)
    extra = json.loads(run.extra or "")
    assert extra["benchmark_id"] == "c2419cc44628"
    assert extra["metrics"]["time_to_second_token"]["unit"] == "ms"
    assert len(set(found.keys)) == len(found.keys)
    assert all(any(key in keys for keys in aiperf.LEVELS.values()) for key in found.keys)


def test_the_server_counts_the_tokens() -> None:
    """The client counted 129 tokens a request, the server 64."""
    (run,) = fixture("k4-c8.json").runs
    assert (run.token_count, run.output_tokens, run.retokenized_tokens) == ("server", 2560, 5160)
    assert run.output_len == 64.0
    assert run.output_tps == pytest.approx(2337.2589 * 64 / 129, rel=1e-6)
    assert run.tpot_ms_mean == pytest.approx(5.9505, rel=0.01), "the server's time per output token"


def test_without_usage_the_count_is_the_clients(export: Export) -> None:
    found = reading(without_usage(export))
    (run,) = found.runs
    assert (run.token_count, run.output_tokens, run.retokenized_tokens) == ("client", 5160, None)
    assert run.output_tps == pytest.approx(2337.2589, rel=1e-6)
    (flag,) = [f for f in found.flags if f.code == "retokenised_unchecked"]
    assert "server_metrics_export.json" in flag.message


def test_usage_of_a_part_of_the_requests_does_not_count(export: Export) -> None:
    export["total_usage_completion_tokens"]["avg"] = export["usage_completion_tokens"]["sum"] = 1280
    found = reading(export)
    assert found.runs[0].token_count == "client"
    assert "retokenised_unchecked" in codes(found)


def test_a_client_told_to_trust_the_server(export: Export) -> None:
    export["input_config"]["endpoint"]["use_server_token_count"] = True
    found = reading(without_usage(export))
    assert (found.runs[0].token_count, found.runs[0].output_tokens) == ("server", 5160)
    assert "retokenised_unchecked" not in codes(found)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e3), ("sec", 1e3), ("us", 1e-3), ("ns", 1e-6)])
def test_c73_a_latency_in_another_unit(export: Export, unit: str, factor: float) -> None:
    node = export["request_latency"]
    export["request_latency"] = {
        s: unit if s == "unit" else v if s == "count" else v / factor for s, v in node.items()
    }
    run = run_of(export)
    assert run.e2e_ms_mean == pytest.approx(404.1797, rel=1e-5)
    assert run.run_id == fixture("k4-c8.json").runs[0].run_id


@pytest.mark.parametrize("unit", ["furlongs", "", None, 3, ["ms"]])
def test_an_unknown_unit_leaves_the_field_empty(export: Export, unit: object) -> None:
    export["time_to_first_token"]["unit"] = unit
    found = reading(export)
    (run,) = found.runs
    assert (run.ttft_ms_mean, run.ttft_ms_p99) == (None, None)
    (flag,) = [f for f in found.flags if f.code == "unknown_unit"]
    assert "time_to_first_token" in flag.message


def test_a_rate_per_user_is_no_throughput(export: Export) -> None:
    export["output_token_throughput"] = export["output_token_throughput_per_user"]
    assert run_of(export).output_tps is None
    del export["output_token_throughput"]
    assert run_of(export).output_tps is None


def test_statistics_stay_in_their_place(export: Export) -> None:
    for statistic in ("avg", "p99"):
        del export["time_to_first_token"][statistic]
    run = run_of(export)
    assert (run.ttft_ms_mean, run.ttft_ms_p99) == (None, None)
    assert run.ttft_ms_p95 == pytest.approx(33.54766)


def warm_up() -> Export:
    return {"name": "warmup", "kind": "warmup", "type": "concurrency", "concurrency": 64}


def set_phases(export: Export, *phases: Export) -> Export:
    export["input_config"]["phases"] = list(phases)
    return export


def test_a_warm_up_phase_is_not_the_load(export: Export) -> None:
    measured = export["input_config"]["phases"][0]
    run = run_of(set_phases(export, warm_up(), measured))
    assert (run.offered_load, run.num_prompts) == (8.0, 40)


def test_an_excluded_phase_is_not_the_load(export: Export) -> None:
    measured = export["input_config"]["phases"][0]
    excluded = {**measured, "concurrency": 3, "exclude_from_results": True}
    assert run_of(set_phases(export, excluded, measured)).offered_load == 8.0


def test_two_measured_phases_have_no_one_load(export: Export) -> None:
    measured = export["input_config"]["phases"][0]
    other = {**measured, "name": "more", "concurrency": 16}
    run = run_of(set_phases(export, measured, other))
    assert (run.load_kind, run.offered_load) == (None, None)


@pytest.mark.parametrize(("rate", "load"), [(12.5, 12.5), ("inf", float("inf")), ([3], 3.0)])
def test_a_request_rate(export: Export, rate: object, load: float) -> None:
    phase = {"name": "profiling", "type": "poisson", "rate": rate, "concurrency": 64}
    run = run_of(set_phases(export, phase))
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, load)
    assert run.achieved_load == pytest.approx(18.118, abs=1e-3)


def test_failed_requests(export: Export) -> None:
    export["error_request_count"] = {"unit": "requests", "avg": 3.0}
    assert run_of(export).failed == 3
    del export["error_request_count"], export["completed_request_count"]
    export["error_summary"] = [{"error_details": {"message": "x"}, "count": 2}, {"count": 1}]
    assert run_of(export).failed == 3


@pytest.mark.parametrize(
    ("change", "code"),
    [({"was_cancelled": True}, "cancelled_run"), ({"is_complete": False}, "incomplete_run")],
)
def test_a_run_that_did_not_end(export: Export, change: Export, code: str) -> None:
    assert code in codes(reading(export | change))


def test_no_completed_request_is_no_run(export: Export) -> None:
    kept = ("schema_version", "aiperf_version", "input_config", "error_summary", "benchmark_id")
    found = reading({k: export[k] for k in kept})
    assert (found.runs, codes(found)) == ((), {"not_a_run"})


def test_acceptance_of_the_requests(export: Export) -> None:
    export |= {
        "spec_decode_acceptance_length": {"unit": "ratio", "avg": 2.8},
        "spec_decode_token_weighted_acceptance_length": {"unit": "ratio", "avg": 2.89},
        "spec_decode_draft_acceptance_rate": {"unit": "%", "avg": 47.3},
        "total_spec_decode_steps": {"unit": "count", "avg": 893},
        "total_draft_tokens": {"unit": "tokens", "avg": 3572},
        "total_accepted_draft_tokens": {"unit": "tokens", "avg": 1690},
    }
    run = run_of(export)
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (893, 3572, 1690)
    assert (run.accept_length, run.spec_state) == (2.89, SpecState.ON)
    assert run.accept_rate == pytest.approx(0.473)
    export["spec_decode_draft_acceptance_rate"]["unit"] = "ratio"
    assert run_of(export).accept_rate is None, "47.3 is no share"


def test_data_set_and_sampling(export: Export) -> None:
    config = export["input_config"]
    config["datasets"] = [{"name": "main", "type": "file", "format": "speed_bench_coding"}]
    config["endpoint"]["extra"] = {"temperature": 0.0, "top_p": 0.9}
    config["random_seed"] = 7
    run = run_of(export)
    assert (run.dataset, run.domain) == ("speed_bench_coding", "coding")
    assert (run.temperature, run.top_p, run.seed) == (0.0, 0.9, 7)


def test_secrets_of_the_command_are_not_kept(export: Export) -> None:
    export["run_info"]["cli_command"] += " --api-key sk-abcdefghijklmnopqrstuvwx"
    assert "abcdefgh" not in (run_of(export).extra or "")


def gpu(index: int, power: float, busiest: float = 98.0, name: str = "H100") -> Export:
    metrics = {
        "gpu_power_usage": {"unit": "W", "avg": power},
        "gpu_memory_used": {"unit": "GB", "avg": 70.0},
        "gpu_utilization": {"unit": "%", "avg": 50.0, "max": busiest},
    }
    return {"gpu_index": index, "gpu_name": name, "gpu_uuid": f"GPU-{index}", "metrics": metrics}


def with_gpus(export: Export, *gpus: Export) -> Export:
    held = {f"gpu_{g['gpu_index']}": g for g in gpus}
    export["telemetry_data"]["endpoints"] = {"localhost:9401": {"gpus": held}}
    return export


def test_watched_gpus(export: Export) -> None:
    found = reading(with_gpus(export, gpu(0, 300.0), gpu(1, 310.0)))
    (run,) = found.runs
    assert (run.gpu, run.gpu_count, run.power_w) == ("H100", 2, 610.0)
    assert run.gpu_mem_gib == pytest.approx(140e9 / 2**30)
    assert "gpus_watched" in codes(found)


def test_an_idle_gpu_is_not_counted_in(export: Export) -> None:
    run = run_of(with_gpus(export, gpu(0, 300.0), gpu(1, 60.0, busiest=0.0)))
    assert (run.gpu, run.gpu_count, run.power_w) == ("H100", None, None)


def test_no_telemetry_no_gpu() -> None:
    found = fixture("k4-c8.json")
    assert (found.runs[0].gpu, found.runs[0].gpu_count) == (None, None)
    assert "gpus_watched" not in codes(found)


# the CSV


def test_the_csv_is_the_same_run() -> None:
    by_json, by_csv = fixture("k4-c8.json"), fixture("k4-c8.csv")
    (one,), (other,) = by_json.runs, by_csv.runs
    assert one.run_id == other.run_id
    assert (other.token_count, other.output_tokens, other.retokenized_tokens) == (
        "server",
        2560,
        5160,
    )
    for name in ("output_tps", "request_rps", "ttft_ms_mean", "tpot_ms_p99", "itl_ms_p50"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=2e-3), name
    assert (other.offered_load, other.target, other.started_at) == (None, None, None)
    assert "csv_says_less" in codes(by_csv)
    assert fixture("base-c8.json").runs[0].run_id != one.run_id


def test_the_gpu_table_of_the_csv() -> None:
    text = (FIXTURES / "k4-c8.csv").read_text()
    table = [
        GPU_ROW,
        "h,0,H100,GPU-0,,GPU Power Usage (W),300.00,1,400",
        "h,0,H100,GPU-0,,GPU Utilization (%),80.00,1,99",
        'h,1,H100,GPU-1,,GPU Power Usage (W),"1,310.00",1,400',
    ]
    found = read("a.csv", (text[: text.index("\nEndpoint")] + "\n" + "\n".join(table)).encode())
    (run,) = found.runs
    assert (run.gpu, run.gpu_count, run.power_w) == ("H100", 2, 1610.0)


def test_a_table_of_a_person_is_not_taken_for_a_csv_of_aiperf() -> None:
    rows = [["Metric", "avg", "min", "max", "std"], ["Speed", "1", "1", "1", "0"]]
    assert not aiperf.recognise_rows(rows)
    assert not aiperf.recognise_rows([])


# what lies beside it


def test_the_servers_counters(server: Export) -> None:
    found = reading(server)
    assert (found.runs, codes(found)) == ((), {"sidecar"})
    beside = found.beside
    assert beside is not None
    assert beside.tools == ("aiperf",)
    assert beside.output_tokens == 2560
    assert beside.fields["spec_state"] is SpecState.ON
    assert beside.fields["drafts"] == 893
    assert beside.fields["draft_tokens"] == 3572
    assert beside.fields["accepted_tokens"] == 1690
    assert beside.fields["accepted_per_position"] == (656, 465, 341, 228)
    assert beside.fields["num_speculative_tokens"] == 4
    assert "running_mean" not in beside.fields, "scraped twice as long as the benchmark ran"


def test_counters_add_up_over_engines_and_endpoints(server: Export) -> None:
    for metric in server["metrics"].values():
        other = json.loads(json.dumps(metric["series"]))
        for series in other:
            series["labels"]["engine"] = "1"
        metric["series"] += other
    beside = reading(server).beside
    assert beside is not None
    assert (beside.output_tokens, beside.fields["drafts"]) == (5120, 1786)
    assert beside.fields["accepted_per_position"] == (1312, 930, 682, 456)


def test_gauges_of_a_scrape_as_long_as_the_benchmark(server: Export) -> None:
    for info in server["summary"]["endpoint_info"].values():
        info["duration_seconds"] = 2.3
    beside = reading(server).beside
    assert beside is not None
    assert beside.fields["running_mean"] == pytest.approx(2.8667, abs=1e-4)
    assert beside.fields["waiting_mean"] == 0.0


def test_a_server_without_draft_counters_says_nothing_of_the_arm() -> None:
    beside = fixture("base-c8-server.json").beside
    assert beside is not None
    assert beside.output_tokens == 2560
    assert not beside.fields.keys() & {"spec_state", "drafts", "num_speculative_tokens"}


def test_counters_of_the_warm_up_are_not_taken(server: Export) -> None:
    found = reading(server | {"metrics_phase": "warmup"})
    assert found.beside is None
    assert codes(found) == {"not_a_run"}


def sglang(server: Export, length: Export) -> Export:
    def series(stats: Export) -> Export:
        return {"type": "gauge", "series": [{"labels": {}, "stats": stats}]}

    server["metrics"] = {
        "sglang:generation_tokens": series({"total": 2560.0}),
        "sglang:spec_accept_length": series(length),
    }
    return server


def test_gauges_of_sglang(server: Export) -> None:
    beside = reading(sglang(server, {"avg": 2.9, "min": 2.7})).beside
    assert beside is not None
    assert beside.output_tokens == 2560
    assert beside.fields == {"accept_length": 2.9, "spec_state": SpecState.ON}
    idle = reading(sglang(server, {"avg": 1.2, "min": 0.0})).beside
    assert idle is not None
    assert idle.fields == {}, "idle scrapes are in the mean"


def test_records_name_their_run() -> None:
    found = fixture("k4-c8-records.jsonl")
    beside = found.beside
    assert (found.runs, codes(found)) == ((), {"sidecar"})
    assert beside is not None
    assert beside.run_ids == (fixture("k4-c8.json").runs[0].run_id,)
    assert beside.output_tokens == 2560
    table = beside.requests
    assert table is not None
    assert table.num_rows == 40
    assert set(table["output_tokens"].to_pylist()) == {64}
    first = {name: table[name][0].as_py() for name in ("ttft_ms", "e2e_ms", "tpot_ms", "ok")}
    assert first["ok"]
    assert first["tpot_ms"] == pytest.approx((first["e2e_ms"] - first["ttft_ms"]) / 63)
    assert min(table["arrival_s"].to_pylist()) == 0


def records(change: Callable[[list[Export]], object]) -> Reading:
    lines = (FIXTURES / "k4-c8-records.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    change(rows)
    return read("r.jsonl", "\n".join(map(json.dumps, rows)).encode())


def test_records_of_the_warm_up_and_failed_ones() -> None:
    def change(rows: list[Export]) -> None:
        early = json.loads(json.dumps(rows[0]))
        early["metadata"]["benchmark_phase"] = early["metadata"]["phase_kind"] = "warmup"
        failed = json.loads(json.dumps(rows[0]))
        failed["error"] = {"code": 500, "message": "x"}
        rows[:0] = [early, failed]

    beside = records(change).beside
    assert beside is not None
    assert beside.requests is not None
    assert beside.requests["ok"].to_pylist().count(False) == 1
    assert beside.requests.num_rows == 41
    assert beside.run_ids == (fixture("k4-c8.json").runs[0].run_id,)


def test_records_with_acceptance() -> None:
    def change(rows: list[Export]) -> None:
        for row in rows:
            row["spec_decode_acceptance"] = {
                "num_spec_steps": 20,
                "num_draft_tokens": 80,
                "num_accepted_draft_tokens": 44,
                "acceptance_histogram": {"0": 3, "4": 9},
            }

    beside = records(change).beside
    assert beside is not None
    assert beside.fields == {
        "drafts": 800,
        "draft_tokens": 3200,
        "accepted_tokens": 1760,
        "spec_state": SpecState.ON,
        "num_speculative_tokens": 4,
    }


def test_records_without_usage_keep_the_clients_count() -> None:
    def change(rows: list[Export]) -> None:
        del rows[3]["metrics"]["usage_completion_tokens"]

    beside = records(change).beside
    assert beside is not None
    assert beside.output_tokens is None
    assert beside.requests is not None
    assert set(beside.requests["output_tokens"].to_pylist()) == {129}


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ({"data": [{"session_id": "a", "payloads": [{"prompt": "x"}]}]}, "prompts"),
        ({"timeslices": [{"timeslice_index": 0}], "input_config": {}}, "slice"),
        ({"metadata": {"aggregation_type": "confidence"}, "metrics": {"a": {}}}, "several runs"),
        ([{"timestamp_ns": 1, "gpu_uuid": "a", "telemetry_data": {}}], "GPU samples"),
        ([{"timestamp_ns": 1, "endpoint_url": "http://a", "metrics": {}}], "scrapes"),
        ([{"metadata": {"request_start_ns": 1}, "responses": []}], "raw"),
    ],
)
def test_other_files_are_no_runs(document: object, word: str) -> None:
    found = reading(document)
    assert (found.tool, found.runs, codes(found)) == ("aiperf", (), {"not_a_run"})
    assert word in found.flags[0].message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Model,coding,math,Overall\nm,2.1,2.3,2.2\n", "acceptance by category"),
        ("# AIPerf Server Metrics Export (CSV)\n#\nEndpoint,Type,Metric,Unit,avg\n", "as CSV"),
        ("Endpoint,Type,Metric,Unit,avg,min\nh,gauge,vllm:x,,1,1\n", "as CSV"),
    ],
)
def test_other_csvs_are_no_runs(text: str, word: str) -> None:
    found = read("a.csv", text.encode())
    assert (found.tool, found.runs, codes(found)) == ("aiperf", (), {"not_a_run"})
    assert word in found.flags[0].message


def test_a_folder_is_one_run(export: Export) -> None:
    """Without usage in the export the server's counters correct it, and its records join it."""
    document = json.dumps(without_usage(export)).encode()
    result = read("k4/profile_export_aiperf.json", document)
    beside = ["k4-c8-server.json", "k4-c8-records.jsonl"]
    named = [read(f"k4/{n}", (FIXTURES / n).read_bytes()) for n in beside]
    (bundle,) = join([result, *named]).bundles
    (run,) = bundle.reading.runs
    assert (run.token_count, run.output_tokens, run.retokenized_tokens) == ("server", 2560, 5160)
    assert run.tpot_ms_mean == pytest.approx(5.9505, rel=0.01)
    assert (run.drafts, run.arm) == (893, "speculation:4")
    assert bundle.reading.requests[run.run_id].num_rows == 40


# the whole sweep


def sweep() -> dict[tuple[str, int], Run]:
    found = {}
    for path in sorted(SWEEP.glob("*/profile_export_aiperf.json")):
        arm, _, concurrency = path.parent.name.partition("-c")
        (run,) = read(path.name, path.read_bytes()).runs
        found[arm, int(concurrency)] = run
    return found


# output tok/s over the same arm without speculation, by GuideLLM on the same engine
GUIDELLM = {
    "k2": {1: 1.813, 2: 1.783, 4: 1.737, 8: 1.702, 16: 1.764, 32: 1.205, 64: 0.836},
    "k4": {1: 2.022, 2: 1.870, 4: 1.896, 8: 1.873, 16: 1.471, 32: 0.990, 64: 0.650},
}


@needs_sweep
def test_multipliers_of_the_sweep() -> None:
    runs = sweep()
    assert len({run.run_id for run in runs.values()}) == 21
    for arm, multipliers in GUIDELLM.items():
        for concurrency, expected in multipliers.items():
            run, base = runs[arm, concurrency], runs["base", concurrency]
            assert run.offered_load == concurrency
            assert run.output_tps is not None
            assert base.output_tps is not None
            assert run.output_tps / base.output_tps == pytest.approx(expected, rel=0.15)


@needs_sweep
def test_throughput_and_tpot_of_the_sweep_are_the_servers() -> None:
    for path in sorted(SWEEP.glob("*/profile_export_aiperf.json")):
        (run,) = read(path.name, path.read_bytes()).runs
        counters = json.loads((path.parent / "server_metrics_export.json").read_bytes())["metrics"]
        (tokens,) = counters["vllm:generation_tokens"]["series"]
        (tpot,) = counters["vllm:request_time_per_output_token_seconds"]["series"]
        assert run.output_tokens == tokens["stats"]["total"]
        assert run.output_tps == pytest.approx(run.output_tokens / run.duration_s, rel=0.01)
        assert run.tpot_ms_mean == pytest.approx(tpot["stats"]["avg"] * 1e3, rel=0.1)


@needs_sweep
def test_both_forms_of_every_run_of_the_sweep_share_an_id() -> None:
    for path in sorted(SWEEP.glob("*/profile_export_aiperf.json")):
        by_csv = path.with_suffix(".csv")
        ids = [read(p.name, p.read_bytes()).runs[0].run_id for p in (path, by_csv)]
        assert ids[0] == ids[1], path
    for path in sorted(SWEEP.glob("*/profile_export.jsonl")):
        beside = read(path.name, path.read_bytes()).beside
        assert beside is not None
        summary = path.parent / "profile_export_aiperf.json"
        assert beside.run_ids == (read(summary.name, summary.read_bytes()).runs[0].run_id,)


@needs_corpus
def test_a_public_csv() -> None:
    path = CORPUS / "aiperf" / "anud18-5090-agent-c16-excerpt.csv"
    (run,) = read(path.name, path.read_bytes()).runs
    assert (run.completed, run.duration_s, run.output_tps) == (96, 44.52, 1172.15)
    assert (run.output_tokens, run.output_len, run.token_count) == (52187, 543.61, "client")
    assert (run.tpot_ms_mean, run.itl_ms_p99, run.ttft_ms_p50) == (11.85, 117.99, 177.79)


@needs_corpus
@pytest.mark.parametrize("load", [1, 4])
def test_files_of_0_2(load: int) -> None:
    path = CORPUS / "generated" / f"aiperf-0.2.0-off-c{load}.json"
    found = read(path.name, path.read_bytes())
    (run,) = found.runs
    assert found.tool_version == "0.2 keys"
    assert (run.load_kind, run.offered_load, run.num_prompts) == (LoadKind.CONCURRENCY, load, 12)
    assert (run.target, run.dataset, run.failed) == ("mock-model", "synthetic", 0)
    assert (run.token_count, run.output_tokens) == ("client", 576)
    assert read("a.csv", path.with_suffix(".csv").read_bytes()).runs[0].run_id == run.run_id


def old(export: Export) -> Export:
    """An export with the configuration of 0.2."""
    document = without_usage(export)
    for key in ("aiperf_version", "schema_version", "benchmark_id", "run_info", "is_complete"):
        del document[key]
    document["input_config"] = {
        "endpoint": {"model_names": ["m"], "type": "chat"},
        "input": {
            "prompt": {"input_tokens": {"mean": 128}},
            "extra": [["temperature", 0.5]],
            "random_seed": 3,
            "goodput": {"request_latency": 250.0},
        },
        "loadgen": {"request_rate": 5.0, "concurrency": 9, "request_count": 40},
        "cli_command": "aiperf profile --api-key secret-of-mine",
    }
    return document


def test_the_configuration_of_0_2(export: Export) -> None:
    found = reading(old(export))
    (run,) = found.runs
    assert (found.tool_version, run.tool_version) == ("0.2 keys", None)
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 5.0)
    assert (run.target, run.dataset, run.temperature, run.seed) == ("m", "synthetic", 0.5, 3)
    assert run.slo == "request_latency=250"
    assert "secret-of-mine" not in (run.extra or "")


# what is not AIPerf's


@needs_corpus
def test_no_other_tools_file_is_claimed() -> None:
    for path in sorted(CORPUS.rglob("*.json")):
        if "aiperf" not in path.as_posix():
            document = path.read_bytes()
            try:
                values = [json.loads(document)]
            except ValueError:
                continue
            assert not aiperf.recognise(values), path


@pytest.mark.parametrize(
    "values",
    [[], [None], [[]], [{}], [1], ["x"], [{"metadata": 3}], [{"metrics": []}], [{"data": [1]}]],
)
def test_recognising_survives_anything(values: list[object]) -> None:
    assert not aiperf.recognise(values)


@pytest.mark.parametrize("junk", [None, [], {}, "x", -1, 1e308, True, [[1]], {"unit": []}])
def test_any_key_may_hold_anything(export: Export, junk: object) -> None:
    """Types swapped at every place of the configuration and in every metric."""
    for key in ("models", "endpoint", "datasets", "phases", "slos", "tokenizer"):
        changed = json.loads(json.dumps(export))
        changed["input_config"][key] = junk
        reading(changed)
    for key in [*export]:
        if key not in ("request_latency", "aiperf_version"):
            reading(export | {key: junk})
    for statistic in ("avg", "p50", "min", "sum"):
        changed = json.loads(json.dumps(export))
        for node in changed.values():
            if isinstance(node, dict) and statistic in node:
                node[statistic] = junk
        if aiperf.recognise([changed]):
            reading(changed)


@pytest.mark.parametrize("junk", [None, [], {}, "x", -1, 1e308, True, [[1]]])
def test_the_servers_counters_may_hold_anything(server: Export, junk: object) -> None:
    for metric in server["metrics"]:
        for path in (("series",), ("series", 0), ("series", 0, "stats"), ("series", 0, "labels")):
            changed: Any = json.loads(json.dumps(server))
            place = changed["metrics"][metric]
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = junk
            beside = reading(changed).beside
            assert beside is not None
            Run(run_id="r", **beside.fields)


def test_a_csv_may_hold_anything() -> None:
    rows = list(csv.reader(io.StringIO((FIXTURES / "k4-c8.csv").read_text())))
    for junk in ("", "-1", "nan", "1e400", "x", "9" * 400):
        changed = [
            [r[0], *([junk] * (len(r) - 1))] if r and i % 2 else r for i, r in enumerate(rows)
        ]
        out = io.StringIO()
        csv.writer(out).writerows(changed)
        read("a.csv", out.getvalue().encode())


def test_it_is_a_reader() -> None:
    assert aiperf in tools.READERS


HELD = {"num_spec_steps": 20, "num_draft_tokens": 80, "num_accepted_draft_tokens": 44}
FULL = HELD | {
    "num_spec_tokens": 4,
    "acceptance_histogram": {"0": 4, "1": 4, "2": 3, "3": 2, "4": 7},
}


@pytest.mark.parametrize(
    ("held", "rejected"),
    [
        (HELD, None),
        (FULL, 13),  # 20 steps, 7 of which kept all four
        (FULL | {"acceptance_histogram": {"0": 3, "4": 9}}, None),  # not 20 steps
        (FULL | {"num_draft_tokens": 79}, None),  # one step drafted fewer, which is not said
        (FULL | {"num_spec_tokens": None}, None),
        (
            {"num_spec_steps": 3, "num_draft_tokens": 7, "num_accepted_draft_tokens": 4}
            | {"per_step_accepted": [2, 0, 2], "per_step_drafted": [2, 2, 3]},
            2,
        ),
        ({"num_spec_steps": 0, "num_draft_tokens": 0, "num_accepted_draft_tokens": 0}, 0),
    ],
)
def test_a_record_says_what_its_request_drafted(held: Export, rejected: int | None) -> None:
    def change(rows: list[Export]) -> None:
        rows[0]["spec_decode_acceptance"] = held
        rows[1]["spec_decode_acceptance"] = HELD | {"num_draft_tokens": 10}  # below the accepted

    beside = records(change).beside
    assert beside is not None
    assert beside.requests is not None
    first, second, third = beside.requests.slice(0, 3).to_pylist()
    names = ("drafts", "draft_tokens", "accepted_tokens", "rejected_rounds")
    keys = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    assert [first.get(n) for n in names] == [*(held[k] for k in keys), rejected]
    for row in (second, third):
        assert [row.get(n) for n in names] == [None] * 4
