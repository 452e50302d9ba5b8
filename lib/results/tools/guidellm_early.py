"""GuideLLM's CSV of 0.2 and 0.3: one header row of the kind "Successful Request latency mean"."""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.results.findings import Findings, Key
from lib.results.keys import latency_keys
from lib.results.parsing import as_text
from lib.results.tools.guidellm_csv import percentiles
from lib.results.tools.guidellm_runs import (
    LOAD_NOTE,
    PRODUCT_NOTE,
    RATE_NOTE,
    TOOL,
    TPOT_NOTE,
    Layout,
    findings,
)
from lib.results.tools.literals import opened

__all__ = ["LEVELS", "TITLE", "TOOL", "find_rows", "recognise_rows"]

TITLE = "GuideLLM CSV of 0.2 and 0.3"
_LIST = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
_TELLING = {"Type", "Run Id", "Id", "Name", "Duration", "Successful Requests"}
_OPENED = {"Args", "Worker", "Request Loader"}


def _latency(name: str, metric: str, **how: Any) -> tuple[Key, ...]:
    statistics: dict[str, Sequence[str]] = {
        "mean": (f"Successful {metric} mean",),
        "p50": (f"Successful {metric} median",),
        **{p: (f"Successful {metric} {_LIST}", p) for p in ("p90", "p95", "p99")},
    }
    return latency_keys(name, (), statistics, **how)


_KEYS = (
    Key("run_id", ("Id",), note="hashed"),
    Key("load_kind", ("Args", "strategy"), note="by the strategy's type_"),
    Key("offered_load", ("Args", "strategy"), note=LOAD_NOTE),
    Key("num_prompts", ("Total Requests",), note="those cut off at the end included"),
    Key("completed", ("Successful Requests",)),
    Key("failed", ("Errored Requests",)),
    Key("started_at", ("Start Time",), note="local time, zone unknown"),
    Key("duration_s", ("Duration",)),
    *_latency("ttft", "Time to first token ms"),
    *_latency("tpot", "Inter token latency ms", note=TPOT_NOTE),
    *_latency("e2e", "Request latency", factor=1e3, unit="s"),
    Key("input_len", ("Successful Prompt token count mean",)),
    Key("output_len", ("Successful Output token count mean",)),
    Key("input_tokens", ("Successful Prompt token count mean",), note=PRODUCT_NOTE),
    Key("output_tokens", ("Successful Output token count mean",), note=PRODUCT_NOTE),
    Key("output_tps", ("Successful Output tokens per second mean",)),
    Key("request_rps", ("Successful Requests per second mean",)),
    Key("achieved_load", ("Successful Requests per second mean",), note=RATE_NOTE),
    Key("running_mean", ("Successful Request concurrency mean",)),
    Key("target", ("Worker", "backend_model")),
    Key("dataset", ("Request Loader", "data"), note="as written"),
    Key("seed", ("Args", "profile", "random_seed")),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {"0.2, 0.3": _KEYS}
_EXTRA = {
    "incomplete": ("Incomplete Requests",),
    "run_id": ("Run Id",),
    "name": ("Name",),
    "strategy": ("Args", "strategy"),
}
_LAYOUT = Layout(_KEYS, extra=_EXTRA)


def recognise_rows(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are GuideLLM's CSV with one header row."""
    return bool(rows) and set(rows[0]) >= _TELLING


def find_rows(name: str, rows: Sequence[Sequence[str]], sha256: str) -> Findings:
    """Runs of the lines."""
    documents = [
        {
            header: percentiles(cell)
            if header.endswith(_LIST)
            else opened(cell)
            if header in _OPENED
            else as_text(cell)
            for header, cell in zip(rows[0], row, strict=False)
        }
        for row in rows[1:]
    ]
    why = "CSV with GuideLLM's one header row (Run Id, Successful Requests, …), 0.2 or 0.3"
    return findings("0.2 or 0.3", why, _LAYOUT, documents, sha256, zone_known=False)
