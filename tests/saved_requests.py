"""A small sweep as `vllm bench serve --save-detailed` writes it: off and K = 4, every request.

TPOT grows with load, 10 + 0.1 x ms for off and 5 + 0.25 x ms for K = 4 at x concurrent, and is
log-normal between requests: narrow for off, wide for K = 4. All requests together the arms cross
where the means do, near 33; within a limit of 17 ms the slow ones of K = 4 no longer count and
they cross below 32.
"""

import json

import numpy as np
from scipy.special import ndtri

LOADS = (1, 2, 4, 8, 16, 32, 64)
RULES = ("--arm", "off-*=off", "--arm", "k4-*=eagle3:4")
GAPS = 32
TTFT_MS = 40.0
ARMS = {"off": (10.0, 0.1, 0.05), "k4": (5.0, 0.25, 0.4)}


def files(requests: int = 120, repeats: int = 3) -> dict[str, bytes]:
    """Result files by name, `off-c8-r1.json`, with that many requests each."""
    rng = np.random.default_rng(7)
    return {
        f"{arm}-c{load}-r{repeat}.json": _record(rng, arm, load, repeat, requests)
        for arm in ARMS
        for load in LOADS
        for repeat in range(1, repeats + 1)
    }


def _record(rng: np.random.Generator, arm: str, load: int, repeat: int, requests: int) -> bytes:
    start, slope, spread = ARMS[arm]
    mean = (start + slope * load) * (1 + 0.01 * (repeat - 2))
    tpot = mean * np.exp(rng.permutation(_standard(requests)) * spread - spread**2 / 2)
    ttft = TTFT_MS * (0.9 + 0.2 * rng.random(requests))
    e2e = ttft + GAPS * tpot
    seconds = float(e2e.sum()) / load / 1e3
    tokens = requests * (GAPS + 1)
    record = {
        "date": f"20260301-1{repeat}{load:02d}{'00' if arm == 'off' else '30'}",
        "endpoint_type": "openai-chat",
        "backend": "vllm",
        "label": None,
        "model_id": "acme/target-8b",
        "tokenizer_id": "acme/target-8b",
        "num_prompts": requests,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": load,
        "duration": seconds,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": 64 * requests,
        "total_output_tokens": tokens,
        "request_throughput": requests / seconds,
        "request_goodput": None,
        "output_throughput": tokens / seconds,
        "total_token_throughput": (tokens + 64 * requests) / seconds,
    }
    for name, values in (("ttft", ttft), ("tpot", tpot), ("e2el", e2e)):
        record[f"mean_{name}_ms"] = float(values.mean())
        record[f"median_{name}_ms"] = float(np.median(values))
        record[f"std_{name}_ms"] = float(values.std())
        record[f"p99_{name}_ms"] = float(np.percentile(values, 99))
    record |= {
        "input_lens": [64] * requests,
        "output_lens": [GAPS + 1] * requests,
        "ttfts": (ttft / 1e3).tolist(),
        "itls": [[t / 1e3] * GAPS for t in tpot.tolist()],
        "start_times": (100.0 + np.arange(requests) * 0.5).tolist(),
        "generated_texts": [""] * requests,
        "errors": [""] * requests,
    }
    return json.dumps(record).encode()


def _standard(n: int) -> np.ndarray:
    """n evenly likely values of a standard normal."""
    return np.asarray(ndtri((np.arange(n) + 0.5) / n))
