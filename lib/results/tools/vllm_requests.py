"""Per-request lists of a vLLM result that was saved with --save-detailed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lib.results import per_request

ARRAYS = {
    *("ttfts", "itls", "input_lens", "output_lens", "start_times", "latencies", "errors"),
    *("generated_texts", "queue_times"),
}
# The tool writes seconds; latencies are wanted in ms.
_FACTORS = {
    "start_times": 1.0,
    "input_lens": 1.0,
    "output_lens": 1.0,
    "ttfts": 1e3,
    "latencies": 1e3,
}


def sent_requests(record: Mapping[str, Any]) -> int:
    """How many requests the lists hold, those that failed included; 0 without lists."""
    lengths = record.get("output_lens")
    return len(lengths) if isinstance(lengths, list) else 0


def per_request_table(record: Mapping[str, Any]) -> pa.Table | None:
    """Per-request table of a --save-detailed record; None where no lists of it fit together.

    A failed request has an error or no token.
    """
    lists = {k: record[k] for k in ARRAYS if isinstance(record.get(k), list)}
    count = len(lists.get("output_lens") or lists.get("ttfts") or ())
    if not count or any(len(v) != count for v in lists.values()):
        return None
    columns = {
        k: per_request.floats(lists[k], factor) for k, factor in _FACTORS.items() if k in lists
    }
    if any(v is None for v in columns.values()):
        return None
    out = columns.get("output_lens")
    errors = lists.get("errors") or [None] * count
    generated = np.ones(count) if out is None else out
    return per_request.table(
        (n > 0 and not error for n, error in zip(generated, errors, strict=True)),
        start_s=columns.get("start_times"),
        input_tokens=columns.get("input_lens"),
        output_tokens=out,
        ttft_ms=columns.get("ttfts"),
        e2e_ms=columns.get("latencies"),
        decode_ms=per_request.sums(lists["itls"], 1e3) if "itls" in lists else None,
    )
