"""Flags on what one run says of its speculation: counts, rates, lengths and the drafter."""

from collections.abc import Iterator
from itertools import pairwise

from lib.results.findings import Flag
from lib.results.flag_codes import flag
from lib.run import LoadKind, Run, SpecState, has_random_tokens

AGREES = 0.02  # relative distance of two statements of one quantity
EXACT_OFFSET = 0.02  # of a length that lacks exactly the bonus token
IMPLAUSIBLE_RATE = 0.01  # below: a percentage that was divided by 100 twice
MANY_DRAFTS = 100
MANY_DRAFT_TOKENS = 500
LIMITED_SHARE = 0.9


def inspect(run: Run) -> Iterator[Flag]:
    """The flags of one run's acceptance; a run that is off has those of contradictions alone."""
    drafting = run.spec_state is not SpecState.OFF
    checks = (*PAIRING, _random_tokens, *(_DRAFTING if drafting else ()))
    return (flag for check in checks if (flag := check(run)) is not None)


def counted_rounds(run: Run) -> float | None:
    """Verify rounds by the counts: drafts, else output less accepted tokens, else drafted over K.

    A round drafts at most K tokens: an output too small for that was counted over other requests.
    """
    if run.drafts:
        return run.drafts
    least = (run.draft_tokens or 0) / _chain_k(run) if _chain_k(run) else 0.0
    plain = (run.output_tokens or 0) - (run.accepted_tokens or 0)
    if run.draft_tokens and run.accepted_tokens is not None and plain >= max(least, 1):
        return plain
    return least or None


def counted_tau(run: Run) -> float | None:
    """Mean tokens a round by the counts, bonus token included; None without counts."""
    rounds = counted_rounds(run)
    if run.accepted_tokens is None or rounds is None:
        return None
    return 1 + run.accepted_tokens / rounds


def tokens_per_round(run: Run) -> float | None:
    """τ: by the counts, else as stated, else from a rate and the K of a chain of fixed length."""
    if (counted := counted_tau(run)) is not None:
        return counted
    if run.accept_length is not None and run.accept_length >= 1:
        return run.accept_length
    if run.accept_rate is not None and run.accept_rate <= 1 and _chain_k(run):
        return 1 + run.accept_rate * _chain_k(run)
    return None


def acceptance_rate(run: Run) -> float | None:
    """Accepted over drafted, 0 to 1: by the counts, else as stated; None where neither can be."""
    if run.accepted_tokens is not None and run.draft_tokens:
        rate = run.accepted_tokens / run.draft_tokens
    elif run.accepted_tokens is not None and run.drafts and _chain_k(run):
        rate = run.accepted_tokens / (run.drafts * _chain_k(run))
    elif run.accept_rate is not None:
        rate = run.accept_rate
    else:
        return None
    return rate if rate <= 1 else None


def contradicted(run: Run) -> Flag | None:
    """The flag of a run that is called off although its server drafted."""
    if run.spec_state is not SpecState.OFF or not run.drafts:
        return None
    text = f"called off, but the server counted {run.drafts} drafts"
    return flag("arm_contradicted", text, run)


def _chain_k(run: Run) -> int:
    """K where every round drafts a chain of it; 0 for a tree, a schedule or an unknown K."""
    if run.schedule is not None or (run.draft_topk or 1) > 1:
        return 0
    return run.num_speculative_tokens or 0


def _near(a: float, b: float, tolerance: float = AGREES) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def _too_many_accepted(run: Run) -> Flag | None:
    if run.accepted_tokens is None or run.draft_tokens is None:
        return None
    if run.accepted_tokens <= run.draft_tokens:
        return None
    text = f"{run.accepted_tokens} accepted of {run.draft_tokens} drafted tokens: not possible"
    return flag("impossible_acceptance", text, run)


def _random_tokens(run: Run) -> Flag | None:
    if not has_random_tokens(run):
        return None
    text = f"dataset {run.dataset}: random tokens make acceptance meaningless"
    return flag("random_tokens", text, run)


def _k_contradicted(run: Run) -> Flag | None:
    if not (run.drafts and run.draft_tokens and _chain_k(run)):
        return None
    drafted = run.draft_tokens / run.drafts
    if drafted <= _chain_k(run) * (1 + AGREES):
        return None
    text = (
        f"named K = {_chain_k(run)}, but the server drafted {drafted:.3g} tokens a round "
        f"({run.draft_tokens} in {run.drafts} drafts)"
    )
    return flag("k_contradicted", text, run)


def _too_good(run: Run) -> Flag | None:
    """Acceptance of exactly 0 or 1 over many drafts, or as a source states it without counts."""
    if run.num_speculative_tokens == 0:
        return None
    counted = run.accepted_tokens is not None and bool(run.draft_tokens or run.drafts)
    share, said = _counted_share(run) if counted else _stated_share(run)
    if share == 1:
        text = f"{said}: check the output text, and whether the prompts are synthetic"
        return flag("perfect_acceptance", text, run)
    if share == 0:
        text = f"{said}: check the output text and the drafter"
        return flag("no_acceptance", text, run)
    return None


def _counted_share(run: Run) -> tuple[float | None, str]:
    accepted, drafted, k = run.accepted_tokens or 0, run.draft_tokens, _chain_k(run)
    if drafted is None:
        drafted = (run.drafts or 0) * k or None
    rounds = counted_rounds(run)
    many = rounds >= MANY_DRAFTS if rounds else (drafted or 0) >= MANY_DRAFT_TOKENS
    if not many or (drafted is None and accepted):
        return None, ""
    of = f"{drafted} drafted tokens" if drafted else f"the tokens of {run.drafts} drafts"
    return (accepted / drafted if drafted else 0.0), f"{accepted} of {of} accepted"


def _stated_share(run: Run) -> tuple[float | None, str]:
    k = _chain_k(run)
    if run.drafts is not None and run.drafts < MANY_DRAFTS:
        return None, ""
    if run.accept_length is not None and k and run.accept_length == k + 1:
        return 1.0, f"accepted length {run.accept_length:g} is exactly K + 1"
    drafting = run.spec_state is SpecState.ON or bool(run.drafts)
    if run.accept_length == 1 and drafting:
        return 0.0, "accepted length is exactly 1: nothing is accepted"
    if run.accept_rate == 1:
        return 1.0, "acceptance rate is exactly 100 %"
    if run.accept_rate == 0 and drafting:
        return 0.0, "acceptance rate is exactly 0"
    return None, ""


def _rate_in_doubt(run: Run) -> Flag | None:
    """A stated rate that is above 1, implausibly small, or not what the counts or length say."""
    rate = run.accept_rate
    if rate is None or rate == 0 or (run.draft_topk or 1) > 1:
        return None
    truth, source = _rate_elsewhere(run)
    if truth is not None and _near(rate, truth, 0.03):
        return None
    if rate > 1:
        text = f"an acceptance rate of {rate:.4g} is above 1: a percentage or an accepted length?"
    elif truth is None:
        if rate >= IMPLAUSIBLE_RATE:
            return None
        text = f"an acceptance rate of {rate:.4g}: was {100 * rate:.4g} a fraction, not percent?"
    elif _over_drafts(run, rate):
        text = (
            f"the stated rate {rate:.4g} is accepted length over draft tokens, bonus token "
            f"included; accepted over drafted is {truth:.4g}"
        )
    else:
        factor = next((f for f in (100, 0.01) if _near(rate * f, truth, 0.03)), None)
        end = ": percent or fraction?" if factor else ""
        text = f"the stated acceptance rate is {rate:.4g}, {source} {truth:.4g}{end}"
    return flag("acceptance_in_doubt", text, run)


def _rate_elsewhere(run: Run) -> tuple[float | None, str]:
    if run.accepted_tokens is not None and run.draft_tokens:
        return run.accepted_tokens / run.draft_tokens, "the counts say"
    k = _chain_k(run)
    if run.accept_length is not None and run.accept_length >= 1 and k:
        return (run.accept_length - 1) / k, f"length {run.accept_length:.4g} at K = {k} says"
    return None, ""


def _over_drafts(run: Run, rate: float) -> bool:
    """Whether the rate is the older SGLang's: length over draft tokens, K + 1 of them or K."""
    tau, k = tokens_per_round(run), _chain_k(run)
    return tau is not None and k > 0 and any(_near(rate, tau / n, 0.01) for n in (k, k + 1))


def _length_in_doubt(run: Run) -> Flag | None:
    """A stated length that lacks the bonus token, or is not what the counts say."""
    length, tau = run.accept_length, counted_tau(run)
    if length is None or run.num_speculative_tokens == 0:
        return None
    if tau is not None:
        if _near(length, tau):
            return None
        if abs(tau - 1 - length) <= EXACT_OFFSET:
            text = f"accepted length {length:.4g} leaves out the bonus token: by the counts τ is "
            return flag("bonus_in_doubt", f"{text}{tau:.4g}", run)
        text = f"accepted length {length:.4g} is stated, the counts say {tau:.4g}"
        return flag("length_in_doubt", text, run)
    if length < 1:
        text = f"accepted length {length:.4g} is below 1: does it include the bonus token?"
        return flag("bonus_in_doubt", text, run)
    return None


def _impossible_length(run: Run) -> Flag | None:
    tau, k = tokens_per_round(run), _chain_k(run)
    accepted, drafted = run.accepted_tokens, run.draft_tokens
    if tau is None or not k or (accepted is not None and drafted and accepted > drafted):
        return None
    if tau <= (k + 1) * (1 + AGREES):
        return None
    text = f"accepted length {tau:.4g} at K = {k}: at most {k + 1} is possible; check K"
    return flag("impossible_length", text, run)


def _position_sum(run: Run) -> Flag | None:
    if run.accepted_per_position is None or run.accepted_tokens is None:
        return None
    total = sum(run.accepted_per_position)
    # Two scrapes of one server may lie a round apart.
    if abs(total - run.accepted_tokens) <= max(
        len(run.accepted_per_position), 0.01 * run.accepted_tokens
    ):
        return None
    text = f"the positions add up to {total} accepted tokens, {run.accepted_tokens} are stated"
    return flag("position_mismatch", text, run)


def _positions_increase(run: Run) -> Flag | None:
    positions = run.accepted_per_position or ()
    for place, (before, after) in enumerate(pairwise(positions), start=1):
        if after > before * 1.01 + 1:
            text = (
                f"position {place + 1} accepted {after} times, position {place} only {before}: "
                "not possible"
            )
            return flag("positions_increase", text, run)
    if run.drafts and positions and positions[0] > run.drafts * 1.01 + 1:
        text = f"position 1 accepted {positions[0]} times in {run.drafts} drafts: not possible"
        return flag("positions_increase", text, run)
    return None


def _tree(run: Run) -> Flag | None:
    topk = run.draft_topk or 1
    if topk <= 1:
        return None
    text = f"tree draft (top-k {topk}): α is not defined"
    if run.accept_length is not None:
        text += f", the accepted length {run.accept_length:.4g} counts"
    if run.accept_rate is not None:
        text += f", not the stated rate {run.accept_rate:.4g} (it may be length over draft tokens)"
    if run.load_kind is not LoadKind.REQUEST_RATE and (run.offered_load or 0) > 1:
        text += f"; at load {run.offered_load:g} EAGLE's authors advise no tree above batch 1"
    return flag("tree_draft", text, run)


def _limited(run: Run) -> Flag | None:
    tau, k = tokens_per_round(run), _chain_k(run)
    if tau is None or not k or not LIMITED_SHARE * (k + 1) < tau < k + 1:
        return None
    text = f"limited by γ: {tau:.4g} of at most {k + 1} tokens a round at K = {k}; try a larger K"
    return flag("limited_by_gamma", text, run)


def _draft_positions(run: Run) -> Flag | None:
    limit = run.draft_max_positions
    if not limit or run.input_len is None or run.input_len <= limit:
        return None
    text = f"input of {run.input_len:.6g} tokens is longer than the drafter's {limit} positions"
    return flag("beyond_draft_positions", text, run)


PAIRING = (_too_many_accepted, contradicted)  # those that block a pair
_DRAFTING = (
    _k_contradicted,
    _too_good,
    _rate_in_doubt,
    _length_in_doubt,
    _impossible_length,
    _position_sum,
    _positions_increase,
    _tree,
    _limited,
    _draft_positions,
)
