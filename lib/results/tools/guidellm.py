"""Reports of GuideLLM 0.7 and later (metadata.version 2): JSON, and the CSV of the same runs.

A file holds many benchmarks, each one run. Both forms are brought to the JSON's item, so one run
gives one record and one id, whichever file it is read from.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from lib.errors import UnknownFormat
from lib.results import checks, per_request, redaction
from lib.results.fields import settled, stated
from lib.results.findings import Findings, Flag, build_run, identity, shorten
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.run import LoadKind, SpecState

TOOL = "guidellm"
LEVEL = 2
Item = Mapping[str, Any]

# Canonical TPOT is GuideLLM's inter-token latency: per request (last - first token) / (tokens - 1).
# Its own "time per output token" includes the time to first token.
_LATENCIES = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("inter_token_latency_ms", 1.0),
    "e2e": ("request_latency", 1e3),
}
_CSV_PERCENTILES = ("p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999")
# metric of the JSON → group and second header of the CSV
_CSV_METRICS = {
    "time_to_first_token_ms": ("Time to First Token", "Successful ms"),
    "inter_token_latency_ms": ("Inter Token Latency", "Successful ms"),
    "request_latency": ("Request Latency", "Successful Sec"),
    "output_tokens_per_second": ("Token Throughput", "Successful Output Tokens/Sec"),
    "output_tokens_per_iteration": ("Token Streaming", "Successful Output Tokens/Iter"),
    "requests_per_second": ("Server Throughput", "Successful Requests/Sec"),
    "request_concurrency": ("Server Throughput", "Successful Concurrency"),
    "prompt_token_count": ("Token Metrics", "Successful Input Tokens"),
    "output_token_count": ("Token Metrics", "Successful Output Tokens"),
}


def recognise(value: object) -> bool:
    """Whether a JSON value is a GuideLLM report, of whichever level."""
    items = as_list(as_dict(value).get("benchmarks"))
    return bool(items) and any(
        str(as_dict(item).get("type_", "")).endswith("generative_benchmark")
        or {"metrics", "scheduler_state"} <= as_dict(item).keys()
        for item in items
    )


def recognise_csv(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are GuideLLM's CSV with three header rows, of whichever level."""
    pairs = set(zip(*rows[:2], strict=False)) if len(rows) > 2 else set()
    return {("Benchmark", "Strategy"), ("Run Info", "Run ID")} <= pairs


def find(name: str, report: Mapping[str, Any], sha256: str) -> Findings:
    """Runs of a JSON report. Raises UnknownFormat for another level's layout."""
    metadata = as_dict(report.get("metadata"))
    if as_count(metadata.get("version")) != LEVEL:
        level = as_text(metadata.get("guidellm_version")) or "0.4 or earlier"
        raise _unread(name, level, report)
    config = as_dict(report.get("config"))
    items = [as_dict(item) for item in as_list(report["benchmarks"])]
    why = "a list of generative benchmarks, metadata.version 2"
    return _findings(name, why, metadata, config, items, sha256, zone_known=True)


def find_csv(name: str, rows: Sequence[Sequence[str]], sha256: str) -> Findings:
    """Runs of the CSV's lines. Raises UnknownFormat for another level's layout."""
    places: dict[tuple[str, ...], int] = {}
    for column, key in enumerate(zip(*rows[:3], strict=False)):
        places.setdefault(key, column)
    lines = [_Line(places, row) for row in rows[3:]]
    metadata = lines[0].json("Runtime Info", "Metadata") if lines else {}
    if as_count(metadata.get("version")) != LEVEL:
        level = as_text(metadata.get("guidellm_version")) or "of an unknown version"
        raise _unread(name, f"{level} CSV", dict.fromkeys(rows[0]))
    config = lines[0].json("Runtime Info", "Arguments")
    items = [_item(line) for line in lines]
    why = "CSV with GuideLLM's three header rows, metadata version 2"
    return _findings(name, why, metadata, config, items, sha256, zone_known=False)


def _unread(name: str, level: str, keys: Mapping[str, object]) -> UnknownFormat:
    return UnknownFormat(
        f"{name}: GuideLLM {level} is not read yet, 0.7 and later are (metadata.version 2); "
        f"keys found: {shorten(keys)}"
    )


def _findings(
    name: str,
    why: str,
    metadata: Mapping[str, Any],
    config: Mapping[str, Any],
    items: Sequence[Item],
    sha256: str,
    zone_known: bool,
) -> Findings:
    version = as_text(metadata.get("guidellm_version")) or "0.7 or later"
    shared, unknown_labels = _labels(config)
    runs, requests, flags = {}, {}, list[Flag]()
    for position, item in enumerate(items):
        own = as_dict(item.get("config"))
        run_id = _run_id(own, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields = _fields(item, config, zone_known) | shared
        fields |= {"run_id": run_id, "source_sha256": sha256, "tool": TOOL, "tool_version": version}
        run, found = build_run(fields | {"extra": _extra(item, unknown_labels)})
        flags += [*found, *checks.inspect(run)]
        runs[run_id] = run
        table = _requests(as_dict(item.get("requests")))
        if table is not None:
            requests[run_id] = table
            flags += _sampled(table, run_id, run.completed)
    return Findings(TOOL, version, why, tuple(runs.values()), requests, tuple(flags))


def _labels(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, object]]:
    """Fields that the user's labels state, and the labels that were not understood."""
    found: dict[str, Any] = {}
    unknown = {}
    for key, value in as_dict(as_dict(config.get("metadata")).get("labels")).items():
        if fields := stated(key, value):
            found |= fields
        else:
            unknown[f"label {key}"] = value
    return settled(found), unknown


def _run_id(own: Mapping[str, Any], sha256: str, position: int) -> str:
    written = as_text(own.get("id_"))
    return identity(TOOL, written) if written else identity(TOOL, sha256, position)


def _fields(item: Item, config: Mapping[str, Any], zone_known: bool) -> dict[str, Any]:
    metrics, own = as_dict(item.get("metrics")), as_dict(item.get("config"))
    totals = as_dict(metrics.get("request_totals"))
    completed = as_count(totals.get("successful"))
    tokens = {f"{k}_tokens": _sum(metrics, f"{m}_token_count", completed) for k, m in _TOKENS}
    spec = as_dict(config.get("spec"))
    backend = as_dict(own.get("backend"))
    body = as_dict(as_dict(backend.get("extras")).get("body"))
    target = as_text(backend.get("model")) or as_text(as_dict(spec.get("backend")).get("model"))
    started = item.get("start_time")
    return {
        **{f"{k}_len": _statistic(metrics, f"{m}_token_count", "mean") for k, m in _TOKENS},
        **_latency_fields(metrics),
        **_load(as_dict(own.get("strategy")), metrics),
        **tokens,
        **_slo(own.get("slo"), metrics),
        "started_at": started if isinstance(started, datetime) else _epoch(started),
        "zone_known": zone_known,
        "target": target,
        "dataset": _dataset(spec.get("data")),
        "temperature": as_number(body.get("temperature")),
        "top_p": as_number(body.get("top_p")),
        "seed": as_count(as_dict(spec.get("seed")).get("value")),
        "spec_state": SpecState.UNKNOWN,
        "num_prompts": as_count(totals.get("total")),
        "completed": completed,
        "failed": as_count(totals.get("errored")),
        "duration_s": as_number(item.get("duration")),
        "output_tps": _statistic(metrics, "output_tokens_per_second", "mean"),
        "request_rps": _statistic(metrics, "requests_per_second", "mean"),
        "running_mean": _statistic(metrics, "request_concurrency", "mean"),
    }


_TOKENS = (("input", "prompt"), ("output", "output"))


def _node(metrics: Mapping[str, Any], name: str) -> dict[str, Any]:
    return as_dict(as_dict(metrics.get(name)).get("successful"))


def _statistic(metrics: Mapping[str, Any], name: str, statistic: str) -> float | None:
    return as_number(_node(metrics, name).get(statistic))


def _sum(metrics: Mapping[str, Any], name: str, completed: int | None) -> int | None:
    """Tokens over all completed requests; from the mean where no sum is written (the CSV)."""
    written, mean = (_statistic(metrics, name, s) for s in ("total_sum", "mean"))
    if written is not None:
        return round(written)
    return round(mean * completed) if mean is not None and completed is not None else None


def _latency_fields(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    found = {}
    for name, (metric, factor) in _LATENCIES.items():
        node = _node(metrics, metric)
        percentiles = as_dict(node.get("percentiles"))
        values = {"mean": node.get("mean"), "p50": node.get("median")}
        values |= {p: percentiles.get(p) for p in ("p90", "p95", "p99")}
        for statistic, value in values.items():
            number = as_number(value)
            found[f"{name}_ms_{statistic}"] = None if number is None else number * factor
    return found


def _load(strategy: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The item's own strategy decides: a report's profile may list other loads."""
    kind = strategy.get("type_")
    if kind in ("concurrent", "synchronous"):
        streams = 1 if kind == "synchronous" else as_count(strategy.get("streams"))
        return {"load_kind": LoadKind.CONCURRENCY, "offered_load": _float(streams)}
    if kind in ("constant", "poisson", "throughput"):
        rate = math.inf if kind == "throughput" else as_number(strategy.get("rate"))
        achieved = _statistic(metrics, "requests_per_second", "mean")
        load = {"load_kind": LoadKind.REQUEST_RATE, "offered_load": rate}
        return load | {"achieved_load": achieved}
    return {}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _slo(slo: object, metrics: Mapping[str, Any]) -> dict[str, Any]:
    limits = {k: v for k, v in as_dict(slo).items() if v is not None}
    if not limits:
        return {}
    written = ", ".join(f"{k}={v}" for k, v in sorted(limits.items()))[:200]
    return {"slo": written, "goodput_rps": _statistic(metrics, "request_goodput", "mean")}


def _dataset(data: object) -> str | None:
    """Name of the data set: its source where it has one, else its kind."""
    first = as_dict((as_list(data) or [None])[0])
    keys = ("source", "path", "dataset", "name", "kind")
    return next((text for key in keys if (text := as_text(first.get(key)))), None)


def _epoch(value: object) -> datetime | None:
    seconds = as_number(value)
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _extra(item: Item, labels: Mapping[str, object]) -> str | None:
    own, metrics = as_dict(item.get("config")), as_dict(item.get("metrics"))
    totals = as_dict(metrics.get("request_totals"))
    return redaction.extra(
        {
            **labels,
            **{k: own.get(k) for k in ("run_id", "run_index", "strategy", "constraints")},
            "incomplete": as_count(totals.get("incomplete")) or None,
            "output_tokens_per_iteration": _statistic(
                metrics, "output_tokens_per_iteration", "mean"
            ),
            "warnings": [as_dict(w).get("message") for w in as_list(item.get("warnings"))] or None,
        }
    )


def _requests(requests: Mapping[str, Any]) -> pa.Table | None:
    """Per-request table of the successful and errored requests; those cut off at the end are not.

    GuideLLM's inter-token latency of a request is its TPOT here, as in the aggregates.
    """
    good, bad = (as_list(requests.get(k)) for k in ("successful", "errored"))
    rows = [as_dict(r) for r in (*good, *bad)]
    if not good:
        return None
    factors = {
        "start_s": ("request_start_time", 1.0),
        "input_tokens": ("prompt_tokens", 1.0),
        "output_tokens": ("output_tokens", 1.0),
        "ttft_ms": ("time_to_first_token_ms", 1.0),
        "tpot_ms": ("inter_token_latency_ms", 1.0),
        "e2e_ms": ("request_latency", 1e3),
    }
    columns = {}
    for name, (key, factor) in factors.items():
        columns[name] = per_request.floats([as_number(row.get(key)) for row in rows], factor)
    return per_request.table(np.arange(len(rows)) < len(good), **columns)


def _sampled(table: pa.Table, run_id: str, completed: int | None) -> list[Flag]:
    held = int(np.count_nonzero(table["ok"].to_numpy()))
    if completed is None or held >= completed:
        return []
    text = f"holds {held} of {completed} completed requests: goodput rests on a sample"
    return [Flag("sampled_requests", "warns", text, run_id)]


class _Line:
    """A line of the CSV, read by its three headers."""

    def __init__(self, places: Mapping[tuple[str, ...], int], row: Sequence[str]) -> None:
        self._places, self._row = places, row

    def cell(self, group: str, name: str, statistic: str = "") -> str:
        place = self._places.get((group, name, statistic))
        return self._row[place] if place is not None and place < len(self._row) else ""

    def json(self, group: str, name: str, statistic: str = "") -> dict[str, Any]:
        return as_dict(_json(self.cell(group, name, statistic)))


def _json(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _item(line: _Line) -> Item:
    """A CSV line as an item of the JSON report, as far as it goes."""
    totals = ("Successful", "Incomplete", "Errored", "Total")
    metrics = {metric: _metric(line, *place) for metric, place in _CSV_METRICS.items()}
    config = {
        "id_": line.cell("Benchmark", "ID"),
        "run_id": line.cell("Run Info", "Run ID") or None,
        "run_index": as_count(line.cell("Run Info", "Run Index")),
        "strategy": _strategy(line),
        "constraints": line.json("Benchmark", "Constraints"),
        "backend": line.json("Run Info", "Backend"),
    }
    return {
        "config": config,
        "metrics": metrics
        | {"request_totals": {t.lower(): line.cell("Request Counts", t) for t in totals}},
        "start_time": _local(line.cell("Timings", "Request Start Time")),
        "duration": line.cell("Timings", "Duration", "Sec"),
    }


def _metric(line: _Line, group: str, name: str) -> dict[str, Any]:
    listed = as_list(_json(line.cell(group, name, "Percentiles")))
    return {
        "successful": {
            "mean": line.cell(group, name, "Mean"),
            "median": line.cell(group, name, "Median"),
            "percentiles": dict(zip(_CSV_PERCENTILES, listed, strict=False)),
        }
    }


def _strategy(line: _Line) -> dict[str, Any]:
    """`concurrent@8`, `constant@2.00`, `synchronous`: the rate is printed with two decimals.

    The profile's list gives it in full where one of its rates rounds to what is printed.
    """
    kind, _, printed = line.cell("Benchmark", "Strategy").partition("@")
    load = as_number(printed)
    rates = [as_number(r) for r in as_list(line.json("Run Info", "Profile").get("rate"))]
    exact = [r for r in rates if r is not None and load is not None and abs(r - load) <= 0.005]
    return {"type_": kind, "streams": load, "rate": exact[0] if exact else load}


def _local(text: str) -> datetime | None:
    """A time without a zone, kept as if UTC; `zone_known` stays False."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
