"""What a round costs on a server that speculates, beside the same model served without.

R = (time of a round) / (time of a plain step) and S = tau / R, from whole answers: no kernel is
timed, and whatever the engine does in a round is in it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lib.addresses import Allowed
from lib.errors import ProbeError
from lib.probe.asking import (
    Asking,
    Floats,
    Line,
    OnProgress,
    Pair,
    ask,
    interval,
    notes,
    picks,
    versions,
)
from lib.probe.completions import Server
from lib.probe.ratios import UNSTABLE, spread
from lib.probe.result import Interval

SINGLE_STREAM = (
    "One request at a time, on these prompts: it holds for this drafter, this draft length and "
    "text like this, at low load."
)
MOST_UNDRAFTED = 0.05


@dataclass(frozen=True, kw_only=True)
class Round:
    """What a round costs in plain steps, R, and S = tau / R.

    `round_ms` and `plain_ms` are the median times of a round and of a plain step, samples by
    repeat; tau is tokens over rounds, bonus token included.
    """

    speedup: Interval
    r: Interval
    tau: Interval
    round_ms: float
    plain_ms: float
    tokens: int
    rounds: int
    model: str
    host: str
    versions: dict[str, str]
    taken_at: datetime
    unstable: bool
    busy: bool
    samples_round_ms: tuple[float, ...]
    samples_plain_ms: tuple[float, ...]
    warnings: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "taken_at": self.taken_at.isoformat()}


def measure_round(
    plain: Server,
    speculating: Server,
    allowed: Allowed,
    asking: Asking | None = None,
    on_progress: OnProgress = lambda done, of, what: None,
) -> Round:
    """R, tau and S of one request at a time.

    Rounds are the speculating server's own count, between the two lengths of each answer. Ratios
    of times are taken within a repeat; the intervals resample repeats, all three together. Raises
    ProbeError, FetchError, InputError.
    """
    asking = asking or Asking()
    lines = ask((plain, speculating), (False, True), allowed, asking, on_progress)
    busy = lines[0].others()
    tokens = np.array([p.tokens for p in lines[1].pairs], dtype=float)
    rounds, undrafted = _rounds(lines[1], tokens)
    plain_ms = lines[0].step_ms
    round_ms = np.array([p.ms for p in lines[1].pairs]) / rounds
    ratios = round_ms / plain_ms
    drawn = picks(asking.repeats)
    tau, r = tokens.sum() / rounds.sum(), np.median(ratios)
    taus = tokens[drawn].sum(axis=1) / rounds[drawn].sum(axis=1)
    rs = np.median(ratios[drawn], axis=1)
    widest = max(spread(round_ms.tolist()), spread(plain_ms.tolist()))
    too_wide = widest if widest > UNSTABLE else None
    return Round(
        speedup=interval(tau / r, taus / rs),
        r=interval(r, rs),
        tau=interval(tau, taus),
        round_ms=float(np.median(round_ms)),
        plain_ms=float(np.median(plain_ms)),
        tokens=round(float(tokens.sum())),
        rounds=round(float(rounds.sum())),
        model=lines[1].end.model,
        host=f"plain {plain.shown}, speculating {speculating.shown}",
        versions=versions(plain=lines[0], speculating=lines[1]),
        taken_at=datetime.now(UTC),
        unstable=too_wide is not None,
        busy=busy,
        samples_round_ms=tuple(round_ms.tolist()),
        samples_plain_ms=tuple(plain_ms.tolist()),
        warnings=(
            SINGLE_STREAM,
            *_other_model(lines),
            *undrafted,
            *notes(lines, asking, too_wide, busy),
        ),
    )


def _rounds(line: Line, tokens: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Engine steps by repeat, and a sentence where some of them drafted nothing.

    A step emits its accepted drafts and one token more. Where nearly every step drafts the count
    of drafts is taken, since accepted tokens past the end of an answer are counted too.
    """
    drafts = np.array([_of(p, "drafts") for p in line.pairs])
    if drafts.sum() == 0:
        raise ProbeError(
            f"{line.end.server.shown}: drafted nothing; start it with speculation, or ask with "
            "text that its drafter can continue"
        )
    if all(p.counted is not None and p.counted.accepted is not None for p in line.pairs):
        steps = tokens - np.array([_of(p, "accepted") for p in line.pairs])
        undrafted = 1 - drafts.sum() / steps.sum() if steps.sum() > 0 else 0.0
        if undrafted > MOST_UNDRAFTED:
            return _positive(line, steps), (
                f"{undrafted:.0%} of the steps drafted nothing; a round here is any step of the "
                "engine, these among them.",
            )
    return _positive(line, drafts), ()


def _of(pair: Pair, name: str) -> float:
    return float(getattr(pair.counted, name) or 0.0)


def _positive(line: Line, rounds: Floats) -> Floats:
    if rounds.min() <= 0:
        raise ProbeError(
            f"{line.end.server.shown}: no more rounds in the long answer than in the short one; "
            "ask for longer answers"
        )
    return rounds


def _other_model(lines: Sequence[Line]) -> tuple[str, ...]:
    plain, speculating = (line.end.model for line in lines)
    if plain == speculating:
        return ()
    return (f"The models are named differently: {plain} plain, {speculating} speculating.",)
