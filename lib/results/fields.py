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
from lib.results.server_args import engine_name
from lib.results.spellings import ARM, LATENCIES, MEASURED, PLAIN, STATISTICS, UNITS
from lib.run import EDITABLE, LoadKind, Run, SpecState

LOADS = {
    "concurrency": LoadKind.CONCURRENCY,
    "request_rate": LoadKind.REQUEST_RATE,
    "batch": LoadKind.BATCH,
}
_NO_DRAFTER = frozenset(
    {"", "none", "null", "nil", "no", "off", "false", "n/a", "na", "-", "disabled", "unset", "0"}
)
# What metadata and labels may state; outcomes come from measurement alone.
STATED = frozenset({*EDITABLE, ARM, "repeat", "seed"}) - {"load_kind", "offered_load"}


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
    if unit[0] == "requests" and _plain_spellings().get(base) == "request_rate":
        return Match("request_rate", factor=unit[1])
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


def suggest(path: str) -> str:
    """The field that a leaf may stand for (`measured.ttft_ms.p50`); empty where none is likely."""
    parts = path.replace("[]", "").split(".")
    for length in (1, 2, 3):
        *names, last = parts[-length:]
        tries = [[*names, last], *([[last, *names]] if names else [])]
        for words in tries if length <= len(parts) else []:
            found = lookup(" ".join(words))
            if found is not None and not found.dimension:
                return found.field
    return ""


def _split_unit(words: tuple[str, ...]) -> tuple[str, tuple[str, float]]:
    for length in (4, 3, 2, 1):
        tail = " ".join(words[-length:])
        if tail in UNITS and len(words) >= length:
            return " ".join(words[:-length]), UNITS[tail]
    return " ".join(words), ("", 1.0)


def unit_factor(header: str, name: str) -> float:
    """Factor from the unit that a header ends in to that of the field `name`; 1 where none fits."""
    _, (dimension, factor) = _split_unit(tuple(words_of(header)))
    own = ("time", 1e-3) if "_ms_" in name else MEASURED.get(name, ((), "", 1.0))[1:]
    return round(factor / own[1], 12) if dimension and own[0] == dimension else 1.0


def _is_output(base: str) -> bool:
    return base == "" or base in MEASURED["output_tps"][0]


def _measured(base: str, dimension: str) -> tuple[str, str, float] | None:
    for name, (spellings, own_dimension, own) in MEASURED.items():
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
        if word in STATISTICS:
            statistic = STATISTICS[word]
        elif re.fullmatch(r"p\d+(\.\d+)?|std|min|max|sd", word):
            return None  # a statistic that a run does not hold
        else:
            rest.append(word)
    phrase = " ".join(rest)
    name = next((n for n, spellings in LATENCIES.items() if phrase in spellings), None)
    return (f"{name}_ms_{statistic}", "time", 1e-3) if name else None


@cache
def _plain_spellings() -> dict[str, str]:
    return {spelling: name for name, spellings in PLAIN.items() for spelling in spellings}


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
        return _engine(text) if name == "engine" else text
    return _number(name, kind, value)


def _engine(text: str) -> str:
    """An engine's bare name as this project spells it; any other text as it is."""
    known = engine_name(text)
    letters = re.sub(r"[^a-z]", "", text.casefold())
    alone = known and letters in (re.sub(r"[^a-z]", "", known.casefold()), "trtllm")
    return known if known and alone else text


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


def has_zone(text: str) -> bool:
    """Whether a time says its zone."""
    try:
        return datetime.fromisoformat(text.strip()).tzinfo is not None
    except ValueError:
        return False


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
    """`found` with spec_state on where a K above 0, a method or a draft model implies it.

    A method or model `none` is none: it says nothing more.
    """
    named = {n for n in ("draft_method", "draft_model") if n in found}
    empty = {n for n in named if str(found[n]).strip().casefold() in _NO_DRAFTER}
    kept = {name: value for name, value in found.items() if name not in empty}
    drafting = kept.get("num_speculative_tokens") or named - empty
    return kept if "spec_state" in kept or not drafting else kept | {"spec_state": SpecState.ON}
