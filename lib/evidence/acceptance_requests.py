"""Acceptance of runs whose requests are counted one by one: these give tau, alpha, intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lib.evidence.acceptance import TREE, Acceptance, Given
from lib.results.acceptance_checks import AGREES
from lib.results.requests import Counts, RequestAcceptance
from lib.theory import acceptance as theory
from lib.theory.acceptance import Method, Ratio

SEVERAL = "several draft lengths among these runs: τ only"
ByRun = Mapping[str, RequestAcceptance]  # by run id; runs without counts by request are not in it


def with_requests(
    found: Acceptance, requests: Sequence[RequestAcceptance], copies: int = 1
) -> Acceptance:
    """The acceptance of runs, with tau and alpha from the counts of their requests.

    alpha is A / (A + F) where every request says how many rounds ended in a rejection; else what
    the runs count by position, else tau inverted with its interval. `copies` is how many of these
    runs may have asked the same prompts. Left as it is where fewer than two requests count, all
    or none of the drafts are accepted, or the counts are not possible at the draft length.
    """
    accepted = np.concatenate([r.accepted for r in requests])
    drafts = np.concatenate([r.drafts for r in requests])
    tokens = _joined([r.draft_tokens for r in requests])
    rejected = _joined([r.rejected for r in requests])
    kept, rounds = int(accepted.sum(dtype=float)), int(drafts.sum(dtype=float))
    if not rounds:
        return found
    per_round = found.per_round if tokens is None else int(tokens.sum(dtype=float)) / rounds
    if found.gamma is not None and np.any(accepted > found.gamma * drafts):
        most = 1 + float((accepted / np.maximum(drafts, 1)).max())
        said = f"a request counts τ = {most:.4g}, above γ + 1: requests left out, check γ"
        return replace(found, remarks=(*found.remarks, said))
    if tokens is not None and found.gamma is not None:
        found = _of_fixed_length(
            found, theory.fixed_gamma(int(tokens.sum(dtype=float)), rounds), per_round
        )
    tau = theory.tau_by_request(accepted.tolist(), drafts.tolist(), found.gamma, copies=copies)
    if tau.method is not Method.REQUESTS:
        return found
    given = f"{kept:,} in {rounds:,} rounds of {len(drafts):,} requests"
    alpha, no_alpha = _alpha(found, tau, accepted, rejected, copies)
    by_position = found.gamma is None or len(found.lengths) > 1
    return replace(
        found,
        tau=tau,
        source=f"{found.source}, {len(drafts):,} requests",
        per_round=per_round,
        alpha=alpha,
        no_alpha=no_alpha,
        lengths=found.lengths if by_position else dict.fromkeys(found.lengths, tau.value),
        rounds=float(rounds),
        tokens=float(rounds + kept),
        given=(
            Given("counts by request", given, "1 + Σ accepted / Σ rounds", tau.value),
            *found.given,
        ),
        remarks=(*found.remarks, *_remarks(found, tau, requests, copies)),
    )


def _joined(columns: Sequence[Counts | None]) -> Counts | None:
    """All runs' counts as one; None where one run has none."""
    held = [c for c in columns if c is not None]
    return np.concatenate(held) if len(held) == len(columns) else None


def _of_fixed_length(found: Acceptance, gamma: int | None, per_round: float | None) -> Acceptance:
    """Without a draft length where the requests drafted another, or no fixed one."""
    if gamma == found.gamma:
        return found
    said = f"the requests drafted {per_round:.3g} a round, not γ = {found.gamma}: τ only"
    return replace(found, gamma=None, alpha=None, survival=(), lengths={}, no_alpha=said)


def _alpha(
    found: Acceptance, tau: Ratio, accepted: Counts, rejected: Counts | None, copies: int
) -> tuple[Ratio | None, str]:
    """alpha, or why there is none."""
    if found.no_alpha in (TREE, SEVERAL):
        return None, found.no_alpha
    if rejected is not None:
        counted = theory.alpha_by_request(accepted.tolist(), rejected.tolist(), copies=copies)
        return counted, ""
    stated = found.alpha is not None and found.alpha.method is not Method.LENGTH
    if stated or found.gamma is None:
        return found.alpha, found.no_alpha
    return theory.alpha_inverted(tau, found.gamma), ""


def _remarks(
    found: Acceptance, tau: Ratio, requests: Sequence[RequestAcceptance], copies: int
) -> list[str]:
    said = []
    if abs(found.tau.value / tau.value - 1) > AGREES:
        said.append(
            f"the runs' own counters say τ = {found.tau.value:.4g}, their requests "
            f"{tau.value:.4g}: other traffic may be in the counters, as warm-up is"
        )
    if uncounted := sum(r.uncounted for r in requests):
        total = uncounted + sum(len(r.drafts) for r in requests)
        said.append(f"{uncounted:,} of {total:,} requests state no drafts: τ is that of the others")
    if copies > 1:
        said.append("repeats may ask the same prompts, so they narrow no interval by request")
    return said
