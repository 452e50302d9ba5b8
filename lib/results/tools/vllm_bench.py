"""Results of `vllm bench serve` (benchmark_serving.py) and of `vllm bench sweep serve`.

One JSON object a run, alone, appended, in a sweep's summary.json list or as rows of its
summary.csv. No version is written; the level is told by keys that every file of it has. Which
server answered is not written either: `backend` names the client's protocol, not the engine.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from lib.results import checks, per_request, redaction
from lib.results.fields import settled, stated
from lib.results.findings import Findings, Flag, build_run, identity
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, counted
from lib.run import LoadKind, SpecState

TOOL = "vllm-bench-serve"
Record = Mapping[str, Any]

_LATENCY_KEY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_OTHER_TOOLS = {"total_output_tokens_retokenized", "accept_length"}
_STATISTICS = {
    "mean": "mean",
    "median": "p50",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
}
_ARRAYS = {
    *("ttfts", "itls", "input_lens", "output_lens", "start_times", "latencies", "errors"),
    *("generated_texts", "queue_times"),
}
# The tool writes seconds; latencies are wanted in ms.
_FACTORS = {
    "start_times": 1.0,
    "input_lens": 1.0,
    "output_lens": 1.0,
    "ttfts": 1e3,
    "latencies": 1e3,
}
_UNDERSTOOD = {
    *("date", "label", "model_id", "num_prompts", "request_rate", "max_concurrency", "duration"),
    *("completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput"),
    *(
        "output_throughput",
        "request_goodput",
        "request_goodput:",
        "run_number",
        "spec_decode_num_drafts",
    ),
    *("spec_decode_draft_tokens", "spec_decode_accepted_tokens"),
    "spec_decode_per_position_acceptance_rates",
}


def recognise(value: object) -> bool:
    """Whether a JSON value is a result of this tool."""
    record = as_dict(value)
    named = record.keys() & {"model_id", "tokenizer_id"}
    return (
        bool(named)
        and {"completed", "output_throughput"} <= record.keys()
        and not record.keys() & _OTHER_TOOLS
        and any(_LATENCY_KEY.fullmatch(k) for k in record)
    )


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
    records = [as_dict(v) for v in values if recognise(v)]
    measured = [r for r in records if as_count(r.get("run_number")) != -1]
    flags = _left_out(len(values) - len(records), len(records) - len(measured), bool(measured))
    runs, requests = {}, {}
    for position, record in enumerate(measured):
        run_id = _run_id(record, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        run, found = build_run(_fields(record) | {"run_id": run_id, "source_sha256": sha256})
        flags += [
            *found,
            *checks.inspect(run),
            *_record_flags(record, run_id),
        ]
        runs[run_id] = run
        if (table := _requests(record)) is not None:
            requests[run_id] = table
        elif any(isinstance(record.get(k), list) for k in ("ttfts", "output_lens")):
            text = "the per-request lists differ in length or hold no numbers; left out"
            flags.append(Flag("requests_unreadable", "warns", text, run_id))
    level = _level(records[0])
    telling = [
        k for k in ("model_id", "completed", "output_throughput", "mean_ttft_ms") if k in records[0]
    ]
    why = f"keys {', '.join(telling)} of vllm bench serve, {level}"
    return Findings(TOOL, level, why, tuple(runs.values()), requests, tuple(flags))


def _left_out(others: int, warm_ups: int, any_measured: bool) -> list[Flag]:
    flags = []
    if others:
        text = f"{counted(others, 'value')} of another kind in the file; left out"
        flags.append(Flag("other_values", "warns", text))
    if warm_ups:
        rest = "" if any_measured else ", nothing else in the file"
        flags.append(Flag("warm_up", "warns", f"{counted(warm_ups, 'warm-up run')} left out{rest}"))
    return flags


def _level(record: Record) -> str:
    """The level of a file's keys, from keys that do not depend on the server or on options."""
    if any("client_queue_time" in k or k.startswith("probe_") for k in record):
        return "v4 keys"
    if record.keys() & {"failed", "rtfx"}:
        return "v3 keys"
    if record.keys() & {"label", "endpoint_type", "max_output_tokens_per_s"}:
        return "v2 keys"
    if record.keys() & {"burstiness", "max_concurrency", "request_goodput", "request_goodput:"}:
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


def _fields(record: Record) -> dict[str, Any]:
    """Run's fields that a record states; None where it does not."""
    completed, prompts = as_count(record.get("completed")), as_count(record.get("num_prompts"))
    prompts = prompts if prompts is not None and prompts > 0 else None
    failed = as_count(record.get("failed"))
    if failed is None and prompts and completed is not None:
        failed = max(prompts - completed, 0)
    duration = as_number(record.get("duration"))
    tokens = {k: as_count(record.get(f"total_{k}_tokens")) for k in ("input", "output")}
    output_tps = as_number(record.get("output_throughput"))
    if output_tps is None and tokens["output"] is not None and duration:
        output_tps = tokens["output"] / duration
    lengths = {f"{k}_len": n / completed if n and completed else None for k, n in tokens.items()}
    latencies, left = _latencies(record)
    e2e = latencies.get("e2e_ms_mean")
    measured = {
        **lengths,
        **latencies,
        **_load(record),
        **_speculation(record),
        "tool": TOOL,
        "tool_version": _level(record),
        "started_at": _date(record.get("date")),
        "label": as_text(record.get("label")),
        "target": as_text(record.get("model_id")) or as_text(record.get("tokenizer_id")),
        "repeat": as_count(record.get("run_number")),
        "num_prompts": prompts,
        "completed": completed,
        "failed": failed,
        "duration_s": duration,
        "input_tokens": tokens["input"],
        "output_tokens": tokens["output"],
        "output_tps": output_tps,
        "request_rps": as_number(record.get("request_throughput")),
        "goodput_rps": as_number(record.get("request_goodput", record.get("request_goodput:"))),
        "running_mean": completed * e2e / 1e3 / duration
        if e2e and completed and duration
        else None,
        "extra": redaction.extra(_not_understood(record, left)),
    }
    return _stated(record) | {name: v for name, v in measured.items() if v is not None}


def _stated(record: Record) -> dict[str, Any]:
    """Fields from --metadata and a sweep's override keys."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if key not in _UNDERSTOOD and key not in _ARRAYS and not _LATENCY_KEY.fullmatch(key):
            found |= stated(key, value)
    return settled(found)


def _not_understood(record: Record, left: Sequence[str]) -> dict[str, object]:
    return {
        key: value
        for key, value in record.items()
        if key not in _ARRAYS
        and key not in _UNDERSTOOD
        and (key in left or not _LATENCY_KEY.fullmatch(key))
        and not stated(key, value)
        and not _is_speculative_config(key)
    } | _idle_limit(record)


def _idle_limit(record: Record) -> dict[str, object]:
    """The concurrency limit of a rate-driven run: it is not the load, but worth keeping."""
    rate_driven = as_number(record.get("request_rate")) is not None
    return {"max_concurrency": record.get("max_concurrency")} if rate_driven else {}


def _latencies(record: Record) -> tuple[dict[str, float | None], list[str]]:
    """Latencies by Run's field, and the keys of statistics that a run does not hold."""
    found: dict[str, float | None] = {}
    left = []
    for key, value in record.items():
        if not (match := _LATENCY_KEY.fullmatch(key)):
            continue
        statistic, metric = _STATISTICS.get(match[1]), match[2].replace("e2el", "e2e")
        if statistic is None:
            left.append(key)
        elif found.get(f"{metric}_ms_{statistic}") is None:
            found[f"{metric}_ms_{statistic}"] = as_number(value)
    return found, left


def _load(record: Record) -> dict[str, Any]:
    """What was held: the rate where it is finite, else the concurrency, else no limit at all."""
    rate, said = as_number(record.get("request_rate")), record.get("request_rate")
    limits = (as_count(record.get(k)) for k in ("max_concurrency", "max-concurrency"))
    concurrency = next((c for c in limits if c is not None), None)
    unlimited = said in ("inf", "Infinity", math.inf)
    if rate is not None:
        achieved = as_number(record.get("request_throughput"))
        return _held(LoadKind.REQUEST_RATE, rate) | {"achieved_load": achieved}
    if concurrency is not None:
        return _held(LoadKind.CONCURRENCY, float(concurrency))
    return _held(LoadKind.REQUEST_RATE, math.inf) if unlimited else {}


def _held(kind: LoadKind, load: float) -> dict[str, Any]:
    return {"load_kind": kind, "offered_load": load}


def _is_speculative_config(key: str) -> bool:
    return key.replace("-", "_").split(".")[0] == "speculative_config"


def _speculation(record: Record) -> dict[str, Any]:
    """Counters of the server, and the set-up that a sweep's override states."""
    found = _overrides(record)
    drafts = as_count(record.get("spec_decode_num_drafts"))
    drafted = as_count(record.get("spec_decode_draft_tokens"))
    if not drafts or drafts < 0:
        return found
    rates = [as_number(r) for r in as_list(record.get("spec_decode_per_position_acceptance_rates"))]
    per_position = tuple(round(r * drafts) for r in rates if r is not None and 0 <= r <= 1)
    found |= {
        "spec_state": SpecState.ON,
        "drafts": drafts,
        "draft_tokens": drafted,
        "accepted_tokens": as_count(record.get("spec_decode_accepted_tokens")),
        "accepted_per_position": per_position
        if rates and len(per_position) == len(rates)
        else None,
    }
    k = drafted / drafts if drafted and drafted > 0 else 0.0
    if "num_speculative_tokens" not in found and round(k) and abs(k / round(k) - 1) <= 0.005:
        found["num_speculative_tokens"] = round(k)
    return found


def _overrides(record: Record) -> dict[str, Any]:
    """The set-up that `speculative_config` states: an object, its JSON, dotted keys, or null."""
    config: dict[str, Any] = {}
    for key, value in record.items():
        if not _is_speculative_config(key):
            continue
        if "." in key:
            config[key.split(".", 1)[1].replace("-", "_")] = value
        elif (whole := _config(value)) is None:
            return {"spec_state": SpecState.OFF}
        else:
            config |= whole
    if not config:
        return {}
    schedule = config.get("num_speculative_tokens_per_batch_size")
    found = {
        "spec_state": SpecState.ON,
        "draft_method": as_text(config.get("method")),
        "draft_model": as_text(config.get("model")),
        "num_speculative_tokens": as_count(config.get("num_speculative_tokens")),
        "draft_tensor_parallel": as_count(config.get("draft_tensor_parallel_size")),
        "schedule": orjson.dumps(schedule).decode() if isinstance(schedule, (list, dict)) else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _config(value: object) -> dict[str, Any] | None:
    """The configuration's object; None where it says that there is none."""
    if isinstance(value, str):
        if value.strip().casefold() in ("", "none", "null", "{}"):
            return None
        loose = re.sub(r"\bNone\b", "null", value.replace("'", '"'))
        for text in (value, loose):
            try:
                return as_dict(orjson.loads(text))
            except orjson.JSONDecodeError:
                continue
    return as_dict(value) if value else None


def _date(value: object) -> datetime | None:
    """Local time without a zone, kept as if UTC; `zone_known` stays False."""
    try:
        return datetime.strptime(as_text(value) or "", "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _record_flags(record: Record, run_id: str) -> list[Flag]:
    flags = []
    peak, mean = (
        as_number(record.get(k)) for k in ("max_output_tokens_per_s", "output_throughput")
    )
    if peak is not None and mean is not None and peak < mean:
        text = f"peak {peak:.6g} tok/s below the mean {mean:.6g}: it counts chunks, ignore it"
        flags.append(Flag("peak_below_mean", "warns", text, run_id))
    length = as_number(record.get("spec_decode_acceptance_length"))
    drafts, accepted = (
        as_count(record.get(f"spec_decode_{k}")) for k in ("num_drafts", "accepted_tokens")
    )
    if length and drafts and accepted is not None:
        tau = 1 + accepted / drafts
        if abs(length / tau - 1) > 0.01:
            bonus = ", without the bonus token" if abs(length + 1 - tau) < 0.01 * tau else ""
            text = f"states acceptance length {length:.4g}{bonus}; the counters say {tau:.4g}"
            flags.append(Flag("acceptance_mismatch", "warns", text, run_id))
    return flags


def _requests(record: Record) -> pa.Table | None:
    """Per-request table of a --save-detailed record; None where no lists of it fit together.

    A failed request has an error or no token.
    """
    lists = {k: record[k] for k in _ARRAYS if isinstance(record.get(k), list)}
    count = len(lists.get("output_lens") or lists.get("ttfts") or ())
    if not count or any(len(v) != count for v in lists.values()):
        return None
    columns = {
        k: per_request.floats(lists[k], factor) for k, factor in _FACTORS.items() if k in lists
    }
    if any(v is None for v in columns.values()):
        return None
    out = columns.get("output_lens")
    errors = lists.get("errors") or [None] * count
    generated = np.ones(count) if out is None else out
    return per_request.table(
        (n > 0 and not error for n, error in zip(generated, errors, strict=True)),
        start_s=columns.get("start_times"),
        input_tokens=columns.get("input_lens"),
        output_tokens=out,
        ttft_ms=columns.get("ttfts"),
        e2e_ms=columns.get("latencies"),
        decode_ms=per_request.sums(lists["itls"], 1e3) if "itls" in lists else None,
    )
