"""Results of InferenceX (formerly InferenceMAX): vLLM-like results, brought to rates per GPU.

The aggregated form has times in seconds under vLLM's names without `_ms`, and rates divided by the
GPUs that made them: `output_tput_per_gpu` times those is the deployment's output. `tput_per_gpu`
counts input tokens too and is never used. A second form keeps vLLM's result, with seconds.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lib.results import checks, redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.keys import latency_keys, take
from lib.results.naming import arm_named
from lib.results.parsing import as_count, as_dict, as_number, as_text, counted, flat
from lib.results.server_args import TENSORRT_LLM, engine_name
from lib.results.tools.methods import method_of
from lib.run import LoadKind, SpecState

TOOL = "inferencex"
TITLE = "InferenceX (InferenceMAX)"
Record = Mapping[str, Any]

MOST_GPUS = 2**20
AGGREGATED, SECONDS = "aggregated", "vLLM result in seconds"
_SECONDS_KEY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)")
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


def _latency_keys() -> tuple[Key, ...]:
    rows: tuple[Key, ...] = ()
    for name in ("ttft", "tpot", "itl", "e2e"):
        tail = "e2el" if name == "e2e" else name
        written = {s: f"{word}_{tail}" for s, word in _STATISTICS.items()}
        rows += latency_keys(name, (), written, factor=1e3, unit="s")
    return rows


_LATENCIES = _latency_keys()
_AGGREGATED = (
    Key("gpu", ("hw",)),
    Key("target", ("model",)),
    Key("target_quantization", ("precision",)),
    Key("engine", ("framework",)),
    Key("build", ("image",)),
    Key("input_len", ("isl",), note="as asked for"),
    Key("output_len", ("osl",), note="as asked for"),
    Key("offered_load", ("conc",), note="requests in flight"),
    Key("tensor_parallel", ("tp",)),
    Key("pipeline_parallel", ("pp",)),
    *_LATENCIES,
)
_POWER = (
    Key("power_w", ("avg_total_gpu_power_w",), note="where power_valid"),
    Key("energy_j", ("total_gpu_energy_j",), note="where power_valid"),
)
_DERIVED = (
    Key("output_tps", ("output_tput_per_gpu",), note="times the GPUs that decode"),
    Key("spec_state", ("spec_decoding",), note="none is off"),
    Key("spec_state", ("mtp",), note="older: on or off"),
    Key("draft_method", ("spec_decoding",), note="unless none"),
    Key("draft_method", ("mtp",), note="older: mtp where on"),
    Key("num_speculative_tokens", ("spec_decoding",), note="where it names a K"),
    Key("load_kind", ("conc",), note="concurrency"),
    Key("gpu_count", ("tp",), note="times pp and pcp_size"),
    Key("gpu_count", ("num_decode_gpu",), note="plus num_prefill_gpu"),
)
_SECONDS = (
    Key("target", ("model_id",)),
    Key("num_prompts", ("num_prompts",)),
    Key("completed", ("completed",)),
    Key("failed", ("failed",)),
    Key("duration_s", ("duration",)),
    Key("input_tokens", ("total_input_tokens",)),
    Key("output_tokens", ("total_output_tokens",)),
    Key("output_tps", ("output_throughput",)),
    Key("request_rps", ("request_throughput",)),
    Key("goodput_rps", ("request_goodput",)),
    *_LATENCIES,
)
_SECONDS_DERIVED = (
    Key("started_at", ("date",), note="local time"),
    Key("offered_load", ("request_rate",), note="where it is finite"),
    Key("offered_load", ("max_concurrency",), note="else"),
    Key("load_kind", ("request_rate",), note="request rate where it is finite"),
    Key("load_kind", ("max_concurrency",), note="else concurrency"),
    Key("achieved_load", ("request_throughput",), note="where a rate is held"),
    Key("input_len", ("total_input_tokens",), note="/ completed"),
    Key("output_len", ("total_output_tokens",), note="/ completed"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    AGGREGATED: (*_AGGREGATED, *_DERIVED, *_POWER),
    SECONDS: (*_SECONDS, *_SECONDS_DERIVED),
}

_NEEDED = frozenset({"hw", "conc", "framework"})
_RATES = frozenset({"output_tput_per_gpu", "tput_per_gpu"})
_NEEDED_SECONDS = frozenset({"model_id", "completed", "output_throughput"})
_UNDERSTOOD = {
    AGGREGATED: {k.path[0] for k in LEVELS[AGGREGATED]} | {"tput_per_gpu", "input_tput_per_gpu"},
    SECONDS: {k.path[0] for k in LEVELS[SECONDS]},
}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are results of InferenceX."""
    return any(_form(v) for v in flat(values))


def _form(value: object) -> str | None:
    record = as_dict(value)
    if record.keys() >= _NEEDED and record.keys() & _RATES:
        return AGGREGATED
    seconds = record.keys() >= _NEEDED_SECONDS
    return SECONDS if seconds and any(map(_SECONDS_KEY.fullmatch, record)) else None


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of the results; the file's other values are counted in a flag."""
    runs, flags, used = {}, list[Flag](), dict[Key, None]()
    forms, others = list[str](), 0
    for position, value in enumerate(flat(values)):
        if (form := _form(value)) is None:
            others += 1
            continue
        record = as_dict(value)
        run_id = _run_id(record, form, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields, keys = _aggregated(record) if form == AGGREGATED else _in_seconds(record)
        common = {"run_id": run_id, "source_sha256": sha256, "tool": TOOL, "tool_version": form}
        run, found = build_run(fields | common | {"extra": _left(record, form, fields)})
        runs[run_id] = run
        forms.append(form)
        used |= dict.fromkeys(keys)
        flags += [*found, *checks.inspect(run)]
        if form == AGGREGATED and run.output_tps is None and run.completed is None:
            text = "the file does not say how many GPUs its rates are divided by: not priced"
            flags.append(Flag("gpus_unknown", "warns", text, run_id))
    if others:
        text = f"{counted(others, 'value')} of another kind in the file; left out"
        flags.append(Flag("other_values", "warns", text))
    why = {
        AGGREGATED: "keys hw, conc, framework and rates per GPU of InferenceX",
        SECONDS: "keys model_id, completed and times without a unit (median_ttft) in seconds",
    }
    level = forms[0] if forms else AGGREGATED
    return Findings(
        TOOL, level, why[level], tuple(runs.values()), flags=tuple(flags), keys=tuple(used)
    )


def _run_id(record: Record, form: str, sha256: str, position: int) -> str:
    """By content: the aggregated form has neither a date nor a duration."""
    if form == SECONDS:
        names = ("duration", "total_input_tokens", "total_output_tokens")
        numbers = [as_number(record.get(k)) for k in names]
        if None in numbers:
            return identity(TOOL, sha256, position)
        return identity(TOOL, as_text(record.get("date")), *numbers)
    texts = [as_text(record.get(k)) for k in ("hw", "model", "framework", "precision", "image")]
    texts += [as_text(record.get("spec_decoding")), as_text(record.get("mtp"))]
    rates = [as_number(record.get(k)) for k in ("tput_per_gpu", "output_tput_per_gpu")]
    sizes = [as_number(record.get(k)) for k in ("conc", "isl", "osl", "tp", "num_decode_gpu")]
    times = [as_number(record.get(k)) for k in ("median_e2el", "median_ttft", "median_tpot")]
    if rates == [None, None]:
        return identity(TOOL, sha256, position)
    return identity(TOOL, *texts, *rates, *sizes, *times)


def _aggregated(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    found, used = take(record, _AGGREGATED)
    power, power_used = take(record, _POWER) if record.get("power_valid") in (1, True) else ({}, ())
    if (engine := found.get("engine")) is not None:
        found["engine"] = _engine(engine)
    decoding, whole = _gpus(record)
    rate = as_number(record.get("output_tput_per_gpu"))
    derived: dict[str, Any] = {
        "load_kind": LoadKind.CONCURRENCY if (found.get("offered_load") or 0) > 0 else None,
        "gpu_count": whole,
        "output_tps": rate * decoding if rate is not None and decoding else None,
        **_speculation(record),
    }
    derived = {name: value for name, value in derived.items() if value is not None}
    shown = [k for k in _DERIVED if k.field in derived and record.get(k.path[0]) is not None]
    return found | power | derived, (*used, *power_used, *shown)


def _engine(framework: str) -> str:
    """The engine of `vllm`, `dynamo-sglang`, `trt`; any other as it is written."""
    if re.search(r"(?i)(?:^|[-_])trt(?:$|[-_])", framework):
        return TENSORRT_LLM
    return engine_name(framework) or framework


def _gpus(record: Record) -> tuple[int | None, int | None]:
    """The GPUs that the output's rate is divided by, and those of the whole deployment.

    Ranks of expert and context parallelism of decoding share GPUs, so they do not count.
    """
    roles = [as_count(record.get(f"num_{k}_gpu")) for k in ("prefill", "decode")]
    if any(n is not None for n in roles):
        known = [n for n in roles if n is not None and 0 <= n <= MOST_GPUS]
        if len(known) < len(roles) or not sum(known):
            return None, None
        return known[1] or known[0], sum(known)
    split = record.get("disagg") in (True, "true") or record.get("is_multinode") in (True, "true")
    sizes = [as_count(record.get(k, 1)) for k in ("tp", "pp", "pcp_size")]
    if split or "tp" not in record or any(s is None or not 1 <= s <= MOST_GPUS for s in sizes):
        return None, None
    count = math.prod(s for s in sizes if s)
    return count, count


def _speculation(record: Record) -> dict[str, Any]:
    """What `spec_decoding` says (none, mtp, …), or the older `mtp` (on, off)."""
    written = as_text(record.get("spec_decoding"))
    if written is None and isinstance(record.get("mtp"), (str, bool)):
        named = arm_named(str(record["mtp"]))
        if named is None:
            return {}
        on = named.state is SpecState.ON
        return {"spec_state": named.state} | ({"draft_method": "mtp"} if on else {})
    if written is None:
        return {}
    named = arm_named(written)
    return (
        named.fields if named else {"spec_state": SpecState.ON, "draft_method": method_of(written)}
    )


def _in_seconds(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    found, used = take(record, _SECONDS)
    completed = found.get("completed")
    derived: dict[str, Any] = {
        **_load(record, found.get("request_rps")),
        **{
            f"{k}_len": found[f"{k}_tokens"] / completed
            for k in ("input", "output")
            if completed and f"{k}_tokens" in found
        },
        "started_at": _date(record.get("date")),
    }
    shown = [k for k in _SECONDS_DERIVED if derived.get(k.field) is not None]
    return found | derived, (*used, *shown)


def _load(record: Record, achieved: float | None) -> dict[str, Any]:
    rate, said = as_number(record.get("request_rate")), record.get("request_rate")
    concurrency = as_count(record.get("max_concurrency"))
    if rate is not None:
        load = {"load_kind": LoadKind.REQUEST_RATE, "offered_load": rate}
        return load | {"achieved_load": achieved}
    if concurrency is not None and concurrency > 0:
        return {"load_kind": LoadKind.CONCURRENCY, "offered_load": float(concurrency)}
    unlimited = said in ("inf", "Infinity", math.inf)
    return {"load_kind": LoadKind.REQUEST_RATE, "offered_load": math.inf} if unlimited else {}


def _date(value: object) -> datetime | None:
    """Local time without a zone, kept as if UTC; `zone_known` stays False."""
    try:
        return datetime.strptime(as_text(value) or "", "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _left(record: Record, form: str, fields: Mapping[str, Any]) -> str | None:
    """What no field holds; `*_intvty` is time per output token once more, so it is dropped."""
    kept = {
        k: v for k, v in record.items() if k not in _UNDERSTOOD[form] and not k.endswith("_intvty")
    }
    if form == AGGREGATED:
        kept |= {k: record.get(k) for k in ("tput_per_gpu", "input_tput_per_gpu")}
        if "output_tps" not in fields:
            kept["output_tput_per_gpu"] = record.get("output_tput_per_gpu")
        if fields.get("engine") != record.get("framework"):
            kept["framework"] = record.get("framework")
    elif fields.get("load_kind") is LoadKind.REQUEST_RATE:
        kept["max_concurrency"] = record.get("max_concurrency")
    return redaction.extra(kept)
