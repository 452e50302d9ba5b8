"""The running batch behind an offered load: a schedule switches on requests in a step."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from lib.run import LoadKind, Run

# A mean over a whole run includes its start and its end, so it lies under the concurrency that was
# held; only a mean below this share of the offered load says that the server could not hold it.
HELD = 0.75
RISES = 1.02


@dataclass(frozen=True)
class Batch:
    """Requests in a step, as a mean; `how` is empty where it is the offered load itself."""

    value: float
    how: str = ""


def batch_of(kind: LoadKind, offered: float, runs: Sequence[Run]) -> Batch | None:
    """The batch of one arm at one load; None where a request rate recorded nothing to tell.

    A static batch and a held concurrency are the batch themselves, except above the recorded
    max_num_seqs, or where the recorded running mean is under 75 % of the offered. For a request
    rate it is the recorded running mean, else Little's law: L = λ·W, completed requests per second
    times mean end-to-end seconds (Little 1961, Operations Research 9:383-387).
    """
    running = _mean(r.running_mean for r in runs)
    if kind is LoadKind.REQUEST_RATE:
        if running is not None:
            return Batch(_rounded(running), "recorded running mean")
        waits = [(r.request_rps, r.e2e_ms_mean) for r in runs]
        little = _mean(None if x is None or w is None else x * w / 1e3 for x, w in waits)
        return None if little is None else Batch(_rounded(little), "Little's law")
    if kind is LoadKind.CONCURRENCY:
        limit = min((r.max_num_seqs for r in runs if r.max_num_seqs), default=None)
        if running is not None and running < HELD * offered:
            return Batch(_rounded(running), "recorded running mean")
        if limit is not None and limit < offered:
            return Batch(float(limit), "max_num_seqs")
    return Batch(offered)


def axis(kind: LoadKind, runs: Mapping[float, Sequence[Run]]) -> dict[float, Batch]:
    """Batch by offered load, of one arm; a load that ran no more at once than a lower is left out.

    Batches under one request are left out too: no step of an engine has fewer.
    """
    found: dict[float, Batch] = {}
    last = 0.0
    for offered in sorted(runs):
        batch = batch_of(kind, offered, runs[offered])
        if batch is None or (batch.how and (batch.value < 1 or batch.value < RISES * last)):
            continue
        if batch.value > last:
            found[offered] = batch
            last = batch.value
    return found


def sentences(arm: str, found: Mapping[float, Batch], offered: Iterable[float]) -> list[str]:
    """What is derived, and which loads take no part; empty where every batch is the load."""
    said = []
    for how in dict.fromkeys(b.how for b in found.values() if b.how):
        pairs = ", ".join(f"{x:g} → {b.value:g}" for x, b in found.items() if b.how == how)
        said.append(f"{arm}: offered load → running batch, derived from {how}: {pairs}.")
    dropped = [x for x in offered if x not in found and math.isfinite(x)]
    if dropped:
        named = ", ".join(f"{x:g}" for x in dropped)
        said.append(
            f"{arm}: load {named} is left out: no more requests ran at once than at a lower load, "
            "or their number is not recorded."
        )
    return said


def _mean(values: Iterable[float | None]) -> float | None:
    stated = [v for v in values if v is not None]
    return fmean(stated) if stated else None


def _rounded(value: float) -> float:
    """To 0.1 of a request: a derived mean has no more to say."""
    return round(value, 1)
