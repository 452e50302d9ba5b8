"""What a vLLM result says of speculation: the server's counters, and a sweep's overrides."""

from collections.abc import Mapping
from typing import Any

import orjson

from lib.results.findings import Flag, Key
from lib.results.keys import take
from lib.results.parsing import as_count, as_dict, as_list, as_number
from lib.results.tools.literals import opened
from lib.run import SpecState

Record = Mapping[str, Any]

COUNTERS = (
    Key("drafts", ("spec_decode_num_drafts",)),
    Key("draft_tokens", ("spec_decode_draft_tokens",)),
    Key("accepted_tokens", ("spec_decode_accepted_tokens",)),
)
# How far two statements of one number may differ by rounding.
_SAME_LENGTH = 0.01
_SAME_K = 0.005
RATES = Key(
    "accepted_per_position",
    ("spec_decode_per_position_acceptance_rates",),
    note="times the drafts, rounded",
)
K_COUNTED = Key(
    "num_speculative_tokens",
    ("spec_decode_draft_tokens",),
    note="/ spec_decode_num_drafts, where it is the same each time and no override states it",
)
STATED = (
    Key("accept_length", ("spec_decode_acceptance_length",), note="where no counts are written"),
    Key(
        "accept_rate",
        ("spec_decode_acceptance_rate",),
        0.01,
        "%",
        "where no counts are written",
    ),
)
_CONFIG = "speculative_config"
OVERRIDES = (
    Key("draft_method", (_CONFIG, "method")),
    Key("draft_model", (_CONFIG, "model")),
    Key("num_speculative_tokens", (_CONFIG, "num_speculative_tokens")),
    Key("draft_tensor_parallel", (_CONFIG, "draft_tensor_parallel_size")),
)
STATE = Key("spec_state", (_CONFIG,), note="on; off where it is null; on where drafts were counted")
SCHEDULE = Key("schedule", (_CONFIG, "num_speculative_tokens_per_batch_size"), note="as JSON")


def is_override(key: str) -> bool:
    """Whether a key of a record is a sweep's speculative configuration, or one part of it."""
    return key.replace("-", "_").split(".")[0] == _CONFIG


def speculation(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Counters of the server and the set-up that a sweep's override states; the keys used."""
    found, used = _overrides(record)
    counts, counted = take(record, COUNTERS)
    drafts, drafted = counts.get("drafts"), counts.get("draft_tokens")
    if record.get("spec_decode_num_drafts") is None:
        stated, keys = take(record, STATED)
        drafting = (stated.get("accept_rate") or 0) > 0 or (stated.get("accept_length") or 1) > 1
        return found | stated | ({"spec_state": SpecState.ON} if drafting else {}), (*used, *keys)
    if not drafts or drafts < 0:
        return found, used
    found |= {"spec_state": SpecState.ON, **counts}
    used = (*used, *counted)
    rates = [as_number(r) for r in as_list(record.get(RATES.path[0]))]
    per_position = tuple(round(r * drafts) for r in rates if r is not None and 0 <= r <= 1)
    if rates and len(per_position) == len(rates):
        found["accepted_per_position"] = per_position
        used = (*used, RATES)
    k = drafted / drafts if drafted and drafted > 0 else 0.0
    if "num_speculative_tokens" not in found and round(k) and abs(k / round(k) - 1) <= _SAME_K:
        found["num_speculative_tokens"] = round(k)
        used = (*used, K_COUNTED)
    return found, (*used, STATE)


def _overrides(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """The set-up that `speculative_config` states: an object, its JSON, dotted keys, or null."""
    config: dict[str, Any] = {}
    for key, value in record.items():
        if not is_override(key):
            continue
        if "." in key:
            config[key.split(".", 1)[1].replace("-", "_")] = value
        elif (whole := _config(value)) is None:
            return {"spec_state": SpecState.OFF}, (STATE,)
        else:
            config |= {name.replace("-", "_"): inner for name, inner in whole.items()}
    if not config:
        return {}, ()
    found, used = take({_CONFIG: config}, OVERRIDES)
    schedule = config.get(SCHEDULE.path[1])
    schedule = opened(schedule) if isinstance(schedule, str) else schedule
    if isinstance(schedule, (list, dict)) and schedule:
        found["schedule"] = orjson.dumps(schedule).decode()
        used = (*used, SCHEDULE)
    return {"spec_state": SpecState.ON, **found}, (STATE, *used)


def _config(value: object) -> dict[str, Any] | None:
    """The configuration's object; None where it says that there is none."""
    if isinstance(value, str):
        if value.strip().casefold() in ("", "none", "null", "{}"):
            return None
        return as_dict(opened(value))
    return as_dict(value) if value else None


def length_flags(record: Record, run_id: str) -> list[Flag]:
    """A flag where the stated acceptance length is not what the counters say."""
    length = as_number(record.get("spec_decode_acceptance_length"))
    drafts = as_count(record.get("spec_decode_num_drafts"))
    accepted = as_count(record.get("spec_decode_accepted_tokens"))
    if not length or not drafts or drafts < 0 or accepted is None or accepted < 0:
        return []
    tau = 1 + accepted / drafts
    if abs(length / tau - 1) <= _SAME_LENGTH:
        return []
    bonus = ", without the bonus token" if abs(length + 1 - tau) < _SAME_LENGTH * tau else ""
    text = f"states acceptance length {length:.4g}{bonus}; the counters say {tau:.4g}"
    return [Flag("acceptance_mismatch", "warns", text, run_id)]


__all__ = [
    "COUNTERS",
    "K_COUNTED",
    "OVERRIDES",
    "RATES",
    "SCHEDULE",
    "STATE",
    "STATED",
    "is_override",
    "length_flags",
    "speculation",
]
