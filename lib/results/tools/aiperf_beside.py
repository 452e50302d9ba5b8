"""What AIPerf leaves beside its summary: the server's counters, one record a request, and others.

None of them is a run. The server's counters and the records say of a run what its summary does
not; the rest is recognised so that a folder of artifacts can be imported whole.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from lib.results.findings import LARGEST_COUNT, Beside, Findings, Flag, Key
from lib.results.keys import take
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.results.tools import aiperf_records
from lib.results.tools.aiperf_records import ON, fixed_k, possible
from lib.results.tools.perf_nodes import Rows
from lib.run import SpecState

TOOL = aiperf_records.TOOL
SERVER_LEVEL = "server_metrics_export.json"
TAIL = 1.25  # gauges count where their scrapes span at most that many times the benchmark

_SUM = "sum over engines and endpoints"


def _series(name: str, statistic: str = "total") -> tuple[str, ...]:
    return "metrics", name, "series", "stats", statistic


SERVER_KEYS = (
    Key("output_tokens", _series("vllm:generation_tokens"), note=_SUM),
    Key("output_tokens", _series("sglang:generation_tokens"), note=_SUM),
    Key("drafts", _series("vllm:spec_decode_num_drafts"), note=_SUM),
    Key("draft_tokens", _series("vllm:spec_decode_num_draft_tokens"), note=_SUM),
    Key("accepted_tokens", _series("vllm:spec_decode_num_accepted_tokens"), note=_SUM),
    Key("accept_length", _series("sglang:spec_accept_length", "avg"), note="bonus token included"),
    Key("accept_rate", _series("sglang:spec_accept_rate", "avg")),
    Key("running_mean", _series("vllm:num_requests_running", "avg"), note=_SUM),
    Key("running_mean", _series("sglang:num_running_reqs", "avg"), note=_SUM),
    Key("waiting_mean", _series("vllm:num_requests_waiting", "avg"), note=_SUM),
    Key("waiting_mean", _series("sglang:num_queue_reqs", "avg"), note=_SUM),
)
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos"
SERVER_FOLLOWS = (
    Key("spec_state", _series("vllm:spec_decode_num_drafts"), note=ON),
    Key("spec_state", _series("sglang:spec_accept_length", "avg"), note="on above 1"),
    Key("accepted_per_position", _series(_PER_POSITION), note="by position"),
    Key(
        "num_speculative_tokens",
        _series("vllm:spec_decode_num_draft_tokens"),
        note="/ drafts, where it is whole",
    ),
)
_GAUGES = ("running_mean", "waiting_mean")
_RECENT = ("sglang:spec_accept_length", "sglang:spec_accept_rate")
# kind → what the file is, and what to import instead
_OTHERS = {
    "inputs": "AIPerf's prompts, no results; import profile_export_aiperf.json",
    "timeslices": "AIPerf's metrics by slice of time; import profile_export_aiperf.json",
    "aggregate": "AIPerf's summary of several runs; import profile_export_aiperf.json of each",
    "gpu samples": "AIPerf's GPU samples; their summary is in profile_export_aiperf.json",
    "server samples": "AIPerf's scrapes of the server; import server_metrics_export.json",
    "raw records": "AIPerf's raw requests and answers; import profile_export_aiperf.json",
    "server CSV": "AIPerf's server metrics as CSV; import server_metrics_export.json beside it",
    "report": "AIPerf's acceptance by category, no throughput; import "
    "profile_export_aiperf.json of each category's run",
}
_SERVER_CSV = "# AIPerf Server Metrics Export"
CATEGORIES = frozenset(
    {
        *("coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay"),
        *("stem", "summarization", "writing", "low_entropy", "mixed", "high_entropy"),
        *("gsm8k", "math500", "mtbench", "humaneval", "mbpp"),
    }
)


def kind(values: Sequence[object]) -> str | None:
    """Which of AIPerf's other files JSON values are; None for none of them."""
    first = as_dict(values[0]) if values else {}
    keys, summary = first.keys(), as_dict(first.get("summary"))
    metadata = as_dict(first.get("metadata"))
    if "request_start_ns" in metadata:
        return "records" if isinstance(first.get("metrics"), dict) else "raw records"
    if isinstance(first.get("metrics"), dict) and "aggregation_type" in metadata:
        return "aggregate"
    scraped = summary.keys() >= {"endpoints_configured", "endpoints_successful"}
    if isinstance(first.get("metrics"), dict) and scraped:
        return "server metrics"
    if keys >= {"timestamp_ns", "gpu_uuid", "telemetry_data"}:
        return "gpu samples"
    if keys >= {"timestamp_ns", "endpoint_url", "metrics"}:
        return "server samples"
    if "timeslice_index" in as_dict(next(iter(as_list(first.get("timeslices"))), None)):
        return "timeslices"
    session = as_dict(next(iter(as_list(first.get("data"))), None))
    return "inputs" if session.keys() >= {"session_id", "payloads"} else None


def find(values: Sequence[object]) -> Findings | None:
    """What a JSON file beside the summary says; None for anything else."""
    which = kind(values)
    if which is None:
        return None
    if which == "server metrics":
        return _server(as_dict(values[0]))
    if which == "records":
        return aiperf_records.find([as_dict(v) for v in values])
    return _no_run(which)


def knows_rows(rows: Rows) -> bool:
    """Whether rows are the acceptance report of `aiperf speed-bench-report`."""
    header = [cell.strip() for cell in rows[0]] if rows else []
    categories = {*header[1:]} - {"Overall"}
    return (
        header[:1] == ["Model"]
        and "Overall" in header
        and (bool(categories) and categories <= CATEGORIES)
    )


def find_rows(rows: Rows) -> Findings | None:
    """What the acceptance report is; None for other rows."""
    return _no_run("report") if knows_rows(rows) else None


def recognise_text(text: str) -> bool:
    """Whether a text is the server metrics' CSV, which begins with comments."""
    if text.startswith(_SERVER_CSV):
        return True
    header = next(csv.reader(islice(io.StringIO(text[:4096], newline=""), 1)), [])
    return header[:4] in (["Endpoint", "Type", "Metric", last] for last in ("Unit", "Labels"))


def find_text(name: str, text: str, sha256: str) -> Findings:
    """What the server metrics' CSV is: the JSON says the same in full."""
    return _no_run("server CSV")


def _no_run(which: str) -> Findings:
    flag = Flag("not_a_run", "warns", _OTHERS[which])
    return Findings(TOOL, which, f"keys of AIPerf's {which}", (), flags=(flag,))


def _server(export: Mapping[str, object]) -> Findings:
    """The server's counters over the benchmark, which both files name; a CSV goes by the folder."""
    version = as_text(export.get("aiperf_version")) or SERVER_LEVEL
    why = "keys metrics, summary of AIPerf's server metrics"
    phase = export.get("metrics_phase")
    if phase not in (None, "profiling"):
        text = f"the server's counters of the phase {as_text(phase)}, not of the measured one"
        return Findings(TOOL, version, why, (), flags=(Flag("not_a_run", "warns", text),))
    document = {"metrics": _summed(as_dict(export.get("metrics")))}
    fields, keys = take(document, SERVER_KEYS)
    if not _spans_the_benchmark(as_dict(export.get("summary"))):
        fields = {n: v for n, v in fields.items() if n not in _GAUGES}
    tokens = fields.pop("output_tokens", None)
    text = "AIPerf's counters of the server, no run: they complete the run in their folder"
    return Findings(
        TOOL,
        version,
        why,
        (),
        flags=(Flag("sidecar", "warns", text),),
        keys=tuple(k for k in keys if k.field in fields or (tokens and k.field == "output_tokens")),
        beside=Beside(
            tools=(TOOL,),
            benchmark_id=as_text(export.get("benchmark_id")) or "",
            fields=possible(_speculation(fields, as_dict(export.get("metrics")))),
            output_tokens=tokens if tokens and tokens <= LARGEST_COUNT else None,
        ),
    )


def _summed(metrics: Mapping[str, object]) -> dict[str, Any]:
    """Each metric with one series: totals of counters and means of gauges added up.

    A gauge of a recent window is a mean instead, and is left out where it was ever 0: then idle
    scrapes are in it.
    """
    found = {}
    for name, metric in metrics.items():
        stats = [as_dict(as_dict(s).get("stats")) for s in as_list(as_dict(metric).get("series"))]
        sums: dict[str, float] = {}
        for statistic, written in (("total", ("total", "delta")), ("avg", ("avg",))):
            values = [
                next((n for w in written if (n := as_number(s.get(w))) is not None), None)
                for s in stats
            ]
            known = [v for v in values if v is not None and v >= 0]
            if known and len(known) == len(values):
                sums[statistic] = sum(known) / (len(known) if name in _RECENT else 1)
        if name in _RECENT and not all((as_number(s.get("min")) or 0) > 0 for s in stats):
            sums.pop("avg", None)
        found[str(name)] = {"series": {"stats": sums}}
    return found


def _spans_the_benchmark(summary: Mapping[str, object]) -> bool:
    """Whether the gauges were scraped hardly longer than the benchmark ran."""
    profiling = as_dict(as_dict(summary.get("phase_time_ranges")).get("profiling"))
    start, end = (as_number(profiling.get(k)) for k in ("start_ns", "end_ns"))
    spans = [
        as_number(as_dict(info).get("duration_seconds"))
        for info in as_dict(summary.get("endpoint_info")).values()
    ]
    if start is None or end is None or not spans:
        return False
    return all(s is not None and s <= TAIL * (end - start) * 1e-9 for s in spans)


def _speculation(fields: dict[str, Any], metrics: Mapping[str, object]) -> dict[str, Any]:
    """The fields with what the counters tell of the arm: on, and K where it is one number."""
    if not fields.get("drafts"):
        if fields.get("accept_length"):
            return fields | {"spec_state": SpecState.ON}
        # Without drafts the counters say nothing: the server may never have got to draft.
        return {n: v for n, v in fields.items() if n in _GAUGES}
    found = fields | {"spec_state": SpecState.ON}
    if (positions := _positions(as_dict(metrics.get(_PER_POSITION)))) is not None:
        found["accepted_per_position"] = positions
    return found | fixed_k(found)


def _positions(metric: Mapping[str, object]) -> tuple[int, ...] | None:
    """Accepted tokens by position, from 0 without a gap; summed over engines and endpoints."""
    found: dict[int, int] = {}
    for series in map(as_dict, as_list(metric.get("series"))):
        position = as_count(as_dict(series.get("labels")).get("position"))
        total = as_count(as_dict(series.get("stats")).get("total"))
        if position is None or total is None or not 0 <= total <= LARGEST_COUNT:
            return None
        found[position] = found.get(position, 0) + total
    return (
        tuple(found[p] for p in range(len(found)))
        if found and sorted(found) == list(range(len(found)))
        else None
    )
