"""Results of genai-bench (sgl-project): one file a scenario and load, each one run.

`_time_unit` says whether latencies are in seconds or milliseconds; files without it hold seconds.
What was served on what stands in `experiment_metadata.json`, one of an experiment's folder.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lib.results import checks, per_request, redaction
from lib.results.findings import Beside, Findings, Flag, Key, build_run, identity
from lib.results.keys import STATISTICS, at, latency_keys, take
from lib.results.parsing import as_count, as_dict, as_list, as_number, flat
from lib.results.server_args import engine_name
from lib.run import LoadKind, Run

TOOL = "genai-bench"
TITLE = "genai-bench"
_AGGREGATED = ("aggregated_metrics",)
_STATS = ("aggregated_metrics", "stats")
_FACTORS = {"s": 1e3, "sec": 1e3, "seconds": 1e3, "ms": 1.0, "milliseconds": 1.0}
_METRICS = {"ttft": "ttft", "tpot": "tpot", "e2e": "e2e_latency"}
_RUN_KEYS = (
    Key("label", (*_AGGREGATED, "scenario"), note="the traffic scenario"),
    Key("num_prompts", (*_AGGREGATED, "num_requests")),
    Key("completed", (*_AGGREGATED, "num_completed_requests")),
    Key("failed", (*_AGGREGATED, "num_error_requests")),
    Key("duration_s", (*_AGGREGATED, "run_duration")),
    Key("output_tps", (*_AGGREGATED, "mean_output_throughput_tokens_per_s")),
    Key("request_rps", (*_AGGREGATED, "requests_per_second")),
    Key("request_rps", (*_AGGREGATED, "requests_per_minute"), 1 / 60, "requests/min"),
    Key("input_tokens", (*_STATS, "num_input_tokens", "sum")),
    Key("output_tokens", (*_STATS, "num_output_tokens", "sum")),
    Key("input_len", (*_STATS, "num_input_tokens", "mean")),
    Key("output_len", (*_STATS, "num_output_tokens", "mean")),
    *(
        key
        for name, metric in _METRICS.items()
        for key in latency_keys(
            name, (*_STATS, metric), STATISTICS, factor=1e3, unit="s, or as _time_unit says"
        )
    ),
)
_LOADS = {
    LoadKind.CONCURRENCY: Key("offered_load", (*_AGGREGATED, "num_concurrency")),
    LoadKind.REQUEST_RATE: Key(
        "offered_load", (*_AGGREGATED, "request_rate"), unit="requests/s", note="rate mode"
    ),
}
_QPS = Key(
    "offered_load", (*_AGGREGATED, "num_concurrency"), unit="requests/s", note="open-loop mode"
)
_ACHIEVED = (
    Key("achieved_load", (*_AGGREGATED, "arrival_requests_per_second"), unit="requests/s"),
    Key("achieved_load", (*_AGGREGATED, "requests_per_second"), unit="requests/s"),
)
_METADATA = (
    Key("target", ("model",)),
    Key("engine", ("server_engine",)),
    Key("engine_version", ("server_version",)),
    Key("gpu", ("server_gpu_type",)),
    Key("gpu_count", ("server_gpu_count",)),
    Key("temperature", ("additional_request_params", "temperature")),
    Key("top_p", ("additional_request_params", "top_p")),
    Key("dataset", ("dataset_path",)),
)
_FOLLOWS = (
    _QPS,
    Key("load_kind", (*_AGGREGATED, "iteration_type"), note="request rate in open-loop mode too"),
    Key("input_len", (*_AGGREGATED, "scenario"), note="D(in,out), without measured lengths"),
    Key("output_len", (*_AGGREGATED, "scenario"), note="D(in,out), without measured lengths"),
)
_ALL = (*_RUN_KEYS, *_LOADS.values(), *_ACHIEVED, *_FOLLOWS)
_WITH, _WITHOUT = "with _time_unit", "without _time_unit"
LEVELS: Mapping[str, tuple[Key, ...]] = {
    _WITH: _ALL,
    _WITHOUT: _ALL,
    "experiment_metadata": _METADATA,
}
_SCENARIO = re.compile(r"([DN])\((\d{1,9}),(\d{1,9})\)(?:/\((\d{1,9}),(\d{1,9})\))?")
_LEFT = ("iteration_type", "batch_size", "error_codes_frequency", "total_arrivals")


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are run files or the metadata of an experiment."""
    items = [as_dict(value) for value in flat(values[:1])[:20]]
    return bool(items) and all(_is_run(item) or _is_metadata(item) for item in items)


def _is_run(item: Mapping[str, Any]) -> bool:
    aggregated = as_dict(item.get("aggregated_metrics"))
    return "stats" in aggregated and {"scenario", "num_concurrency"} <= aggregated.keys()


def _is_metadata(item: Mapping[str, Any]) -> bool:
    return {"cmd", "benchmark_version", "traffic_scenario", "api_model_name"} <= item.keys()


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """The runs of run files; of metadata what it states of the runs beside it."""
    items = [as_dict(value) for value in flat(values)]
    if not any(_is_run(item) for item in items):
        return _metadata(name, items[0])
    runs, requests, flags, keys = {}, dict[str, pa.Table](), list[Flag](), dict[Key, None]()
    level = _WITH if any("_time_unit" in item for item in items) else _WITHOUT
    for position, item in enumerate(items):
        if not _is_run(item):
            continue
        run, used, found = _run(item, sha256, position)
        if run.run_id in runs:
            text = f"{name} holds a run twice"
            flags.append(Flag("repeated_in_file", "warns", text, run.run_id))
            continue
        if run.output_tokens == 0:
            text = f"{name}: {run.label or 'a run'} without output tokens (embeddings, reranking)"
            flags.append(Flag("not_a_run", "warns", f"{text}; import a text-generation run"))
            continue
        runs[run.run_id] = run
        keys |= dict.fromkeys(used)
        flags += [*found, *checks.inspect(run)]
        table = _requests(as_list(item.get("individual_request_metrics")), _factor(item))
        if table is not None:
            requests[run.run_id] = table
    why = "aggregated_metrics with stats and a scenario"
    found_runs = tuple(runs.values())
    return Findings(TOOL, level, why, found_runs, requests, flags=tuple(flags), keys=tuple(keys))


def _factor(item: Mapping[str, Any]) -> float | None:
    """Factor from the file's latencies to milliseconds; None for a unit that is not known."""
    written = item.get("_time_unit", "s")
    return _FACTORS.get(written.strip().casefold()) if isinstance(written, str) else None


def _run(
    item: Mapping[str, Any], sha256: str, position: int
) -> tuple[Run, tuple[Key, ...], list[Flag]]:
    factor = _factor(item)
    fields, keys = take(item, _in_unit(_RUN_KEYS, factor))
    load, load_keys = _load(item)
    fields |= load
    fields |= {k: v for k, v in _lengths(fields.get("label")).items() if k not in fields}
    fields |= {
        "run_id": _run_id(fields, sha256, position),
        "source_sha256": sha256,
        "tool": TOOL,
        "tool_version": _WITH if "_time_unit" in item else _WITHOUT,
        "extra": _extra(item),
    }
    run, flags = build_run(fields)
    found = [*flags, *_partial(item, run)]
    if factor is None:
        text = f"latencies in {str(item.get('_time_unit'))[:20]!r}: not s or ms, left empty"
        found.append(Flag("unknown_unit", "warns", text, run.run_id))
    return run, (*keys, *load_keys), found


def _in_unit(keys: Sequence[Key], factor: float | None) -> tuple[Key, ...]:
    """The keys with latencies in the file's own unit; without them where it is not known."""
    unit = {1e3: "s", 1.0: "ms"}.get(factor or 0.0, "")
    return tuple(
        replace(key, factor=factor, unit=unit) if "_ms_" in key.field and factor else key
        for key in keys
        if factor or "_ms_" not in key.field
    )


def _load(item: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """What was held. In open-loop mode the number of the concurrency is a rate.

    A batch size is the number of texts in a request to an embedding model.
    """
    aggregated = as_dict(item.get("aggregated_metrics"))
    kind = aggregated.get("iteration_type", "num_concurrency")
    if as_number(aggregated.get("arrival_requests_per_second")) is not None:
        held, key = LoadKind.REQUEST_RATE, _QPS
    elif kind == "request_rate":
        held, key = LoadKind.REQUEST_RATE, _LOADS[LoadKind.REQUEST_RATE]
    elif kind == "num_concurrency":
        held, key = LoadKind.CONCURRENCY, _LOADS[LoadKind.CONCURRENCY]
    else:
        return {}, ()
    achieved = _ACHIEVED if held is LoadKind.REQUEST_RATE else ()
    fields, keys = take(item, (key, *achieved))
    return (fields | {"load_kind": held}, keys) if "offered_load" in fields else ({}, ())


def _lengths(scenario: object) -> dict[str, float]:
    """Mean lengths of D(in,out) and N(mean,sd)/(mean,sd), where no measured ones are written."""
    match = _SCENARIO.fullmatch(scenario) if isinstance(scenario, str) else None
    if match is None or (match[1] == "N") != (match[4] is not None):
        return {}
    return {"input_len": float(match[2]), "output_len": float(match[4] or match[3])}


def _run_id(fields: Mapping[str, Any], sha256: str, position: int) -> str:
    names = ("label", "offered_load", "duration_s", "completed", "output_tps", "e2e_ms_mean")
    parts = [fields.get(name) for name in names]
    known = fields.get("duration_s") is not None and fields.get("output_tps") is not None
    return identity(TOOL, *parts) if known else identity(TOOL, sha256, position)


def _partial(item: Mapping[str, Any], run: Run) -> list[Flag]:
    """With warm-up or cool-down left out, tokens are of fewer requests than the duration."""
    tokens, mean, completed = run.output_tokens, run.output_len, run.completed
    if not (tokens and mean and completed):
        return []
    counted = round(min(tokens / mean, completed))
    if counted >= completed:
        return []
    text = (
        f"statistics of {counted} of {completed} completed requests (warm-up or cool-down left "
        "out), throughput over the whole time: it is understated"
    )
    return [Flag("understated_throughput", "warns", text, run.run_id)]


def _requests(rows: Sequence[object], factor: float | None) -> pa.Table | None:
    """Per-request records; no time of arrival is written."""
    held = [as_dict(row) for row in rows]
    if not held:
        return None
    columns = {}
    for name, key in (("input_tokens", "num_input_tokens"), ("output_tokens", "num_output_tokens")):
        columns[name] = per_request.floats([as_number(row.get(key)) for row in held])
    for name, key in _METRICS.items() if factor else ():
        values = [as_number(row.get(key)) for row in held]
        columns[f"{name}_ms"] = per_request.floats(values, factor or 1.0)
    return per_request.table([not row.get("error_code") for row in held], **columns)


def _extra(item: Mapping[str, Any]) -> str | None:
    aggregated = as_dict(item.get("aggregated_metrics"))
    reasoning = as_count(at(item, (*_STATS, "num_reasoning_tokens", "sum")))
    left = {key: aggregated.get(key) or None for key in _LEFT}
    return redaction.extra({**left, "reasoning_tokens": reasoning or None})


def _metadata(name: str, item: Mapping[str, Any]) -> Findings:
    fields, keys = take(item, _METADATA)
    if "engine" in fields:
        fields["engine"] = engine_name(fields["engine"]) or fields["engine"]
    if re.match(r"v\d", fields.get("engine_version", "")):
        fields["engine_version"] = fields["engine_version"][1:]
    if fields.get("dataset") == "None":
        del fields["dataset"]
    elif "dataset" in fields:
        fields["dataset"] = re.split(r"[/\\]", fields["dataset"])[-1]
    if not 0 < fields.get("gpu_count", 1) < 2**20:
        del fields["gpu_count"]
    for field in [f for f, v in fields.items() if isinstance(v, float) and v < 0]:
        del fields[field]
    text = f"{name}: the metadata of a genai-bench experiment; import its run files with it"
    flags = (Flag("sidecar", "warns", text),)
    beside = Beside(tools=(TOOL,), fields=fields) if fields else None
    used = tuple(key for key in keys if key.field in fields)
    why = "cmd, benchmark_version and traffic_scenario"
    return Findings(TOOL, "experiment_metadata", why, (), flags=flags, keys=used, beside=beside)
