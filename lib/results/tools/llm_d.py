"""Standard benchmark reports of llm-d-benchmark, versions 0.1, 0.2 and 0.2.1 (YAML or JSON).

A report holds one load of one load generator, with the units of every statistic written beside it:
they are obeyed, and a statistic in a unit that is not known is left out. By the schema
`time_per_output_token` excludes the first token and is the canonical TPOT;
`normalized_time_per_output_token` includes it and is not read. Made from GuideLLM's report the
former includes the first token too; there inter-token latency takes its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lib.results import checks, redaction
from lib.results.findings import Beside, Findings, Flag, Key, build_run, identity, shorten
from lib.results.keys import STATISTICS, at, latency_keys, take
from lib.results.parsing import as_count, as_dict, as_number, as_text, flat
from lib.results.tools import inference_perf
from lib.results.tools.llm_d_scenario import FOLLOWS, LOAD, STACK, load_fields, stack_fields

TOOL = "llm-d-benchmark"
TITLE = "llm-d benchmark report"
GUIDELLM = "guidellm"
_AGGREGATE = ("results", "request_performance", "aggregate")
_V01 = ("metrics",)

_TIMES = {"s": 1e3, "ms": 1.0, "us": 1e-3}
_UNITS: dict[str, dict[str, float]] = {
    "time": _TIMES,
    "time per token": {"s/token": 1e3, "ms/token": 1.0, **_TIMES},
    "count": {"count": 1.0},
    "tokens/s": {"tokens/s": 1.0},
    "queries/s": {"queries/s": 1.0, "requests/s": 1.0},
}


def _performance(base: tuple[str, ...], generator: str = "") -> tuple[Key, ...]:
    """The keys of lengths and latencies; `unit` is the kind of unit that must stand beside."""
    latency = (*base, "latency")
    tpot, itl = "time_per_output_token", "inter_token_latency"
    if generator == GUIDELLM:
        tpot, itl = itl, ""
    rows = [
        Key("num_prompts", (*base, "requests", "total")),
        Key("failed", (*base, "requests", "failures")),
        Key("input_len", (*base, "requests", "input_length", "mean"), unit="count"),
        Key("output_len", (*base, "requests", "output_length", "mean"), unit="count"),
    ]
    for name, metric, unit in (
        ("ttft", "time_to_first_token", "time"),
        ("tpot", tpot, "time per token"),
        ("itl", itl, "time per token"),
        ("e2e", "request_latency", "time"),
    ):
        if metric:
            rows += latency_keys(name, (*latency, metric), STATISTICS, unit=unit)
    return tuple(rows)


_RATES_01 = (
    Key("output_tps", (*_V01, "throughput", "output_tokens_per_sec")),
    Key("request_rps", (*_V01, "throughput", "requests_per_sec")),
    Key("duration_s", (*_V01, "time", "duration")),
)
_RATES_02 = (
    Key("output_tps", (*_AGGREGATE, "throughput", "output_token_rate", "mean"), unit="tokens/s"),
    Key("request_rps", (*_AGGREGATE, "throughput", "request_rate", "mean"), unit="queries/s"),
)
_RUN = (Key("label", ("run", "description")),)
_KEYS_01 = (*_performance(_V01), *_RATES_01, *LOAD["0.1"], *STACK["0.1"])
_KEYS_02 = (*_RUN, *_performance(_AGGREGATE), *_RATES_02, *LOAD["0.2"], *STACK["0.2"])


def _follows(base: tuple[str, ...], start: tuple[str, ...], unit: str) -> tuple[Key, ...]:
    """What follows from several keys of a report."""
    return (
        Key("started_at", start, unit=unit),
        Key("completed", (*base, "requests", "total"), note="less failures and incomplete"),
        Key("output_tokens", (*base, "requests", "output_length", "mean"), note="times completed"),
        Key("token_count", ("scenario", "load"), note="client, where inference-perf made the load"),
    )


_FOLLOWS_01 = (
    *_follows(_V01, (*_V01, "time", "start"), "s since 1970"),
    Key("achieved_load", (*_V01, "throughput", "requests_per_sec"), note="where a rate is held"),
    *FOLLOWS["0.1"],
)
_FOLLOWS_02 = (
    *_follows(_AGGREGATE, ("run", "time", "start"), "ISO time"),
    Key(
        "achieved_load",
        (*_AGGREGATE, "throughput", "request_rate", "mean"),
        note="where a rate is held",
    ),
    *FOLLOWS["0.2"],
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    "0.1": (*_KEYS_01, *_FOLLOWS_01),
    "0.2": (*_KEYS_02, *_FOLLOWS_02),
    "0.2.1": (*_KEYS_02, *_FOLLOWS_02),
}


def recognise(values: Sequence[object]) -> bool:
    """Whether the values are benchmark reports of llm-d, or the JSON Schema of one."""
    documents = [as_dict(value) for value in flat(values[:1])[:100]]
    return bool(documents) and all(_kind(document) for document in documents)


def _kind(document: Mapping[str, Any]) -> str:
    title = str(document.get("title")).replace(" ", "")
    if {"$defs", "properties"} <= document.keys() and title.startswith("BenchmarkReport"):
        return "schema"
    version = str(document.get("version"))
    if not version.startswith("0."):
        return ""
    scenario, results = as_dict(document.get("scenario")), as_dict(document.get("results"))
    if {"requests", "latency"} <= as_dict(document.get("metrics")).keys() and "load" in scenario:
        return "0.1"
    parts = {"request_performance", "session_performance", "observability", "component_health"}
    named = "uid" in as_dict(document.get("run")) or "stack" in scenario
    return "0.2" if named and (parts & results.keys() or "stack" in scenario) else ""


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """The runs of the reports; a report without performance says what it is part of."""
    documents = [as_dict(value) for value in flat(values)]
    runs, flags, keys, versions = {}, list[Flag](), dict[Key, None](), dict[str, None]()
    beside: dict[str, Any] = {}
    for position, document in enumerate(documents):
        kind = _kind(document)
        versions[_version(document) if kind not in ("", "schema") else "schema"] = None
        if kind not in ("0.1", "0.2") or not _measured(document, kind):
            flags.append(Flag("not_a_run", "warns", f"{name}: {_said_of(kind)}"))
            if kind == "0.2":
                fields, _, noted = stack_fields(document, "0.2")
                beside, flags = fields, [*flags, *noted]
            continue
        run_id, fields, used, noted = _fields(document, kind, sha256, position)
        if run_id in runs:
            text = f"{name} holds a run twice"
            flags.append(Flag("repeated_in_file", "warns", text, run_id))
            continue
        run, dropped = build_run(fields)
        runs[run_id] = run
        keys |= dict.fromkeys(used)
        flags += [*dropped, *checks.inspect(run), *(replace(f, run_id=run_id) for f in noted)]
    version = ", ".join(versions)
    tools = (TOOL, inference_perf.TOOL)
    said = Beside(tools=tools, fields=beside) if beside and not runs else None
    why = "version with scenario and metrics, or run and results"
    found = tuple(runs.values())
    return Findings(TOOL, version, why, found, flags=tuple(flags), keys=tuple(keys), beside=said)


def _said_of(kind: str) -> str:
    if kind == "schema":
        return "the JSON Schema of llm-d's benchmark report; import a report"
    return "part of a benchmark report without request performance; import the whole report"


def _measured(document: Mapping[str, Any], kind: str) -> bool:
    base = as_dict(at(document, _V01 if kind == "0.1" else _AGGREGATE))
    return bool({"latency", "throughput", "requests"} & base.keys())


def _version(document: Mapping[str, Any]) -> str:
    return str(document.get("version"))[:20]


def _fields(
    document: Mapping[str, Any], kind: str, sha256: str, position: int
) -> tuple[str, dict[str, Any], tuple[Key, ...], list[Flag]]:
    """Id, fields, keys used and flags of one report."""
    uid = as_text(at(document, ("run", "uid")))
    loaded, load_keys, generator, generator_version = load_fields(document, kind)
    if not generator and (uid or "").startswith("inference-perf-stage-"):
        generator = inference_perf.TOOL
    base = _V01 if kind == "0.1" else _AGGREGATE
    table = (*_performance(base, generator), *(_RATES_01 if kind == "0.1" else (*_RUN, *_RATES_02)))
    known, flags = _in_units(document, table)
    fields, keys = take(document, known)
    flags += _impossible(fields)
    served, stack_keys, noted = stack_fields(document, kind)
    if loaded.get("achieved_load") is True:
        loaded["achieved_load"] = fields.get("request_rps")
    fields |= served | loaded | _started(document, kind) | _counts(document, base, fields)
    if generator == inference_perf.TOOL:
        fields["token_count"] = "client"
        run_id = inference_perf.run_id(fields, sha256)
    else:
        run_id = identity(TOOL, uid) if uid else identity(TOOL, sha256, position)
    made_by = " ".join(filter(None, (generator, generator_version)))
    fields |= {
        "run_id": run_id,
        "source_sha256": sha256,
        "tool": TOOL,
        "tool_version": ", ".join(filter(None, (_version(document), made_by))),
        "extra": _extra(document),
    }
    return run_id, fields, (*keys, *load_keys, *stack_keys), [*flags, *noted]


def _in_units(document: Mapping[str, Any], table: Sequence[Key]) -> tuple[list[Key], list[Flag]]:
    """The keys with the factor of the unit that the report writes; others are left out."""
    known, unknown = list[Key](), dict[str, None]()
    for key in table:
        if key.unit not in _UNITS:
            known.append(key)
            continue
        unit = at(document, (*key.path[:-1], "units"))
        factor = _UNITS[key.unit].get(unit) if isinstance(unit, str) else None
        if factor is not None:
            known.append(replace(key, factor=factor, unit=str(unit)))
        elif as_number(at(document, key.path)) is not None:
            unknown[f"{key.path[-2]} in {unit}"] = None
    if not unknown:
        return known, []
    text = f"{shorten(unknown)}: not a unit of that quantity, left empty"
    return known, [Flag("unknown_unit", "warns", text)]


def _impossible(fields: dict[str, Any]) -> list[Flag]:
    """Older conversions called GuideLLM's end-to-end seconds milliseconds."""
    e2e, ttft = fields.get("e2e_ms_mean"), fields.get("ttft_ms_mean")
    if e2e is None or ttft is None or e2e >= ttft:
        return []
    for name in [n for n in fields if n.startswith("e2e_ms_")]:
        del fields[name]
    text = (
        f"request latency {e2e:.3g} ms is below the time to first token, {ttft:.3g} ms: its unit "
        "is wrong, left empty"
    )
    return [Flag("unknown_unit", "warns", text)]


def _counts(
    document: Mapping[str, Any], base: tuple[str, ...], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Requests that completed, and the tokens that they gave out by their mean length."""
    total, failed = fields.get("num_prompts"), fields.get("failed")
    if total is None or failed is None:
        return {}
    incomplete = as_count(at(document, (*base, "requests", "incomplete"))) or 0
    completed = total - failed - incomplete
    if completed < 0:
        return {}
    tokens = inference_perf.tokens_of(completed, fields.get("output_len"))
    return {"completed": completed, "output_tokens": tokens}


def _started(document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """0.1 has seconds since 1970, 0.2 an ISO time. The duration of 0.2 is the whole harness's."""
    written = at(document, (*_V01, "time", "start") if kind == "0.1" else ("run", "time", "start"))
    try:
        if isinstance(written, str):
            moment: datetime | None = datetime.fromisoformat(written.strip())
        else:
            seconds = as_number(written)
            moment = datetime.fromtimestamp(seconds, UTC) if seconds else None
        if moment is None:
            return {}
        known = moment.tzinfo is not None
        utc = moment.astimezone(UTC) if known else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return {}
    return {"started_at": utc, "zone_known": known}


def _extra(document: Mapping[str, Any]) -> str | None:
    run = as_dict(document.get("run"))
    return redaction.extra(
        {
            **{f"run {k}": run.get(k) for k in ("uid", "eid", "keywords")},
            "run duration": at(run, ("time", "duration")),
            "stage": at(document, ("scenario", "load", "standardized", "stage")),
        }
    )
