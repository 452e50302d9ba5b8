"""The same money over other tokens: output, input-weighted and total, and what decoding is of it.

A server's cost covers the input it reads and the output it writes. Divided by the output tokens
alone, or by all tokens, it is the same bill with another label; the labels differ by a factor of
twenty where the input is long (kubernetes-sigs/inference-perf#139).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lib.errors import InputError
from lib.estimate import Estimate
from lib.run import Run


@dataclass(frozen=True)
class TokenPrices:
    """One price by token basis: $ per 1M output, weighted and total tokens.

    `weighted` counts an input token as so many output tokens; None while no weight is named.
    """

    output: Estimate
    total: Estimate
    weighted: Estimate | None


def input_per_output(runs: Sequence[Run]) -> float | None:
    """Input tokens per output token over these runs: their counts, else their mean lengths.

    None where a run states neither.
    """
    counts = [(r.input_tokens, r.output_tokens) for r in runs]
    if counts and all(i is not None and o for i, o in counts):
        return sum(i or 0 for i, _ in counts) / sum(o or 0 for _, o in counts)
    lengths = [(r.input_len, r.output_len) for r in runs]
    if lengths and all(i is not None and o for i, o in lengths):
        return sum(i or 0 for i, _ in lengths) / sum(o or 0 for _, o in lengths)
    return None


def token_prices(output: Estimate, ratio: float, weight: float | None = None) -> TokenPrices:
    """A price per 1M output tokens on every basis: divided by 1 + weight times `ratio`.

    `ratio` is input tokens per output token; total tokens weigh 1.
    """
    if not (math.isfinite(ratio) and ratio >= 0):
        raise InputError(f"input_per_output = {ratio}: a number of at least 0 is needed")
    if weight is not None and not 0 <= weight <= 1:
        raise InputError(f"weight = {weight:g}: 0 (output only) to 1 (total tokens)")
    weighted = None
    if weight is not None:
        unit = f"$ per 1M weighted tokens (an input token as {weight:g})"
        weighted = _divided(output, unit, weight, ratio)
    total = _divided(output, "$ per 1M total tokens (input and output)", 1.0, ratio)
    return TokenPrices(output, total, weighted)


def _divided(price: Estimate, unit: str, weight: float, ratio: float) -> Estimate:
    by = 1.0 + weight * ratio
    return replace(
        price,
        value=price.value / by,
        unit=unit,
        low=None if price.low is None else price.low / by,
        high=None if price.high is None else price.high / by,
        how=f"${price.value:,.4g} per 1M output tokens ÷ (1 + {weight:g} × {ratio:,.4g} input "
        f"tokens per output token) = ${price.value / by:,.4g}",
    )


def decode_share(runs: Sequence[Run]) -> float | None:
    """Share of a request's time after its first token: what a faster decode can shorten.

    From mean TTFT and mean end-to-end time, else mean TPOT times the output tokens after the
    first. The rest is prefill and waiting. None where a run states neither.
    """
    shares = []
    for run in runs:
        ttft, e2e = run.ttft_ms_mean, run.e2e_ms_mean
        if e2e is None and None not in (ttft, run.tpot_ms_mean, run.output_len):
            after = (run.tpot_ms_mean or 0) * max(0.0, (run.output_len or 0) - 1)
            e2e = (ttft or 0) + after
        if ttft is None or not e2e or ttft > e2e:
            return None
        shares.append(1.0 - ttft / e2e)
    return fmean(shares) if shares else None


def overall_speedup(share: float, decode_speedup: float) -> float:
    """Speed-up of the whole where only decoding is faster: 1 / ((1 - f) + f / S).

    Amdahl 1967, AFIPS 30:483-485. `share` is the decode share f of the time, in 0 to 1;
    `decode_speedup` may be infinite.
    """
    if not 0 <= share <= 1:
        raise InputError(f"decode share = {share:g}: 0 to 1")
    if not decode_speedup > 0:
        raise InputError(f"decode_speedup = {decode_speedup:g}: a number above 0 is needed")
    left = (1.0 - share) + share / decode_speedup
    return 1.0 / left if left else math.inf
