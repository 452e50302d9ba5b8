"""Reports of inference-perf (kubernetes-sigs): one file a stage, one stage a run.

Latencies are in seconds. A report names neither model nor GPU nor speculation: the configuration
and the manifests beside it do. Time per output token excludes the first token (last - first token
time over tokens - 1), as the canonical TPOT does; inter-token latency is the gap between tokens as
they arrived, zero within a streamed chunk.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.results import checks, redaction
from lib.results.findings import LARGEST_COUNT, Beside, Findings, Flag, Key, build_run, identity
from lib.results.keys import at, latency_keys, take
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, counted, flat
from lib.results.server_args import engine_name
from lib.run import LoadKind, Run

TOOL = "inference-perf"
TITLE = "inference-perf"
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_LATENCY = ("successes", "latency")
_LOAD = ("load_summary",)
_THROUGHPUT = ("successes", "throughput")
_STAGE = (
    Key("num_prompts", (*_LOAD, "count")),
    Key("completed", ("successes", "count")),
    Key("failed", ("failures", "count")),
    Key("output_tps", (*_THROUGHPUT, "output_tokens_per_sec")),
    Key("request_rps", (*_THROUGHPUT, "requests_per_sec")),
    Key(
        "output_len",
        ("successes", "output_len", "mean"),
        note="by the client; times completed, the output tokens",
    ),
    *(
        key
        for name, metric, note in (
            ("ttft", "time_to_first_token", ""),
            ("tpot", "time_per_output_token", "without the first token"),
            ("itl", "inter_token_latency", "gaps between arrivals, many of them zero"),
            ("e2e", "request_latency", ""),
        )
        for key in latency_keys(
            name, (*_LATENCY, metric), _STATISTICS, factor=1e3, unit="s", note=note
        )
    ),
)
_RATE = (
    Key("offered_load", (*_LOAD, "requested_rate"), unit="requests/s"),
    Key("achieved_load", (*_LOAD, "achieved_rate"), unit="requests/s"),
)
_CONCURRENCY = (Key("offered_load", (*_LOAD, "concurrency"), note="concurrent stages"),)
_OLD = (Key("input_len", ("successes", "prompt_len", "mean")),)
_NEW = (
    Key("duration_s", ("benchmark_time_seconds",)),
    Key("goodput_rps", ("successes", "goodput_metrics", "request_goodput")),
    Key("input_len", ("successes", "prompt_tokens", "mean")),
    Key("input_len", ("successes", "prompt_len", "mean")),
    Key("input_tokens", ("successes", "prompt_tokens", "total")),
    Key(
        "retokenized_tokens",
        ("successes", "output_tokens", "total"),
        note="the server's count, where the rates and latencies rest on the client's",
    ),
)
_CONFIG = (
    Key("target", ("server", "model_name")),
    Key("engine", ("server", "type"), note="whose metrics it reads"),
    Key("dataset", ("data", "type")),
    *(
        Key(field, ("data", *path, "mean"), note="random and synthetic data")
        for field, path in (
            ("input_len", ("input_distribution",)),
            ("output_len", ("output_distribution",)),
        )
    ),
    Key("output_len", ("data", "shared_prefix", "output_len")),
)
_FOLLOWS = (
    Key("load_kind", _LOAD, note="concurrency where it is written, else request rate"),
    Key("output_tokens", ("successes", "output_len", "mean"), note="times completed"),
    Key("token_count", ("successes", "output_len"), note="client"),
)
_NEW_FOLLOWS = (
    Key(
        "output_tokens", ("successes", "output_tokens", "total"), note="where the rate rests on it"
    ),
    Key("token_count", ("successes", "output_tokens"), note="server, where the rate rests on it"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    "before 0.7": (*_STAGE, *_OLD, *_RATE, *_CONCURRENCY, *_FOLLOWS),
    "0.7": (*_STAGE, *_NEW, *_RATE, *_CONCURRENCY, *_FOLLOWS, *_NEW_FOLLOWS),
    "config.yaml": _CONFIG,
}
_UNDERSTOOD = {
    "load_summary": {"count", "send_duration", "requested_rate", "achieved_rate", "concurrency"},
    "successes": {"count", "latency", "throughput", "output_len", "prompt_len", "prompt_tokens"},
}
_MEDIA = ("image", "video", "audio")
_LOAD_KEYS = {"stages", "sweep", "interval", "num_workers", "worker_max_concurrency"}
_SAME = 0.005  # two counts of tokens are one where they agree within half a percent
_TPOT_LIMIT = 1.25


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON or YAML values are a report, configuration or by-product of inference-perf."""
    return _kind(values) != ""


def _kind(values: Sequence[object]) -> str:
    items = flat(values[:1])
    first = as_dict(items[0]) if items else {}
    if {"load_summary", "successes", "failures"} <= first.keys():
        return _report_kind(first) if len(values) == 1 else ""
    if {"start_time", "end_time", "error"} <= first.keys() and {"info", "request"} & first.keys():
        return "requests"
    if len(values) != 1:
        return ""
    load, server = as_dict(first.get("load")), as_dict(first.get("server"))
    if _LOAD_KEYS & load.keys() and {"base_url", "model_name", "type"} & server.keys():
        return "config"
    reports = [as_dict(r) for r in as_dict(first.get("reports")).values()]
    groups = [as_dict(first.get("global")), *reports]
    if {"global", "reports"} == first.keys() and all(
        {"warnings", "errors"} <= g.keys() for g in groups
    ):
        return "validation"
    return ""


def _report_kind(report: Mapping[str, Any]) -> str:
    load = as_dict(report.get("load_summary"))
    successes = as_dict(report.get("successes"))
    if not ({"latency", "throughput"} & successes.keys()) and (not load or "rate" in successes):
        return "prometheus"
    staged = {"requested_rate", "achieved_rate", "send_duration", "concurrency"} & load.keys()
    return "stage" if staged else "summary"


_NOT_A_RUN = {
    "summary": (
        "not_a_run",
        "all stages of inference-perf in one, no single load; import stage_N_lifecycle_metrics",
    ),
    "prometheus": (
        "not_a_run",
        "the server's own metrics, over a window that holds more than the stage; import "
        "stage_N_lifecycle_metrics",
    ),
    "requests": (
        "not_a_run",
        "requests of all stages without their stage; import stage_N_lifecycle_metrics",
    ),
    "validation": (
        "sidecar",
        "inference-perf's checks of its own reports; import stage_N_lifecycle_metrics",
    ),
    "config": ("sidecar", "inference-perf's configuration; import its stage files with it"),
}


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """The run of a stage's report; of anything else what it is, and what a configuration states."""
    kind = _kind(values)
    document = as_dict(flat(values[:1])[0])
    if kind == "stage":
        return _stage(document, sha256)
    code, text = _NOT_A_RUN[kind]
    flags = [Flag(code, "warns", f"{name}: {text}")]
    if kind == "config":
        return _config(document, flags)
    if kind == "validation":
        flags += _validation(name, document)
    level = "0.7" if kind == "validation" else _level(document)
    return Findings(TOOL, level, f"inference-perf: {kind}", (), flags=tuple(flags))


def _level(report: Mapping[str, Any]) -> str:
    return "0.7" if "benchmark_time_seconds" in report else "before 0.7"


def _stage(report: Mapping[str, Any], sha256: str) -> Findings:
    level = _level(report)
    concurrency = as_count(at(report, (*_LOAD, "concurrency")))
    load = _CONCURRENCY if concurrency else _RATE
    fields, keys = take(report, (*_STAGE, *(_NEW if level == "0.7" else _OLD), *load))
    kind = LoadKind.CONCURRENCY if concurrency else LoadKind.REQUEST_RATE
    fields |= _tokens(report, fields)
    fields |= {
        "run_id": run_id(fields, sha256),
        "source_sha256": sha256,
        "tool": TOOL,
        "tool_version": level,
        "load_kind": kind if "offered_load" in fields else None,
        "extra": _extra(report),
    }
    run, flags = build_run(fields)
    odd = _odd(report, run)
    judged = checks.inspect(run)
    if any(
        f.code == "tpot_understated" for f in odd
    ):  # a chunk's tokens by that TPOT are wrong too
        judged = tuple(f for f in judged if f.code != "chunked_itl")
    flags = (*flags, *judged, *odd)
    why = "load_summary, successes and failures of one stage"
    return Findings(TOOL, level, why, (run,), flags=flags, keys=keys)


def run_id(fields: Mapping[str, Any], sha256: str) -> str:
    """The id of a stage, from numbers that its report and a benchmark report of it both hold.

    A report has neither an id nor a time of its own.
    """
    names = ("completed", "output_tps", "request_rps", "e2e_ms_mean", "ttft_ms_mean")
    numbers = [fields.get(name) for name in names]
    if None in numbers[:4]:
        return identity(TOOL, sha256, 0)
    return identity(TOOL, *(None if n is None else f"{n:.9g}" for n in numbers))


def _tokens(report: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Both counts of the output tokens, and which of them the rate rests on.

    The client counts again what it received; 0.7 reports the server's own count as well and, if
    told to, computes with it.
    """
    completed, length = fields.get("completed"), fields.get("output_len")
    client = tokens_of(completed, length)
    server = fields.get("retokenized_tokens")
    fallbacks = as_count(at(report, ("successes", "client_fallback_requests", "output")))
    if server is None or fallbacks != 0:
        return {"output_tokens": client, "token_count": "client", "retokenized_tokens": None}
    duration, rate = fields.get("duration_s"), fields.get("output_tps")
    counted_with = duration * rate if duration and rate else None
    by_server = _close(counted_with, server) and not _close(counted_with, client)
    first, second = (server, client) if by_server else (client, server)
    if first is None:
        return {"output_tokens": server, "token_count": "server", "retokenized_tokens": None}
    return {
        "output_tokens": first,
        "token_count": "server" if by_server else "client",
        "retokenized_tokens": second,
    }


def tokens_of(requests: int | None, mean: float | None) -> int | None:
    """The tokens of so many requests of that mean length, which was made from their sum."""
    if requests is None or mean is None or not 0 <= requests * mean <= LARGEST_COUNT:
        return None
    return round(requests * mean)


def _close(one: float | None, other: float | None) -> bool:
    return bool(one and other) and abs(float(one or 0) / float(other or 1) - 1) <= _SAME


def _odd(report: Mapping[str, Any], run: Run) -> list[Flag]:
    """What only this tool's reports can have wrong."""
    found = []
    e2e, ttft, tpot, length = (
        *(run.e2e_ms_mean, run.ttft_ms_mean, run.tpot_ms_mean),
        run.output_len,
    )
    if e2e and ttft and tpot and length and length > 2 and e2e > ttft:
        decode = (e2e - ttft) / (length - 1)
        if decode / tpot > _TPOT_LIMIT:
            text = (
                f"time per output token is stated {1 - tpot / decode:.0%} too low: {tpot:.3g} ms, "
                f"while the same file's (end-to-end - TTFT) / (tokens - 1) is {decode:.3g} ms, "
                "which is the one to compare; older versions counted one token too many in each "
                "streamed chunk, and most so where a chunk holds one token (off)"
            )
            found.append(Flag("tpot_understated", "warns", text, run.run_id))
    mismatched = as_count(at(report, ("successes", "token_count_mismatches")))
    if mismatched:
        text = f"{counted(mismatched, 'request')} with another token count at the server"
        found.append(Flag("token_mismatch", "warns", text, run.run_id))
    return found


def _extra(report: Mapping[str, Any]) -> str | None:
    left: dict[str, object] = {}
    for group, understood in _UNDERSTOOD.items():
        for key, value in as_dict(report.get(group)).items():
            silent = key in _MEDIA and not as_number(at(value, ("count", "mean")))
            if key not in understood and value is not None and not silent:
                left[f"{group} {key}"] = value
    send = at(report, (*_LOAD, "send_duration"))
    left["send_duration"] = as_number(send)
    left["failures by_label"] = as_dict(at(report, ("failures", "by_label"))) or None
    left["retries"] = report.get("retries")
    return redaction.extra(left)


def _validation(name: str, document: Mapping[str, Any]) -> list[Flag]:
    groups = [as_dict(document.get("global")), *as_dict(document.get("reports")).values()]
    errors = sum(len(as_list(as_dict(group).get("errors"))) for group in groups)
    if not errors:
        return []
    text = f"{name}: the tool found {counted(errors, 'error')} in its own reports"
    return [Flag("reports_inconsistent", "warns", text)]


def _config(config: Mapping[str, Any], flags: list[Flag]) -> Findings:
    fields, keys = take(config, _CONFIG)
    prefix = as_dict(at(config, ("data", "shared_prefix")))
    lengths = [as_number(prefix.get(k)) for k in ("system_prompt_len", "question_len")]
    if lengths[0] is not None and lengths[1] is not None:
        fields.setdefault("input_len", lengths[0] + lengths[1])
    path = as_text(at(config, ("data", "path")))
    if path and "dataset" in fields:
        fields["dataset"] = f"{fields['dataset']} {path.rpartition('/')[2]}"
    engine = engine_name(fields.pop("engine", None))
    if engine is not None:
        fields["engine"] = engine
    beside = Beside(tools=(TOOL, "llm-d-benchmark"), fields=fields) if fields else None
    why = "load and server of inference-perf's configuration"
    return Findings(TOOL, "config.yaml", why, (), flags=tuple(flags), keys=keys, beside=beside)
