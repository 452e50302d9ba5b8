"""What acceptance comes to, in sentences and tables. Plain text: pages escape it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.evidence.acceptance import LONGEST, Acceptance
from lib.evidence.acceptance_groups import Group, drafted_share
from lib.report.format import multiplier, number, percent
from lib.theory import acceptance as theory
from lib.theory import decay, mixing
from lib.theory.acceptance import Method, Ratio

Columns = dict[str, list[Any]]
FEWEST_TO_MISS = 3  # lengths: two parameters go through two
NOTHING = 0.0005  # of the rounds: less is zero as rates are printed
TOKENS = "tokens a round"
GROUND = {Basis.PUBLISHED: "published", Basis.ASSUMED: "as typed"}


def ground(found: Acceptance) -> str:
    """Where the lengths at hand come from, in one word: `measured`, `published`, `as typed`."""
    return GROUND.get(found.basis, "measured")


def span(ratio: Ratio, digits: int = 3) -> str:
    """`0.657 (0.632–0.680)`."""
    text = f"{ratio.value:.{digits}f}"
    if ratio.low is not None and ratio.high is not None:
        text += f" ({ratio.low:.{digits}f}–{ratio.high:.{digits}f})"
    return text


def answer(found: Acceptance) -> tuple[str, Estimate]:
    """The page's sentence and the estimate it rests on: alpha where it is defined, else tau."""
    tau = f"{found.tau.value:.2f} {TOKENS}"
    at = f" at γ = {found.gamma}" if found.gamma else ""
    if found.alpha is None:
        return f"{tau}{at}. {_capital(found.no_alpha)}.", _tau_estimate(found)
    if found.first_decides:
        return f"{tau}{at}: the first position decides, a single α is no use.", _tau_estimate(found)
    return f"α = {span(found.alpha)}: {tau}{at}. {fit(found)}", _alpha_estimate(found)


def fit(found: Acceptance) -> str:
    """`A single α fits.`, or by how much and where it misleads."""
    worst = found.largest_error
    if found.first_decides:
        return "The first position decides: a single α is the wrong kind of number."
    if worst is None:
        return "Whether a single α fits needs rates by position."
    gamma, error = worst
    if not found.misleads:
        return "A single α fits."
    more = "more" if error > 0 else "less"
    return f"It misleads: it would promise {percent(abs(error))} {more} at γ = {gamma}."


def notes(found: Acceptance) -> list[str]:
    """What to know beside the answer: the interval's ground, the kind, and every remark."""
    said = []
    if found.tau.low is not None:
        said.append(f"τ {span(found.tau)}: {found.tau.method}.")
    if found.alpha is not None and found.alpha.method is not Method.REQUESTS:
        said.append(f"α: {found.alpha.method}.")
    ratio = theory.first_over_later(found.survival)
    if ratio is not None:
        said.append(
            f"Position 1 over the later ones: {ratio:.2f}. Below 0.6 the first position decides."
        )
    elif found.first_decides:
        said.append("An n-gram or suffix draft: the first position decides.")
    if dead := _dead_from(found.survival):
        last = len(found.survival)
        which = f"Position {dead}" if dead == last else f"Positions {dead} to {last}"
        said.append(f"{which}: nothing is accepted; draft {dead - 1} or fewer.")
    if found.flat_cost:
        said.append(
            "This drafter proposes all positions at once: its cost does not grow with γ, so c is "
            "taken once a round, not γ times."
        )
    if found.untrusted:
        said.append("Left out of what other pages start from.")
    return said + [f"{_capital(r)}." for r in found.remarks]


def _dead_from(survival: Sequence[float]) -> int:
    """The position, from the second on, where acceptance ends; 0 where it does not."""
    return next((k for k, p in enumerate(survival, 1) if k > 1 and p < NOTHING), 0)


def given_table(found: Acceptance) -> Columns:
    """What the source called it and what it says: tau, (tau - 1) / gamma, alpha."""
    names = ("the source says", "τ", "(τ − 1) / γ", "α", "α, 95 %", "value", "read as")
    out: Columns = {n: [] for n in names}
    drafted = found.gamma or found.per_round
    for row in found.given:
        alpha = _alpha_of_row(found, row.tau)
        cells = (
            row.called,
            round(row.tau, 4),
            round((row.tau - 1) / drafted, 4) if drafted else None,
            "not defined" if alpha is None else f"{alpha.value:.3f}",
            "–" if alpha is None or alpha.low is None else f"{alpha.low:.3f} to {alpha.high:.3f}",
            row.value,
            row.how,
        )
        for column, cell in zip(out.values(), cells, strict=True):
            column.append(cell)
    return out


def _alpha_of_row(found: Acceptance, tau: float) -> Ratio | None:
    if found.alpha is None:
        return None
    if abs(tau - found.tau.value) < 1e-3 or found.gamma is None:
        return found.alpha
    try:
        return Ratio(theory.alpha_from_tau(tau, found.gamma), Method.LENGTH)
    except InputError:
        return None


def _alpha_estimate(found: Acceptance) -> Estimate:
    alpha = found.alpha
    assert alpha is not None
    how = {
        Method.REQUESTS: (
            "α = A / (A + F), F rounds that ended in a rejection\n"
            "logit α ± t · se / (α(1 − α)), se from residuals by request"
        ),
        Method.ALIKE: "α = A / (A + F), F rounds that ended in a rejection\nBeta(A + ½, F + ½)",
        Method.RATES: "α = Σ P / (Σ P + 1 − P_γ), P_k the rates by position",
        Method.INVERTED: "α solves τ = (1 − α^(γ+1)) / (1 − α); so do the ends of τ's interval",
        Method.LENGTH: "α solves τ = (1 − α^(γ+1)) / (1 − α)",
    }[alpha.method]
    return Estimate(
        alpha.value,
        "",
        found.basis,
        f"{found.source}; {alpha.method}",
        alpha.low,
        alpha.high,
        f"{how}\nτ = {found.tau.value:.4f}" + (f", γ = {found.gamma}" if found.gamma else ""),
    )


def _tau_estimate(found: Acceptance) -> Estimate:
    tau = found.tau
    how = "τ = 1 + accepted / drafts, bonus token included"
    return Estimate(tau.value, TOKENS, found.basis, found.source, tau.low, tau.high, how)


@dataclass(frozen=True)
class Choice:
    """Best gamma at a cost c of a draft step and v of verification, with what it rests on."""

    gamma: int
    speedup: float
    lines: tuple[str, ...]


def choose(found: Acceptance, c: float, v: float) -> Choice | None:
    """The best draft length by what was measured, the regret of a single alpha, the what-if."""
    curve = found.curve
    if curve is None:
        return None
    if found.flat_cost:
        return _choose_flat(found, curve, c, v)
    best = decay.best_gamma(curve, c, v)
    lines = [
        f"Best γ = {best.gamma} at c = {number(c)}"
        + (f", v = {number(v)}" if v != 1 else "")
        + f": S = {multiplier(best.speedup)} at low batch; its τ is {_length_ground(found, best)}."
    ]
    if best.gamma == len(curve.tau):
        lines.append(
            "It is the longest that was looked at: a longer one may be better, measure it."
        )
    if best.speedup <= 1:
        lines.append("No draft length pays at this cost.")
    if found.alpha is not None and len(found.lengths) > 1:
        lost = decay.regret(found.alpha.value, curve, c, v)
        lines.append(
            f"A single α would choose γ = {lost.chosen}: {percent(lost.share, 1)} slower."
            if lost.chosen != lost.best
            else f"A single α chooses the same γ: regret {percent(0, 1)}."
        )
    return Choice(best.gamma, best.speedup, (*lines, *_what_if(found, c, v)))


def _choose_flat(found: Acceptance, curve: decay.Lengths, c: float, v: float) -> Choice | None:
    gamma = max(range(1, len(curve.tau) + 1), key=lambda g: curve.tau[g - 1])
    s = curve.tau[gamma - 1] / (c + v)
    return Choice(
        gamma,
        s,
        (
            f"Drafting costs c = {number(c)} once a round, whatever γ: the largest τ is at γ = "
            f"{gamma}, S = {multiplier(s)} at low batch until verifying more tokens costs more.",
        ),
    )


def _length_ground(found: Acceptance, best: decay.Best) -> str:
    if best.measured:
        return ground(found)
    if found.decay is None:
        return "that of the single α, not measured"
    return (
        "extrapolated by the decay" if best.gamma > max(found.lengths) else "between known lengths"
    )


def _what_if(found: Acceptance, c: float, v: float) -> list[str]:
    """Acceptance may fall by x before it loses, at the gamma that is in use."""
    if found.gamma is None or found.flat_cost or found.alpha is None:
        return []
    left = decay.margin(found.tau.value, found.gamma, c, v)
    at = f"At γ = {found.gamma} a round costs {left.tau:.3g} plain steps"
    if left.alpha is None or left.fall is None:
        return [f"{at}: no acceptance breaks even."]
    if left.fall <= 0:
        return [f"{at}, more than its {found.tau.value:.3g} tokens: it loses already."]
    return [
        f"{at}: acceptance may fall by {percent(left.fall)} (α to {left.alpha:.3f}, τ to "
        f"{max(left.tau, 1.0):.2f}) before it loses."
    ]


def decay_text(found: Acceptance) -> str:
    """The decay fit in words, with its label; empty where there is none."""
    if found.decay is None:
        return ""
    longest = max(found.lengths)
    held = ", with no rate above the one there" if found.decay.d > 1 else ""
    text = (
        f"Decay fit α_i = {found.decay.a0:.3f} · {found.decay.d:.3f}^(i − 1); past γ = {longest} "
        f"it is extrapolated{held}."
    )
    if len(found.lengths) < FEWEST_TO_MISS:
        return text
    gammas, taus = list(found.lengths), list(found.lengths.values())
    alpha = theory.best_single_alpha(taus, gammas)
    one = abs(theory.single_alpha_errors(taus, gammas, alpha)).max()
    fitted = found.decay.lengths(longest)
    two = max(abs(fitted[g - 1] / t - 1) for g, t in found.lengths.items())
    return (
        f"{text} Over these lengths it misses τ by at most {percent(two, 1)}; the best single "
        f"α, {alpha:.3f}, by {percent(float(one), 1)}."
    )


def mix(found: Sequence[Group], weights: Mapping[str, float]) -> Estimate:
    """tau of a traffic mix: the harmonic mean weighted by each domain's share of tokens."""
    names = [g.place.domain for g in found]
    taus = [g.acceptance.tau.value for g in found]
    shares = [weights[n] for n in names]
    value = mixing.mixed_tau(taus, shares)
    total = sum(shares)
    used = ", ".join(
        f"{n} {percent(w / total)} at τ = {t:.3g}"
        for n, t, w in zip(names, taus, shares, strict=True)
    )
    how = f"τ = 1 / Σ (w / τ), w each domain's share of output tokens\n{used}"
    if weights == measured_shares(found):
        return Estimate(value, TOKENS, Basis.DERIVED, "the shares as measured", how=how)
    return Estimate(value, TOKENS, Basis.ASSUMED, "the shares set here", how=how)


def measured_shares(found: Sequence[Group]) -> dict[str, int]:
    """Percent of the output tokens by domain as measured; equal where tokens are not counted."""
    tokens = [g.output_tokens or g.acceptance.tokens for g in found]
    counted = [t for t in tokens if t]
    if len(counted) != len(tokens):
        return {g.place.domain: round(100 / len(found)) for g in found}
    total = sum(counted)
    return {g.place.domain: round(100 * t / total) for g, t in zip(found, counted, strict=True)}


def share_lines(found: Sequence[Group]) -> list[str]:
    """Groups whose output came only partly from rounds that drafted."""
    said = []
    for group in found:
        share = drafted_share(group)
        if share is not None and share.share < mixing.FEW_DRAFTED:
            said.append(
                f"{group.label}: speculation made {percent(share.share)} of the output; over all "
                f"steps {share.tokens_per_step:.3g} tokens a step, not "
                f"{group.acceptance.tau.value:.3g}."
            )
    return said


def groups_table(found: Sequence[Group]) -> Columns:
    """One row a group: where it was measured and what it says."""
    out: Columns = {
        n: []
        for n in (
            *("runs", "arm", "domain", "load", "input", "γ", "τ", "(τ − 1) / γ"),
            *("α", "95 % low", "95 % high", "α rests on", "position 1 / later", "to know"),
        )
    }
    for group in found:
        a, place = group.acceptance, group.place
        alpha = a.alpha
        ratio = theory.first_over_later(a.survival)
        cells = (
            *(len(group.runs), place.arm, place.domain, place.load, place.context),
            *(a.gamma or a.per_round, round(a.tau.value, 4), a.rate),
            *(alpha and alpha.value, alpha and alpha.low, alpha and alpha.high),
            *(str(alpha.method) if alpha else a.no_alpha, ratio, "; ".join(a.remarks)),
        )
        for column, cell in zip(out.values(), cells, strict=True):
            column.append(cell)
    return out


def screen_source(found: Acceptance) -> str:
    """Where alpha and gamma of the screen page come from, once carried over."""
    return f"acceptance page: {found.source}"


def why_not_in_screen(found: Acceptance) -> str:
    """Why this alpha is not carried over; empty where it may be."""
    if found.alpha is None:
        return f"Not for screen: {found.no_alpha}."
    if found.first_decides:
        return "Not for screen: the first position decides, so the theorem's α does not exist."
    if found.untrusted:
        return "Not for screen: this acceptance is not trusted, see above."
    if found.gamma is None or found.gamma > LONGEST:
        return f"Not for screen: it needs one draft length of 1 to {LONGEST}."
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".")
