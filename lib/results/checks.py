"""Quality flags: what in a run's numbers a person should know before trusting them."""

import math

from lib.results.findings import Flag
from lib.run import Run, SpecState

FAILED_LIMIT = 0.01
THROUGHPUT_LIMIT = 0.01
CHUNK_LIMIT = 1.1
DECODE_SHARE_LIMIT = 0.1


def inspect(run: Run, exact_throughput: bool = False) -> tuple[Flag, ...]:
    """The flags of one run, from its own fields alone.

    `exact_throughput` where the tool computes it as output tokens over duration, so that a mismatch
    means edited or mixed data; elsewhere the measured window may differ.
    """
    found = (
        _failed(run),
        _throughput(run, exact_throughput),
        _inter_token(run),
        _late_first_token(run),
        _random_tokens(run),
        _too_many_accepted(run),
    )
    return tuple(flag for flag in found if flag)


def _failed(run: Run) -> Flag | None:
    failed, completed = run.failed or 0, run.completed or 0
    if not failed:
        return None
    share = failed / (failed + completed)
    over = share > FAILED_LIMIT
    end = "; over 1 %, so the run is not priced" if over else ""
    text = f"{failed} of {failed + completed} requests failed ({share:.1%}){end}"
    return Flag("failed_requests", "blocks pricing" if over else "warns", text, run.run_id)


def _throughput(run: Run, exact: bool) -> Flag | None:
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
    return Flag("throughput_mismatch", "blocks pricing" if exact else "warns", text, run.run_id)


def _inter_token(run: Run) -> Flag | None:
    itl = run.itl_ms_mean or run.itl_ms_p50
    tpot = run.tpot_ms_mean or run.tpot_ms_p50
    if itl is None or run.spec_state is SpecState.OFF:
        return None
    if tpot is None:
        text = "only inter-token latency: it is per streamed chunk under speculation, not per token"
        return Flag("only_itl", "warns", text, run.run_id)
    if tpot and itl / tpot > CHUNK_LIMIT:
        text = (
            f"inter-token latency ({itl:.3g} ms) is per streamed chunk, {itl / tpot:.2f} tokens on "
            f"average; time per output token ({tpot:.3g} ms) compares the arms"
        )
        return Flag("chunked_itl", "warns", text, run.run_id)
    return None


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
    return Flag("late_first_token", "warns", text, run.run_id)


def _random_tokens(run: Run) -> Flag | None:
    if not (run.dataset or "").casefold().startswith("random"):
        return None
    text = f"dataset {run.dataset}: random tokens make acceptance meaningless"
    return Flag("random_tokens", "warns", text, run.run_id)


def _too_many_accepted(run: Run) -> Flag | None:
    if run.drafts is None or run.accepted_tokens is None:
        return None
    if run.accepted_tokens <= (run.draft_tokens if run.draft_tokens is not None else math.inf):
        return None
    text = f"{run.accepted_tokens} accepted of {run.draft_tokens} drafted tokens: not possible"
    return Flag("impossible_acceptance", "blocks pairing", text, run.run_id)
