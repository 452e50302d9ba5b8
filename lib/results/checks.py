"""Quality flags: what in a run's numbers a person should know before trusting them."""

import math

from lib.results.findings import Flag, Severity
from lib.run import Run, SpecState

EXACT_TOOL = "vllm-bench-serve"  # computes its throughput as output tokens over duration
FAILED_LIMIT = 0.01
THROUGHPUT_LIMIT = 0.01
CHUNK_LIMIT = 1.1
DECODE_SHARE_LIMIT = 0.1


def blocks_pricing(run: Run) -> str:
    """Why the run must not be priced, as far as it alone tells; empty where nothing does.

    A throughput that its own tokens and duration contradict, or more than 1 % failed requests.
    """
    return _blocking(run, "blocks pricing")


def blocks_pairing(run: Run) -> str:
    """Why the run must not be paired, as far as it alone tells; empty where nothing does.

    More tokens accepted than drafted, or `off` although the server counted drafts.
    """
    return _blocking(run, "blocks pairing")


def _blocking(run: Run, severity: Severity) -> str:
    """The first flag of that severity: what is said of a run and what is done cannot differ."""
    return next((f.message for f in inspect(run) if f.severity == severity), "")


def inspect(run: Run) -> tuple[Flag, ...]:
    """The flags of one run, from its own fields alone."""
    found = (
        _failed(run),
        _throughput(run),
        _inter_token(run),
        _late_first_token(run),
        _random_tokens(run),
        _too_many_accepted(run),
        contradicted(run),
    )
    return tuple(flag for flag in found if flag)


def _failed(run: Run) -> Flag | None:
    failed, completed = run.failed or 0, run.completed or 0
    if not failed:
        return None
    share = failed / (failed + completed)
    over = share > FAILED_LIMIT
    text = f"{failed} of {failed + completed} requests failed ({share:.1%})"
    return Flag("failed_requests", "blocks pricing" if over else "warns", text, run.run_id)


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
    # Elsewhere the measured window may differ; here it means edited or mixed data.
    exact = run.tool == EXACT_TOOL
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
    if run.accepted_tokens is None or run.draft_tokens is None:
        return None
    if run.accepted_tokens <= run.draft_tokens:
        return None
    text = f"{run.accepted_tokens} accepted of {run.draft_tokens} drafted tokens: not possible"
    return Flag("impossible_acceptance", "blocks pairing", text, run.run_id)


def contradicted(run: Run) -> Flag | None:
    """The flag of a run that is called off although its server drafted."""
    if run.spec_state is not SpecState.OFF or not run.drafts:
        return None
    text = f"called off, but the server counted {run.drafts} drafts"
    return Flag("arm_contradicted", "blocks pairing", text, run.run_id)
