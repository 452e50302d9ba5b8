"""GuideLLM's CSV of 0.4 and later: three header rows (group, status and unit, statistic).

A line gives the same run id as the benchmark of the JSON report that was written with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.results.findings import Findings, Flag, Key, identity
from lib.results.keys import at, latency_keys
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.results.tools import guidellm_shifted
from lib.results.tools.guidellm import unrecognised
from lib.results.tools.guidellm_runs import (
    LOAD_NOTE,
    PRODUCT_NOTE,
    RATE_NOTE,
    TOOL,
    TPOT_NOTE,
    Layout,
    findings,
    labels_key,
)
from lib.results.tools.literals import opened

__all__ = ["HEADER_ROWS", "LEVELS", "TITLE", "TOOL", "find_rows", "recognise_rows"]

TITLE = "GuideLLM CSV"
HEADER_ROWS = 3
V2, V1 = "0.7 and later (metadata version 2)", "0.4 to 0.6 (metadata version 1 or none)"
PERCENTILES = (
    *("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max"),
)  # the list that a cell holds
STATISTICS = {
    "mean": "Mean",
    "p50": "Median",
    **{p: ("Percentiles", p) for p in ("p90", "p95", "p99")},
}
_STRATEGY = ("Benchmark", "Strategy")
_ARGUMENTS = ("Runtime Info", "Arguments")
_COUNTS = "Request Counts"

_KEYS = (
    Key("run_id", ("Benchmark", "ID"), note="hashed"),
    Key("load_kind", _STRATEGY, note="its name"),
    Key("offered_load", _STRATEGY, note=f"{LOAD_NOTE}; in full from Run Info, Profile"),
    Key("num_prompts", (_COUNTS, "Total"), note="those cut off at the end included"),
    Key("completed", (_COUNTS, "Successful")),
    Key("failed", (_COUNTS, "Errored")),
    Key("started_at", ("Timings", "Request Start Time"), note="local time, zone unknown"),
    Key("duration_s", ("Timings", "Duration", "Sec")),
    *latency_keys("ttft", ("Time to First Token", "Successful ms"), STATISTICS),
    *latency_keys("tpot", ("Inter Token Latency", "Successful ms"), STATISTICS, note=TPOT_NOTE),
    *latency_keys("e2e", ("Request Latency", "Successful Sec"), STATISTICS, factor=1e3, unit="s"),
    Key("input_len", ("Token Metrics", "Successful Input Tokens", "Mean")),
    Key("output_len", ("Token Metrics", "Successful Output Tokens", "Mean")),
    Key("input_tokens", ("Token Metrics", "Successful Input Tokens", "Mean"), note=PRODUCT_NOTE),
    Key("output_tokens", ("Token Metrics", "Successful Output Tokens", "Mean"), note=PRODUCT_NOTE),
    Key("output_tps", ("Token Throughput", "Successful Output Tokens/Sec", "Mean")),
    Key("request_rps", ("Server Throughput", "Successful Requests/Sec", "Mean")),
    Key("achieved_load", ("Server Throughput", "Successful Requests/Sec", "Mean"), note=RATE_NOTE),
    Key("running_mean", ("Server Throughput", "Successful Concurrency", "Mean")),
    Key("target", ("Run Info", "Backend", "model")),
)


def _sampling(*path: str) -> tuple[Key, ...]:
    body = (*path, "extras", "body")
    return (Key("temperature", (*body, "temperature")), Key("top_p", (*body, "top_p")))


_BY_LEVEL: Mapping[str, tuple[Key, ...]] = {
    V2: (
        *_KEYS,
        Key("target", (*_ARGUMENTS, "spec", "backend", "model")),
        Key("dataset", (*_ARGUMENTS, "spec", "data"), note="source of the first, else its kind"),
        *_sampling("Run Info", "Backend"),
        Key("seed", (*_ARGUMENTS, "spec", "seed", "value")),
    ),
    V1: (
        *_KEYS,
        Key("target", (*_ARGUMENTS, "model")),
        Key("target", (*_ARGUMENTS, "backend_kwargs", "model"), note="0.6"),
        Key("dataset", (*_ARGUMENTS, "data"), note="the first one, as written"),
        *_sampling(*_ARGUMENTS, "backend_kwargs"),
        Key("seed", (*_ARGUMENTS, "random_seed")),
    ),
}
_LABELS = labels_key(*_ARGUMENTS, "metadata", "labels")
LEVELS: Mapping[str, tuple[Key, ...]] = {**_BY_LEVEL, V2: (*_BY_LEVEL[V2], _LABELS)}
_EXTRA = {
    "incomplete": (_COUNTS, "Incomplete"),
    "output_tokens_per_iteration": ("Token Streaming", "Successful Output Tokens/Iter", "Mean"),
    "run_id": ("Run Info", "Run ID"),
    "run_index": ("Run Info", "Run Index"),
    "strategy": _STRATEGY,
    "constraints": ("Benchmark", "Constraints"),
}
_LAYOUTS = {
    V2: Layout(_BY_LEVEL[V2], _LABELS, _EXTRA),
    V1: Layout(_BY_LEVEL[V1], extra=_EXTRA),
}


def recognise_rows(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are GuideLLM's CSV with three header rows, of whichever level."""
    pairs = set(zip(*rows[:2], strict=False)) if len(rows) > 2 else set()
    return {("Benchmark", "Strategy"), ("Run Info", "Run ID")} <= pairs


def find_rows(name: str, rows: Sequence[Sequence[str]], sha256: str) -> Findings:
    """Runs of the lines. Raises UnknownFormat for another level's layout, or without a line."""
    headers = list(zip(*rows[:HEADER_ROWS], strict=False))
    lines = [list(row) for row in rows[HEADER_ROWS:]]
    metadata = (
        as_dict(at(document(headers, lines[0]), ("Runtime Info", "Metadata"))) if lines else {}
    )
    version = as_count(metadata.get("version"))
    if not lines or version not in (None, 1, 2) or (version is None and metadata):
        raise unrecognised(name, metadata, dict.fromkeys(rows[0]))
    level = V2 if version == 2 else V1
    documents, flags = [], []
    for number, line in enumerate(lines):
        found, flag = _aligned(headers, line, lines[0], number + HEADER_ROWS + 1, level)
        found["Benchmark"] = as_dict(found.get("Benchmark")) | {"Strategy": _strategy(found)}
        documents.append(found)
        flags += flag
    return findings(
        as_text(metadata.get("guidellm_version")) or "0.4",
        f"CSV with GuideLLM's three header rows, {level}",
        _LAYOUTS[level],
        documents,
        sha256,
        zone_known=False,
        flags=flags,
    )


def document(headers: Sequence[Sequence[str]], line: Sequence[str]) -> dict[str, Any]:
    """A line as nested objects: group, name, statistic. Of columns with one name the first counts.

    A cell with JSON is opened, a list of percentiles becomes an object.
    """
    found: dict[str, Any] = {}
    for (group, name, statistic), cell in zip(headers, line, strict=False):
        names = found.setdefault(group, {})
        if not statistic:
            names.setdefault(name, opened(cell))
            continue
        statistics = names.setdefault(name, {})
        if isinstance(statistics, dict):
            value = percentiles(cell) if statistic == "Percentiles" else cell
            statistics.setdefault(statistic, value)
    return found


def percentiles(cell: str) -> dict[str, object]:
    """The percentiles of a cell's list by name."""
    return dict(zip(PERCENTILES, as_list(opened(cell)), strict=False))


def _aligned(
    headers: Sequence[Sequence[str]],
    line: list[str],
    first: Sequence[str],
    number: int,
    level: str,
) -> tuple[dict[str, Any], list[Flag]]:
    """The line's document. Until 0.6 the headers are those of the first benchmark's columns alone.

    A later one has columns more or fewer where its requests were cut off or failed otherwise.
    """
    found = document(headers, line)
    fits = len(line) == len(headers)
    if fits and (level == V2 or _statuses(found) == _statuses(document(headers, first))):
        return found, []
    found, complete = guidellm_shifted.realigned(headers, line, document)
    way = "found by the sums they obey" if complete else "not all found, the rest is left empty"
    text = (
        f"line {number} has other columns than the headers name (a fault of GuideLLM 0.5 and 0.6); "
        f"values {way}; import the JSON report instead"
    )
    written = as_text(at(found, ("Benchmark", "ID")))
    run_id = identity(TOOL, written) if written else None
    return found, [Flag("columns_shifted", "warns", text, run_id)]


def _statuses(found: Mapping[str, Any]) -> tuple[bool, ...]:
    counts = as_dict(found.get(_COUNTS))
    return tuple(bool(as_count(counts.get(s))) for s in ("Successful", "Incomplete", "Errored"))


def _strategy(found: Mapping[str, Any]) -> dict[str, Any]:
    """The strategy as the JSON writes it, from its name and the profile.

    0.8 writes `concurrent@8`, `constant@2.00` with two decimals: the profile's list gives the rate
    in full where one of its rates rounds to what is printed. Earlier versions write the name alone;
    the profile then lists the strategies, one a run index.
    """
    profile = as_dict(at(found, ("Run Info", "Profile")))
    kind, _, printed = (as_text(at(found, _STRATEGY)) or "").partition("@")
    if printed:
        load = as_number(printed)
        rates = [as_number(r) for r in as_list(profile.get("rate"))]
        exact = [r for r in rates if r is not None and load is not None and abs(r - load) <= 0.005]
        return {"type_": kind, "streams": load, "rate": exact[0] if exact else load}
    index = as_count(at(found, ("Run Info", "Run Index")))
    held = as_list(profile.get("completed_strategies"))
    own = as_dict(held[index]) if index is not None and 0 <= index < len(held) else {}
    return own if own.get("type_") == kind else {"type_": kind}
