"""vLLM's `num_speculative_tokens_per_batch_size`: validated, looked up and rendered.

The rules are those of `validate_and_normalize_dynamic_sd_schedule` and
`build_dynamic_sd_schedule_lookup` in vllm/v1/spec_decode/dynamic/utils.py.
"""

import json
import re
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.errors import InputError

KEY = "num_speculative_tokens_per_batch_size"
MAXIMUM = "num_speculative_tokens"
LARGEST = 2**31 - 1

Range = tuple[int, int, int]
"""(first batch, last batch, K), both ends included."""

_MAP_KEY = re.compile(r"\s*(\d{1,18})\s*-\s*(\d{1,18})\s*")


@dataclass(frozen=True)
class Check:
    """What the engine makes of a schedule; `effective` is empty where it refuses it.

    `effective` covers batch 1 to max_num_seqs: gaps and tail filled, K clamped, neighbours of
    equal K merged.
    """

    valid: bool
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    effective: tuple[Range, ...]

    def __post_init__(self) -> None:
        if self.valid == bool(self.errors) or self.valid != bool(self.effective):
            raise InputError("check: a valid schedule has no error and at least one range")


def check(entries: object, num_speculative_tokens: int, max_num_seqs: int) -> Check:
    """Judge a schedule as the engine does when it starts.

    `entries` is the list of [first, last, K], its JSON text, or a whole speculative_config
    (object or JSON text) that holds it, whose own num_speculative_tokens then counts. Whatever
    is handed in, the answer is a Check: nothing is raised.
    """
    errors: list[str] = []
    warnings: list[str] = []
    entries, maximum = _unwrap(entries, num_speculative_tokens, errors, warnings)
    for name, value in ((MAXIMUM, maximum), ("max_num_seqs", max_num_seqs)):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            errors.append(f"{name} = {shown(value)}: a whole number, 1 to {LARGEST}")
    ranges = [] if errors else _parse(entries, errors, warnings)
    if not errors:
        _order(ranges, errors)
    if errors or not isinstance(maximum, int):
        return Check(False, tuple(errors), tuple(warnings), ())
    warnings += _reading(ranges, maximum, max_num_seqs)
    return Check(True, (), tuple(warnings), effective(ranges, maximum, max_num_seqs))


def effective(
    ranges: Sequence[Range], num_speculative_tokens: int, max_num_seqs: int
) -> tuple[Range, ...]:
    """The K used at every batch from 1 to max_num_seqs, for valid ranges sorted by start."""
    found: list[Range] = []
    for i, (first, _, k) in enumerate(ranges):
        following = ranges[i + 1][0] if i + 1 < len(ranges) else max_num_seqs + 1
        last = min(following - 1, max_num_seqs)
        used = min(k, num_speculative_tokens)
        if first > max_num_seqs:
            break
        if found and found[-1][2] == used:
            found[-1] = (found[-1][0], last, used)
        else:
            found.append((first, last, used))
    return tuple(found)


def config(
    method: str,
    draft_model: str | None,
    num_speculative_tokens: int,
    ranges: Sequence[Range] | None = None,
) -> dict[str, object]:
    """vLLM's speculative_config: a schedule, or a fixed K without `ranges`; empty at K = 0."""
    if num_speculative_tokens == 0:
        return {}
    rendered: dict[str, object] = {"method": method}
    if draft_model:
        rendered["model"] = draft_model
    rendered[MAXIMUM] = num_speculative_tokens
    if ranges is not None:
        rendered[KEY] = [list(r) for r in ranges]
    return rendered


def vllm_flag(config: Mapping[str, object]) -> str:
    """`--speculative-config '{...}'`, quoted for a POSIX shell; empty for an empty config (off)."""
    return f"--speculative-config {shlex.quote(json.dumps(config))}" if config else ""


def vllm_python(config: Mapping[str, object], target: str | None, max_num_seqs: int) -> str:
    """The same server from Python."""
    spec = f"    speculative_config={_literal(config)},\n" if config else ""
    return (
        "from vllm import LLM\n\n"
        f"llm = LLM(\n    model={(target or 'TARGET')!r},\n    max_num_seqs={max_num_seqs},\n"
        f"{spec})\n"
    )


def _literal(config: Mapping[str, object]) -> str:
    """A dict literal, one key a line."""
    rows = "".join(f"        {key!r}: {value!r},\n" for key, value in config.items())
    return f"{{\n{rows}    }}"


def _unwrap(
    entries: object, maximum: object, errors: list[str], warnings: list[str]
) -> tuple[object, object]:
    """The bare schedule and the maximum K, out of JSON text, a speculative_config or a map."""
    if isinstance(entries, str):
        try:
            entries = json.loads(entries)
        except (ValueError, RecursionError) as error:
            errors.append(f"schedule: not JSON ({error}); write [[1,16,3],[17,64,0]]")
            return [], maximum
    if isinstance(entries, dict) and KEY in entries:
        own = entries.get(MAXIMUM, maximum)
        if own != maximum:
            warnings.append(f"The config's own {MAXIMUM} = {shown(own)} is used.")
        entries, maximum = entries[KEY], own
    elif isinstance(entries, dict) and (MAXIMUM in entries or "method" in entries):
        errors.append(f"speculative_config has no {KEY}: the engine runs a fixed K")
    if isinstance(entries, dict) and not errors:
        entries = _from_map(entries, errors, warnings)
    return entries, maximum


def _from_map(entries: dict, errors: list[str], warnings: list[str]) -> list[list[object]]:
    converted: list[list[object]] = []
    for key, k in entries.items():
        ends = _MAP_KEY.fullmatch(key) if isinstance(key, str) else None
        if ends is None:
            errors.append(f'map key {shown(key)}: "FIRST-LAST", or write a list [[1,16,3]]')
        else:
            converted.append([int(ends[1]), int(ends[2]), k])
    if not errors:
        warnings.append(f"No release takes the map form; converted to {shown(converted)}.")
    return converted


def _parse(entries: object, errors: list[str], warnings: list[str]) -> list[Range]:
    """The ranges, sorted by start; every error of a single entry is added to `errors`."""
    if not isinstance(entries, list):
        kind = type(entries).__name__
        errors.append(f"schedule: a list of [first, last, K] is allowed, not {kind}")
        return []
    if not entries:
        errors.append("schedule: empty; give at least [[1, N, K]]")
    ranges = []
    for number, entry in enumerate(entries, start=1):
        found = _entry(f"entry {number}", entry, errors, warnings)
        if found is not None:
            ranges.append(found)
    return sorted(ranges)


def _entry(name: str, entry: object, errors: list[str], warnings: list[str]) -> Range | None:
    what = f"{name} {shown(entry)}"
    if not isinstance(entry, (list, tuple)):
        errors.append(f"{what}: a list [first, last, K] is allowed")
        return None
    if len(entry) == 5:
        errors.append(
            f"{what}: 5 items (batch and context ranges) are in no release; write [first, last, K]"
        )
        return None
    if len(entry) != 3:
        errors.append(f"{what}: {len(entry)} items; exactly 3, [first, last, K], are allowed")
        return None
    try:
        first, last, k = (int(item) for item in entry)
    except (TypeError, ValueError, OverflowError):
        errors.append(f"{what}: three whole numbers are allowed")
        return None
    if any(isinstance(i, bool) or (isinstance(i, float) and not i.is_integer()) for i in entry):
        warnings.append(f"{what} is read as {shown([first, last, k])}.")
    before = len(errors)
    if first < 1 or last < 1:
        errors.append(f"{what}: batch sizes start at 1")
    if first > last:
        errors.append(f"{what}: the first batch must not be above the last")
    if k < 0:
        errors.append(f"{what}: K of at least 0 is allowed")
    return (first, last, k) if len(errors) == before else None


def _order(ranges: Sequence[Range], errors: list[str]) -> None:
    if ranges[0][0] != 1:
        errors.append(f"the first range starts at {shown(ranges[0][0])}: it must start at 1")
    for before, after in pairwise(ranges):
        if after[0] <= before[1]:
            errors.append(f"{shown(list(before))} and {shown(list(after))} overlap")


def _reading(ranges: Sequence[Range], maximum: int, max_num_seqs: int) -> list[str]:
    """What the engine does silently with valid ranges."""
    said = []
    for before, after in pairwise(ranges):
        if before[1] + 1 < after[0] and before[1] < max_num_seqs:
            gap = f"{before[1] + 1} to {min(after[0] - 1, max_num_seqs)}"
            said.append(f"Batches {gap} are in no range and inherit K = {min(before[2], maximum)}.")
    last = ranges[-1]
    if last[1] < max_num_seqs:
        tail = f"Batches {last[1] + 1} to {max_num_seqs}"
        said.append(f"{tail} lie above the last range and keep its K = {min(last[2], maximum)}.")
    for first, end, k in ranges:
        what = shown([first, end, k])
        if first > max_num_seqs:
            said.append(f"{what} lies beyond max_num_seqs = {max_num_seqs} and is never used.")
        elif k > maximum:
            said.append(
                f"{what}: K is clamped to {MAXIMUM} = {maximum}; raise that to {shown(k)} to draft "
                "as written."
            )
    used = {k for _, _, k in effective(ranges, maximum, max_num_seqs)}
    if used == {0}:
        said.append("K = 0 at every batch: start without --speculative-config.")
    elif len(used) == 1:
        said.append(f"K = {max(used)} at every batch: a fixed K needs no schedule.")
    if 0 < max(used) < maximum:
        said.append(
            f"{MAXIMUM} = {maximum} is above the largest K used, {max(used)}: "
            "KV cache slots are reserved for it all the same."
        )
    return said


def shown(value: object) -> str:
    """A value from outside in a message, cut to a readable length."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int of more digits than Python prints
        return "a number of thousands of digits"
