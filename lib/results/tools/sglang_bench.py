"""Results of SGLang's `bench_serving` and `bench_one_batch_server`: one JSON object a line.

Both tools append, so a file holds the runs of many days; no line has a date, so a run is known by
its content. Newer lines carry the server's launch arguments. Which server answered is told by
those alone: `backend` names the client's protocol.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lib.results import checks, per_request, redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.keys import latency_keys, take
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, counted, flat
from lib.results.tools import sglang_batch, sglang_server_info
from lib.run import LoadKind, SpecState

TOOL = "sglang-bench-serving"
TITLE = "SGLang bench_serving, bench_one_batch_server"
Record = Mapping[str, Any]

OLD, MIDDLE, NEW = "0.4.1 keys", "0.4.9 to 0.5.3 keys", "0.5.23 keys"

_NAMES = {"ttft": "ttft_ms", "tpot": "tpot_ms", "itl": "itl_ms", "e2e": "e2e_latency_ms"}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


def _latency_keys(name: str, statistics: Sequence[str]) -> tuple[Key, ...]:
    written = {s: f"{_STATISTICS[s]}_{_NAMES[name]}" for s in statistics}
    note = "per streamed chunk or per token: backend and version decide" if name == "itl" else ""
    return latency_keys(name, (), written, note=note)


_ALL = ("mean", "p50", "p90", "p95", "p99")
_OLD_KEYS = (
    Key("duration_s", ("duration",)),
    Key("completed", ("completed",)),
    Key("input_tokens", ("total_input_tokens",)),
    Key("output_tokens", ("total_output_tokens",), note="as the server counts"),
    Key("retokenized_tokens", ("total_output_tokens_retokenized",)),
    Key("output_tps", ("output_throughput",)),
    *_latency_keys("e2e", ("mean", "p50")),
    *_latency_keys("ttft", ("p50",)),
    *_latency_keys("itl", ("p50",)),
)
_LOAD_KEYS = (
    Key("offered_load", ("request_rate",), note="Infinity is no limit, trace no rate"),
    Key("offered_load", ("max_concurrency",), note="where the rate is not finite"),
)
_MIDDLE_KEYS = (
    Key("dataset", ("dataset_name",)),
    Key("request_rps", ("request_throughput",)),
    Key("running_mean", ("concurrency",), note="sum of latencies over duration"),
    Key("accept_length", ("accept_length",), note="bonus token included, since the server's start"),
    *_latency_keys("e2e", ("p90", "p99")),
    *_latency_keys("ttft", ("mean", "p99")),
    *_latency_keys("tpot", ("mean", "p50", "p99")),
    *_latency_keys("itl", ("mean", "p95", "p99")),
)
_NEW_KEYS = (
    Key("label", ("tag",)),
    Key("goodput_rps", ("request_goodput",)),
    *_latency_keys("e2e", ("p95",)),
    *_latency_keys("ttft", ("p90", "p95")),
    *_latency_keys("tpot", ("p90", "p95")),
    *_latency_keys("itl", ("p90",)),
)
_SLO_KEYS = (Key("slo", ("goodput_slos_ms",)),)
_TAKEN = (*_OLD_KEYS, *_MIDDLE_KEYS, *_NEW_KEYS)

_FOLLOWS = (
    Key("load_kind", ("request_rate",), note="request rate where it is finite, or nothing is held"),
    Key("load_kind", ("max_concurrency",), note="concurrency where the rate is not finite"),
    Key("input_len", ("total_input_tokens",), note="/ completed"),
    Key("output_len", ("total_output_tokens",), note="/ completed"),
    Key("token_count", ("total_output_tokens",), note="server"),
    Key("num_prompts", ("errors",), note="how many, with --output-details"),
    Key("failed", ("errors",), note="those that are not empty, with --output-details"),
)
_MIDDLE_FOLLOWS = (
    Key("achieved_load", ("request_throughput",), note="where a rate is held"),
    Key("spec_state", ("accept_length",), note="on where it is written"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    OLD: (*_OLD_KEYS, *_LOAD_KEYS, *_FOLLOWS),
    MIDDLE: (*_OLD_KEYS, *_LOAD_KEYS, *_MIDDLE_KEYS, *_FOLLOWS, *_MIDDLE_FOLLOWS),
    NEW: (
        *(*_TAKEN, *_LOAD_KEYS, *_SLO_KEYS, *_FOLLOWS, *_MIDDLE_FOLLOWS),
        *(*sglang_server_info.KEYS, *sglang_server_info.FOLLOWS),
    ),
    sglang_batch.LEVEL: (*sglang_batch.KEYS, *sglang_batch.FOLLOWS),
}

_ARRAYS = {
    *("input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors", "cached_tokens"),
    "cached_tokens_details",
}
_TELLING = {
    TOOL: ("backend", "total_output_tokens_retokenized", "output_throughput"),
    sglang_batch.TOOL: ("run_name", "batch_size", "latency", "overall_throughput"),
}
_NEEDED = frozenset(_TELLING[TOOL])
_UNDERSTOOD = {
    *(key.path[0] for key in (*_TAKEN, *_SLO_KEYS)),
    *("request_rate", "max_concurrency", "server_info"),
}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are lines of these tools."""
    return any(_is_serving(v) or sglang_batch.is_record(v) for v in flat(values))


def _is_serving(value: object) -> bool:
    record = as_dict(value)
    return record.keys() >= _NEEDED


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of the lines; the file's other values are counted in a flag."""
    runs, requests, flags, used = {}, {}, list[Flag](), dict[Key, None]()
    others = 0
    for position, value in enumerate(flat(values)):
        record = as_dict(value)
        serving = _is_serving(record)
        if not serving and not sglang_batch.is_record(record):
            others += 1
            continue
        run_id = (_run_id if serving else sglang_batch.run_id)(record, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields, keys = (_fields if serving else sglang_batch.fields)(record)
        run, found = build_run(fields | {"run_id": run_id, "source_sha256": sha256})
        runs[run_id] = run
        used |= dict.fromkeys(keys)
        own = (_flags if serving else sglang_batch.flags)(record, run_id)
        table, unreadable = _requests(record, run_id) if serving else (None, [])
        flags += [*found, *checks.inspect(run), *own, *unreadable]
        if table is not None:
            requests[run_id] = table
    if others:
        text = f"{counted(others, 'value')} of another kind in the file; left out"
        flags.append(Flag("other_values", "warns", text))
    first = next(iter(runs.values()))
    tool, level = first.tool or TOOL, first.tool_version or OLD
    why = f"keys {', '.join(_TELLING[tool])} of {tool}, {level}"
    return Findings(
        tool, level, why, tuple(runs.values()), requests, tuple(flags), keys=tuple(used)
    )


def level_of(record: Record) -> str:
    """The level of a line's keys."""
    if record.keys() & {"server_info", "tag", "total_throughput", "max_output_tokens_per_s"}:
        return NEW
    if record.keys() & {"accept_length", "request_throughput", "concurrency"}:
        return MIDDLE
    return OLD


def _run_id(record: Record, sha256: str, position: int) -> str:
    """By content, for no line has a date: a duration to the nanosecond is told once."""
    keys = ("duration", "total_input_tokens", "total_output_tokens")
    parts = [as_number(record.get(k)) for k in keys]
    if parts[0] is None or parts[2] is None:
        return identity(TOOL, sha256, position)
    return identity(TOOL, *parts, as_text(record.get("tag")))


def _fields(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields that a line states, and the keys they were read from."""
    found, used = take(record, _TAKEN)
    # The tool writes 0 where it has no sample at all.
    found = {k: v for k, v in found.items() if not ("_ms_" in k and v == 0)}
    if (found.get("accept_length") or 0) <= 0:
        found.pop("accept_length", None)
    server, server_keys = sglang_server_info.fields(record.get("server_info"))
    if "accept_length" in found:
        server["spec_state"] = SpecState.ON  # only a server that drafts reports it
    load, load_keys = _load(record, found.get("request_rps"))
    slo = _slo(record.get("goodput_slos_ms"))
    completed = found.get("completed")
    lengths = {
        f"{k}_len": found[f"{k}_tokens"] / completed
        for k in ("input", "output")
        if completed and found.get(f"{k}_tokens") is not None
    }
    errors = record.get("errors")
    sent = errors if isinstance(errors, list) else []
    fields = {
        **server,
        **found,
        **load,
        **lengths,
        "tool": TOOL,
        "tool_version": level_of(record),
        "token_count": "server" if "output_tokens" in found else None,
        "num_prompts": len(sent) or None,
        "failed": sum(bool(e) for e in sent) if sent else None,
        "slo": slo,
        "extra": redaction.extra(_left(record, load)),
    }
    kept = [k for k in used if k.field in found]
    return fields, (*kept, *load_keys, *(_SLO_KEYS if slo else ()), *server_keys)


def _left(record: Record, load: Mapping[str, Any]) -> dict[str, object]:
    rate_driven = load.get("load_kind") is LoadKind.REQUEST_RATE
    idle = {"max_concurrency": record.get("max_concurrency")} if rate_driven or not load else {}
    unread = {"request_rate": record.get("request_rate")} if not load else {}
    return (
        {k: v for k, v in record.items() if k not in _UNDERSTOOD and k not in _ARRAYS}
        | idle
        | unread
        | {"server_info": sglang_server_info.kept(record.get("server_info"))}
    )


def _load(record: Record, achieved: float | None) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """What was held: the rate where it is finite, else the concurrency, else no limit at all.

    A replayed trace sets its own pace, which the line does not state.
    """
    rate, said = as_number(record.get("request_rate")), record.get("request_rate")
    concurrency = as_count(record.get("max_concurrency"))
    by_rate, by_concurrency = _LOAD_KEYS
    traced = record.get("dataset_name") == "mooncake" and record.get("backend") == "sglang"
    if traced or said == "trace":
        return {}, ()
    if rate is not None:
        load = {"load_kind": LoadKind.REQUEST_RATE, "offered_load": rate}
        return load | {"achieved_load": achieved}, (by_rate,)
    if concurrency is not None and concurrency > 0:
        load = {"load_kind": LoadKind.CONCURRENCY, "offered_load": float(concurrency)}
        return load, (by_concurrency,)
    if said in ("Infinity", "inf", math.inf):
        return {"load_kind": LoadKind.REQUEST_RATE, "offered_load": math.inf}, (by_rate,)
    return {}, ()


def _slo(limits: object) -> str | None:
    """Each request's limits as `ttft_ms=300, e2e_ms=2000`; None where none is written."""
    numbers = {k: as_number(v) for k, v in as_dict(limits).items()}
    written = [
        f"{str(k)[:20].replace('e2el', 'e2e')}_ms={v:g}"
        for k, v in numbers.items()
        if v is not None
    ]
    return ", ".join(written[:10]) or None


def _flags(record: Record, run_id: str) -> list[Flag]:
    found = []
    peak, mean = (
        as_number(record.get(k)) for k in ("max_output_tokens_per_s", "output_throughput")
    )
    if peak is not None and mean is not None and 0 < peak < mean:
        text = f"peak {peak:.6g} tok/s below the mean {mean:.6g}: it counts chunks, ignore it"
        found.append(Flag("peak_below_mean", "warns", text, run_id))
    length = as_number(record.get("accept_length"))
    if length is not None and length > 0:
        text = (
            f"acceptance length {length:.4g} is since the server's start: warm-up and earlier runs "
            "are in it, of the first rank alone"
        )
        found.append(Flag("cumulative_acceptance", "warns", text, run_id))
        found += _itl_meaning(record, run_id)
    return found


def _itl_meaning(record: Record, run_id: str) -> list[Flag]:
    """What inter-token latency means in a line of the newest level, where the server drafts.

    Older lines mean it per streamed chunk, which its ratio to TPOT shows.
    """
    backend = as_text(record.get("backend"))
    meanings = {
        "sglang": "a step's gap spread over its tokens",
        "sglang-oai": "a chunk's gap divided by the tokens of its text, counted again",
    }
    meaning = meanings.get((backend or "").removesuffix("-chat"))
    if level_of(record) != NEW or meaning is None or not as_number(record.get("mean_itl_ms")):
        return []
    text = f"inter-token latency is {meaning} (backend {backend}): compare by TPOT"
    return [Flag("itl_meaning", "warns", text, run_id)]


def _requests(record: Record, run_id: str) -> tuple[pa.Table | None, list[Flag]]:
    """Per-request table of a line with --output-details (times in seconds), or why there is none.

    A failed request has an error or no token.
    """
    names = ("input_lens", "output_lens", "ttfts", "itls", "errors")
    lists = {k: as_list(record[k]) for k in names if isinstance(record.get(k), list)}
    count = len(lists.get("output_lens") or lists.get("ttfts") or ())
    if not count:
        return None, []
    factors = {"input_lens": 1.0, "output_lens": 1.0, "ttfts": 1e3}
    columns = {k: per_request.floats(lists[k], f) for k, f in factors.items() if k in lists}
    fit = all(len(v) == count for v in lists.values())
    if not fit or any(v is None for v in columns.values()):
        text = "the per-request lists differ in length or hold no numbers; left out"
        return None, [Flag("requests_unreadable", "warns", text, run_id)]
    out = columns.get("output_lens")
    generated = np.ones(count) if out is None else out
    errors = lists.get("errors") or [None] * count
    table = per_request.table(
        (bool(n > 0) and not error for n, error in zip(generated, errors, strict=True)),
        input_tokens=columns.get("input_lens"),
        output_tokens=out,
        ttft_ms=columns.get("ttfts"),
        decode_ms=per_request.sums(lists["itls"], 1e3) if "itls" in lists else None,
    )
    return table, []
