"""Whether a run meets a service-level objective, from the percentiles it reports."""

from lib.run import PERCENTILES, Run, Slo


def meets(run: Run, slo: Slo) -> bool | None:
    """True, False, or None where the reported percentiles do not decide it.

    The named percentile decides; without it, a higher percentile within the limit passes and a
    lower one above it fails. A mean never decides a percentile. An objective without limits is
    met by every run.
    """
    answers = [_within(run, name, limit, slo.percentile) for name, limit in slo.limits.items()]
    if False in answers:
        return False
    return None if None in answers else True


def _within(run: Run, latency: str, limit: float, percentile: str) -> bool | None:
    at = PERCENTILES.index(percentile)
    reported = [getattr(run, f"{latency}_{p}") for p in PERCENTILES]
    if reported[at] is not None:
        return bool(reported[at] <= limit)
    if any(v is not None and v <= limit for v in reported[at + 1 :]):
        return True
    if any(v is not None and v > limit for v in reported[:at]):
        return False
    return None
