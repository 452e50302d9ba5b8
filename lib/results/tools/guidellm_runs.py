"""What the readers of GuideLLM's JSON and CSV share: fields of a run, its load, its requests.

Canonical TPOT is GuideLLM's inter-token latency in every level: per request (last - first token) /
(tokens - 1). Its own "time per output token" divides by one token more, and from 0.4 on it
includes the time to first token.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lib.results import checks, outcomes, per_request, redaction
from lib.results.fields import settled, stated
from lib.results.findings import LARGEST_COUNT, Findings, Flag, Key, build_run, identity
from lib.results.keys import at, take
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.run import LoadKind, SpecState

TOOL = "guidellm"
TPOT_NOTE = "its inter-token latency, (last - first token) / (tokens - 1); never its own TPOT"
LOAD_NOTE = "streams, rate, 1 (synchronous) or unlimited (throughput)"
RATE_NOTE = "where a request rate was held"
SLO_NOTE = "where an SLO is stated"
SUM_NOTE = "rounded"
PRODUCT_NOTE = "times the successful requests, rounded"

Path = tuple[str, ...]
_KINDS = {
    **dict.fromkeys(("concurrent", "synchronous"), LoadKind.CONCURRENCY),
    **dict.fromkeys(("constant", "poisson", "throughput"), LoadKind.REQUEST_RATE),
}


@dataclass(frozen=True)
class Layout:
    """Where one level writes its runs: the fields' keys, the user's labels, what is kept aside."""

    keys: tuple[Key, ...]
    labels: Key | None = None
    extra: Mapping[str, Path] | None = None
    requests: Path = ()


def findings(
    version: str,
    why: str,
    layout: Layout,
    documents: Sequence[Mapping[str, Any]],
    sha256: str,
    *,
    zone_known: bool,
    flags: Iterable[Flag] = (),
) -> Findings:
    """One run a document: the report with its list of benchmarks replaced by one of them."""
    runs, requests, found_flags, used = {}, {}, list(flags), dict[Key, None]()
    for position, document in enumerate(documents):
        fields, keys = _fields(document, layout)
        run_id = fields.setdefault("run_id", identity(TOOL, sha256, position))
        if run_id in runs:
            text = "holds a run twice; the first one counts"
            found_flags.append(Flag("repeated_in_file", "warns", text, run_id))
            continue
        used |= dict.fromkeys(keys)
        shared, unknown = _labels(document, layout.labels)
        used |= {layout.labels: None} if shared and layout.labels else {}
        fields, nothing = outcomes.of_completed(fields)
        fields = {"spec_state": SpecState.UNKNOWN, **fields, **shared}
        fields |= {"source_sha256": sha256, "tool": TOOL, "tool_version": version}
        fields |= {"zone_known": zone_known, "extra": _extra(document, layout, unknown)}
        run, dropped = build_run(fields)
        runs[run_id] = run
        found_flags += [*nothing, *dropped, *checks.inspect(run)]
        table = _requests(as_dict(at(document, layout.requests))) if layout.requests else None
        if table is not None:
            requests[run_id] = table
            found_flags += _sampled(table, run_id, run.completed)
    return Findings(
        TOOL, version, why, tuple(runs.values()), requests, tuple(found_flags), keys=tuple(used)
    )


def _fields(document: Mapping[str, Any], layout: Layout) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """The fields that the layout's keys find, and the keys used."""
    plain = [k for k in layout.keys if k.field not in _CONVERTED]
    found, taken = take(document, plain)
    used = list(taken)
    for key in layout.keys:
        convert = _CONVERTED.get(key.field)
        if convert is None or key.field in found:
            continue
        value = convert(at(document, key.path))
        if value is not None and key.note == PRODUCT_NOTE:
            value = outcomes.product(value, found.get("completed"))
        if value is not None:
            found[key.field] = value if key.note != SUM_NOTE else round(value)
            used.append(key)
    left_out = set()
    if found.get("load_kind") is not LoadKind.REQUEST_RATE:
        left_out.add("achieved_load")
    if "slo" not in found:
        left_out.add("goodput_rps")
    kept = {name: value for name, value in found.items() if name not in left_out}
    return kept, tuple(k for k in used if k.field not in left_out)


def _run_id(value: object) -> str | None:
    written = as_text(value)
    return identity(TOOL, written) if written else None


def _started(value: object) -> datetime | None:
    """Epoch seconds; or a local time without a zone, kept as if UTC."""
    seconds = as_number(value)
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC)
        return datetime.strptime(as_text(value) or "", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _load_kind(strategy: object) -> LoadKind | None:
    kind = as_dict(strategy).get("type_")
    return _KINDS.get(kind) if isinstance(kind, str) else None


def _offered(strategy: object) -> float | None:
    """The item's own strategy decides: a report's profile may list other loads."""
    held = as_dict(strategy)
    kind = held.get("type_")
    if kind == "synchronous":
        return 1.0
    if kind == "throughput":
        return math.inf
    if kind == "concurrent":
        streams = as_count(held.get("streams"))
        return None if streams is None else float(streams)
    return as_number(held.get("rate")) if kind in ("constant", "poisson") else None


def _slo(value: object) -> str | None:
    limits = {k: v for k, v in as_dict(value).items() if v is not None}
    return ", ".join(f"{k}={v}" for k, v in sorted(limits.items()))[:200] or None


def _dataset(data: object) -> str | None:
    """Name of the data set: its source where it has one, else its kind or how it is written."""
    first = (as_list(data) or [data])[0]
    if isinstance(first, str):
        return as_text(first)
    keys = ("source", "path", "dataset", "name", "kind")
    return next((text for key in keys if (text := as_text(as_dict(first).get(key)))), None)


_CONVERTED: Mapping[str, Callable[[object], Any]] = {
    "run_id": _run_id,
    "started_at": _started,
    "load_kind": _load_kind,
    "offered_load": _offered,
    "slo": _slo,
    "dataset": _dataset,
    "input_tokens": as_number,
    "output_tokens": as_number,
}


def labels_key(*path: str) -> Key:
    """Where a user's labels stand: they may name any field of the set-up."""
    return Key("spec_state", path, note="and any field of the set-up that a label names")


def _labels(
    document: Mapping[str, Any], key: Key | None
) -> tuple[dict[str, Any], dict[str, object]]:
    """Fields that the user's labels state, and the labels that were not understood."""
    found: dict[str, Any] = {}
    unknown = {}
    labels = as_dict(at(document, key.path)) if key else {}
    for name, value in labels.items():
        if fields := stated(name, value):
            found |= fields
        else:
            unknown[f"label {name}"] = value
    return settled(found), unknown


def _extra(document: Mapping[str, Any], layout: Layout, labels: Mapping[str, object]) -> str | None:
    kept = {name: at(document, path) for name, path in (layout.extra or {}).items()}
    cut_off = as_count(kept.get("incomplete")) or 0
    kept["incomplete"] = cut_off if 0 < cut_off <= LARGEST_COUNT else None
    warnings = [as_dict(w).get("message") for w in as_list(kept.get("warnings"))]
    return redaction.extra({**labels, **kept, "warnings": warnings or None})


def _requests(requests: Mapping[str, Any]) -> pa.Table | None:
    """Per-request table of the successful and errored requests; those cut off at the end are not.

    GuideLLM's inter-token latency of a request is its TPOT here, as in the aggregates.
    """
    good, bad = (as_list(requests.get(k)) for k in ("successful", "errored"))
    rows = [as_dict(r) for r in (*good, *bad)]
    if not good:
        return None
    start = "request_start_time" if "request_start_time" in rows[0] else "start_time"
    factors = {
        "start_s": (start, 1.0),
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
