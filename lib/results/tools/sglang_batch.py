"""Lines of SGLang's `bench_one_batch_server`: one static batch each, sent at once.

`output_throughput` is of the decode phase alone (in old versions of the whole time), so tokens per
second are computed from the whole time here. The times are those of the batch's last request.
"""

import math
from collections.abc import Mapping
from typing import Any

from lib.results import redaction
from lib.results.findings import LARGEST_COUNT, Flag, Key, identity
from lib.results.keys import take
from lib.results.parsing import as_count, as_dict, as_number, as_text
from lib.run import LoadKind, SpecState

TOOL = "sglang-one-batch-server"
LEVEL = "bench_one_batch_server"
Record = Mapping[str, Any]

_LAST = "of the batch's last request"
_TAKEN = (
    Key("label", ("run_name",), note="unless default"),
    Key("input_len", ("input_len",)),
    Key("output_len", ("output_len",), note="where nothing stopped early"),
    Key("output_tokens", ("total_output_tokens",), note="newer; else batch_size × output_len"),
    Key("duration_s", ("latency",)),
    Key("e2e_ms_mean", ("latency",), 1e3, "s", _LAST),
    Key("ttft_ms_mean", ("last_ttft",), 1e3, "s", f"{_LAST}; a mean for a batch of one alone"),
    Key("accept_length", ("acc_length",), note="-1 is none"),
)
_BATCH = (
    Key("offered_load", ("batch_size",), note="a static batch"),
    Key("output_tps", ("latency",), note="output tokens over the whole time"),
)
KEYS = (*_TAKEN, *_BATCH)
FOLLOWS = (
    Key("load_kind", ("batch_size",), note="batch"),
    Key("num_prompts", ("batch_size",)),
    Key("completed", ("batch_size",)),
    Key("input_tokens", ("input_len",), note="times batch_size"),
    Key(
        "tpot_ms_mean", ("latency",), 1e3, "s", "less last_ttft, over output_len - 1; batch of one"
    ),
    Key("spec_state", ("acc_length",), note="on where there is one"),
)
_NEEDED = {"run_name", "batch_size", "input_len", "output_len", "latency", "overall_throughput"}
_UNDERSTOOD = {
    "run_name",
    "batch_size",
    "input_len",
    "latency",
    "acc_length",
    "total_output_tokens",
}


def is_record(value: object) -> bool:
    """Whether a JSON value is a line of this tool."""
    return as_dict(value).keys() >= _NEEDED


def run_id(record: Record, sha256: str, position: int) -> str:
    """The line's identity: its latency has few digits, so everything measured counts."""
    names = ("batch_size", "input_len", "output_len", "latency", "last_ttft", "output_throughput")
    numbers = [as_number(record.get(k)) for k in (*names, "last_gen_throughput")]
    if numbers[0] is None or numbers[3] is None:
        return identity(TOOL, sha256, position)
    return identity(TOOL, as_text(record.get("run_name")), *numbers)


def fields(record: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields that a line states, and the keys they were read from."""
    found, used = take(record, _TAKEN)
    batch = as_count(record.get("batch_size"))
    batch = batch if batch is not None and batch > 0 else None
    if found.get("label") == "default":
        del found["label"]
    if (found.get("accept_length") or 0) <= 0:
        found.pop("accept_length", None)
    if batch != 1 or not found.get("ttft_ms_mean"):
        found.pop("ttft_ms_mean", None)
    used = tuple(k for k in used if k.field in found)
    tokens = found.get("output_tokens")
    if tokens is None:
        tokens = _times(batch, found.get("output_len"))
    if batch and tokens is not None:
        found["output_len"] = tokens / batch
    measured = {
        **found,
        **_rates(found, tokens),
        "tool": TOOL,
        "tool_version": LEVEL,
        "load_kind": LoadKind.BATCH if batch else None,
        "offered_load": float(batch) if batch else None,
        "num_prompts": batch,
        "completed": batch,
        "input_tokens": _times(batch, found.get("input_len")),
        "output_tokens": tokens,
        "spec_state": SpecState.ON if "accept_length" in found else SpecState.UNKNOWN,
        "extra": redaction.extra({k: v for k, v in record.items() if k not in _UNDERSTOOD}),
    }
    return measured, (*used, *_BATCH) if batch else used


def _times(batch: int | None, length: float | None) -> int | None:
    """Tokens of the whole batch; None where one of the two is not known or not possible."""
    tokens = batch * length if batch and length is not None else math.inf
    return round(tokens) if 0 <= tokens <= LARGEST_COUNT else None


def _rates(found: Mapping[str, Any], tokens: int | None) -> dict[str, float]:
    """Output tokens per second of the whole time; time per output token of a batch of one."""
    rates = {}
    seconds, length = found.get("duration_s"), found.get("output_len")
    if tokens is not None and seconds:
        rates["output_tps"] = tokens / seconds
    first, whole = found.get("ttft_ms_mean"), found.get("e2e_ms_mean")
    if first is not None and whole is not None and whole >= first and length and length > 1:
        rates["tpot_ms_mean"] = (whole - first) / (length - 1)
    return rates


def flags(record: Record, run_id: str) -> list[Flag]:
    """What a person should know of a line, beside what its run alone tells."""
    found = []
    if (as_count(record.get("batch_size")) or 0) > 1:
        text = (
            "end-to-end time is that of the batch's last request; its time to first token is no "
            "mean of the batch and is left out"
        )
        found.append(Flag("batch_latency", "warns", text, run_id))
    length = as_number(record.get("acc_length"))
    if length is not None and length > 0:
        text = (
            f"acceptance length {length:.4g} is since the server's start: warm-up and earlier "
            "batches are in it, of the first rank alone"
        )
        found.append(Flag("cumulative_acceptance", "warns", text, run_id))
    return found
