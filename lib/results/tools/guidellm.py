"""Reports of GuideLLM 0.2 to 0.8 as JSON or YAML: many benchmarks in a file, each one run.

The layout moved three times. It is told by metadata.version (1 is 0.5 and 0.6, 2 is 0.7 and later),
before that by keys: 0.4 has `args`, 0.2 and 0.3 have nothing but `benchmarks`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.errors import UnknownFormat
from lib.results.findings import Findings, Flag, Key, shorten
from lib.results.keys import latency_keys
from lib.results.parsing import as_count, as_dict, as_list, as_text, counted
from lib.results.tools import guidellm_runs
from lib.results.tools.guidellm_runs import (
    LOAD_NOTE,
    RATE_NOTE,
    SLO_NOTE,
    SUM_NOTE,
    TOOL,
    TPOT_NOTE,
    Layout,
    labels_key,
)

__all__ = ["LEVELS", "TITLE", "TOOL", "find", "recognise", "unrecognised"]

TITLE = "GuideLLM"

ITEM = "benchmarks"  # stands for one item of that list
V2, V1, ARGS, EARLY = (
    "0.7 and later (metadata.version 2)",
    "0.5, 0.6 (metadata.version 1)",
    "0.4 (args, no metadata)",
    "0.2, 0.3 (benchmarks alone)",
)
STATISTICS = {
    "mean": "mean",
    "p50": "median",
    **{p: ("percentiles", p) for p in ("p90", "p95", "p99")},
}


def _node(metric: str, *rest: str) -> tuple[str, ...]:
    return (ITEM, "metrics", metric, "successful", *rest)


def _totals(*path: str) -> tuple[Key, ...]:
    return (
        Key("num_prompts", (*path, "total"), note="those cut off at the end included"),
        Key("completed", (*path, "successful")),
        Key("failed", (*path, "errored")),
    )


def _strategy(*path: str) -> tuple[Key, ...]:
    """A report's profile lists the loads of all its runs; the item's own strategy is this run's."""
    return (
        Key("load_kind", path, note="by the strategy's type_"),
        Key("offered_load", path, note=LOAD_NOTE),
    )


METRICS = (
    *latency_keys("ttft", _node("time_to_first_token_ms"), STATISTICS),
    *latency_keys("tpot", _node("inter_token_latency_ms"), STATISTICS, note=TPOT_NOTE),
    *latency_keys("e2e", _node("request_latency"), STATISTICS, factor=1e3, unit="s"),
    Key("input_len", _node("prompt_token_count", "mean")),
    Key("output_len", _node("output_token_count", "mean")),
    Key("input_tokens", _node("prompt_token_count", "total_sum"), note=SUM_NOTE),
    Key("output_tokens", _node("output_token_count", "total_sum"), note=SUM_NOTE),
    Key("output_tps", _node("output_tokens_per_second", "mean")),
    Key("request_rps", _node("requests_per_second", "mean")),
    Key("achieved_load", _node("requests_per_second", "mean"), note=RATE_NOTE),
    Key("running_mean", _node("request_concurrency", "mean")),
    Key("started_at", (ITEM, "start_time"), unit="s since 1970, UTC"),
    Key("duration_s", (ITEM, "duration")),
)
_SINCE_0_4 = (
    Key("run_id", (ITEM, "config", "id_"), note="hashed"),
    *METRICS,
    *_totals(ITEM, "metrics", "request_totals"),
    *_strategy(ITEM, "config", "strategy"),
    Key("target", (ITEM, "config", "backend", "model")),
)


def _sampling(*path: str) -> tuple[Key, ...]:
    body = (*path, "extras", "body")
    return (Key("temperature", (*body, "temperature")), Key("top_p", (*body, "top_p")))


_ARGS = (
    *_SINCE_0_4,
    Key("target", ("args", "model")),
    Key("target", ("args", "backend_kwargs", "model"), note="0.6"),
    Key("dataset", ("args", "data"), note="the first one, as written"),
    *_sampling("args", "backend_kwargs"),
    Key("seed", ("args", "random_seed")),
)

_LABELS = labels_key("config", "metadata", "labels")
_KEYS: Mapping[str, tuple[Key, ...]] = {
    V2: (
        *_SINCE_0_4,
        Key("target", ("config", "spec", "backend", "model")),
        Key("dataset", ("config", "spec", "data"), note="source of the first one, else its kind"),
        *_sampling(ITEM, "config", "backend"),
        Key("seed", ("config", "spec", "seed", "value")),
        Key("slo", (ITEM, "config", "slo"), note="its limits that are set"),
        Key("goodput_rps", _node("request_goodput", "mean"), note=SLO_NOTE),
    ),
    V1: _ARGS,
    ARGS: _ARGS,
    EARLY: (
        Key("run_id", (ITEM, "id_"), note="hashed"),
        *METRICS,
        *_totals(ITEM, "request_totals"),
        *_strategy(ITEM, "args", "strategy"),
        Key("target", (ITEM, "worker", "backend_model")),
        Key("dataset", (ITEM, "request_loader", "data"), note="as written"),
        Key("seed", (ITEM, "args", "profile", "random_seed")),
    ),
}
LEVELS: Mapping[str, tuple[Key, ...]] = {**_KEYS, V2: (*_KEYS[V2], _LABELS)}
_HINTS = {
    "incomplete": (ITEM, "metrics", "request_totals", "incomplete"),
    "output_tokens_per_iteration": _node("output_tokens_per_iteration", "mean"),
    "warnings": (ITEM, "warnings"),
    **{k: (ITEM, "config", k) for k in ("run_id", "run_index", "strategy", "constraints")},
}
_EARLY_HINTS = {
    "incomplete": (ITEM, "request_totals", "incomplete"),
    "run_id": (ITEM, "run_id"),
    "strategy": (ITEM, "args", "strategy"),
}
_LAYOUTS = {
    level: Layout(
        keys,
        labels=_LABELS if level == V2 else None,
        extra=_EARLY_HINTS if level == EARLY else _HINTS,
        requests=(ITEM, "requests"),
    )
    for level, keys in _KEYS.items()
}
_VERSIONS = {V2: "0.7 or later", V1: "0.5 or 0.6", ARGS: "0.4", EARLY: "0.2 or 0.3"}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are one GuideLLM report, of whichever level."""
    report = as_dict(values[0]) if len(values) == 1 else {}
    named = as_dict(report.get("metadata")).get("guidellm_version") is not None
    return named or any(_is_benchmark(item) for item in as_list(report.get("benchmarks")))


def _is_benchmark(item: object) -> bool:
    found = as_dict(item)
    kind = found.get("type_")
    return (isinstance(kind, str) and kind.endswith("generative_benchmark")) or (
        {"metrics", "scheduler_state"} <= found.keys()
    )


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of a report. Raises UnknownFormat for a layout that no released version wrote."""
    report = as_dict(values[0])
    listed = as_list(report.get("benchmarks"))
    items = [as_dict(item) for item in listed if _is_benchmark(item)]
    level = _level(report, items)
    if listed == report.get("benchmarks") == []:
        raise UnknownFormat(f"{name}: a GuideLLM report without a benchmark in it; run it again")
    if level is None or not items:
        raise unrecognised(name, report.get("metadata"), report)
    written = as_text(as_dict(report.get("metadata")).get("guidellm_version"))
    flags = []
    if len(listed) > len(items):
        text = f"{counted(len(listed) - len(items), 'item')} of another kind among the benchmarks"
        flags.append(Flag("other_values", "warns", f"{text}; left out"))
    return guidellm_runs.findings(
        written or _VERSIONS[level],
        f"a list of generative benchmarks, {level}",
        _LAYOUTS[level],
        [{**report, ITEM: item} for item in items],
        sha256,
        zone_known=True,
        flags=flags,
    )


def _level(report: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str | None:
    if "metadata" in report:
        version = as_count(as_dict(report["metadata"]).get("version"))
        return {1: V1, 2: V2}.get(version) if version is not None else None
    if "args" in report:
        return ARGS
    early = items and {"args", "metrics"} <= items[0].keys() and "config" not in items[0]
    return EARLY if early else None


def unrecognised(name: str, metadata: object, keys: Mapping[str, object]) -> UnknownFormat:
    """The refusal of a layout that is GuideLLM's but none of the known ones."""
    said = {k: as_dict(metadata).get(k) for k in ("version", "guidellm_version")}
    stated = ", ".join(f"{k} {as_text(v)}" for k, v in said.items() if as_text(v))
    return UnknownFormat(
        f"{name}: guidellm version not recognised ({shorten([stated or 'none stated'])}); "
        f"0.2 to 0.8 are read, so save the report with one of these; keys found: {shorten(keys)}"
    )
