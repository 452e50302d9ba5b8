"""Results of GenAI-Perf: `profile_export_genai_perf.json` and the CSV of the same run.

The predecessor of AIPerf writes the same nodes. It tokenises the answers again, and nothing in
its files holds the server's own count; nothing says which arm a run is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.results import redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.keys import take
from lib.results.parsing import as_dict, as_list, as_number, as_text, flat
from lib.results.token_counts import CLIENT
from lib.results.tools import perf_nodes
from lib.results.tools.perf_nodes import MEASURED_KEYS, Rows
from lib.run import LoadKind, Run

TOOL = "genai-perf"
TITLE = "GenAI-Perf"
NEW, OLD, CSV_LEVEL = "perf_analyzer keys", "flat keys", "CSV"

_CONFIG = ("input_config",)
_STIMULUS = (*_CONFIG, "perf_analyzer", "stimulus")
_METRIC_KEYS = (*MEASURED_KEYS, Key("goodput_rps", ("request_goodput", "avg")))
_TARGET_KEYS = (
    Key("target", (*_CONFIG, "model_names"), note="where there is one"),
    Key("target", (*_CONFIG, "model"), note="where there is one"),
)
_INPUT_KEYS = (
    Key("temperature", (*_CONFIG, "extra_inputs", "temperature")),
    Key("top_p", (*_CONFIG, "extra_inputs", "top_p")),
    Key("temperature", (*_CONFIG, "input", "extra", "temperature")),
    Key("top_p", (*_CONFIG, "input", "extra", "top_p")),
)
_POWER = Key("power_w", ("telemetry_stats", "gpu_power_usage"), note="sum over the GPUs")
_LOADS = {
    NEW: (
        Key("offered_load", (*_STIMULUS, "concurrency")),
        Key("offered_load", (*_STIMULUS, "request_rate"), note="requests/s"),
    ),
    OLD: (
        Key("offered_load", (*_CONFIG, "concurrency")),
        Key("offered_load", (*_CONFIG, "request_rate"), note="requests/s"),
    ),
}
_SLO = Key("slo", (*_CONFIG, "goodput"))
_FOLLOWS = (
    Key("token_count", ("total_osl",), note="client"),
    Key("running_mean", ("request_latency", "avg"), note="times completed / duration"),
)
_KINDS = {
    level: (
        Key("load_kind", keys[0].path[:-1], note="concurrency, else request rate"),
        Key("achieved_load", ("request_throughput", "avg"), note="where a rate is held"),
    )
    for level, keys in _LOADS.items()
}
_OTHERS = (*_FOLLOWS, *_TARGET_KEYS, *_INPUT_KEYS, _SLO, _POWER)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    NEW: (*_METRIC_KEYS, *_LOADS[NEW], *_KINDS[NEW], *_OTHERS),
    OLD: (*_METRIC_KEYS, *_LOADS[OLD], *_KINDS[OLD], *_OTHERS),
    CSV_LEVEL: (*_METRIC_KEYS, *_FOLLOWS),
}
_CONFIG_KEYS = {"model_names", "model", "perf_analyzer", "artifact_dir", "concurrency"}
_AIPERF = {"aiperf_version", "was_cancelled", "run_info"}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are exports of GenAI-Perf, or the raw profile that lies beside them."""
    inner = flat(values)
    return any(_is_export(v) for v in inner[:100]) or _is_profile(inner)


def _is_export(value: object) -> bool:
    export = as_dict(value)
    config = as_dict(export.get("input_config"))
    return (
        perf_nodes.has_metrics(export)
        and bool(config.keys() & _CONFIG_KEYS)
        and not export.keys() & _AIPERF
        and not config.keys() & {"loadgen", "phases"}
    )


def _is_profile(values: Sequence[object]) -> bool:
    """Whether JSON values are perf_analyzer's raw profile: times of each request, no summary."""
    experiments = as_list(as_dict(values[0]).get("experiments")) if len(values) == 1 else []
    return bool(experiments) and as_dict(experiments[0]).keys() >= {"experiment", "requests"}


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """The runs of a JSON export; none for the raw profile."""
    inner = flat(values)
    if _is_profile(inner):
        text = "times of each request without token counts; import profile_export_genai_perf.json"
        why = "keys experiments, requests of perf_analyzer"
        flag = Flag("not_a_run", "warns", text)
        return Findings(TOOL, "raw profile", why, (), flags=(flag,))
    exports = [as_dict(v) for v in inner if _is_export(v)]
    config = as_dict(exports[0].get("input_config"))
    level = NEW if "perf_analyzer" in config else OLD
    why = "metrics with units, input_config without AIPerf's keys"
    return _findings(name, level, why, exports, sha256)


def recognise_rows(rows: Rows) -> bool:
    """Whether rows are GenAI-Perf's CSV: no standard deviation among its statistics."""
    return perf_nodes.knows_rows(rows) and "std" not in rows[0]


def find_rows(name: str, rows: Rows, sha256: str) -> Findings:
    """The run of the CSV, which states no load and no model."""
    metrics, _ = perf_nodes.blocks(rows)
    why = "blocks of metrics with units, GenAI-Perf's columns"
    found = _findings(name, CSV_LEVEL, why, [metrics], sha256)
    text = "a CSV of GenAI-Perf: rounded, without load and model; import the JSON beside it"
    flag = Flag("csv_says_less", "warns", text, found.runs[0].run_id)
    return Findings(TOOL, CSV_LEVEL, why, found.runs, flags=(*found.flags, flag), keys=found.keys)


def _findings(
    name: str, level: str, why: str, exports: Sequence[Mapping[str, object]], sha256: str
) -> Findings:
    read = (_run(export, sha256, position) for position, export in enumerate(exports))
    return perf_nodes.findings_of(TOOL, level, why, name, read)


def _run(
    export: Mapping[str, object], sha256: str, position: int
) -> tuple[Run, tuple[Flag, ...], tuple[Key, ...]]:
    found = perf_nodes.nodes(export)
    config = as_dict(export.get("input_config"))
    document = {**found.document, "input_config": _single_models(config)}
    fields, keys = take(document, (*_METRIC_KEYS, *_TARGET_KEYS, *_INPUT_KEYS))
    fields = perf_nodes.with_tokens(fields)
    load, load_key = _load(config, fields)
    run_id = perf_nodes.content_id(TOOL, found) or identity(TOOL, sha256, position)
    slo = perf_nodes.limits(config.get("goodput") or as_dict(config.get("input")).get("goodput"))
    power = _power(as_dict(export.get("telemetry_stats")))
    fields |= {
        **load,
        "run_id": run_id,
        "source_sha256": sha256,
        "tool": TOOL,
        "token_count": CLIENT if "output_tokens" in fields else None,
        "slo": slo,
        "power_w": power,
        "extra": redaction.extra(_not_understood(export, config, found.left)),
    }
    fields.setdefault("running_mean", perf_nodes.in_flight(fields))
    run, flags = build_run(fields)
    unchecked: tuple[Flag, ...] = ()
    if run.output_tokens or run.output_tps:
        text = (
            "GenAI-Perf tokenised the answers again and nothing checks its count; import scrapes "
            "of the server's /metrics from before and after the run beside it"
        )
        unchecked = (Flag("retokenised_unchecked", "warns", text, run_id),)
    told = [*load_key, *([_SLO] if slo else []), *([_POWER] if power is not None else [])]
    return run, (*flags, *unchecked, *found.flags(run_id)), (*keys, *told)


def _single_models(config: Mapping[str, object]) -> dict[str, object]:
    """The configuration with the model's name in the place of a list of one."""
    found = dict(config)
    for key in ("model_names", "model"):
        names = config.get(key)
        if isinstance(names, list):
            found[key] = names[0] if len(names) == 1 else None
    return found


def _load(
    config: Mapping[str, object], fields: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Key]]:
    stimulus = as_dict(as_dict(config.get("perf_analyzer")).get("stimulus"))
    level, said = (NEW, stimulus) if stimulus else (OLD, config)
    kinds = (LoadKind.CONCURRENCY, LoadKind.REQUEST_RATE)
    for kind, key in zip(kinds, _LOADS[level], strict=True):
        load = perf_nodes.held(kind, said.get(key.path[-1]), fields.get("request_rps"))
        if load:
            return load, [key]
    return {}, []


def _power(telemetry: Mapping[str, object]) -> float | None:
    """Mean power of all GPUs together, in watts."""
    node = as_dict(telemetry.get("gpu_power_usage"))
    factor = perf_nodes.unit_factor("W", node.get("unit"))
    means = [as_number(as_dict(v).get("avg")) for k, v in node.items() if k != "unit"]
    known = [m for m in means if m is not None]
    if factor is None or not known or len(known) != len(means):
        return None
    return sum(known) * factor


def _not_understood(
    export: Mapping[str, object], config: Mapping[str, object], left: Mapping[str, object]
) -> dict[str, object]:
    tokenizer = config.get("tokenizer")
    return {
        "metrics": left or None,
        "tokenizer": as_text(tokenizer) or as_dict(tokenizer).get("name"),
        "cli_command": config.get("cli_command"),
        "telemetry_stats": export.get("telemetry_stats"),
    }
