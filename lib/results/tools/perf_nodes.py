"""The nodes that GenAI-Perf and AIPerf write: one a metric, with its unit and its statistics.

Both tools write them as JSON and as a CSV of several blocks. Either is brought to one document of
nodes in fixed units, so both forms of a run give the same fields and, by its content, the same id.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lib.results import checks
from lib.results.findings import Findings, Flag, Key, identity, shorten
from lib.results.keys import latency_keys
from lib.results.parsing import as_count, as_dict, as_number, as_text
from lib.run import LoadKind, Run

Node = dict[str, Any]
Rows = Sequence[Sequence[str]]

_STATISTICS = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_HELD = (*_STATISTICS.values(), "min", "max", "sum", "count")
_SECOND = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
}
_PER_SECOND = ("sec", "s", "second")
# unit that a run wants → unit as written → factor
_UNITS: Mapping[str, Mapping[str, float]] = {
    "ms": {written: round(factor * 1e3, 12) for written, factor in _SECOND.items()},
    "s": _SECOND,
    "tokens/s": dict.fromkeys(
        ("per sec", *(f"{w}{u}" for w in ("tokens/", "tokens per ") for u in _PER_SECOND)), 1.0
    ),
    "requests/s": dict.fromkeys(
        ("per sec", *(f"{w}{u}" for w in ("requests/", "requests per ") for u in _PER_SECOND)), 1.0
    ),
    "count": dict.fromkeys(("", "tokens", "requests", "count"), 1.0),
    "mean": dict.fromkeys(("", "tokens", "requests", "count", "ratio"), 1.0),
    "share": {"%": 0.01, "percent": 0.01, "ratio": 1.0},
    "W": {"W": 1.0, "kW": 1e3, "mW": 1e-3},
    "J": {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "mJ": 1e-3, "Wh": 3600.0},
    "GiB": {"GB": 1e9 / 2**30, "MB": 1e6 / 2**30, "GiB": 1.0, "MiB": 1 / 1024},
}
# metric → the unit wanted, and its name in the CSV where the metric's own name does not give it
_METRICS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("request_latency", "time_to_first_token"),
            *("inter_token_latency", "inter_chunk_latency"),
        ),
        ("ms", ""),
    ),
    "benchmark_duration": ("s", ""),
    "output_token_throughput": ("tokens/s", ""),
    "request_throughput": ("requests/s", ""),
    "goodput": ("requests/s", ""),
    "request_goodput": ("requests/s", ""),
    "request_count": ("count", ""),
    "error_request_count": ("count", ""),
    "completed_request_count": ("count", "completed requests (success + error)"),
    "input_sequence_length": ("mean", ""),
    "output_sequence_length": ("mean", ""),
    "total_isl": ("count", "total input sequence length"),
    "total_osl": ("count", "total output sequence length"),
    "usage_completion_tokens": ("mean", ""),
    "total_usage_completion_tokens": ("count", ""),
    "effective_concurrency": ("mean", ""),
    "spec_decode_acceptance_length": ("mean", "acceptance length"),
    "spec_decode_token_weighted_acceptance_length": ("mean", "token-weighted acceptance length"),
    "spec_decode_draft_acceptance_rate": ("share", "draft acceptance rate"),
    "spec_decode_overall_draft_acceptance_rate": ("share", "overall draft acceptance rate"),
    "spec_decode_steps": ("count", ""),
    "spec_decode_accepted_draft_tokens": ("count", "accepted draft tokens"),
    "spec_decode_draft_tokens": ("count", "draft tokens"),
    "total_spec_decode_steps": ("count", ""),
    "total_accepted_draft_tokens": ("count", ""),
    "total_draft_tokens": ("count", ""),
    "total_gpu_power": ("W", ""),
    "total_gpu_energy": ("J", ""),
}
_BY_NAME = {written or tag.replace("_", " "): tag for tag, (_, written) in _METRICS.items()}
_CORE = ("request_latency", "request_throughput", "output_token_throughput")
_NAME = re.compile(r"(.+?)\s*\(([^()]*)\)")
_GROUPS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_AS_WRITTEN = "its unit is read"

MEASURED_KEYS = (
    *latency_keys("ttft", ("time_to_first_token",), _STATISTICS, note=_AS_WRITTEN),
    *latency_keys(
        "tpot",
        ("inter_token_latency",),
        _STATISTICS,
        note="a request's decode time over n - 1 tokens",
    ),
    *latency_keys("e2e", ("request_latency",), _STATISTICS, note=_AS_WRITTEN),
    Key("output_tps", ("output_token_throughput", "avg"), note="never the rate per user"),
    Key("request_rps", ("request_throughput", "avg")),
    Key("completed", ("request_count", "avg")),
    Key("input_len", ("input_sequence_length", "avg"), note="as the client counts"),
    Key("output_len", ("output_sequence_length", "avg"), note="as the client counts"),
    Key("output_tokens", ("total_osl", "avg"), note="as the client counts"),
    Key("output_tokens", ("output_sequence_length", "sum"), note="as the client counts"),
    Key("duration_s", ("benchmark_duration", "avg")),
)


@dataclass(frozen=True)
class Nodes:
    """A document's metrics in fixed units: what no field takes is `left`, with what was wrong."""

    document: Mapping[str, Node]
    left: Mapping[str, object]
    unknown_units: tuple[str, ...] = ()

    def flags(self, run_id: str) -> tuple[Flag, ...]:
        """What a person should know of the metrics that could not be converted."""
        if not self.unknown_units:
            return ()
        text = f"{shorten(self.unknown_units)}: a unit that is not known, left empty"
        return (Flag("unknown_unit", "warns", text, run_id),)

    def value(self, metric: str, statistic: str = "avg") -> float | None:
        """A statistic of a metric, in the unit that a run wants."""
        return as_number(self.document.get(metric, {}).get(statistic))


def is_node(value: object) -> bool:
    """Whether a JSON value is a metric with its unit."""
    node = as_dict(value)
    return isinstance(node.get("unit"), str) and as_number(node.get("avg")) is not None


def has_metrics(document: Mapping[str, object]) -> bool:
    """Whether a JSON object has at its top one of the metrics that every export has."""
    return any(is_node(document.get(metric)) for metric in _CORE)


def nodes(document: Mapping[str, object]) -> Nodes:
    """The metrics at the top of a JSON export."""
    found: dict[str, Node] = {}
    left: dict[str, object] = {}
    unknown = []
    for metric, value in document.items():
        if not isinstance(value, dict) or not value.keys() & {"avg", "unit"}:
            continue
        wanted = _METRICS.get(metric, ("", ""))[0]
        if not wanted:
            left[metric] = {"avg": as_number(value.get("avg")), "unit": as_text(value.get("unit"))}
            continue
        factor = unit_factor(wanted, value.get("unit"))
        if factor is None:
            unknown.append(f"{metric} in {as_text(value.get('unit')) or 'no unit'}")
            left[metric] = {"avg": as_number(value.get("avg")), "unit": as_text(value.get("unit"))}
        else:
            found[metric] = _converted(value, factor)
    return Nodes(found, left, tuple(unknown))


def unit_factor(wanted: str, written: object) -> float | None:
    """The factor from a unit as it is written; None where it is none of that kind."""
    if not isinstance(written, str):
        return None
    known, text = _UNITS[wanted], written.strip()
    return known.get(text, known.get(text.casefold()))


def _converted(node: Mapping[str, object], factor: float) -> Node:
    read = {s: as_number(node.get(s)) for s in _HELD}
    found = {s: n * factor for s, n in read.items() if n is not None and s != "count"}
    return {s: n for s, n in found.items() if math.isfinite(n)} | {"count": read["count"]}


def content_id(tool: str, found: Nodes) -> str | None:
    """A run's id by what every form of its results says, at two decimals as the CSV prints.

    None where too little is said to tell runs apart.
    """
    latencies = [
        _printed(found.value(metric, statistic))
        for metric in ("request_latency", "time_to_first_token", "inter_token_latency")
        for statistic in ("avg", "min", "max")
    ]
    counts = [found.value(m) for m in ("input_sequence_length", "output_sequence_length")]
    completed = as_count(found.value("request_count"))
    if not completed or all(text is None for text in latencies):
        return None
    return identity(tool, completed, *latencies, *map(_printed, counts))


def _printed(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def blocks(rows: Rows) -> tuple[dict[str, object], list[dict[str, str]]]:
    """A CSV's metrics as a JSON export has them, and the rows of its GPU table."""
    metrics: dict[str, object] = {}
    gpus: list[dict[str, str]] = []
    header: Sequence[str] = ()
    for row in rows:
        if row[0] in ("Metric", "Endpoint"):
            header = row
        elif header[:1] == ["Endpoint"]:
            gpus.append(dict(zip(header, row, strict=False)))
        elif header[:2] == ["Metric", "GPU"]:
            continue
        elif header:
            metric, unit = _named(row[0])
            cells = dict(zip(header[1:], map(plain_number, row[1:]), strict=False))
            node = cells | ({"avg": cells["Value"]} if "Value" in cells else {})
            metrics.setdefault(metric, {s: v for s, v in node.items() if v} | {"unit": unit})
    return metrics, gpus


def _named(text: str) -> tuple[str, str]:
    """`Request Latency (ms)` → its metric in JSON, its unit."""
    whole = " ".join(text.split())
    if whole.casefold() in _BY_NAME:
        return _BY_NAME[whole.casefold()], ""
    match = _NAME.fullmatch(whole)
    name, unit = (match[1], match[2]) if match else (whole, "")
    # GenAI-Perf leaves the unit of tokens out.
    return _BY_NAME.get(name.casefold(), name.casefold().replace(" ", "_")), unit


def plain_number(text: str) -> str:
    """A number as the tools print it, without the commas between thousands."""
    text = text.strip()
    return text.replace(",", "") if _GROUPS.fullmatch(text) else text


def knows_rows(rows: Rows) -> bool:
    """Whether rows begin with the block of metrics that both tools write."""
    header = rows[0] if rows else []
    named = [_named(row[0])[0] for row in rows[1:60] if row]
    return [*header[:4]] == ["Metric", "avg", "min", "max"] and any(
        n in _METRICS and _METRICS[n][0] == "ms" for n in named
    )


def with_tokens(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the output tokens of all completed requests, from their mean if need be."""
    length, completed = fields.get("output_len"), fields.get("completed")
    if "output_tokens" in fields or length is None or completed is None:
        return fields
    total = length * completed
    return fields | {"output_tokens": round(total)} if math.isfinite(total) else fields


def in_flight(fields: Mapping[str, Any]) -> float | None:
    """Mean requests in flight: the sum of their latencies over the duration."""
    completed, e2e = fields.get("completed"), fields.get("e2e_ms_mean")
    duration = fields.get("duration_s")
    if not (completed and e2e and duration and duration > 0):
        return None
    mean = completed * e2e / 1e3 / duration
    return mean if math.isfinite(mean) else None


def held(kind: LoadKind, load: object, achieved: float | None) -> dict[str, Any]:
    """The load fields of what a configuration says; a rate may be infinite, a list hold one."""
    if isinstance(load, list):
        load = load[0] if len(load) == 1 else None
    number = as_number(load)
    if number is None and str(load).strip().casefold() in ("inf", "infinity"):
        number = math.inf
    if number is None or number <= 0 or (kind is LoadKind.CONCURRENCY and math.isinf(number)):
        return {}
    rate = kind is LoadKind.REQUEST_RATE
    return {"load_kind": kind, "offered_load": number} | (
        {"achieved_load": achieved} if rate else {}
    )


def limits(written: object) -> str | None:
    """The service levels of goodput as one text, `metric=ms` each."""
    stated = {k: v for k, v in as_dict(written).items() if as_number(v) is not None}
    text = ", ".join(f"{k}={as_number(v):g}" for k, v in sorted(stated.items()))
    return as_text(text[:200])


def findings_of(
    tool: str,
    version: str,
    why: str,
    name: str,
    read: Iterable[tuple[Run, Sequence[Flag], Sequence[Key]]],
) -> Findings:
    """The runs of a file's exports, each once, with their flags and the keys they were read by."""
    runs: dict[str, Run] = {}
    flags: list[Flag] = []
    keys: dict[Key, None] = {}
    for run, said, used in read:
        if run.run_id in runs:
            text = f"{name} holds a run twice"
            flags.append(Flag("repeated_in_file", "warns", text, run.run_id))
            continue
        runs[run.run_id] = run
        flags += [*said, *checks.inspect(run)]
        keys |= dict.fromkeys(used)
    return Findings(tool, version, why, tuple(runs.values()), flags=tuple(flags), keys=tuple(keys))
