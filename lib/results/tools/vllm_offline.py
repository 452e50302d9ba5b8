"""`vllm bench throughput` and `vllm bench latency`: recognised, and never runs.

Both drive the engine offline. A throughput file holds no count of output tokens in any version:
its tokens_per_second is input + output, and all requests are handed over at once, so there is no
load to place it at. A latency file holds neither the batch size nor the lengths that were asked
for. Nothing in either could be compared with serving, or priced.
"""

from collections.abc import Mapping, Sequence

from lib.results.findings import Findings, Flag, Key
from lib.results.parsing import as_dict, as_list, counted, flat

TOOL = "vllm-bench-offline"
TITLE = "vLLM bench throughput and latency"
LEVELS: Mapping[str, tuple[Key, ...]] = {
    "throughput (no run: input and output counted together)": (),
    "latency (no run: batch size and lengths are not written)": (),
}
_THROUGHPUT = frozenset(
    {
        *("elapsed_time", "num_requests", "total_num_tokens"),
        *("requests_per_second", "tokens_per_second"),
    }
)
_LATENCY = frozenset({"avg_latency", "latencies", "percentiles"})
_REASONS = {
    "throughput": "its tokens per second count input and output together, at no stated load",
    "latency": "the batch size and the lengths behind its latency are not written",
}


def recognise(values: Sequence[object]) -> bool:
    """Whether all JSON values are results of one of the two commands."""
    kinds = [_kind(v) for v in flat(values)]
    return bool(kinds) and all(kinds)


def _kind(value: object) -> str:
    record = as_dict(value)
    if record.keys() >= _THROUGHPUT:
        return "throughput"
    percentiles = as_dict(record.get("percentiles"))
    numbered = bool(percentiles) and all(k.isdigit() for k in percentiles)
    listed = bool(as_list(record.get("latencies")))
    return "latency" if record.keys() >= _LATENCY and numbered and listed else ""


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Findings without runs; each kind in the file has a flag with the reason."""
    kinds = [_kind(v) for v in flat(values)]
    flags = [
        Flag(
            "not_a_run",
            "warns",
            f"{counted(kinds.count(kind), 'result')} of vllm bench {kind}: offline, not comparable "
            f"with serving ({_REASONS[kind]}); measure with vllm bench serve",
        )
        for kind in dict.fromkeys(k for k in kinds if k)
    ]
    told = {"throughput": _THROUGHPUT, "latency": _LATENCY}
    why = "; ".join(f"keys {', '.join(sorted(told[k]))}" for k in dict.fromkeys(kinds) if k)
    level = " and ".join(dict.fromkeys(k for k in kinds if k))
    return Findings(TOOL, level, f"{why} of vllm bench {level}", (), flags=tuple(flags))
