"""What one source says of acceptance, whatever it calls it: tau first, then alpha where it exists.

The source is a run's counters, per-request histograms, a quoted rate or length with its engine, or
published rates by position or lengths by draft length. All become one `Acceptance`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lib.errors import InputError
from lib.estimate import Basis
from lib.results import acceptance_checks as checks
from lib.run import Run, SpecState
from lib.theory import acceptance as theory
from lib.theory import decay, walltime
from lib.theory.acceptance import Method, Ratio
from lib.theory.acceptance_names import (
    Name,
    inferred_rounds,
    is_lookup,
    is_parallel,
    readings,
)
from lib.theory.decay import Decay, Lengths

UNTRUSTED = ("perfect_acceptance", "no_acceptance", "random_tokens")
LONGEST = 16  # draft lengths that are looked at, as on the screen page
BEYOND = 4  # and how far past the measured ones
TREE = "tree draft: α is not defined, τ counts"
EXTREME = (
    "acceptance is exactly 0 or 1: check the output text, and whether the prompts are synthetic"
)
NO_GAMMA = "the draft length γ is not recorded: τ only"


@dataclass(frozen=True)
class Given:
    """One thing that the source gave: its name there, its value there, how it was read, and τ."""

    called: str
    value: str
    how: str
    tau: float


@dataclass(frozen=True)
class Acceptance:
    """tau with, where they exist, alpha, rates by position and lengths by draft length.

    `gamma` is the draft length where every round drafts as many, `per_round` the mean where it
    varies. `survival` are P_1 .. P_gamma, `lengths` tau by draft length. `tokens` and `rounds` are
    those counted. `untrusted` keeps it out of what other pages start from. `no_alpha` says why
    `alpha` is None.
    """

    tau: Ratio
    basis: Basis
    source: str
    gamma: int | None = None
    per_round: float | None = None
    alpha: Ratio | None = None
    no_alpha: str = ""
    survival: tuple[float, ...] = ()
    lengths: Mapping[int, float] = field(default_factory=dict)
    rounds: float | None = None
    tokens: float | None = None
    method: str | None = None
    given: tuple[Given, ...] = ()
    remarks: tuple[str, ...] = ()
    untrusted: bool = False

    @property
    def rate(self) -> float | None:
        """(tau - 1) / gamma: accepted over drafted. Not alpha."""
        drafted = self.gamma or self.per_round
        return (self.tau.value - 1) / drafted if drafted else None

    @property
    def flat_cost(self) -> bool:
        """Whether all positions are drafted at once, so that c is paid once a round."""
        return is_parallel(self.method) or is_lookup(self.method)

    @cached_property
    def first_decides(self) -> bool:
        """Whether the first position decides, by the rates or, without any, by the method."""
        by_rates = theory.first_decides(self.survival) if self.survival else None
        return is_lookup(self.method) if by_rates is None else by_rates

    @cached_property
    def errors(self) -> Mapping[int, float]:
        """By draft length, what the single alpha promises over the measured length, minus 1."""
        if self.alpha is None or len(self.lengths) < 2:
            return {}
        gammas = sorted(self.lengths)
        found = theory.single_alpha_errors(
            [self.lengths[g] for g in gammas], gammas, self.alpha.value
        )
        return dict(zip(gammas, found.tolist(), strict=True))

    @property
    def largest_error(self) -> tuple[int, float] | None:
        """The draft length at which the single alpha is furthest off, and by how much."""
        return max(self.errors.items(), key=lambda e: abs(e[1])) if self.errors else None

    @property
    def misleads(self) -> bool:
        """Whether a single alpha misleads: over 5 % off at some measured draft length."""
        return self.largest_error is not None and abs(self.largest_error[1]) > theory.MISLEADS

    @cached_property
    def decay(self) -> Decay | None:
        """The two-parameter decay; None where it says nothing: few lengths, or a look-up."""
        return None if self.first_decides else decay.fit(self.lengths)

    @property
    def reach(self) -> int:
        """The longest draft length looked at: a little past what was measured."""
        longest = max(self.lengths, default=self.gamma or LONGEST // 2)
        return max(longest, min(LONGEST, longest + BEYOND))

    @cached_property
    def curve(self) -> Lengths | None:
        """Lengths up to `reach` by what is known: measured, then the decay, else the single alpha.

        Not extrapolated where all positions are drafted at once or the first one decides.
        """
        most = self.reach
        if self.flat_cost or self.first_decides:
            known = decay.complete(self.lengths, most, None) if self.lengths else None
            return known if known and known.tau else None
        if self.decay is not None:
            return decay.complete(self.lengths, most, self.decay)
        if self.alpha is None:
            return None
        taus = np.asarray(walltime.tau(self.alpha.value, np.arange(1, most + 1)))
        measured = tuple(g in self.lengths for g in range(1, most + 1))
        return Lengths(tuple(taus.tolist()), measured)


def of_run(run: Run, basis: Basis = Basis.MEASURED) -> Acceptance | None:
    """What a run's counts say, else its length, else its rate; None where it says nothing.

    Counts decide over what is stated. Rounds that no counter has are tokens less accepted.
    """
    if run.spec_state is SpecState.OFF or run.num_speculative_tokens == 0:
        return None
    tau = checks.tokens_per_round(run)
    if tau is None:
        return None
    flags = tuple(checks.inspect(run))
    rounds = checks.counted_rounds(run) if run.accepted_tokens is not None else None
    gamma, why = _gamma(run, rounds)
    survival = _survival(run, gamma)
    found = Acceptance(
        Ratio(tau, Method.ALIKE if rounds else Method.LENGTH),
        basis,
        f"run {run.label or run.run_id}",
        gamma,
        run.draft_tokens / rounds if rounds and run.draft_tokens else None,
        no_alpha=why,
        survival=survival,
        lengths=_lengths(survival, gamma, tau),
        rounds=rounds,
        tokens=None if rounds is None else rounds * tau,
        method=run.draft_method,
        remarks=tuple(f.message for f in flags),
        untrusted=any(f.code in UNTRUSTED for f in flags),
    )
    if gamma is not None:
        found = _with_alpha(found, run, survival)
    return replace(found, given=_given(run, found))


def _gamma(run: Run, rounds: float | None) -> tuple[int | None, str]:
    """The draft length of every round, or why there is none."""
    if (run.draft_topk or 1) > 1:
        return None, TREE
    k = run.num_speculative_tokens
    if run.drafts and run.draft_tokens:
        fixed = theory.fixed_gamma(run.draft_tokens, run.drafts)
        mean = run.draft_tokens / run.drafts
        return fixed, "" if fixed else f"variable draft length ({mean:.3g} a round): τ only"
    if run.schedule is not None:
        return None, "variable draft length (a schedule): τ only"
    if rounds and run.draft_tokens and run.output_tokens and run.accepted_tokens is not None:
        guess = inferred_rounds(run.output_tokens, run.draft_tokens, run.accepted_tokens)
        if guess.gamma is not None and guess.gamma == (k or guess.gamma):
            return guess.gamma, ""
        return None, f"variable draft length ({guess.per_round:.3g} a round): τ only"
    return (k, "") if k else (None, NO_GAMMA)


def _survival(run: Run, gamma: int | None) -> tuple[float, ...]:
    """P_1 .. P_gamma by the per-position counts; none where they are missing or do not fit."""
    positions, drafts = run.accepted_per_position or _tail(run.histogram), run.drafts
    if not positions or not drafts or (run.draft_topk or 1) > 1:
        return ()
    kept = positions[:gamma] if gamma and not any(positions[gamma:]) else positions
    padded = (*kept, *(0,) * ((gamma or 0) - len(kept)))
    total, stated = sum(padded), run.accepted_tokens
    if stated is not None and abs(total - stated) > max(len(padded), 0.01 * stated):
        return ()
    try:
        return theory.from_positions(padded, drafts).survival
    except InputError:
        return ()


def _tail(histogram: tuple[int, ...] | None) -> tuple[int, ...]:
    """Accepted by position from rounds by accepted drafts."""
    return tuple(sum(histogram[k:]) for k in range(1, len(histogram))) if histogram else ()


def _lengths(survival: Sequence[float], gamma: int | None, tau: float) -> Mapping[int, float]:
    if survival and gamma == len(survival):
        return dict(enumerate(theory.tau_from_survival(survival).tolist(), 1))
    return {gamma: tau} if gamma else {}


def _with_alpha(found: Acceptance, run: Run, survival: Sequence[float]) -> Acceptance:
    gamma, tau = found.gamma, found.tau.value
    assert gamma is not None
    if survival and len(survival) == gamma and run.drafts:
        counted = theory.from_positions([p * run.drafts for p in survival], run.drafts)
        return replace(found, alpha=theory.alpha_alike(counted.accepted, counted.rejected))
    if tau > gamma + 1:
        said = f"{tau:.4g} tokens a round at γ = {gamma}: at most {gamma + 1} are possible"
        return replace(found, gamma=None, lengths={}, no_alpha=f"{said}: check γ")
    return replace(found, alpha=Ratio(theory.alpha_from_tau(tau, gamma), Method.LENGTH))


def _given(run: Run, found: Acceptance) -> tuple[Given, ...]:
    """Everything that the run states of acceptance, each with how it was read."""
    said, accepted, gamma = [], run.accepted_tokens, found.gamma
    if accepted is not None and found.rounds:
        rounds = f"{found.rounds:,.6g} {'drafts' if run.drafts else 'rounds (tokens − accepted)'}"
        how = "1 + accepted / drafts"
        said.append(Given("accepted tokens", f"{accepted:,} in {rounds}", how, found.tau.value))
    if accepted is not None and run.draft_tokens:
        value = f"{accepted / run.draft_tokens:.4f}"
        drafted = gamma or found.per_round
        if drafted:
            tau = 1 + accepted / run.draft_tokens * drafted
            said.append(Given("accepted / drafted", value, "1 + rate · γ, not α", tau))
    if found.survival:
        rates = ", ".join(f"{p:.3f}" for p in found.survival)
        tau = 1 + sum(found.survival)
        said.append(Given("acceptance by position", rates, "1 + their sum", tau))
    if run.accept_length is not None and run.accept_length >= 1:
        how = "bonus token included"
        said.append(Given("accepted length", f"{run.accept_length:.4g}", how, run.accept_length))
    if run.accept_rate is not None and gamma:
        tau = 1 + run.accept_rate * gamma
        said.append(Given("acceptance rate", f"{run.accept_rate:.4g}", "1 + rate · γ, not α", tau))
    return tuple(said)


def of_requests(
    requests: Sequence[Mapping[int, Sequence[int]]], source: str, method: str | None = None
) -> Acceptance:
    """From each request's histograms (index = accepted drafts) by draft length.

    The intervals allow for requests that differ. With several draft lengths in use, alpha is still
    A / (A + F), a round being rejected where it kept less than it drafted; rates by position are
    given for a single length only. Raises InputError.
    """
    tested = [
        [theory.from_histogram(rows, gamma) for gamma, rows in by_length.items() if any(rows)]
        for by_length in requests
    ]
    tested = [t for t in tested if t]
    if not tested:
        raise InputError("histograms: no round was counted; paste at least one with a round")
    accepted = [sum(t.accepted for t in request) for request in tested]
    rounds = [sum(t.rounds for t in request) for request in tested]
    rejected = [sum(t.rejected for t in request) for request in tested]
    used = {g for by_length in requests for g, rows in by_length.items() if any(rows)}
    gamma = used.pop() if len(used) == 1 else None
    tau, survival = theory.tau_by_request(accepted, rounds, gamma), tuple[float, ...]()
    if gamma is not None:
        every = [t for request in tested for t in request]
        total = sum(t.rounds for t in every)
        survival = tuple(sum(t.survival[k] * t.rounds for t in every) / total for k in range(gamma))
    extreme = sum(rounds) >= checks.MANY_DRAFTS and tau.value in (1.0, 1.0 + (gamma or -1))
    counted = f"{sum(accepted):,.0f} in {sum(rounds):,.0f} rounds of {len(tested):,} requests"
    drafted = sum(g * sum(rows) for by_length in requests for g, rows in by_length.items()) / sum(
        rounds
    )
    return Acceptance(
        tau,
        Basis.MEASURED,
        source,
        gamma,
        drafted,
        theory.alpha_by_request(accepted, rejected),
        survival=survival,
        lengths=_lengths(survival, gamma, tau.value),
        rounds=sum(rounds),
        tokens=sum(rounds) + sum(accepted),
        method=method,
        given=(Given("acceptance_histogram", counted, "Σ j · rounds with j accepted", tau.value),),
        remarks=(EXTREME,) if extreme else (),
        untrusted=extreme,
    )


def of_name(
    name: Name, value: float, gamma: int | None, method: str | None = None, topk: int = 1
) -> Acceptance:
    """From one number as an engine prints it; topk above 1 is a tree. Raises InputError."""
    tree = topk > 1
    if tree and name.gamma_matters:
        raise InputError(
            f"{name.called} of a tree: it is over the draft tokens of the tree, not over γ; choose "
            "a name that is an accepted length, or top-k 1 for a chain"
        )
    tau = name.tau(value, gamma)
    shown = f"{value:g} %" if name.percent else f"{value:g}"
    alpha = Ratio(theory.alpha_from_tau(tau, gamma), Method.LENGTH) if gamma and not tree else None
    extreme = gamma is not None and tau in (1.0, gamma + 1.0)
    remarks = [name.caution] if name.caution else []
    if name.varies and gamma and gamma > 1:
        stated, shortest = readings(value, gamma)
        remarks.append(
            f"the draft length varies: τ is {stated.tau:.2f} where every round drafts {gamma}, "
            f"{shortest.tau:.2f} had it fallen to 1; the number of drafts decides, type it"
        )
    if extreme:
        remarks.append(EXTREME)
    return Acceptance(
        Ratio(tau, Method.LENGTH),
        Basis.ASSUMED,
        f"{name.title} = {shown}, as typed",
        None if tree else gamma,
        alpha=alpha,
        no_alpha="" if alpha else TREE if tree else NO_GAMMA,
        lengths={gamma: tau} if gamma and not tree else {},
        method=method,
        given=(Given(name.title, shown, name.how, tau),),
        remarks=tuple(remarks),
        untrusted=extreme,
    )


def of_survival(
    survival: Sequence[float], source: str, method: str | None, stated_length: float | None
) -> Acceptance:
    """From published rates by position (unconditional); no counts, so no interval."""
    taus = theory.tau_from_survival(survival)
    gamma, tau = len(survival), float(taus[-1])
    rates = ", ".join(f"{p:g}" for p in survival)
    given = [Given("acceptance by position", rates, "1 + their sum", tau)]
    if stated_length is not None:
        given.append(
            Given("mean acceptance length", f"{stated_length:g}", "as printed", stated_length)
        )
    return Acceptance(
        Ratio(tau, Method.RATES),
        Basis.PUBLISHED,
        source,
        gamma,
        alpha=Ratio(theory.alpha_of_survival(survival), Method.RATES),
        survival=tuple(survival),
        lengths=dict(enumerate(taus.tolist(), 1)),
        method=method,
        given=tuple(given),
    )


def of_lengths(
    lengths: Mapping[int, float],
    gamma: int,
    source: str,
    method: str | None,
    basis: Basis = Basis.PUBLISHED,
) -> Acceptance:
    """From lengths (bonus included) at several draft lengths, each its own server; read at `gamma`.

    The single alpha is the one read at `gamma`.
    """
    tau = lengths[gamma]
    given = (Given(f"acceptance length at γ = {gamma}", f"{tau:g}", "bonus token included", tau),)
    return Acceptance(
        Ratio(tau, Method.LENGTH),
        basis,
        source,
        gamma,
        alpha=Ratio(theory.alpha_from_tau(tau, gamma), Method.LENGTH),
        lengths=dict(lengths),
        method=method,
        given=given,
    )
