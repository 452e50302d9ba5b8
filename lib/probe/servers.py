"""c from two running servers: the target alone and the drafter alone."""

from datetime import UTC, datetime

import numpy as np

from lib.addresses import Allowed
from lib.probe.asking import Asking, OnProgress, ask, interval, notes, picks, versions
from lib.probe.completions import Server
from lib.probe.ratios import UNSTABLE, spread
from lib.probe.result import Measured, Probe

APPROXIMATION = (
    "An approximation of c that holds only for comparable one-token steps: each server's own "
    "overheads are in it."
)


def measure_c(
    target: Server,
    draft: Server,
    allowed: Allowed,
    asking: Asking | None = None,
    on_progress: OnProgress = lambda done, of, what: None,
) -> Probe:
    """c of a drafter that is served alone, beside its target served alone.

    Ratios of step times are taken within a repeat; c is their median, its interval resamples
    repeats. No `gamma` and no v: nothing is verified. Raises ProbeError, FetchError, InputError.
    """
    asking = asking or Asking()
    lines = ask((target, draft), (False, False), allowed, asking, on_progress)
    others = [line.others() for line in lines]
    target_ms, draft_ms = (line.step_ms for line in lines)
    ratios = draft_ms / target_ms
    spreads = spread(draft_ms.tolist()), spread(target_ms.tolist())
    widest = max(spreads) if max(spreads) > UNSTABLE else None
    reached = [p.long.prompt_tokens + (p.short.tokens + p.long.tokens) / 2 for p in lines[0].pairs]
    return Probe(
        c=interval(np.median(ratios), np.median(ratios[picks(asking.repeats)], axis=1)),
        t_draft_ms=float(np.median(draft_ms)),
        t_target_ms=float(np.median(target_ms)),
        setup=Measured(
            gpu=asking.gpu,
            target=lines[0].end.model,
            draft=lines[1].end.model,
            dtype=asking.dtype,
            batch=1,
            context=round(float(np.mean(reached))),
            gamma=0,
            host=f"target {target.shown}, draft {draft.shown}",
            versions=versions(target=lines[0], draft=lines[1]),
        ),
        taken_at=datetime.now(UTC),
        method="servers",
        unstable=widest is not None,
        busy=any(others),
        spread_draft=spreads[0],
        spread_target=spreads[1],
        samples_draft_ms=tuple(draft_ms.tolist()),
        samples_target_ms=tuple(target_ms.tolist()),
        warnings=(APPROXIMATION, *notes(lines, asking, widest, any(others))),
    )
