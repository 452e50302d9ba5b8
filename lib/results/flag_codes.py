"""Every code that the checks of one run and of a set of runs may raise, and what each means."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lib.results.findings import Flag, Severity
from lib.run import Run

_WARNS: tuple[Severity, ...] = ("warns",)
_PRICING: tuple[Severity, ...] = ("blocks pricing",)
_PAIRING: tuple[Severity, ...] = ("blocks pairing",)
_PRICING_OR_WARNS: tuple[Severity, ...] = ("blocks pricing", "warns")
_PAIRING_OR_WARNS: tuple[Severity, ...] = ("blocks pairing", "warns")


@dataclass(frozen=True)
class Code:
    """What a flag's code means in one line, and how grave it can be, the gravest first."""

    severities: tuple[Severity, ...]
    meaning: str


CODES: Mapping[str, Code] = MappingProxyType(
    {
        # the outcome of one run
        "failed_requests": Code(
            _PRICING_OR_WARNS,
            "Requests failed, or fewer completed than were asked for; above 1 % no price.",
        ),
        "throughput_mismatch": Code(
            _PRICING_OR_WARNS,
            "Stated tok/s and tokens over duration are more than 1 % apart; no price where the "
            "tool computes it exactly so, or where input tokens are counted in.",
        ),
        "short_run": Code(_WARNS, "Fewer than 4 waves of requests: ramp and tail weigh heavily."),
        "open_loop_unsaturated": Code(
            _PRICING,
            "The server kept up with the asked request rate: tok/s and $/1M equal the demand. "
            "Not compared on throughput, not priced; latency and goodput compare.",
        ),
        "saturated": Code(
            _WARNS,
            "Requests queued, or the asked rate was not reached: left out of latency comparisons, "
            "and not priced under a service level.",
        ),
        "graph_limit": Code(
            _WARNS,
            "The load is above the graph capture limit: larger steps ran without graphs.",
        ),
        # latencies
        "only_itl": Code(
            _WARNS, "Only inter-token latency: per streamed chunk under speculation, not per token."
        ),
        "chunked_itl": Code(
            _WARNS,
            "Inter-token latency is per streamed chunk; its ratio to TPOT is the tokens a chunk.",
        ),
        "late_first_token": Code(
            _WARNS,
            "Decoding is under 10 % of the end-to-end time, perhaps for hidden reasoning tokens: "
            "left out of latency comparisons.",
        ),
        "percentiles_decrease": Code(
            _WARNS, "A higher percentile is below a lower one: columns are mixed up."
        ),
        "retokenized_mismatch": Code(
            _WARNS, "Server and client count different output tokens, more than 2 % apart."
        ),
        # speculation
        "arm_contradicted": Code(_PAIRING, "Called off, but the server counted drafts."),
        "k_contradicted": Code(_WARNS, "More tokens drafted a round than the arm's K says."),
        "impossible_acceptance": Code(_PAIRING, "More tokens accepted than drafted."),
        "impossible_length": Code(
            _WARNS, "An accepted length above K + 1, which no chain draft can reach."
        ),
        "perfect_acceptance": Code(
            _WARNS,
            "Every drafted token accepted: synthetic prompts or broken output; no basis for α.",
        ),
        "no_acceptance": Code(
            _WARNS, "No drafted token accepted: a broken drafter or output; no basis for α."
        ),
        "random_tokens": Code(_WARNS, "Random-token prompts: acceptance is not representative."),
        "acceptance_in_doubt": Code(
            _WARNS,
            "The stated rate is no fraction of the drafted tokens: a percentage, a length, or "
            "against the counts.",
        ),
        "length_in_doubt": Code(_WARNS, "The stated accepted length is not what the counts say."),
        "bonus_in_doubt": Code(
            _WARNS, "The stated accepted length leaves out the bonus token, or may do so."
        ),
        "position_mismatch": Code(
            _WARNS, "Accepted tokens by position do not add up to the accepted tokens."
        ),
        "positions_increase": Code(
            _WARNS, "A later position accepted more often than an earlier one: not possible."
        ),
        "tree_draft": Code(
            _WARNS, "Several candidates a position: α is not defined, and load eats the gain."
        ),
        "limited_by_gamma": Code(
            _WARNS, "The accepted length is above 90 % of K + 1: a larger K may pay."
        ),
        "beyond_draft_positions": Code(
            _WARNS, "The input is longer than the positions that the drafter was built for."
        ),
        # sets of runs
        "same_run_twice": Code(
            _PAIRING, "The same run under two ids: the copy counts for nothing."
        ),
        "lengths_differ": Code(
            _PAIRING_OR_WARNS,
            "Mean lengths of the arms differ: noted above 2 %, refused above 10 %.",
        ),
        "protocol_differs": Code(
            _PAIRING, "The arms differ in quantisation, temperature, build or prefix caching."
        ),
        "speedup_above_tau": Code(
            _WARNS, "Throughput rises by more than the tokens a round: not possible."
        ),
        "acceptance_by_batch": Code(
            _WARNS, "The rate falls by more than 0.2 as the batch grows, at equal K."
        ),
        "within_noise": Code(
            _WARNS, "A difference of up to 5 % on one run an arm: launches differ as much."
        ),
    }
)


def flag(code: str, message: str, run: Run, severity: Severity | None = None) -> Flag:
    """A flag of a code in the table; without a severity the gravest that the code can have."""
    allowed = CODES[code].severities
    if severity is not None and severity not in allowed:
        raise ValueError(f"{code}: {severity} is none of {', '.join(allowed)}")
    return Flag(code, severity or allowed[0], message, run.run_id)
