"""A `vllm bench serve --save-detailed` result of a given size, as bytes.

python -m bench.detailed PATH [MB] [nan]
"""

import sys
from pathlib import Path

import numpy as np

TOKENS = 250  # a reply; its gaps between tokens are most of the file


def detailed(megabytes: float, nan: bool = False) -> bytes:
    """One record with per-request lists; with `nan` some statistics and gaps are NaN literals."""
    rng = np.random.default_rng(0)
    gaps = [f"{g:.18f}".rstrip("0") for g in rng.gamma(4, 0.002, 5000)]
    if nan:
        gaps[::500] = ["NaN"] * len(gaps[::500])
    requests = max(1, round(megabytes * 2**20 / (TOKENS * 22.3 + 140)))
    starts = rng.integers(0, len(gaps) - TOKENS, requests)
    itls = ", ".join(f"[{', '.join(gaps[s : s + TOKENS])}]" for s in starts)
    ttfts = ", ".join(f"{t:.17f}" for t in rng.gamma(4, 0.02, requests))
    at = ", ".join(f"{1e5 + t:.9f}" for t in np.sort(rng.uniform(0, 600, requests)))

    def repeated(value: str) -> str:
        return f"[{', '.join([value] * requests)}]"

    whole = repeated("512")
    replies = repeated(str(TOKENS + 1))
    texts = repeated('"the text of a reply"')
    errors = repeated('""')
    tokens = requests * (TOKENS + 1)
    return f"""{{"date": "20260501-120000", "endpoint_type": "openai-chat", "label": "bench",
"model_id": "a/model", "tokenizer_id": "a/model", "num_prompts": {requests},
"request_rate": "inf", "max_concurrency": 64, "duration": 600.0, "completed": {requests},
"total_input_tokens": {512 * requests}, "total_output_tokens": {tokens},
"request_throughput": {requests / 600}, "output_throughput": {tokens / 600},
"mean_ttft_ms": 80.0, "std_ttft_ms": {"NaN" if nan else "20.0"}, "p99_ttft_ms": 170.0,
"mean_tpot_ms": 8.0, "p99_tpot_ms": 11.0, "mean_itl_ms": 8.0, "p99_itl_ms": 20.0,
"input_lens": {whole}, "output_lens": {replies}, "ttfts": [{ttfts}], "itls": [{itls}],
"start_times": [{at}], "generated_texts": {texts}, "errors": {errors}}}""".encode()


if __name__ == "__main__":
    size = float(sys.argv[2]) if len(sys.argv) > 2 else 100.0
    Path(sys.argv[1]).write_bytes(detailed(size, "nan" in sys.argv[3:]))
