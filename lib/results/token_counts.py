"""The server's count of output tokens in the place of a client's.

A client that tokenises the streamed text again may count other tokens than the server generated.
Throughput, mean length and time per token then scale with its count; the clock does not.
"""

import math
from dataclasses import replace
from typing import Any

from lib.results.findings import LARGEST_COUNT
from lib.run import Run

SERVER, CLIENT = "server", "client"
AGREE = 0.02  # relative difference up to which two counts of the server are the same
_RATES = ("output_tps", "output_tps_sd")
_TPOT = tuple(f"tpot_ms_{s}" for s in ("mean", "p50", "p90", "p95", "p99"))


def with_server_tokens(run: Run, output_tokens: int) -> Run:
    """The run with `output_tokens`, counted by the server over all completed requests.

    Throughput (and its spread) scales with the count; time per output token is the decode time
    over n - 1 tokens, so it is scaled by (client's n - 1) / (server's n - 1) of the mean lengths,
    which is exact where all requests are equally long; with one token a request it is left empty.
    The client's count is kept in `retokenized_tokens`. A run without its completed requests or its
    mean output length is returned as it is, and so is one that the server counted already.
    """
    counted = _counted(run)
    possible = 0 < output_tokens <= LARGEST_COUNT
    if counted is None or not run.completed or not possible or run.token_count == SERVER:
        return run
    length = output_tokens / run.completed
    rate, decode = output_tokens / counted, _decode(counted / run.completed, length)
    scaled: dict[str, Any] = {name: _scaled(getattr(run, name), rate) for name in _RATES}
    scaled |= {name: _scaled(getattr(run, name), decode) for name in _TPOT}
    return replace(
        run,
        token_count=SERVER,
        output_tokens=output_tokens,
        output_len=length,
        retokenized_tokens=round(counted),
        **scaled,
    )


def _counted(run: Run) -> float | None:
    """The output tokens of the run as it states them: their sum, else the mean's."""
    if run.output_tokens:
        return run.output_tokens
    if run.output_len and run.completed:
        total = run.output_len * run.completed
        return total if 0 < total <= LARGEST_COUNT else None
    return None


def _decode(client: float, server: float) -> float | None:
    """The factor of the time per output token from one mean length to the other."""
    if server <= 1 or client < 1:
        return None
    return 1.0 if client == server else (client - 1) / (server - 1)


def _scaled(value: float | None, factor: float | None) -> float | None:
    if value is None or factor is None:
        return None
    scaled = value * factor
    return scaled if math.isfinite(scaled) and scaled <= LARGEST_COUNT else None
