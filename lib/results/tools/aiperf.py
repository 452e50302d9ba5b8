"""Results of AIPerf 0.2 to 0.13: `profile_export_aiperf.json` and the CSV of the same run.

AIPerf tokenises the streamed text again unless it is told to trust the server. Where the file also
holds the server's own usage counts, those are the run's; nothing in a file says which arm it is.
The CSV rounds to two decimals and states no load; a run gets the same id from both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lib.results import redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.keys import latency_keys, take
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, flat
from lib.results.token_counts import CLIENT, SERVER, with_server_tokens
from lib.results.tools import aiperf_beside, aiperf_records, aiperf_telemetry, perf_nodes
from lib.results.tools.perf_nodes import MEASURED_KEYS, Nodes, Rows
from lib.run import LoadKind, Run, SpecState

TOOL = aiperf_beside.TOOL
TITLE = "AIPerf"
OLD, CSV_LEVEL = "0.2 keys", "CSV"

_CONFIG, _PROFILING = ("input_config",), ("input_config", "phases", "profiling")
_METRIC_KEYS = (
    *MEASURED_KEYS,
    *latency_keys("itl", ("inter_chunk_latency",), {"mean": "avg"} | {p: p for p in ("p50",)}),
    *latency_keys("itl", ("inter_chunk_latency",), {p: p for p in ("p90", "p95", "p99")}),
    Key("input_tokens", ("total_isl", "avg"), note="as the client counts"),
    Key("failed", ("error_request_count", "avg"), note="else from error_summary"),
    Key("goodput_rps", ("goodput", "avg")),
    Key("running_mean", ("effective_concurrency", "avg")),
    Key("energy_j", ("total_gpu_energy", "avg")),
)
_USAGE_KEYS = (
    Key(
        "output_tokens",
        ("total_usage_completion_tokens", "avg"),
        note="as the server counts: takes the place of the client's",
    ),
    Key("output_tokens", ("usage_completion_tokens", "sum"), note="as the server counts"),
)
_SPEC_KEYS = (
    Key("accept_length", ("spec_decode_token_weighted_acceptance_length", "avg")),
    Key("accept_length", ("spec_decode_acceptance_length", "avg"), note="bonus token included"),
    Key("accept_rate", ("spec_decode_overall_draft_acceptance_rate", "avg"), unit="%"),
    Key("accept_rate", ("spec_decode_draft_acceptance_rate", "avg"), unit="%"),
    Key("drafts", ("total_spec_decode_steps", "avg")),
    Key("drafts", ("spec_decode_steps", "sum")),
    Key("draft_tokens", ("total_draft_tokens", "avg")),
    Key("draft_tokens", ("spec_decode_draft_tokens", "sum")),
    Key("accepted_tokens", ("total_accepted_draft_tokens", "avg")),
    Key("accepted_tokens", ("spec_decode_accepted_draft_tokens", "sum")),
)
_NEW_KEYS = (
    Key("target", (*_CONFIG, "models", "items", "name"), note="where there is one"),
    *(Key("dataset", (*_CONFIG, "datasets", k)) for k in ("dataset", "format", "path", "type")),
    Key("num_prompts", (*_PROFILING, "requests")),
    Key("temperature", (*_CONFIG, "endpoint", "extra", "temperature")),
    Key("top_p", (*_CONFIG, "endpoint", "extra", "top_p")),
    Key("seed", (*_CONFIG, "random_seed")),
)
_OLD_KEYS = (
    Key("target", (*_CONFIG, "endpoint", "model_names"), note="where there is one"),
    *(Key("dataset", (*_CONFIG, "input", k)) for k in ("public_dataset", "file")),
    Key("num_prompts", (*_CONFIG, "loadgen", "request_count")),
    Key("temperature", (*_CONFIG, "input", "extra", "temperature")),
    Key("top_p", (*_CONFIG, "input", "extra", "top_p")),
    Key("seed", (*_CONFIG, "input", "random_seed")),
)
_CONCURRENCY = Key("offered_load", (*_PROFILING, "concurrency"), note="of a concurrency phase")
_RATE = Key("offered_load", (*_PROFILING, "rate"), note="requests/s; the cap is no load then")
_OLD_CONCURRENCY = Key("offered_load", (*_CONFIG, "loadgen", "concurrency"))
_OLD_RATE = Key("offered_load", (*_CONFIG, "loadgen", "request_rate"), note="requests/s")
_SLOS = Key("slo", (*_CONFIG, "slos"))
_OLD_SLOS = Key("slo", (*_CONFIG, "input", "goodput"))
_START = Key("started_at", ("start_time",), note="zone not stated")

# What follows from several keys, or is the same in every file.
_FOLLOWS = (
    Key("token_count", ("total_osl",), note="client; server where the server's count is used"),
    Key("running_mean", ("request_latency", "avg"), note="times completed / duration"),
)
_RATED = "request rate where a rate is held, else concurrency"
_NEW_FOLLOWS = (
    Key("load_kind", (*_PROFILING, "type"), note=_RATED),
    Key("achieved_load", ("request_throughput", "avg"), note="where a rate is held"),
    Key("domain", (*_CONFIG, "datasets", "dataset"), note="a category of SPEED-Bench"),
)
_OLD_FOLLOWS = (
    Key("load_kind", (*_CONFIG, "loadgen"), note=_RATED),
    Key("achieved_load", ("request_throughput", "avg"), note="where a rate is held"),
    Key("dataset", (*_CONFIG, "input", "prompt", "input_tokens", "mean"), note="synthetic"),
)
_USAGE_FOLLOWS = (
    *(
        Key("output_len", key.path, note="/ completed, where the server's count is used")
        for key in _USAGE_KEYS
    ),
    Key("retokenized_tokens", ("total_osl", "avg"), note="where the server's count is used"),
    Key("spec_state", ("total_spec_decode_steps", "avg"), note="on where there are any"),
)

_SHARED = (*_METRIC_KEYS, *_FOLLOWS, *aiperf_telemetry.KEYS)
_NEW = (*_SHARED, _START, *_NEW_KEYS, _CONCURRENCY, _RATE, *_NEW_FOLLOWS, _SLOS)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    OLD: (*_SHARED, _START, *_OLD_KEYS, _OLD_CONCURRENCY, _OLD_RATE, *_OLD_FOLLOWS, _OLD_SLOS),
    "0.10": _NEW,
    "0.13": (*_NEW, *_USAGE_KEYS, *_SPEC_KEYS, *_USAGE_FOLLOWS),
    CSV_LEVEL: (*_SHARED, *_USAGE_KEYS, *_SPEC_KEYS, *_USAGE_FOLLOWS),
    aiperf_beside.SERVER_LEVEL: (*aiperf_beside.SERVER_KEYS, *aiperf_beside.SERVER_FOLLOWS),
    aiperf_records.RECORDS_LEVEL: (*aiperf_records.RECORD_KEYS, *aiperf_records.RECORD_FOLLOWS),
}
_WAYS = (
    "import server_metrics_export.json of the run beside it, or let AIPerf use the server's "
    "count (--use-server-token-count)"
)


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are exports of AIPerf, or what it leaves beside them."""
    inner = flat(values)
    return any(is_export(v) for v in inner[:100]) or aiperf_beside.kind(inner) is not None


def is_export(value: object) -> bool:
    """Whether a JSON value is the summary of one AIPerf run."""
    export = as_dict(value)
    config = as_dict(export.get("input_config"))
    own = export.keys() & {"aiperf_version", "was_cancelled", "run_info"}
    if not perf_nodes.has_metrics(export):
        return "aiperf_version" in export and "error_summary" in export and bool(config)
    return bool(own or config.keys() & {"loadgen", "phases"})


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """The runs of a JSON export, or what a file beside it says."""
    inner = flat(values)
    if (beside := aiperf_beside.find(inner)) is not None:
        return beside
    exports = [as_dict(v) for v in inner if is_export(v)]
    version = as_text(exports[0].get("aiperf_version")) or OLD
    held = [e for e in exports if perf_nodes.has_metrics(e)]
    if not held:
        text = "an AIPerf export without a completed request; see the errors that it lists"
        flag = Flag("not_a_run", "warns", text)
        return Findings(TOOL, version, "key aiperf_version", (), flags=(flag,))
    why = "metrics with units" + (", key aiperf_version" if version != OLD else ", was_cancelled")
    found = [_run(export, sha256, position) for position, export in enumerate(held)]
    return perf_nodes.findings_of(TOOL, version, why, name, found)


def recognise_rows(rows: Rows) -> bool:
    """Whether rows are AIPerf's CSV of one run, or its acceptance report."""
    return aiperf_beside.knows_rows(rows) or (perf_nodes.knows_rows(rows) and "std" in rows[0])


def find_rows(name: str, rows: Rows, sha256: str) -> Findings:
    """The run of the CSV."""
    if (beside := aiperf_beside.find_rows(rows)) is not None:
        return beside
    metrics, gpus = perf_nodes.blocks(rows)
    found = _run(metrics, sha256, 0, aiperf_telemetry.of_rows(gpus))
    text = "a CSV of AIPerf: rounded, without load, model and time; import the JSON beside it"
    flag = Flag("csv_says_less", "warns", text, found[0].run_id)
    why = "blocks of metrics with units, AIPerf's columns"
    read = [(found[0], (*found[1], flag), found[2])]
    return perf_nodes.findings_of(TOOL, CSV_LEVEL, why, name, read)


recognise_text = aiperf_beside.recognise_text
find_text = aiperf_beside.find_text


def _run(
    export: Mapping[str, object],
    sha256: str,
    position: int,
    gpus: Sequence[aiperf_telemetry.Gpu] | None = None,
) -> tuple[Run, tuple[Flag, ...], tuple[Key, ...]]:
    """The run of one export with its flags and the keys that it was read from."""
    found = perf_nodes.nodes(export)
    config = _config(as_dict(export.get("input_config")))
    document = {**found.document, "input_config": config}
    fields, keys = take(document, (*_METRIC_KEYS, *_SPEC_KEYS, *_NEW_KEYS, *_OLD_KEYS))
    fields = perf_nodes.with_tokens(fields) | _configured(config, fields)
    watched = aiperf_telemetry.of_json(export.get("telemetry_data")) if gpus is None else gpus
    run_id = perf_nodes.content_id(TOOL, found) or _own_id(export, sha256, position)
    fields |= {
        **aiperf_telemetry.fields(watched),
        **_started(export.get("start_time")),
        "run_id": run_id,
        "source_sha256": sha256,
        "tool": TOOL,
        "tool_version": as_text(export.get("aiperf_version")),
        "failed": fields.get("failed", _failed(export, found, fields)),
        "extra": redaction.extra(_not_understood(export, config, found)),
    }
    fields.setdefault("running_mean", perf_nodes.in_flight(fields))
    if fields.get("drafts"):
        fields["spec_state"] = SpecState.ON
    if "output_tokens" in fields:
        fields["token_count"] = CLIENT
    run, flags = build_run(fields)
    run, counted, usage = _counted(run, found, config)
    flags = (*flags, *counted, *found.flags(run_id), *_ended(export, run_id))
    keys = (*keys, *usage, *_told(run, config, watched))
    return run, (*flags, *aiperf_telemetry.flags(watched, run_id)), keys


def _own_id(export: Mapping[str, object], sha256: str, position: int) -> str:
    written = as_text(export.get("benchmark_id"))
    return identity(TOOL, written) if written else identity(TOOL, sha256, position)


def _counted(
    run: Run, found: Nodes, config: Mapping[str, Any]
) -> tuple[Run, tuple[Flag, ...], tuple[Key, ...]]:
    """The run by the server's token count, where the export has it for every request."""
    if as_dict(config.get("endpoint")).get("use_server_token_count") is True:
        return replace(run, token_count=SERVER), (), ()
    usage, keys = take(found.document, _USAGE_KEYS)
    mean, total = found.value("usage_completion_tokens"), usage.get("output_tokens")
    every = mean is None or (
        run.completed and total and abs(total / run.completed - mean) < 0.02 * mean
    )
    if total and every and run.output_tokens:
        return with_server_tokens(run, total), (), keys
    text = f"AIPerf tokenised the answers again and nothing checks its count; {_WAYS}"
    if total and not every:
        text = f"the server's usage covers only a part of the requests; {_WAYS}"
    return run, (Flag("retokenised_unchecked", "warns", text, run.run_id),), ()


def _config(raw: Mapping[str, object]) -> dict[str, Any]:
    """The configuration with each list that holds one entry as that entry."""
    models, endpoint = raw.get("models"), as_dict(raw.get("endpoint"))
    inputs = as_dict(raw.get("input"))
    listed = as_dict(models).get("items", models)
    model = _single(listed)
    return {
        **raw,
        "models": {"items": model if isinstance(model, dict) else {"name": model}},
        "datasets": as_dict(_single(raw.get("datasets"))),
        "phases": {"profiling": _profiling(raw.get("phases"))},
        "endpoint": endpoint
        | {
            "model_names": _single(endpoint.get("model_names")),
            "extra": _pairs(endpoint.get("extra")),
        },
        "input": inputs | {"extra": _pairs(inputs.get("extra"))},
        "loadgen": as_dict(raw.get("loadgen")),
    }


def _single(value: object) -> object:
    """The one entry of a list or an object of named entries; other values as they are."""
    entries = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return entries
    return entries[0] if len(entries) == 1 else None


def _pairs(value: object) -> dict[str, object]:
    """Extra inputs: an object, or a list of name and value."""
    pairs = [as_list(p) for p in as_list(value)]
    return as_dict(value) or {str(p[0]): p[1] for p in pairs if len(p) == 2}


def _profiling(phases: object) -> dict[str, object]:
    """The one phase whose requests are in the results; empty where there are several."""
    named = [{"name": name} | as_dict(phase) for name, phase in as_dict(phases).items()] or [
        as_dict(p) for p in as_list(phases)
    ]
    counted = [
        p
        for p in named
        if "profiling" in (p.get("kind"), p.get("name")) and not p.get("exclude_from_results")
    ]
    return counted[0] if len(counted) == 1 else {}


def _configured(config: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Load, service levels and data set as the run was configured."""
    phase, loadgen = config["phases"]["profiling"], config["loadgen"]
    rate, concurrency = (
        (phase.get("rate"), phase.get("concurrency"))
        if phase
        else (loadgen.get("request_rate"), loadgen.get("concurrency"))
    )
    achieved = fields.get("request_rps")
    by_rate = perf_nodes.held(LoadKind.REQUEST_RATE, rate, achieved)
    load = by_rate or perf_nodes.held(LoadKind.CONCURRENCY, concurrency, None)
    if phase.get("type") == "concurrency":
        load = perf_nodes.held(LoadKind.CONCURRENCY, concurrency, None)
    slo = config.get("slos") or config["input"].get("goodput")
    found = {**load, "slo": perf_nodes.limits(slo), "dataset": _dataset(config, fields)}
    selector = str(found["dataset"] or "")
    for prefix in ("speed_bench_throughput_8k_", "speed_bench_", "spec_al_"):
        if (
            selector.startswith(prefix)
            and selector.removeprefix(prefix) in aiperf_beside.CATEGORIES
        ):
            return found | {"domain": selector.removeprefix(prefix)}
    return found


def _dataset(config: Mapping[str, Any], fields: Mapping[str, Any]) -> str | None:
    """The data set; 0.2 writes of synthetic prompts only how long they are."""
    if "dataset" in fields:
        return str(fields["dataset"])
    lengths = as_dict(as_dict(config["input"].get("prompt")).get("input_tokens"))
    return "synthetic" if as_number(lengths.get("mean")) is not None else None


def _told(
    run: Run, config: Mapping[str, Any], gpus: Sequence[aiperf_telemetry.Gpu]
) -> tuple[Key, ...]:
    """The keys of what is not taken from the table: load, service levels, start and GPUs."""
    new = bool(config["phases"]["profiling"])
    rate, concurrency = (_RATE, _CONCURRENCY) if new else (_OLD_RATE, _OLD_CONCURRENCY)
    load = rate if run.load_kind is LoadKind.REQUEST_RATE else concurrency
    slos = _SLOS if config.get("slos") else _OLD_SLOS
    told = [k for k in (load, slos, _START) if getattr(run, k.field) is not None]
    watched = [k for k in aiperf_telemetry.KEYS if gpus and getattr(run, k.field) is not None]
    return (*told, *watched)


def _started(written: object) -> dict[str, Any]:
    """The start; without a zone, as AIPerf writes it, kept as if UTC."""
    try:
        moment = datetime.fromisoformat(as_text(written) or "")
        if moment.tzinfo is None:
            return {"started_at": moment.replace(tzinfo=UTC), "zone_known": False}
        return {"started_at": moment.astimezone(UTC), "zone_known": True}
    except (ValueError, OverflowError):
        return {}


def _failed(export: Mapping[str, object], found: Nodes, fields: Mapping[str, Any]) -> int | None:
    """Requests that failed, where no metric counts them."""
    both = as_count(found.value("completed_request_count"))
    completed = fields.get("completed")
    if both is not None and completed is not None:
        return max(both - int(completed), 0)
    errors = export.get("error_summary")
    if not isinstance(errors, list):
        return None
    counts = [as_count(as_dict(e).get("count")) for e in errors]
    known = [c for c in counts if c is not None]
    return sum(known) if len(known) == len(counts) else None


def _ended(export: Mapping[str, object], run_id: str) -> list[Flag]:
    if export.get("was_cancelled") is True:
        text = "the benchmark was cancelled: its numbers are of the part that ran"
        return [Flag("cancelled_run", "warns", text, run_id)]
    if export.get("is_complete") is False:
        text = "AIPerf calls the run incomplete: its numbers are of the part that ran"
        return [Flag("incomplete_run", "warns", text, run_id)]
    return []


def _not_understood(
    export: Mapping[str, object], config: Mapping[str, Any], found: Nodes
) -> dict[str, object]:
    info, old = as_dict(export.get("run_info")), as_dict(export.get("input_config"))
    rate_driven = as_number(config["phases"]["profiling"].get("rate")) is not None
    return {
        "benchmark_id": export.get("benchmark_id"),
        "schema_version": export.get("schema_version"),
        "trial": info.get("trial"),
        "cli_command": info.get("cli_command") or old.get("cli_command"),
        "tokenizer": as_dict(config.get("tokenizer")).get("name"),
        "concurrency_cap": config["phases"]["profiling"].get("concurrency")
        if rate_driven
        else None,
        "error_summary": export.get("error_summary") or None,
        "metrics": found.left or None,
    }
