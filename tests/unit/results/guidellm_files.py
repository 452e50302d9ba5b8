"""GuideLLM's files of every level, small and made up, laid out as its versions write them."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

PERCENTILES = ("p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999")
RATES = (2.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0)
START = 1_770_000_000.0
RATE_STRATEGIES = [{"type_": "constant", "rate": rate} for rate in RATES]
# mean of the successful requests; 48 tokens an answer, 4 s of 20 requests
MEANS = {
    "request_latency": 0.312,
    "request_streaming_iterations_count": 102.0,
    "time_to_first_token_ms": 30.0,
    "time_per_output_token_ms": (30.0 + 47 * 6.0) / 48,
    "inter_token_latency_ms": 6.0,
    "requests_per_second": 4.75,
    "request_concurrency": 1.5,
    "prompt_token_count": 33.0,
    "output_token_count": 48.0,
    "total_token_count": 81.0,
    "prompt_tokens_per_second": 165.0,
    "output_tokens_per_second": 240.0,
    "tokens_per_second": 400.0,
    "output_tokens_per_iteration": 2.5,
    "iter_tokens_per_iteration": 2.5,
}
COMPLETED, DURATION = 20, 4.0
EARLY_METRICS = (
    *("requests_per_second", "request_concurrency", "request_latency", "prompt_token_count"),
    *("output_token_count", "time_to_first_token_ms", "time_per_output_token_ms"),
    *("inter_token_latency_ms", "output_tokens_per_second", "tokens_per_second"),
)


def distribution(mean: float, *, early: bool = False) -> dict[str, Any]:
    """A summary whose median is 0.9 and whose p99 is 1.4 of the mean."""
    factors = dict(
        zip(PERCENTILES, (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1, 1.2, 1.3, 1.4, 1.5), strict=True)
    )
    if early:
        del factors["p50"]
    return {
        "mean": mean,
        "median": 0.9 * mean,
        "mode": mean,
        "variance": 0.0,
        "std_dev": 0.0,
        "min": 0.0,
        "max": 1.5 * mean,
        "count": COMPLETED,
        "total_sum": mean * COMPLETED,
        "percentiles": {name: factor * mean for name, factor in factors.items()},
        "cumulative_distribution_function" if early else "pdf": None,
    }


def metrics(names: Sequence[str] = tuple(MEANS), *, early: bool = False) -> dict[str, Any]:
    empty = distribution(0.0, early=early)
    return {
        name: {
            "successful": distribution(MEANS[name], early=early),
            "errored": empty,
            "incomplete": empty,
            "total": distribution(1.1 * MEANS[name], early=early),
        }
        for name in names
    }


TOTALS = {"successful": COMPLETED, "errored": 0, "incomplete": 1, "total": COMPLETED + 1}


def early_report(strategies: Sequence[Mapping[str, Any]] = RATE_STRATEGIES) -> dict[str, Any]:
    """0.2 and 0.3: nothing but `benchmarks`."""
    items = []
    for number, strategy in enumerate(strategies):
        profile = {"type_": "async", "random_seed": 7, "rate": list(RATES)}
        items.append(
            {
                "type_": "generative_benchmark",
                "id_": f"early-{number}",
                "run_id": "early",
                "args": {"profile": profile, "strategy_index": number, "strategy": dict(strategy)},
                "run_stats": {"start_time": START - 1},
                "worker": {"type_": "generative_requests_worker", "backend_model": "acme/m"},
                "request_loader": {"data": "prompt_tokens=33,output_tokens=48"},
                "extras": {},
                "metrics": metrics(EARLY_METRICS, early=True),
                "start_time": START + 10 * number,
                "end_time": START + 10 * number + DURATION,
                "duration": DURATION,
                "request_totals": TOTALS,
                "requests": {
                    "successful": [request("start_time")] * COMPLETED,
                    "errored": [],
                    "incomplete": [request("start_time")],
                },
            }
        )
    return {"benchmarks": items}


def request(start: str) -> dict[str, Any]:
    return {
        start: START,
        "prompt_tokens": 33,
        "output_tokens": 48,
        "time_to_first_token_ms": 0.0,
        "inter_token_latency_ms": 6.0,
        "request_latency": 0.312,
        "output": "the answer",
    }


def item(number: int, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark of 0.4 and later."""
    return {
        "type_": "generative_benchmark",
        "config": {
            "id_": f"id-{number}",
            "run_id": "run",
            "run_index": number,
            "strategy": dict(strategy),
            "backend": {"model": "acme/m", "target": "http://host:1"},
            "constraints": {},
        },
        "scheduler_state": {},
        "scheduler_metrics": {},
        "metrics": {**metrics(), "request_totals": TOTALS},
        "requests": {
            "successful": [request("request_start_time")] * COMPLETED,
            "errored": [],
            "incomplete": [],
        },
        "start_time": START + 10 * number,
        "duration": DURATION,
    }


def args_report(strategies: Sequence[Mapping[str, Any]] = RATE_STRATEGIES) -> dict[str, Any]:
    """0.4: `args`, no metadata."""
    args = {
        "model": "acme/m",
        "data": ["prompt_tokens=33,output_tokens=48"],
        "random_seed": 7,
        "backend_kwargs": None,
    }
    return {"args": args, "benchmarks": [item(n, s) for n, s in enumerate(strategies)]}


def v1_report(strategies: Sequence[Mapping[str, Any]] = RATE_STRATEGIES) -> dict[str, Any]:
    """0.6: metadata.version 1, the model in backend_kwargs."""
    report = args_report(strategies)
    body = {"temperature": 0.5, "top_p": 0.75}
    report["args"] |= {
        "model": None,
        "backend_kwargs": {"model": "acme/m", "extras": {"body": body}},
    }
    for benchmark in report["benchmarks"]:
        del benchmark["config"]["backend"]["model"]
    return {"metadata": {"version": 1, "guidellm_version": "0.6.1"}, **report}


def v2_report(strategies: Sequence[Mapping[str, Any]] = RATE_STRATEGIES) -> dict[str, Any]:
    """0.7 and later: metadata.version 2, `config` in place of `args`."""
    spec = {"data": [{"kind": "synthetic_text"}], "seed": {"kind": "static", "value": 7}}
    return {
        "metadata": {"version": 2, "guidellm_version": "0.7.0"},
        "config": {"metadata": {"labels": {}}, "spec": spec},
        "benchmarks": [item(n, s) for n, s in enumerate(strategies)],
    }


def early_csv(report: Mapping[str, Any]) -> str:
    """The CSV that 0.3 writes of an early report: one header row."""
    rows: list[list[Any]] = []
    headers: list[str] = []
    for benchmark in report["benchmarks"]:
        headers = ["Type", "Run Id", "Id", "Name", "Start Time", "End Time", "Duration"]
        times = ["2026-02-02 03:00:00", "2026-02-02 03:00:04"]
        name = f"constant@{benchmark['args']['strategy'].get('rate', 0):.2f}"
        row = [benchmark["type_"], benchmark["run_id"], benchmark["id_"], name, *times, DURATION]
        for status in ("successful", "errored", "incomplete", "total"):
            headers.append(f"{status.capitalize()} Requests")
            row.append(benchmark["request_totals"][status])
            for metric, nodes in benchmark["metrics"].items():
                shown = f"{status.capitalize()} {metric.replace('_', ' ').capitalize()}"
                listed = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
                headers += [f"{shown} {s}" for s in ("mean", "median", "std dev", listed)]
                row += [*block(nodes[status])]
        headers += ["Args", "Worker", "Request Loader", "Extras"]
        parts = ("args", "worker", "request_loader", "extras")
        row += [json.dumps(benchmark[part]) for part in parts]
        rows.append(row)
    return written([headers, *rows])


def block(node: Mapping[str, Any]) -> list[Any]:
    p = node["percentiles"]
    listed = [node["min"], *(p[n] for n in PERCENTILES if n not in ("p50", "p999")), node["max"]]
    return [node["mean"], node["median"], node["std_dev"], str(listed)]


_CSV_NAMES = {
    "request_latency": ("Request Latency", "Sec"),
    "request_streaming_iterations_count": ("Streaming Iterations", "Count"),
    "time_to_first_token_ms": ("Time to First Token", "ms"),
    "time_per_output_token_ms": ("Time per Output Token", "ms"),
    "inter_token_latency_ms": ("Inter Token Latency", "ms"),
    "requests_per_second": ("Server Throughput", "Requests/Sec"),
    "request_concurrency": ("Server Throughput", "Concurrency"),
    "prompt_token_count": ("Token Metrics", "Input Tokens"),
    "output_token_count": ("Token Metrics", "Output Tokens"),
    "total_token_count": ("Token Metrics", "Total Tokens"),
    "prompt_tokens_per_second": ("Token Throughput", "Input Tokens/Sec"),
    "output_tokens_per_second": ("Token Throughput", "Output Tokens/Sec"),
    "tokens_per_second": ("Token Throughput", "Total Tokens/Sec"),
    "output_tokens_per_iteration": ("Token Streaming", "Output Tokens/Iter"),
    "iter_tokens_per_iteration": ("Token Streaming", "Iter Tokens/Iter"),
}


def v1_csv(report: Mapping[str, Any]) -> str:
    """The CSV that 0.4 to 0.6 write: three header rows, those of the first benchmark alone.

    Four columns a metric and status, left out where the status sums to 0.
    """
    strategies = [b["config"]["strategy"] for b in report["benchmarks"]]
    profile = json.dumps({"type_": "async", "completed_strategies": strategies})
    headers: list[tuple[str, str, str]] = []
    rows = []
    for benchmark in report["benchmarks"]:
        config, totals = benchmark["config"], benchmark["metrics"]["request_totals"]
        cells: dict[tuple[str, str, str], Any] = {
            ("Run Info", "Run ID", ""): config["run_id"],
            ("Run Info", "Run Index", ""): config["run_index"],
            ("Run Info", "Profile", ""): profile,
            ("Run Info", "Backend", ""): json.dumps(config["backend"]),
            ("Benchmark", "Type", ""): benchmark["type_"],
            ("Benchmark", "ID", ""): config["id_"],
            ("Benchmark", "Strategy", ""): config["strategy"]["type_"],
            ("Benchmark", "Constraints", ""): "{}",
            ("Timings", "Request Start Time", ""): "2026-02-02 03:00:00",
            ("Timings", "Duration", "Sec"): benchmark["duration"],
        }
        for status in ("successful", "incomplete", "errored", "total"):
            cells["Request Counts", status.capitalize(), ""] = totals[status]
        for metric, (group, unit) in _CSV_NAMES.items():
            for status in ("successful", "incomplete", "errored"):
                node = benchmark["metrics"][metric][status]
                if node["total_sum"]:
                    names = ("Mean", "Median", "Std Dev", "Percentiles")
                    name = f"{status.capitalize()} {unit}"
                    values = zip(names, block(node), strict=True)
                    cells |= {(group, name, n): value for n, value in values}
        cells["Scheduler State", "Node ID", ""] = 0
        metadata = report.get("metadata", {})
        cells["Runtime Info", "Metadata", ""] = json.dumps(metadata) if metadata else ""
        cells["Runtime Info", "Arguments", ""] = json.dumps(report["args"])
        headers = headers or list(cells)
        rows.append(list(cells.values()))
    return written([*zip(*headers, strict=True), *rows])


def written(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue()
