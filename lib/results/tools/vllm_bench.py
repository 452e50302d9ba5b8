"""Results of `vllm bench serve` (benchmark_serving.py) and of `vllm bench sweep serve`.

One JSON object a run, alone, appended, in a sweep's summary.json list or as rows of its
summary.csv. No version is written; the level is told by keys that every file of it has. Which
server answered is not written either: `backend` names the client's protocol, not the engine.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lib.results import checks, outcomes, redaction
from lib.results.cells import Rows
from lib.results.fields import settled, stated
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.keys import ANY_SET_UP, latency_keys, take
from lib.results.parsing import as_count, as_dict, as_number, as_text, counted, flat
from lib.results.tools import vllm_speculation
from lib.results.tools.literals import opened
from lib.results.tools.vllm_requests import ARRAYS, per_request_table, sent_requests
from lib.run import LoadKind, Run

TOOL = "vllm-bench-serve"
TITLE = "vLLM bench serve"
Record = Mapping[str, Any]

_LATENCY_KEY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_HEADERS = {"completed", "output_throughput"}
_OTHER_TOOLS = {"total_output_tokens_retokenized", "accept_length"}

_LOCAL, _OF_A_RATE = "local time, zone unknown", "where a request rate was held"
_HELD = "where finite; unlimited where it is inf and no max_concurrency is set"


def _latencies() -> tuple[Key, ...]:
    found: list[Key] = []
    for metric in ("ttft", "tpot", "itl", "e2el"):
        written = {"mean": f"mean_{metric}_ms", "p50": f"median_{metric}_ms"}
        written |= {p: f"{p}_{metric}_ms" for p in ("p90", "p95", "p99")}
        name = metric.replace("e2el", "e2e")
        found += latency_keys(name, (), written)
        found += latency_keys(name, (), {"p50": f"p50_{metric}_ms"}, note="without a median")
    return tuple(found)


_TAKEN_V0 = (
    Key("target", ("model_id",)),
    Key("target", ("tokenizer_id",), note="without a model_id"),
    Key("completed", ("completed",)),
    Key("duration_s", ("duration",)),
    Key("input_tokens", ("total_input_tokens",)),
    Key("output_tokens", ("total_output_tokens",)),
    Key("output_tps", ("output_throughput",)),
    Key("request_rps", ("request_throughput",)),
    *_latencies(),
)
_DERIVED_V0 = (
    Key("started_at", ("date",), note=_LOCAL),
    Key("load_kind", ("request_rate",), note=_HELD),
    Key("offered_load", ("request_rate",), note=_HELD),
    Key("achieved_load", ("request_throughput",), note=_OF_A_RATE),
    Key("num_prompts", ("num_prompts",), note="above 0"),
    Key("failed", ("num_prompts",), note="less completed, where failed is not written"),
    Key("input_len", ("total_input_tokens",), note="/ completed"),
    Key("output_len", ("total_output_tokens",), note="/ completed"),
    Key("output_tps", ("total_output_tokens",), note="/ duration, without output_throughput"),
    Key("running_mean", ("mean_e2el_ms",), note="times completed / duration"),
)
_TAKEN_V1 = (
    Key("goodput_rps", ("request_goodput",)),
    Key("goodput_rps", ("request_goodput:",), note="an early spelling"),
)
_DERIVED_V1 = tuple(
    Key(field, (key,), note=f"without a finite request_rate{more}")
    for key, more in (("max_concurrency", ""), ("max-concurrency", "; a sweep's override"))
    for field in ("load_kind", "offered_load")
)
# `vllm bench sweep serve` came with v2; --label before it.
_TAKEN_V2 = (
    Key("label", ("label",)),
    Key("repeat", ("run_number",), note="of a sweep"),
)
_SPECULATIVE_V2 = (
    vllm_speculation.STATE,
    *vllm_speculation.OVERRIDES,
    vllm_speculation.SCHEDULE,
)
_TAKEN_V3 = (Key("failed", ("failed",)),)
_SPECULATIVE_V3 = (
    *vllm_speculation.COUNTERS,
    vllm_speculation.RATES,
    vllm_speculation.K_COUNTED,
    *vllm_speculation.STATED,
)
_METADATA = Key("spec_state", ("--metadata",), note=f"what a key of one's own says, {ANY_SET_UP}")
_V0 = (*_TAKEN_V0, *_DERIVED_V0)
_V1 = (*_V0, *_TAKEN_V1, *_DERIVED_V1)
_V2 = (*_V1, *_TAKEN_V2, *_SPECULATIVE_V2)
_V3 = (*_V2, *_TAKEN_V3, *_SPECULATIVE_V3)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    "v4 keys": (*_V3, _METADATA),
    "v3 keys": (*_V3, _METADATA),
    "v2 keys": (*_V2, _METADATA),
    "v1 keys": (*_V1, _METADATA),
    "v0 keys": (*_V0, _METADATA),
}
_TAKEN = (*_TAKEN_V0, *_TAKEN_V1, *_TAKEN_V2, *_TAKEN_V3)
_DERIVED = (*_DERIVED_V0, *_DERIVED_V1)
# Keys that are kept aside where they were not used, such as the limit of a rate-driven run.
_ASIDE = {"max_concurrency", "spec_decode_acceptance_length", "spec_decode_acceptance_rate"}
_UNDERSTOOD = {key.path[0] for key in _V3} - _ASIDE


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are results of this tool, or what it leaves beside them."""
    inner = flat(values)
    return any(is_record(v) for v in inner) or find_sidecar(inner) is not None


def is_record(value: object) -> bool:
    """Whether a JSON value is a result of this tool."""
    record = as_dict(value)
    named = record.keys() & {"model_id", "tokenizer_id"}
    return (
        bool(named)
        and {"completed", "output_throughput"} <= record.keys()
        and not record.keys() & _OTHER_TOOLS
        and any(_LATENCY_KEY.fullmatch(k) for k in record)
    )


def recognise_rows(rows: Rows) -> bool:
    """Whether rows are a sweep's summary.csv: its headers are the keys of a result."""
    return any(is_record(r) for r in _records(rows))


def find_rows(name: str, rows: Rows, sha256: str) -> Findings:
    """Runs of a sweep's summary.csv; its headers tell the level, for a blank cell drops its key."""
    return _findings(name, _records(rows), sha256, _level(rows[0]))


def _records(rows: Rows) -> list[object]:
    """The rows as records. Texts stay texts, so a label or version that looks like a number does.

    A blank cell is a key that the run does not have, or null: which is not written.
    """
    if not rows or not set(rows[0]) >= _HEADERS:
        return []
    return [
        {key: opened(cell) for key, cell in zip(rows[0], row, strict=False) if cell.strip()}
        for row in rows[1:]
    ]


def find_sidecar(values: Sequence[object]) -> Findings | None:
    """Findings without runs for what the tool leaves beside its results; None for anything else."""
    records = [as_dict(v) for v in values]
    if not records or not all(records):
        return None
    if all({"benchmark", "model", "metric"} <= r.keys() for r in records):
        text = "vLLM's metrics for PyTorch's dashboard, no run; import the result file beside it"
        flag, keys = Flag("sidecar", "warns", text), "benchmark, model, metric"
        return Findings(
            TOOL, "PyTorch metrics", f"keys {keys} of vLLM's sidecar", (), flags=(flag,)
        )
    if all({"error_type", "error"} <= r.keys() for r in records):
        said = f"{as_text(records[0]['error_type'])}: {as_text(records[0]['error'])}"
        said = redaction.redact_text(" ".join(said.split())[:300])
        flag = Flag("failed_run", "warns", f"a run of vllm bench sweep that failed ({said})")
        why = "keys error_type, error of vllm bench sweep"
        return Findings(TOOL, "failed run", why, (), flags=(flag,))
    return None


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of the records among `values`; the file's other values are counted in a flag."""
    values = flat(values)
    if (beside := find_sidecar(values)) is not None:
        return beside
    return _findings(name, values, sha256)


def _findings(
    name: str, values: Sequence[object], sha256: str, level: str | None = None
) -> Findings:
    records = [as_dict(v) for v in values if is_record(v)]
    measured = [r for r in records if as_count(r.get("run_number")) != -1]
    flags = _left_out(len(values) - len(records), len(records) - len(measured), bool(measured))
    runs, requests, used = {}, {}, dict[Key, None]()
    for position, record in enumerate(measured):
        run_id = _run_id(record, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields, keys = _fields(record)
        used |= dict.fromkeys(keys)
        fields |= {"run_id": run_id, "source_sha256": sha256, "tool": TOOL}
        fields["tool_version"] = level or _level(record)
        fields, nothing = outcomes.of_completed(fields)
        run, found = build_run(fields)
        flags += [*nothing, *found, *checks.inspect(run), *_record_flags(record, run)]
        runs[run_id] = run
        if (table := per_request_table(record)) is not None:
            requests[run_id] = table
        elif any(isinstance(record.get(k), list) for k in ("ttfts", "output_lens")):
            text = "the per-request lists differ in length or hold no numbers; left out"
            flags.append(Flag("requests_unreadable", "warns", text, run_id))
    level = level or _level(records[0])
    telling = [
        k for k in ("model_id", "completed", "output_throughput", "mean_ttft_ms") if k in records[0]
    ]
    why = f"keys {', '.join(telling)} of vllm bench serve, {level}"
    return Findings(
        TOOL, level, why, tuple(runs.values()), requests, tuple(flags), keys=tuple(used)
    )


def _left_out(others: int, warm_ups: int, any_measured: bool) -> list[Flag]:
    flags = []
    if others:
        text = f"{counted(others, 'value')} of another kind in the file; left out"
        flags.append(Flag("other_values", "warns", text))
    if warm_ups:
        rest = "" if any_measured else ", nothing else in the file"
        flags.append(Flag("warm_up", "warns", f"{counted(warm_ups, 'warm-up run')} left out{rest}"))
    return flags


def _level(keys: Iterable[str]) -> str:
    """The level of a file's keys, from keys that do not depend on the server or on options."""
    held = set(keys)
    if any("client_queue_time" in k or k.startswith("probe_") for k in held):
        return "v4 keys"
    if held & {"failed", "rtfx"}:
        return "v3 keys"
    if held & {"label", "endpoint_type", "max_output_tokens_per_s"}:
        return "v2 keys"
    if held & {"burstiness", "max_concurrency", "request_goodput", "request_goodput:"}:
        return "v1 keys"
    return "v0 keys"


def _run_id(record: Record, sha256: str, position: int) -> str:
    parts = [
        record.get(k) for k in ("date", "duration", "total_input_tokens", "total_output_tokens")
    ]
    if parts[0] is None or as_number(parts[1]) is None:
        return identity(TOOL, sha256, position)
    numbers = [as_number(p) for p in parts[1:]]
    return identity(TOOL, as_text(parts[0]), *numbers, as_text(record.get("label")))


def _fields(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields that a record states, the measured ones over metadata; the keys used."""
    found, used = take(record, _TAKEN)
    derived = {k: v for k, v in _derived(record, found).items() if v is not None}
    used = (*used, *_derived_from(record, derived))
    speculative, more = vllm_speculation.speculation(record)
    used = (*used, *more)
    fields = _stated(record) | found | derived | speculative
    read = {key.path[0] for key in used}
    fields["extra"] = redaction.extra(
        {k: v for k, v in record.items() if k not in read and not _is_read(k, v)}
    )
    return fields, used


def _derived(record: Record, found: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from several keys, or from one that says more than a number."""
    completed, duration = found.get("completed"), found.get("duration_s")
    prompts = as_count(record.get("num_prompts"))
    prompts = prompts if prompts is not None and prompts > 0 else None
    lengths = {
        f"{kind}_len": tokens / completed
        for kind in ("input", "output")
        if (tokens := found.get(f"{kind}_tokens")) is not None and completed
    }
    derived = {**lengths, **_load(record), "started_at": _date(record.get("date"))}
    derived["num_prompts"] = prompts
    sent = sent_requests(record) or prompts
    if "failed" not in found and sent and completed is not None:
        derived["failed"] = max(sent - completed, 0)
    if "output_tps" not in found and found.get("output_tokens") is not None and duration:
        derived["output_tps"] = found["output_tokens"] / duration
    if (e2e := found.get("e2e_ms_mean")) and completed and duration:
        derived["running_mean"] = completed * e2e / 1e3 / duration
    return derived


def _derived_from(record: Record, derived: Mapping[str, Any]) -> Iterator[Key]:
    """The keys of derived fields: of the load either the rate's or the limit's."""
    limited = derived.get("load_kind") is LoadKind.CONCURRENCY
    for key in _DERIVED:
        of_load = key.field in ("load_kind", "offered_load")
        other = of_load and (key.path[0] == "request_rate") is limited
        if key.field in derived and key.path[0] in record and not other:
            yield key


def _stated(record: Record) -> dict[str, Any]:
    """Fields from --metadata and a sweep's override keys."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if _is_metadata(key):
            found |= stated(key, value)
    return settled(found)


def _is_metadata(key: str) -> bool:
    return (
        key not in _UNDERSTOOD
        and key not in _ASIDE
        and key not in ARRAYS
        and not _LATENCY_KEY.fullmatch(key)
    )


def _is_read(key: str, value: object) -> bool:
    """Whether a key needs no keeping: it is understood, per-request data, or set-up."""
    if key in _UNDERSTOOD or key in ARRAYS or vllm_speculation.is_override(key):
        return True
    return _is_metadata(key) and bool(stated(key, value))


def _load(record: Record) -> dict[str, Any]:
    """What was held: the rate where it is finite, else the concurrency, else no limit at all."""
    rate, said = as_number(record.get("request_rate")), record.get("request_rate")
    limits = (as_count(record.get(k)) for k in ("max_concurrency", "max-concurrency"))
    concurrency = next((c for c in limits if c is not None), None)
    unlimited = said == math.inf or (isinstance(said, str) and said.strip() in ("inf", "Infinity"))
    if rate is not None:
        achieved = as_number(record.get("request_throughput"))
        return _held(LoadKind.REQUEST_RATE, rate) | {"achieved_load": achieved}
    if concurrency is not None:
        return _held(LoadKind.CONCURRENCY, float(concurrency))
    return _held(LoadKind.REQUEST_RATE, math.inf) if unlimited else {}


def _held(kind: LoadKind, load: float) -> dict[str, Any]:
    return {"load_kind": kind, "offered_load": load}


def _date(value: object) -> datetime | None:
    """Local time without a zone, kept as if UTC; `zone_known` stays False."""
    try:
        return datetime.strptime(as_text(value) or "", "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _record_flags(record: Record, run: Run) -> list[Flag]:
    flags = []
    peak, mean = as_number(record.get("max_output_tokens_per_s")), run.output_tps
    if peak is not None and mean is not None and peak < mean:
        text = f"peak {peak:.6g} tok/s below the mean {mean:.6g}: it counts chunks, ignore it"
        flags.append(Flag("peak_below_mean", "warns", text, run.run_id))
    if run.failed and as_count(record.get("failed")) is None and not sent_requests(record):
        text = (
            f"{run.completed} of num_prompts {run.num_prompts} completed and no failures are "
            f"written: {run.failed} taken as failed; a smaller data set looks the same"
        )
        flags.append(Flag("failures_inferred", "warns", text, run.run_id))
    return flags + vllm_speculation.length_flags(record, run.run_id)
