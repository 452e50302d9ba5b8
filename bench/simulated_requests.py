"""Whether the intervals of alpha hold what they promise: simulated requests, known truth."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from lib.theory.acceptance import LEVEL, request_intervals
from lib.theory.walltime import Array


@dataclass(frozen=True)
class Covered:
    """Share of draws whose interval holds the true alpha: by request, and Jeffreys pooled."""

    by_request: float
    alike: float


def simulate(
    requests: int,
    *,
    alpha: float = 0.65,
    logit_sd: float = 0.6,
    rounds: int = 25,
    gamma: int = 4,
    draws: int = 4000,
    rng: np.random.Generator,
) -> Covered:
    """`draws` data sets of `requests` requests with `rounds` rounds of gamma drafts each.

    A request's own alpha is normal on the logit scale around `alpha` with `logit_sd`. The truth is
    A / (A + F) of the whole population.
    """
    own = special.expit(special.logit(alpha) + logit_sd * rng.standard_normal((draws, requests)))
    accepted, rejected = np.zeros_like(own), np.zeros_like(own)
    running = np.full(own.shape, rounds)
    for _ in range(gamma):
        passed = rng.binomial(running, own)
        accepted += passed
        rejected += running - passed
        running = passed
    truth = _truth(alpha, logit_sd, gamma)
    _, _, low, high = request_intervals(accepted, rejected)
    a, f = accepted.sum(-1), rejected.sum(-1)
    tail = (1 - LEVEL) / 2
    ends = (
        special.betaincinv(a + 0.5, f + 0.5, tail),
        special.betaincinv(a + 0.5, f + 0.5, 1 - tail),
    )
    return Covered(
        float(((low <= truth) & (truth <= high)).mean()),
        float(((ends[0] <= truth) & (truth <= ends[1])).mean()),
    )


def _truth(alpha: float, logit_sd: float, gamma: int) -> float:
    """The population's A / (A + F), by Gauss-Hermite quadrature over the requests' alphas."""
    nodes, weights = special.roots_hermitenorm(60)
    own: Array = special.expit(special.logit(alpha) + logit_sd * nodes)
    accepted = sum(own**k for k in range(1, gamma + 1))
    rejected = 1 - own**gamma
    return float((weights * accepted).sum() / (weights * (accepted + rejected)).sum())
