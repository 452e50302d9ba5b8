"""Quality flags: what in a run's numbers a person should know before trusting them."""

import math
from itertools import pairwise

import orjson

from lib.results import acceptance_checks
from lib.results.acceptance_checks import contradicted, tokens_per_round
from lib.results.findings import Flag, Severity
from lib.results.flag_codes import CODES, flag
from lib.run import PERCENTILES, LoadKind, Run, SpecState

__all__ = [
    "CODES",
    "blocks_latency",
    "blocks_pairing",
    "blocks_pricing",
    "contradicted",
    "inspect",
    "open_loop",
    "saturated",
]

EXACT_TOOL = "vllm-bench-serve"  # computes its throughput as output tokens over duration
FAILED_LIMIT = 0.01
THROUGHPUT_LIMIT = 0.01
CHUNK_LIMIT = 1.1
DECODE_SHARE_LIMIT = 0.1
WAVES_NEEDED = 4
KEPT_UP = 0.98
TAIL_LIMIT = 0.9
TTFT_SHARE_LIMIT = 0.5
RETOKENIZED_LIMIT = 0.98


def blocks_pricing(run: Run) -> str:
    """Why the run must not be priced, as far as it alone tells; empty where nothing does.

    A throughput that its own tokens and duration contradict, more than 1 % failed requests, or a
    request rate that the server kept up with.
    """
    return _blocking(run, "blocks pricing")


def blocks_pairing(run: Run) -> str:
    """Why the run must not be paired, as far as it alone tells; empty where nothing does.

    More tokens accepted than drafted, or `off` although the server counted drafts.
    """
    return _blocking(run, "blocks pairing")


def blocks_latency(run: Run) -> str:
    """Why the run's latencies compare nothing; empty where nothing speaks against them.

    They are a queue's where the run is saturated; with a late first token the decode window is not
    known. Throughput and price do not rest on either.
    """
    if reason := saturated(run):
        return reason
    late = _late_first_token(run)
    return late.message if late else ""


def _blocking(run: Run, severity: Severity) -> str:
    """The first flag of that severity: what is said of a run and what is done cannot differ."""
    checks = _PRICING if severity == "blocks pricing" else acceptance_checks.PAIRING
    found = (flag for check in checks if (flag := check(run)) is not None)
    return next((f.message for f in found if f.severity == severity), "")


def inspect(run: Run) -> tuple[Flag, ...]:
    """The flags of one run, from its own fields alone."""
    found = (check(run) for check in (*_PRICING, *_WARNING))
    return (*(f for f in found if f is not None), *acceptance_checks.inspect(run))


def open_loop(run: Run) -> str:
    """Why the throughput is only the demand: the server kept up with a finite request rate."""
    got = _achieved_rps(run)
    if got is None or not _kept_up(run, got):
        return ""
    asked = f"the asked {run.offered_load:.4g} requests/s"
    if got >= TAIL_LIMIT * (run.offered_load or 0):
        how = f"kept up with {asked} ({got:.4g})"
    else:
        how = f"got only {got:.4g} of {asked} and was idle in between"
    return f"{how}: tok/s and $/1M equal the demand, not what the server can do"


def saturated(run: Run) -> str:
    """Why the run is queue-bound: it waited more than it ran, or missed its rate; else empty.

    Waiting above running requests, median TTFT above half of the median end-to-end latency (never
    with one request in flight or one token an answer), or less than 98 % of a finite request rate.
    """
    waiting, running = run.waiting_mean, run.running_mean
    if waiting is not None and running is not None and waiting > running:
        return f"{waiting:.4g} requests waited while {running:.4g} ran"
    got = _achieved_rps(run)
    if got is not None and not _kept_up(run, got):
        return (
            f"asked for {run.offered_load:.4g} requests/s, got {got:.4g} "
            f"({got / (run.offered_load or 1):.0%})"
        )
    alone = run.load_kind is not LoadKind.REQUEST_RATE and (run.offered_load or math.inf) <= 1
    alone = alone or (running is not None and running < 1)
    if alone or (run.output_len or math.inf) <= 1 or not run.ttft_ms_p50 or not run.e2e_ms_p50:
        return ""
    share = run.ttft_ms_p50 / run.e2e_ms_p50
    if share <= TTFT_SHARE_LIMIT:
        return ""
    return f"median TTFT is {share:.0%} of the median end-to-end latency"


def _achieved_rps(run: Run) -> float | None:
    """Requests a second that a run at a finite request rate got through; None for other loads."""
    asked = run.offered_load
    if run.load_kind is not LoadKind.REQUEST_RATE or asked is None or math.isinf(asked):
        return None
    if run.achieved_load and math.isfinite(run.achieved_load):
        return run.achieved_load
    if run.request_rps:
        return run.request_rps
    if run.completed and run.duration_s:
        return run.completed / run.duration_s
    return run.output_tps / run.output_len if run.output_tps and run.output_len else None


def _kept_up(run: Run, got: float) -> bool:
    """Whether the rate was reached, but for the last requests' decoding in a short run.

    A server with less than one request in flight has kept up, whatever the client sent.
    """
    asked = run.offered_load or 0.0
    if got >= KEPT_UP * asked or (run.running_mean is not None and run.running_mean < 1):
        return True
    tail_ms = (run.e2e_ms_p50 or 0.0) - (run.ttft_ms_p50 or math.inf)
    if not run.completed or not 0 < tail_ms < math.inf or got < TAIL_LIMIT * asked:
        return False
    return got >= KEPT_UP * run.completed / (run.completed / asked + tail_ms / 1e3)


def _failed(run: Run) -> Flag | None:
    failed, completed = run.failed or 0, run.completed or 0
    words = "failed"
    if run.failed is None and run.completed is not None and run.num_prompts:
        failed = max(run.num_prompts - completed - _cut_off(run), 0)
        words = "failed or never ran"
    if not failed:
        return None
    share = failed / (failed + completed)
    text = f"{failed} of {failed + completed} requests {words} ({share:.1%})"
    severity: Severity = "blocks pricing" if share > FAILED_LIMIT else "warns"
    return flag("failed_requests", text, run, severity)


def _cut_off(run: Run) -> int:
    """Requests that a time limit cut off at the end, where the reader kept their number."""
    if not run.extra or "incomplete" not in run.extra:
        return 0
    try:
        kept = orjson.loads(run.extra)
    except orjson.JSONDecodeError:
        return 0
    count = kept.get("incomplete") if isinstance(kept, dict) else None
    return count if isinstance(count, int) and count > 0 else 0


def _throughput(run: Run) -> Flag | None:
    if not (run.output_tps and run.output_tokens and run.duration_s):
        return None
    computed = run.output_tokens / run.duration_s
    off = abs(run.output_tps / computed - 1)
    if off <= THROUGHPUT_LIMIT:
        return None
    text = (
        f"states {run.output_tps:.6g} output tok/s, but {run.output_tokens} tokens in "
        f"{run.duration_s:.6g} s are {computed:.6g} ({off:.1%} apart)"
    )
    total = (run.output_tokens + (run.input_tokens or 0)) / run.duration_s
    # A difference of a few per cent has other causes; counted in, the input is most of it.
    tells = total > computed * (1 + 5 * THROUGHPUT_LIMIT)
    counts_input = tells and abs(run.output_tps / total - 1) <= THROUGHPUT_LIMIT
    if counts_input:
        text += "; it counts the input tokens in"
    # Elsewhere the measured window may differ; here it means edited or mixed data.
    exact = run.tool == EXACT_TOOL or counts_input
    return flag("throughput_mismatch", text, run, "blocks pricing" if exact else "warns")


def _open_loop(run: Run) -> Flag | None:
    reason = open_loop(run)
    if not reason:
        return None
    text = f"{reason}; compare time per output token, or load it beyond what it can serve"
    return flag("open_loop_unsaturated", text, run)


def _saturated(run: Run) -> Flag | None:
    reason = saturated(run)
    return flag("saturated", f"queue-bound: {reason}", run) if reason else None


def _short(run: Run) -> Flag | None:
    if run.load_kind is not LoadKind.CONCURRENCY or not run.completed or not run.offered_load:
        return None
    waves = run.completed / run.offered_load
    if not 0 < waves < WAVES_NEEDED:
        return None
    text = (
        f"{run.completed} requests at {run.offered_load:g} in flight are {waves:.2g} waves: ramp "
        f"and tail weigh heavily, {WAVES_NEEDED} or more are better"
    )
    return flag("short_run", text, run)


def _graph_limit(run: Run) -> Flag | None:
    batch = run.running_mean if run.load_kind is LoadKind.REQUEST_RATE else run.offered_load
    if run.graph_max_batch is None or not batch or batch <= run.graph_max_batch:
        return None
    text = (
        f"load {batch:.4g} is above the graph capture limit {run.graph_max_batch}: larger batches "
        "ran without graphs"
    )
    return flag("graph_limit", text, run)


def _inter_token(run: Run) -> Flag | None:
    if run.spec_state is SpecState.OFF:
        return None
    itl = run.itl_ms_mean or run.itl_ms_p50
    if itl is None:
        return None
    if not (run.tpot_ms_mean or run.tpot_ms_p50):
        text = "only inter-token latency: it is per streamed chunk under speculation, not per token"
        if (step := _single_stream_ms(run)) is not None:
            text += f"; by the throughput a chunk holds {itl / step:.2f} tokens"
        return flag("only_itl", text, run)
    pairs = ((run.itl_ms_mean, run.tpot_ms_mean), (run.itl_ms_p50, run.tpot_ms_p50))
    itl, tpot = next(((i, t) for i, t in pairs if i and t), (0.0, 1.0))
    if itl / tpot <= CHUNK_LIMIT:
        return None
    text = (
        f"inter-token latency ({itl:.3g} ms) is per streamed chunk, {itl / tpot:.2f} tokens on "
        f"average; time per output token ({tpot:.3g} ms) compares the arms"
    )
    if (tau := tokens_per_round(run)) is not None:
        text += f"; the server's counters say {tau:.2f} tokens a round"
    return flag("chunked_itl", text, run)


def _single_stream_ms(run: Run) -> float | None:
    """Time per token of the one stream there is; None with more than one request in flight."""
    single = run.load_kind in (LoadKind.CONCURRENCY, LoadKind.BATCH) and run.offered_load == 1
    return 1e3 / run.output_tps if single and run.output_tps else None


def _late_first_token(run: Run) -> Flag | None:
    if not (run.e2e_ms_mean and run.ttft_ms_mean and (run.output_len or math.inf) > 1):
        return None
    share = 1 - run.ttft_ms_mean / run.e2e_ms_mean
    if share >= DECODE_SHARE_LIMIT:
        return None
    text = (
        f"decoding is {share:.1%} of the end-to-end time: requests queued, or hidden reasoning "
        "tokens count as time to first token"
    )
    return flag("late_first_token", text, run)


def _percentiles(run: Run) -> Flag | None:
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        stated = [(p, v) for p in PERCENTILES if (v := getattr(run, f"{name}_{p}")) is not None]
        for (low, a), (high, b) in pairwise(stated):
            if b < a * (1 - 1e-6):
                text = f"{name.removesuffix('_ms').upper()} {high} {b:.4g} ms is below {low} "
                return flag("percentiles_decrease", f"{text}{a:.4g} ms: not possible", run)
    return None


def _retokenized(run: Run) -> Flag | None:
    """The client's count of output tokens against the server's (generated) one."""
    if not run.retokenized_tokens or not run.output_tokens:
        return None
    server, client = run.output_tokens, run.retokenized_tokens
    if run.token_count == "client":
        server, client = client, server
    if RETOKENIZED_LIMIT <= client / server <= 1 / RETOKENIZED_LIMIT:
        return None
    used = "client" if run.token_count == "client" else "server"
    text = (
        f"the client counted {client} output tokens, the server {server} "
        f"({max(client, server) / min(client, server):.3g} times): the {used}'s count is used"
    )
    if client < server:
        text += "; stream timings (TTFT, inter-token latency) are unreliable"
    return flag("retokenized_mismatch", text, run)


_PRICING = (_failed, _throughput, _open_loop)  # those that may block a price
_WARNING = (
    _saturated,
    _short,
    _graph_limit,
    _inter_token,
    _late_first_token,
    _percentiles,
    _retokenized,
)
