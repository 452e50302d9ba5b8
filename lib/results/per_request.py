"""Per-request lists of a result file as one Arrow table."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

Floats = np.ndarray[Any, np.dtype[np.float64]]
_TOKENS = ("input_tokens", "output_tokens")
_DRAFTED = ("drafts", "draft_tokens", "accepted_tokens", "rejected_rounds")
_COUNTS = (*_TOKENS, *_DRAFTED)
_ALWAYS = ("arrival_s", *_TOKENS)


def floats(values: object, scale: float = 1.0) -> Floats | None:
    """A list of numbers (None is missing) times `scale`; None where it holds anything else."""
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(values, dtype=np.float64) * scale
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.ndim == 1 and np.isfinite(array).any() else None


def sums(lists: Sequence[object], scale: float = 1.0) -> Floats | None:
    """The sum of each list of numbers times `scale`; None where one holds anything else."""
    add = cast(Callable[[object], float], sum)
    try:
        with np.errstate(over="ignore"):
            return np.fromiter(map(add, lists), dtype=np.float64, count=len(lists)) * scale
    except (TypeError, ValueError, OverflowError):
        return None


def table(
    ok: Iterable[bool],
    *,
    start_s: Floats | None = None,
    input_tokens: Floats | None = None,
    output_tokens: Floats | None = None,
    ttft_ms: Floats | None = None,
    tpot_ms: Floats | None = None,
    e2e_ms: Floats | None = None,
    decode_ms: Floats | None = None,
    drafts: Floats | None = None,
    draft_tokens: Floats | None = None,
    accepted_tokens: Floats | None = None,
    rejected_rounds: Floats | None = None,
) -> pa.Table:
    """The table of a run's requests, in the file's order.

    `start_s` is on any clock; arrival_s counts from the earliest. Without `e2e_ms` it is ttft +
    `decode_ms`; without `tpot_ms` it is (e2e - ttft) / (output tokens - 1). Latencies of requests
    that are not `ok` are null, and so are values that are negative or not finite. The four
    counts of drafts are null too where those of one request contradict each other.
    """
    good = np.fromiter(ok, dtype=bool)
    with np.errstate(all="ignore"):
        arrival = None if start_s is None else start_s - np.nanmin(start_s)
        if e2e_ms is None and not (ttft_ms is None or decode_ms is None):
            e2e_ms = ttft_ms + decode_ms
        if tpot_ms is None and not (e2e_ms is None or ttft_ms is None or output_tokens is None):
            tpot_ms = (e2e_ms - ttft_ms) / np.where(output_tokens > 1, output_tokens - 1, np.nan)
        columns = {
            "arrival_s": arrival,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "ttft_ms": ttft_ms,
            "tpot_ms": tpot_ms,
            "e2e_ms": e2e_ms,
            **_possible(drafts, draft_tokens, accepted_tokens, rejected_rounds),
        }
        arrays = {n: _column(n, v, good) for n, v in columns.items() if v is not None}
    return pa.table(arrays | {"ok": pa.array(good)})


def _possible(*counts: Floats | None) -> dict[str, Floats]:
    """Columns of _DRAFTED, missing where a request's contradict each other."""
    held = {n: v for n, v in zip(_DRAFTED, counts, strict=True) if v is not None}
    missing = np.full_like(next(iter(held.values()), np.empty(0)), np.nan)
    drafts, tokens, accepted, rejected = (held.get(n, missing) for n in _DRAFTED)
    wrong = (drafts > tokens) | (accepted > tokens) | (rejected > drafts)
    wrong |= (accepted > 0) & (drafts == 0)
    return {n: np.where(wrong, np.nan, v) for n, v in held.items()}


def _column(name: str, values: Floats, good: np.ndarray[Any, Any]) -> pa.Array:
    usable = np.isfinite(values) & (values >= 0) & (values < 2**53)
    if name not in _ALWAYS:
        usable &= good
    kept = np.where(usable, values, 0.0)
    return pa.array(kept.astype(np.int64) if name in _COUNTS else kept, mask=~usable)
