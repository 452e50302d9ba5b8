import json
from pathlib import Path
from typing import Any

import pytest

from lib.results.reading import Reading, read
from lib.results.tools import aiperf, genai_perf
from lib.run import LoadKind, Run, SpecState

SHARED = Path(__file__).resolve().parents[4] / "shared"
CORPUS = SHARED / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")
Export = dict[str, Any]

# Written by hand to the keys of genai-perf; the numbers are made up and consistent.
CSV = """\
Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),48.13,30.01,99.87,98.20,91.02,80.11,52.30,45.04,38.77
Inter Token Latency (ms),12.50,11.02,14.90,14.70,14.01,13.62,12.90,12.44,11.98
Request Latency (ms),"1,635.63","1,400.00","1,990.10","1,980.20","1,900.00","1,850.00","1,700.00",\
"1,630.00","1,500.00"
Output Sequence Length,128.00,128.00,128.00,128.00,128.00,128.00,128.00,128.00,128.00
Input Sequence Length,200.12,199.00,202.00,202.00,202.00,201.00,201.00,200.00,200.00

Metric,Value
Output Token Throughput (tokens/sec),"1,214.07"
Request Throughput (requests/sec),9.48
Request Count (count),64.00
"""


def node(unit: str, mean: float, least: float, most: float, **percentiles: float) -> Export:
    return {"unit": unit, "avg": mean, "min": least, "max": most, "std": 1.0, **percentiles}


@pytest.fixture
def export() -> Export:
    return {
        "request_throughput": {"unit": "requests/sec", "avg": 9.4849},
        "request_latency": node(
            "ms", 1635.6312, 1400.0, 1990.1, p50=1630.0, p90=1850.0, p99=1980.2
        ),
        "request_count": {"unit": "count", "avg": 64.0},
        "time_to_first_token": node("ms", 48.1302, 30.0111, 99.87, p50=45.04, p95=91.02),
        "inter_token_latency": node("ms", 12.5, 11.0201, 14.9, p50=12.44, p99=14.7),
        "output_token_throughput": {"unit": "tokens/sec", "avg": 1214.0672},
        "output_token_throughput_per_user": node("tokens/sec/user", 80.0, 70.0, 90.0),
        "output_sequence_length": node("tokens", 128.0, 128.0, 128.0),
        "input_sequence_length": node("tokens", 200.125, 199.0, 202.0),
        "request_goodput": {"unit": "requests/sec", "avg": 9.0},
        "time_to_second_token": node("ms", 12.0, 10.0, 14.0),
        "telemetry_stats": {
            "gpu_power_usage": {"unit": "W", "gpu0": {"avg": 300.0}, "gpu1": {"avg": 310.0}}
        },
        "input_config": {
            "model_names": ["meta/llama"],
            "perf_analyzer": {"stimulus": {"concurrency": 16}},
            "goodput": {"time_to_first_token": 100.0},
            "extra_inputs": {"temperature": 0},
            "tokenizer": {"name": "meta/llama"},
            "headers": ["Authorization: Bearer abcdefghijklmnop"],
        },
    }


def reading(document: object) -> Reading:
    return read("g.json", json.dumps(document).encode())


def run_of(document: object) -> Run:
    (run,) = reading(document).runs
    return run


def codes(found: Reading) -> set[str]:
    return {f.code for f in found.flags}


def test_c73_an_export(export: Export) -> None:
    """C73: the same statistics under GenAI-Perf's names, unknown metrics listed."""
    found = reading(export)
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("genai-perf", "perf_analyzer keys")
    assert (run.tool, run.target) == ("genai-perf", "meta/llama")
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 16.0)
    assert (run.completed, run.output_tokens, run.output_len) == (64, 8192, 128.0)
    assert (run.output_tps, run.request_rps, run.goodput_rps) == (1214.0672, 9.4849, 9.0)
    assert (run.ttft_ms_mean, run.ttft_ms_p95, run.ttft_ms_p99) == (48.1302, 91.02, None)
    assert (run.tpot_ms_mean, run.tpot_ms_p99, run.itl_ms_mean) == (12.5, 14.7, None)
    assert (run.e2e_ms_p90, run.e2e_ms_p95) == (1850.0, None)
    assert (run.slo, run.temperature, run.power_w) == ("time_to_first_token=100", 0.0, 610.0)
    assert (run.spec_state, run.gpu_count, run.tool_version) == (SpecState.UNKNOWN, None, None)
    assert "time_to_second_token" in json.loads(run.extra or "")["metrics"]
    assert "abcdefgh" not in (run.extra or "")
    assert all(any(key in keys for keys in genai_perf.LEVELS.values()) for key in found.keys)
    assert len(set(found.keys)) == len(found.keys)


def test_the_count_is_the_clients(export: Export) -> None:
    found = reading(export)
    assert found.runs[0].token_count == "client"
    assert "retokenised_unchecked" in codes(found)


def test_the_csv_is_the_same_run(export: Export) -> None:
    found = read("g.csv", CSV.encode())
    (run,) = found.runs
    assert run.run_id == run_of(export).run_id
    assert (found.tool, found.tool_version) == ("genai-perf", "CSV")
    assert (run.output_tps, run.e2e_ms_mean, run.completed) == (1214.07, 1635.63, 64)
    assert (run.ttft_ms_p99, run.tpot_ms_p50, run.output_tokens) == (98.2, 12.44, 8192)
    assert (run.offered_load, run.target) == (None, None)
    assert "csv_says_less" in codes(found)


@pytest.mark.parametrize(
    ("config", "kind", "load"),
    [
        ({"perf_analyzer": {"stimulus": {"concurrency": [4]}}}, LoadKind.CONCURRENCY, 4.0),
        ({"perf_analyzer": {"stimulus": {"request_rate": 2.5}}}, LoadKind.REQUEST_RATE, 2.5),
        ({"concurrency": 8}, LoadKind.CONCURRENCY, 8.0),
        ({"concurrency": None, "request_rate": 3.0}, LoadKind.REQUEST_RATE, 3.0),
        ({"concurrency": [1, 2]}, None, None),
    ],
)
def test_loads(export: Export, config: Export, kind: LoadKind | None, load: float | None) -> None:
    run = run_of(export | {"input_config": {"model_names": ["a", "b"]} | config})
    assert (run.load_kind, run.offered_load, run.target) == (kind, load, None)


def test_c73_units_are_read(export: Export) -> None:
    export["time_to_first_token"] = node("ns", 48.1302e6, 30.0111e6, 99.87e6)
    export["inter_token_latency"]["unit"] = "parsecs"
    found = reading(export)
    assert found.runs[0].ttft_ms_mean == pytest.approx(48.1302)
    assert found.runs[0].tpot_ms_mean is None
    assert "unknown_unit" in codes(found)


def test_a_rate_per_user_is_no_throughput(export: Export) -> None:
    del export["output_token_throughput"]
    assert run_of(export).output_tps is None


def test_the_raw_profile_is_no_run() -> None:
    profile = {
        "experiments": [
            {
                "experiment": {"mode": "concurrency", "value": 1},
                "requests": [{"timestamp": 1, "response_timestamps": [2, 3]}],
            }
        ],
        "service_kind": "openai",
    }
    found = reading(profile)
    assert (found.tool, found.runs, codes(found)) == ("genai-perf", (), {"not_a_run"})
    assert "profile_export_genai_perf.json" in found.flags[0].message


def test_the_two_tools_are_told_apart(export: Export) -> None:
    assert not aiperf.recognise([export])
    newer = export | {"aiperf_version": "0.10.0"}
    assert not genai_perf.recognise([newer])
    assert aiperf.recognise([newer])
    rows = [line.split(",") for line in CSV.splitlines() if line]
    assert not aiperf.recognise_rows(rows)


@needs_corpus
def test_no_file_of_aiperf_is_claimed() -> None:
    for path in sorted(CORPUS.rglob("*.json")):
        try:
            values = [json.loads(path.read_bytes())]
        except ValueError:
            continue
        assert not genai_perf.recognise(values), path


@pytest.mark.parametrize("values", [[], [None], [[]], [{}], [1], ["x"], [{"experiments": [1]}]])
def test_recognising_survives_anything(values: list[object]) -> None:
    assert not genai_perf.recognise(values)


@pytest.mark.parametrize("junk", [None, [], {}, "x", -1, 1e308, True, [[1]], {"unit": []}])
def test_any_key_may_hold_anything(export: Export, junk: object) -> None:
    for key in export["input_config"]:
        reading(export | {"input_config": export["input_config"] | {key: junk}})
    for key in export:
        if key not in ("request_latency", "input_config"):
            reading(export | {key: junk})
            if isinstance(export[key], dict):
                reading(export | {key: dict.fromkeys(export[key], junk)})
