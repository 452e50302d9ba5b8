"""The gate in dollars: tok/s at an equal $/h is a price, and a price may have a most."""

import math
from collections.abc import Sequence
from dataclasses import replace

from lib.errors import InputError
from lib.evidence.gate import Check
from lib.evidence.ratio import LogMean
from lib.money.cost import cost_per_million
from lib.run import NEEDS_CONSENT, OFF, drafts_on_random_tokens

RELATIVE, MOST = "usd_per_million", "usd_per_million_max"


def in_dollars(check: Check, usd_per_hour: float | None) -> Check:
    """$ per 1M output tokens of both sides from a check on output tok/s, at one $/h for both.

    The ratio is that of the throughputs, inverted, whatever the $/h: without one only the ratio
    means something.
    """
    hourly = 1.0 if usd_per_hour is None else usd_per_hour

    def price(mean: LogMean | None) -> LogMean | None:
        if mean is None:
            return None
        return replace(mean, mean=math.log(cost_per_million(hourly, math.exp(mean.mean))))

    return replace(
        check,
        name=RELATIVE,
        baseline=price(check.baseline),
        candidate=price(check.candidate),
        higher_is_better=False,
        absolute=usd_per_hour is not None,
    )


def at_most(
    checks: Sequence[Check], usd_per_million: float, accept_random: bool = False
) -> tuple[Check, ...]:
    """The candidate's own price at each load against the most that is allowed.

    `checks` are those in dollars. The bound takes the baseline's place, known exactly. Of several
    arms the ones that speculate count, not off. A price that rests on drafts of random tokens needs
    a person's consent.
    """
    if not 0 < usd_per_million < math.inf:
        raise InputError(f"--max-usd-per-million {usd_per_million:g}: a number of $ above 0")
    bound = LogMean(math.log(usd_per_million), 0.0, 1.0, 2)
    deployed = [c for c in checks if c.cell.arm != OFF] or list(checks)
    found = []
    for check in deployed:
        refused = not accept_random and drafts_on_random_tokens(check.cell.candidate)
        why = f"candidate: {NEEDS_CONSENT}" if refused else check.why
        candidate = None if refused else check.candidate
        why = why if candidate is None else ""
        found.append(replace(check, name=MOST, baseline=bound, candidate=candidate, why=why))
    return tuple(found)
