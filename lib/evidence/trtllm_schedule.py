"""TensorRT-LLM's `draft_len_schedule`: draft length by batch size, in both of its meanings.

Until 1.2 (NVIDIA/TensorRT-LLM#8194) a key is the first batch of its range; from 1.3 (#10860) it is
the last, and above the last key nothing is drafted.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import yaml

from lib.errors import InputError
from lib.evidence.engine_schedule import LARGEST, Check, Range, effective, shown
from lib.evidence.engine_support import version_of
from lib.results.server_args import TENSORRT_LLM, engine_name
from lib.run import Run

KEY = "draft_len_schedule"
MAXIMUM = "max_draft_len"
FIRST, LAST = "first batch", "last batch"
MEANINGS = (FIRST, LAST)
LAST_SINCE = (1, 3)
DECODING_TYPES = {
    "eagle": "Eagle",
    "eagle3": "Eagle3",
    "mtp": "MTP",
    "ngram": "NGram",
    "draft_model": "DraftTarget",
    "dflash": "DFlash",
    "dspark": "DSpark",
}
ATTENTION_DP = (
    "With attention data parallel each rank looks its own batch up, not the whole server's."
)
ONE_PATH = "The schedule is followed on the one-model path only; keys join the CUDA graph batches."


def meaning_of(version: str | None) -> str | None:
    """What a key means in that version; None where no version is named."""
    found = version_of(version)
    if found is None:
        return None
    return LAST if found >= LAST_SINCE else FIRST


def recorded_version(runs: Iterable[Run]) -> str | None:
    """The one version of TensorRT-LLM that these runs record; None where none or several."""
    versions = {r.engine_version for r in runs if engine_name(r.engine) == TENSORRT_LLM}
    stated = [v for v in versions if v]
    return stated[0] if len(stated) == 1 else None


def schedule_of(ranges: Sequence[Range], meaning: str) -> dict[int, int]:
    """The dict for contiguous ranges from batch 1. Raises InputError where it cannot be said.

    The engine demands that the smallest key has the largest draft length.
    """
    if meaning not in MEANINGS:
        raise InputError(f"meaning {meaning!r}: one of {', '.join(MEANINGS)}")
    largest = max(k for _, _, k in ranges)
    if ranges[0][2] != largest:
        raise InputError(
            f"TensorRT-LLM demands the largest draft length in the first range: K = {largest} "
            f"comes later than K = {ranges[0][2]}, so this schedule cannot be written for it"
        )
    if meaning == FIRST:
        return {first: k for first, _, k in ranges}
    used = ranges[:-1] if ranges[-1][2] == 0 and len(ranges) > 1 else ranges
    return {last: k for _, last, k in used}


def yaml_config(method: str, draft_model: str | None, ranges: Sequence[Range], meaning: str) -> str:
    """The `speculative_config` of an extra_llm_api_options file, as YAML.

    Raises InputError for a method that the engine lacks or ranges that it cannot hold.
    """
    name = "mtp" if "mtp" in method.lower() else method.lower()
    if name not in DECODING_TYPES:
        raise InputError(
            f"method {method}: not one of TensorRT-LLM's, {', '.join(DECODING_TYPES.values())}"
        )
    rendered: dict[str, object] = {
        "decoding_type": DECODING_TYPES[name],
        MAXIMUM: max(k for _, _, k in ranges),
    }
    if draft_model:
        rendered["speculative_model"] = draft_model
    rendered[KEY] = schedule_of(ranges, meaning)
    return str(yaml.safe_dump({"speculative_config": rendered}, sort_keys=False))


def check(entries: object, max_draft_len: object, max_batch_size: object, meaning: str) -> Check:
    """Judge a dict as that meaning's validator does; nothing is raised.

    `entries` maps batch sizes (whole numbers or their text) to draft lengths.
    """
    errors: list[str] = []
    for name, value in ((MAXIMUM, max_draft_len), ("max_batch_size", max_batch_size)):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            errors.append(f"{name} = {shown(value)}: a whole number, 1 to {LARGEST}")
    table = _table(entries, errors)
    if errors or not isinstance(max_draft_len, int) or not isinstance(max_batch_size, int):
        return Check(False, tuple(errors), (), ())
    smallest = min(table)
    if meaning == FIRST and smallest != 1:
        errors.append(f"the smallest key is {shown(smallest)}: until 1.2 key 1 must be there")
    for batch, k in table.items():
        if k > max_draft_len:
            errors.append(f"{shown(batch)}: {shown(k)} is above {MAXIMUM} = {max_draft_len}")
    if table[smallest] != max_draft_len:
        errors.append(
            f"the smallest key {shown(smallest)} has draft length {shown(table[smallest])}: it "
            f"must be {MAXIMUM} = {max_draft_len}"
        )
    if errors:
        return Check(False, tuple(errors), (), ())
    ranges = _ranges(table, meaning, max_batch_size)
    filled = effective(ranges, max_draft_len, max_batch_size)
    return Check(True, (), tuple(_reading(table, meaning, max_batch_size)), filled)


def _table(entries: object, errors: list[str]) -> dict[int, int]:
    if not isinstance(entries, Mapping):
        errors.append(f"{KEY}: a map of batch size to draft length, not {type(entries).__name__}")
        return {}
    if not entries:
        errors.append(f"{KEY}: empty; give at least {{N: K}}")
    table: dict[int, int] = {}
    for key, k in entries.items():
        batch = _whole(key)
        length = _whole(k)
        if batch is None or batch < 1:
            errors.append(f"key {shown(key)}: a whole batch size of at least 1 is allowed")
        elif length is None or length < 0:
            errors.append(f"{shown(key)}: {shown(k)}: a whole draft length of at least 0")
        else:
            table[batch] = length
    return dict(sorted(table.items()))


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 18:
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _ranges(table: Mapping[int, int], meaning: str, max_batch_size: int) -> list[Range]:
    keys = list(table)
    if meaning == FIRST:
        ends = [b - 1 for b in keys[1:]] + [max(keys[-1], max_batch_size)]
        return [(first, last, table[first]) for first, last in zip(keys, ends, strict=True)]
    starts = [1, *(b + 1 for b in keys[:-1])]
    ranges = [(first, last, table[last]) for first, last in zip(starts, keys, strict=True)]
    return [*ranges, (keys[-1] + 1, max(keys[-1] + 1, max_batch_size), 0)]


def _reading(table: Mapping[int, int], meaning: str, max_batch_size: int) -> list[str]:
    """What the engine does silently with a valid dict."""
    keys, said = list(table), []
    if meaning == LAST and keys[-1] < max_batch_size and table[keys[-1]]:
        said.append(
            f"Batches {keys[-1] + 1} to {max_batch_size} lie above the last key: nothing is "
            "drafted there. vLLM would keep the last K."
        )
    if meaning == FIRST and table[keys[-1]]:
        said.append(f"Batches from {shown(keys[-1])} up keep draft length {table[keys[-1]]}.")
    said += [
        f"{shown(key)}: {table[key]} lies beyond max_batch_size = {max_batch_size}."
        for before, key in pairwise([0, *keys])
        if (key if meaning == FIRST else before + 1) > max_batch_size
    ]
    if not any(table.values()):
        said.append("Nothing is drafted at any batch: start without speculative_config.")
    return said
