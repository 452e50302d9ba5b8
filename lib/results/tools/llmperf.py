"""LLMPerf's token benchmark: the summary of a run, and the records of its requests.

All times are in seconds. Its inter-token latency is end-to-end time over output tokens, the first
token included, so it is neither TPOT nor ITL and stays aside. Tokens are counted by the client.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lib.results import checks, per_request, redaction
from lib.results.fields import settled, stated
from lib.results.findings import LARGEST_COUNT, Beside, Findings, Flag, Key, build_run, identity
from lib.results.keys import ANY_SET_UP, latency_keys, take
from lib.results.parsing import as_dict, as_number, as_text, counted, flat
from lib.run import LoadKind

TOOL = "llmperf"
TITLE = "LLMPerf"
Record = Mapping[str, Any]

_QUANTILES = ("p50", "p90", "p95", "p99")
_TIMES = {"ttft": "results_ttft_s", "e2e": "results_end_to_end_latency_s"}
_MEANS = {"input": "results_number_input_tokens", "output": "results_number_output_tokens"}


def _latency_keys(name: str) -> tuple[Key, ...]:
    start = _TIMES[name]
    written = {"mean": f"{start}_mean"} | {q: f"{start}_quantiles_{q}" for q in _QUANTILES}
    return latency_keys(name, (), written, factor=1e3, unit="s")


_TAKEN = (
    Key("label", ("name",)),
    Key("target", ("model",)),
    Key("temperature", ("additional_sampling_params_temperature",)),
    Key("top_p", ("additional_sampling_params_top_p",)),
    Key("offered_load", ("num_concurrent_requests",)),
    Key("num_prompts", ("results_num_requests_started",)),
    Key("completed", ("results_num_completed_requests",)),
    Key("failed", ("results_number_errors",)),
    Key("input_len", (f"{_MEANS['input']}_mean",)),
    Key("output_len", (f"{_MEANS['output']}_mean",), note="counted by the client"),
    Key("output_tps", ("results_mean_output_throughput_token_per_s",), note="of all requests"),
    Key("request_rps", ("results_num_completed_requests_per_min",), 1 / 60, "requests/min"),
    *_latency_keys("ttft"),
    *_latency_keys("e2e"),
)
_DERIVED = (Key("started_at", ("timestamp",), unit="s since 1970"),)
_FOLLOWS = (
    Key("load_kind", ("num_concurrent_requests",), note="concurrency"),
    Key("duration_s", ("results_num_completed_requests_per_min",), note="completed over it"),
    Key("input_tokens", (f"{_MEANS['input']}_mean",), note="times completed"),
    Key("output_tokens", (f"{_MEANS['output']}_mean",), note="times completed"),
    Key("token_count", (f"{_MEANS['output']}_mean",), note="client"),
    Key("spec_state", ("metadata",), note=f"keys of one's own: {ANY_SET_UP}"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {"2023-08-31": (*_TAKEN, *_DERIVED, *_FOLLOWS)}

_UNDERSTOOD = {*(k.path[0] for k in (*_TAKEN, *_DERIVED)), "version"}
_RECORD = {"ttft_s", "end_to_end_latency_s", "inter_token_latency_s", "number_output_tokens"}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are summaries of this tool, or the records of one run's requests."""
    inner = flat(values)
    return any(_is_summary(v) for v in inner) or _are_requests(inner)


def _is_summary(value: object) -> bool:
    record = as_dict(value)
    return "results_num_completed_requests" in record and any(
        f"{start}_mean" in record for start in _TIMES.values()
    )


def _are_requests(values: Sequence[object]) -> bool:
    return bool(values) and all(as_dict(v).keys() >= _RECORD for v in values[:100])


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of the summaries; of a file of requests, what it says of the run beside it."""
    inner = flat(values)
    summaries = [as_dict(v) for v in inner if _is_summary(v)]
    if not summaries:
        return _find_requests([as_dict(v) for v in inner])
    runs, flags, used = {}, list[Flag](), dict[Key, None]()
    for position, record in enumerate(summaries):
        run_id = _run_id(record, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields, keys = _fields(record)
        run, found = build_run(fields | {"run_id": run_id, "source_sha256": sha256})
        runs[run_id] = run
        used |= dict.fromkeys(keys)
        flags += [*found, *checks.inspect(run)]
    if len(summaries) < len(inner):
        text = f"{counted(len(inner) - len(summaries), 'value')} of another kind; left out"
        flags.append(Flag("other_values", "warns", text))
    if any(f"{k}_mean" in r for r in summaries for k in ("results_inter_token_latency_s",)):
        text = "its inter-token latency includes the time to first token: kept aside, not compared"
        flags.append(Flag("itl_includes_ttft", "warns", text))
    version = _version(summaries[0])
    why = "keys results_num_completed_requests, results_ttft_s_mean of LLMPerf's summary"
    return Findings(TOOL, version, why, tuple(runs.values()), flags=tuple(flags), keys=tuple(used))


def _version(record: Record) -> str:
    return as_text(record.get("version")) or "no version"


def _run_id(record: Record, sha256: str, position: int) -> str:
    ends = {f"{n}_{e}": record.get(f"{k}_{e}") for n, k in _TIMES.items() for e in ("min", "max")}
    return _identity(record.get("results_num_completed_requests"), ends) or identity(
        TOOL, sha256, position
    )


def _identity(completed: object, ends: Mapping[str, object]) -> str | None:
    """By the count and the least and largest times, which the records of the requests hold too."""
    numbers = [as_number(v) for v in (completed, *(ends[k] for k in sorted(ends)))]
    return identity(TOOL, *numbers) if None not in numbers and numbers[0] else None


def _fields(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields that a summary states, and the keys they were read from."""
    found, used = take(record, _TAKEN)
    completed, rps = found.get("completed"), found.get("request_rps")
    if (found.get("offered_load") or 0) > 0:
        found["load_kind"] = LoadKind.CONCURRENCY
    started = _moment(record.get("timestamp"))
    metadata: dict[str, Any] = {}
    for key, value in record.items():
        if key not in _UNDERSTOOD and not key.startswith("results_"):
            metadata |= stated(key, value)
    left = {
        k: v
        for k, v in record.items()
        if k not in _UNDERSTOOD and (k.startswith("results_") or not stated(k, v))
    }
    fields = {
        **settled(metadata),
        **found,
        "tool": TOOL,
        "tool_version": _version(record),
        "started_at": started,
        "zone_known": started is not None,
        # Throughput and rate are over this time, which the file does not name by itself.
        "duration_s": completed / rps if completed and rps else None,
        "input_tokens": _total(found.get("input_len"), completed),
        "output_tokens": _total(found.get("output_len"), completed),
        "token_count": "client" if "output_len" in found else None,
        "extra": redaction.extra(left),
    }
    return fields, (*used, *_DERIVED) if started else used


def _total(mean: float | None, completed: int | None) -> int | None:
    """Tokens of all completed requests, over which the mean was taken."""
    if mean is None or completed is None or not 0 <= mean * completed <= LARGEST_COUNT:
        return None
    return round(mean * completed)


def _moment(value: object) -> datetime | None:
    seconds = as_number(value)
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds and seconds > 0 else None
    except (OverflowError, OSError, ValueError):
        return None


def _find_requests(records: Sequence[Record]) -> Findings:
    """The records of one run's requests, known to belong to a summary by their extreme times."""
    good = [r for r in records if r.get("error_code") is None]
    ends: dict[str, object] = {}
    for name, key in _TIMES.items():
        numbers = [as_number(r.get(key.removeprefix("results_"))) for r in good]
        known = [n for n in numbers if n is not None]
        ends |= {f"{name}_min": min(known, default=None), f"{name}_max": max(known, default=None)}
    table = per_request.table(
        (r.get("error_code") is None for r in records),
        input_tokens=_column(records, "number_input_tokens"),
        output_tokens=_column(records, "number_output_tokens"),
        ttft_ms=_column(records, "ttft_s", 1e3),
        e2e_ms=_column(records, "end_to_end_latency_s", 1e3),
    )
    run_id = _identity(len(good), ends)
    beside = Beside(tools=(TOOL,), run_ids=(run_id,), requests=table) if run_id else None
    text = "the records of one run's requests, no run itself; import the summary that lies with it"
    why = "a list of records with the keys ttft_s, end_to_end_latency_s of LLMPerf"
    flag = Flag("sidecar", "warns", text)
    return Findings(TOOL, "requests", why, (), flags=(flag,), beside=beside)


def _column(records: Sequence[Record], key: str, scale: float = 1.0) -> per_request.Floats | None:
    return per_request.floats([as_number(r.get(key)) for r in records], scale)
