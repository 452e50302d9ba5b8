"""The one table that maps a foreign header or metadata key to a field of a run, with its unit.

The table reader, vLLM's `--metadata` keys, GuideLLM's labels and `--set` all read it. Besides
Run's own fields there are targets that set several at once: `arm` (what a name says about
speculation) and `concurrency`, `request_rate`, `batch` (an offered load with its kind).
"""

import re
import types
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from lib.errors import InputError
from lib.results.naming import LARGEST_K, arm_named, spell
from lib.results.parsing import as_count, as_number, as_text
from lib.run import EDITABLE, PERCENTILES, LoadKind, Run, SpecState

ARM = "arm"
LOADS = {
    "concurrency": LoadKind.CONCURRENCY,
    "request_rate": LoadKind.REQUEST_RATE,
    "batch": LoadKind.BATCH,
}
# What metadata and labels may state; outcomes come from measurement alone.
STATED = frozenset({*EDITABLE, ARM, "repeat", "seed"}) - {"load_kind", "offered_load"}

# spelling → (dimension, factor to the dimension's base). "rate per GPU" and "rate per user" are
# dimensions of their own: neither is the throughput of the deployment.
UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("time", 1e-3)),
    **dict.fromkeys(("us", "usec", "microsecond", "microseconds"), ("time", 1e-6)),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), ("time", 1e-9)),
    **dict.fromkeys(
        ("tok s", "toks s", "token s", "tokens s", "t s", "tps", "tok sec", "tokens sec"),
        ("tokens", 1.0),
    ),
    **dict.fromkeys(
        ("tokens per second", "tokens per sec", "tokens per s", "tok per s"), ("tokens", 1.0)
    ),
    **dict.fromkeys(("tok s gpu", "tok s per gpu", "tokens s gpu", "tps gpu"), ("per GPU", 1.0)),
    **dict.fromkeys(
        ("tok s user", "tok s per user", "tokens s user", "tps user"), ("per user", 1.0)
    ),
    **dict.fromkeys(
        ("req s", "reqs s", "rps", "requests s", "requests per second"), ("requests", 1.0)
    ),
    **dict.fromkeys(("gib",), ("memory", 1.0)),
    **dict.fromkeys(("mib",), ("memory", 1 / 1024)),
    **dict.fromkeys(("gb",), ("memory", 1e9 / 2**30)),
    **dict.fromkeys(("w", "watt", "watts"), ("power", 1.0)),
    **dict.fromkeys(("kw",), ("power", 1e3)),
    **dict.fromkeys(("j", "joule", "joules"), ("energy", 1.0)),
    **dict.fromkeys(("kj",), ("energy", 1e3)),
    **dict.fromkeys(("wh",), ("energy", 3600.0)),
    **dict.fromkeys(("kwh",), ("energy", 3.6e6)),
    **dict.fromkeys(
        ("$ h", "usd h", "$ hr", "$ hour", "usd per hour", "$ per hour"), ("price", 1.0)
    ),
    **dict.fromkeys(("x", "times"), ("ratio", 1.0)),
}

# field → (spellings, dimension of its unit, factor of its own unit to the base)
_PLAIN: dict[str, tuple[str, ...]] = {
    ARM: (
        *("arm", "method", "variant", "spec", "spec decode", "spec decoding", "speculation"),
        *("speculative", "speculative decoding", "drafter", "spec method", "speculative method"),
        *("speculative algorithm", "spec algorithm"),
    ),
    "label": ("label", "name", "run name", "tag", "benchmark name"),
    "repeat": ("repeat", "rep", "run number", "repeat idx", "replicate", "trial"),
    "block": ("block", "session"),
    "target": ("target", "model", "model id", "model name", "target model", "base model"),
    "target_revision": ("target revision", "revision", "model revision"),
    "target_quantization": (
        *("target quantization", "quantization", "quantisation", "quant", "precision", "dtype"),
        "weight quant",
    ),
    "dataset": ("dataset", "data set", "dataset name", "workload"),
    "domain": ("domain", "category"),
    "input_len": (
        *("input len", "isl", "input length", "prompt len", "prompt length", "mean input tokens"),
        "prompt tokens mean",
    ),
    "output_len": (
        *("output len", "osl", "output length", "mean output tokens", "output tokens mean"),
    ),
    "temperature": ("temperature", "temp"),
    "top_p": ("top p",),
    "seed": ("seed",),
    "engine": ("engine", "framework", "inference engine", "serving engine", "server engine"),
    "engine_version": (
        *("engine version", "vllm version", "sglang version", "trtllm version", "server version"),
        "framework version",
    ),
    "build": ("build", "image", "docker image", "container", "git commit"),
    "max_num_seqs": ("max num seqs", "max running requests", "max batch size"),
    "prefix_caching": ("prefix caching", "prefix cache", "enable prefix caching"),
    "graph_max_batch": ("graph max batch", "cuda graph max bs", "max cudagraph capture size"),
    "draft_model": (
        *("draft model", "drafter model", "draft", "speculative model", "spec model"),
        *("speculative draft model path", "draft model path"),
    ),
    "num_speculative_tokens": (
        *("num speculative tokens", "k", "gamma", "num spec tokens", "speculative tokens"),
        *("spec tokens", "spec k", "draft len", "draft length"),
        *("num steps", "speculative num steps"),
    ),
    "draft_topk": ("draft topk", "eagle topk", "speculative eagle topk"),
    "draft_tensor_parallel": ("draft tensor parallel", "draft tp", "draft tensor parallel size"),
    "gpu": ("gpu", "gpu name", "gpu type", "hardware", "hw", "accelerator", "device"),
    "gpu_count": ("gpu count", "gpus", "num gpus", "n gpus", "number of gpus"),
    "tensor_parallel": ("tensor parallel", "tp", "tp size", "tensor parallel size"),
    "data_parallel": ("data parallel", "dp", "dp size", "data parallel size"),
    "pipeline_parallel": ("pipeline parallel", "pp", "pp size", "pipeline parallel size"),
    "concurrency": (
        *("concurrency", "max concurrency", "conc", "concurrent", "concurrent requests"),
        *("num concurrency", "num concurrent requests", "users", "streams", "clients"),
    ),
    "request_rate": ("request rate", "qps", "rate", "offered rate", "requested rate"),
    "batch": ("batch", "batch size", "bs", "static batch"),
    "offered_load": ("load",),
    "running_mean": ("running mean", "mean running", "concurrency mean", "mean concurrency"),
    "num_prompts": ("num prompts", "prompts", "num requests", "total requests"),
    "completed": ("completed", "successful", "successful requests"),
    "failed": ("failed", "errors", "num errors", "failed requests", "error requests"),
    "input_tokens": ("input tokens", "total input tokens"),
    "output_tokens": ("output tokens", "total output tokens", "total completion tokens"),
    "output_tps_sd": ("output tps sd", "sd", "throughput sd", "tok s sd", "std", "stddev"),
    "output_tps_n": ("output tps n", "repeats", "n runs", "num runs", "n repeats"),
    "slo": ("slo",),
    "drafts": ("drafts", "num drafts", "spec decode num drafts"),
    "draft_tokens": ("draft tokens", "spec decode draft tokens", "drafted"),
    "accepted_tokens": ("accepted tokens", "spec decode accepted tokens", "accepted"),
}
_MEASURED: dict[str, tuple[tuple[str, ...], str, float]] = {
    "output_tps": (
        (
            *("output tps", "output", "out", "throughput", "output throughput", "aggregate"),
            *("agg", "agg output", "aggregate output", "generation", "generation throughput"),
            *("output token throughput", "output tokens", "decode throughput", "system"),
        ),
        "tokens",
        1.0,
    ),
    "request_rps": (
        ("request rps", "request throughput", "throughput", "request"),
        "requests",
        1.0,
    ),
    "goodput_rps": (("goodput rps", "goodput", "request goodput"), "requests", 1.0),
    "multiplier": (
        (
            *("multiplier", "speedup", "speed up", "ratio", "speedup printed", "ratio printed"),
            *("speedup claimed", "gain"),
        ),
        "ratio",
        1.0,
    ),
    "duration_s": (("duration", "wall time", "elapsed", "elapsed time", "wall"), "time", 1.0),
    "usd_per_hour": (("usd per hour", "price per hour", "cost per hour"), "price", 1.0),
    "gpu_mem_gib": (("gpu mem", "gpu memory", "memory", "vram"), "memory", 1.0),
    "power_w": (("power", "gpu power", "mean power"), "power", 1.0),
    "energy_j": (("energy", "total energy"), "energy", 1.0),
}
_LATENCIES: dict[str, tuple[str, ...]] = {
    "ttft": ("ttft", "time to first token"),
    "tpot": ("tpot", "time per output token"),
    "itl": ("itl", "inter token latency", "intertoken latency"),
    "e2e": ("e2e", "e2el", "e2e latency", "request latency", "req latency", "end to end latency"),
}
_STATISTICS = {"mean": "mean", "avg": "mean", "average": "mean", "median": "p50"} | {
    p: p for p in PERCENTILES
}


@dataclass(frozen=True)
class Match:
    """A header understood: the target field, and the factor from its unit to the field's.

    `unit_assumed` where the field has a unit and the header names none. `dimension` is "per GPU"
    or "per user" where the header is a token rate of that kind and not of the deployment.
    """

    field: str
    factor: float = 1.0
    unit_assumed: bool = False
    dimension: str = ""


def words_of(header: str) -> list[str]:
    """A header's words in lower case: `Throughput (tok/s)` → throughput, tok, s."""
    text = unicodedata.normalize("NFKC", header).replace("μ", "u").replace("µ", "u")
    text = re.sub(r"(?<=[a-z]{2})(?=[A-Z][a-z])", " ", text).casefold()
    return re.findall(r"[a-z0-9]+(?:\.\d+)?|[$%]", text)


def lookup(key: str) -> Match | None:
    """The field that a header or key names; None where none does or its unit does not fit."""
    return lookup_words(tuple(words_of(key)))


@lru_cache(maxsize=4096)
def lookup_words(words: tuple[str, ...]) -> Match | None:
    """As `lookup`, for words already split."""
    phrase = " ".join(words)
    if phrase.replace(" ", "_") in _names_of_run():
        return Match(phrase.replace(" ", "_"))
    if phrase in _plain_spellings():
        return Match(_plain_spellings()[phrase])
    base, unit = _split_unit(words)
    if unit in (("per GPU", 1.0), ("per user", 1.0)):
        return Match("output_tps", dimension=unit[0]) if _is_output(base) else None
    found = _measured(base, unit[0]) or _latency(base)
    if found is None:
        return None
    name, dimension, own = found
    if not unit[0]:
        sure = dimension == "ratio" or (dimension == "tokens" and base != "throughput")
        return Match(name, unit_assumed=not sure)
    return Match(name, factor=round(unit[1] / own, 12)) if unit[0] == dimension else None


def _split_unit(words: tuple[str, ...]) -> tuple[str, tuple[str, float]]:
    for length in (4, 3, 2, 1):
        tail = " ".join(words[-length:])
        if tail in UNITS and len(words) >= length:
            return " ".join(words[:-length]), UNITS[tail]
    return " ".join(words), ("", 1.0)


def unit_factor(header: str, name: str) -> float:
    """Factor from the unit that a header ends in to that of the field `name`; 1 where none fits."""
    _, (dimension, factor) = _split_unit(tuple(words_of(header)))
    own = ("time", 1e-3) if "_ms_" in name else _MEASURED.get(name, ((), "", 1.0))[1:]
    return round(factor / own[1], 12) if dimension and own[0] == dimension else 1.0


def _is_output(base: str) -> bool:
    return base == "" or base in _MEASURED["output_tps"][0]


def _measured(base: str, dimension: str) -> tuple[str, str, float] | None:
    for name, (spellings, own_dimension, own) in _MEASURED.items():
        unit_alone = base == "" and dimension == own_dimension and dimension in ("tokens", "price")
        named = base in spellings and (not dimension or dimension == own_dimension)
        if named and not dimension and base in ("output", "out", "system", "request", "agg"):
            continue  # too little without a unit
        if unit_alone or named:
            return name, own_dimension, own
    return ("request_rps", "requests", 1.0) if (base, dimension) == ("", "requests") else None


def _latency(base: str) -> tuple[str, str, float] | None:
    statistic, rest = "mean", []
    for word in base.split():
        if word in _STATISTICS:
            statistic = _STATISTICS[word]
        elif re.fullmatch(r"p\d+(\.\d+)?|std|min|max|sd", word):
            return None  # a statistic that a run does not hold
        else:
            rest.append(word)
    phrase = " ".join(rest)
    name = next((n for n, spellings in _LATENCIES.items() if phrase in spellings), None)
    return (f"{name}_ms_{statistic}", "time", 1e-3) if name else None


@cache
def _plain_spellings() -> dict[str, str]:
    return {spelling: name for name, spellings in _PLAIN.items() for spelling in spellings}


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(Run)


@cache
def _names_of_run() -> frozenset[str]:
    return frozenset(_types()) - {
        *("run_id", "source_sha256", "extra", "study", "zone_known", "tool", "tool_version"),
        *("accepted_per_position", "histogram"),
    }


def targets() -> tuple[str, ...]:
    """Every name that a column may be mapped to."""
    return (ARM, *LOADS, *sorted(_names_of_run()))


def is_number(name: str) -> bool:
    """Whether Run's field `name` holds a number."""
    return name in _types() and _plain_type(_types()[name]) in (int, float)


def convert(name: str, value: object) -> Any:
    """`value` (text, number or boolean) as the type of Run's field `name`; raises InputError."""
    kind = _plain_type(_types()[name])
    if kind is bool:
        return _boolean(name, value)
    if kind in (SpecState, LoadKind):
        return _choice(name, kind, value)
    if kind is datetime:
        return _moment(name, value)
    if kind is str:
        if (text := as_text(value)) is None:
            raise InputError(f"{name} = {value!r}: a text is needed")
        return text
    return _number(name, kind, value)


def _plain_type(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(a for a in get_args(hint) if a is not type(None))
    return hint


def _boolean(name: str, value: object) -> bool:
    text = str(value).strip().casefold()
    if text in ("true", "yes", "on", "1", "1.0", "enabled"):
        return True
    if text in ("false", "no", "off", "0", "0.0", "disabled"):
        return False
    raise InputError(f"{name} = {value!r}: yes or no is needed")


def _choice(name: str, kind: Any, value: object) -> Any:
    text = str(value).strip().casefold()
    if kind is SpecState and (arm := spell(text)) is not None:
        return arm.state
    if kind is LoadKind and (match := lookup(text)) is not None and match.field in LOADS:
        return LOADS[match.field]
    if text in list(kind):
        return kind(text)
    raise InputError(f"{name} = {value!r}: one of {', '.join(kind)}")


def _moment(name: str, value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise InputError(f"{name} = {value!r}: a time like 2026-03-01 12:30:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _number(name: str, kind: Any, value: object) -> Any:
    if name == "offered_load" and str(value).strip().casefold() in ("inf", "infinity"):
        return float("inf")
    least = 1 if name in ("gpu_count", "max_num_seqs") or name.endswith("_parallel") else 0
    most = LARGEST_K if name == "num_speculative_tokens" else float("inf")
    number = as_count(value) if kind is int else as_number(value)
    if number is None or not least <= number <= most or (name == "offered_load" and number == 0):
        what = "a whole number" if kind is int else "a number"
        above = "above 0" if name == "offered_load" else f"of at least {least}"
        top = f" and at most {most}" if most == LARGEST_K else ""
        raise InputError(f"{name} = {value!r}: {what} {above}{top} is needed")
    return number


def stated(key: str, value: object) -> dict[str, Any]:
    """Run's fields that a metadata key or label states; empty where it is not understood.

    Empty too where the value cannot be one of the field.
    """
    match = lookup(key)
    if match is None or match.field not in STATED or match.dimension:
        return {}
    if match.field == ARM:
        arm = arm_named(str(value)) if isinstance(value, (str, bool, int)) else None
        return dict(arm.fields) if arm else {}
    try:
        return {match.field: convert(match.field, value)}
    except InputError:
        return {}


def settled(found: dict[str, Any]) -> dict[str, Any]:
    """`found` with spec_state on where a K above 0, a method or a draft model implies it."""
    drafting = found.get("num_speculative_tokens") or found.keys() & {"draft_method", "draft_model"}
    return found if "spec_state" in found or not drafting else found | {"spec_state": SpecState.ON}
