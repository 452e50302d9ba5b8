"""What one replica can serve, from measured points only and inside their range only.

A replica is the deployment that was measured. Between measured loads throughput and latency are
straight lines over log2 load; above the highest load nothing is said. Where throughput falls as
load rises, a replica is run at the load before the fall: capacity is the running maximum. Only
measured points that meet the service level count as proven; the first load that misses it ends the
curve. The interval of an arm is that of M at each load, against the same off.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from lib.evidence.competing import k_of, method_of, scheduled_off
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import METRICS, log_mean_of_runs
from lib.money.pricing import Rate, queue_bound, recorded_gpus, slo_state, usd_per_hour
from lib.results.checks import blocks_pricing, open_loop
from lib.run import NEEDS_CONSENT, OFF, LoadKind, Run, Slo, distinct, drafts_on_random_tokens

Floats = NDArray[np.float64]
ONE_PRICE = "state the $/h of every arm on the results page, or of none,"
NO_TPS = "no tok/s recorded: compared, never sized"


@dataclass(frozen=True)
class MostRequests:
    """How many requests a replica may hold at once, without and with the drafter; None unknown.

    `why` names what sets the limit: `memory`, `max_num_seqs`.
    """

    off: float | None = None
    on: float | None = None
    why: str = ""


@dataclass(frozen=True, eq=False)
class Curve:
    """One arm's replica by load; arrays of one length, loads rising.

    `output_tps` with the ends of its interval (nan: one run an arm), mean TPOT and median TTFT in
    ms (nan: not recorded). `proven` are the measured points that may be run at; the replica is run
    at none above the last of them. `binds` says what ends it there, `states` how each load stands.
    `usd_per_hour` and `gpus` are of one replica, None with `missing` while not known. `k` by load
    is the draft length there, -1 where it is not a fixed one; `untaxed` are the loads at K = 0
    whose tax is unknown.
    """

    arm: str
    loads: Floats
    output_tps: Floats
    tpot_ms: Floats
    ttft_ms: Floats
    proven: NDArray[np.bool_]
    binds: str
    low_tps: Floats
    high_tps: Floats
    k: NDArray[np.int64]
    untaxed: NDArray[np.bool_]
    states: tuple[str, ...] = ()
    runs: tuple[tuple[Run, ...], ...] = ()
    method: str = ""
    gpus: int | None = None
    usd_per_hour: float | None = None
    missing: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def top(self) -> float:
        """The highest load that a replica may be run at; nan where there is none."""
        return float(self.loads[self.proven][-1]) if self.proven.any() else math.nan

    @cached_property
    def _inside(self) -> tuple[Floats, Floats]:
        """log2 load and running maximum of tok/s, up to where the most is reached."""
        within = self.loads <= self.top
        tps = np.maximum.accumulate(self.output_tps[within])
        end = int(np.argmax(tps)) + 1 if len(tps) else 0
        return np.log2(self.loads[:end]), tps[:end]

    @property
    def capacity_tps(self) -> float:
        """The most output tok/s of a replica within the service level; nan where none is proven."""
        return float(self._inside[1][-1]) if self.proven.any() else math.nan

    @property
    def operating_load(self) -> float:
        """The lowest load at which that capacity is reached."""
        x = self._inside[0]
        return float(2 ** x[-1]) if len(x) else math.nan

    def capacity_at(self, load: Floats) -> Floats:
        """Output tok/s of a replica run at these loads; nan asks for the most.

        A load above the top is held at the top; below the lowest measured load it is nan.
        """
        x, tps = self._inside
        if np.isnan(load).all():
            return np.full(load.shape, self.capacity_tps)
        if not len(x):
            return np.full(load.shape, math.nan)
        asked = np.log2(np.where(np.isnan(load), self.top, load))
        return np.interp(asked, x, tps, left=math.nan, right=tps[-1])

    def load_at(self, tps: Floats) -> Floats:
        """Load at which a replica serves that many tok/s; nan below the lowest measured."""
        x, reached = self._inside
        if not len(x):
            return np.full(tps.shape, math.nan)
        found = np.interp(tps, reached, x, left=math.nan)
        return np.exp2(found)

    def latency_at(self, load: Floats) -> tuple[Floats, Floats]:
        """Mean TPOT and median TTFT in ms at these loads; nan where not recorded."""
        x, at = np.log2(self.loads), np.log2(load)
        return (
            np.interp(at, x, self.tpot_ms, left=math.nan, right=math.nan),
            np.interp(at, x, self.ttft_ms, left=math.nan, right=math.nan),
        )

    def untaxed_at(self, load: Floats) -> NDArray[np.bool_]:
        """Whether a replica run at these loads is at a K = 0 whose tax is not known."""
        if not self.untaxed.any():
            return np.zeros(load.shape, dtype=bool)
        asked = np.minimum(np.where(np.isnan(load), self.operating_load, load), self.top)
        place = np.clip(np.searchsorted(self.loads, asked, "right") - 1, 0, None)
        return self.untaxed[place]

    def end(self, which: str) -> "Curve | None":
        """This curve at the `low` or `high` end of its interval; None with one run an arm."""
        tps = self.low_tps if which == "low" else self.high_tps
        if np.isnan(tps[self.loads <= self.top]).any():
            return None
        return replace(self, output_tps=tps)

    def drafting_faster(self, factor: float) -> "Curve":
        """The curve if tau were `factor` times as long at the same round cost: M scales with it.

        M = tau / R (Leviathan et al. 2023, arXiv 2211.17192), so tok/s where it drafts does too.
        """
        by = np.where(self.k == 0, 1.0, factor)
        return replace(self, output_tps=self.output_tps * by, tpot_ms=self.tpot_ms / by)


@dataclass(frozen=True)
class Capacities:
    """Off and the arms that stand against it, and one line on each that is left out.

    `rate` is what a replica's hour is paid by, None where the runs record their own $/h.
    """

    off: Curve
    arms: tuple[Curve, ...]
    left_out: tuple[str, ...] = ()
    load_kind: LoadKind = LoadKind.CONCURRENCY
    slo: Slo | None = None
    rate: Rate | None = None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Off first."""
        return (self.off, *self.arms)


def capacities(
    found: Findings,
    rate: Rate,
    slo: Slo | None = None,
    most: Iterable[MostRequests] = (),
    *,
    accept_random: bool = False,
) -> Capacities | None:
    """Every arm's curve against off, from paired runs; None where no pair has tok/s.

    Of several protocols the one of the strongest arm is taken. `most` limits the requests that a
    replica holds at once, where the loads are requests in flight. An arm on random tokens takes
    part only with `accept_random`. Intervals are at 95 % over all arms together (Bonferroni).
    """
    headline = found.headline(None)
    if headline is None:
        return None
    level = 1 - 0.05 / max(1, len(found.arms))
    used = [a for a in found.arms if a.pairs.protocol == headline.pairs.protocol]
    used = [a for a in used if a.pairs.load_kind is headline.pairs.load_kind]
    left_out = [f"{a.label}: under another protocol." for a in found.arms if a not in used]
    kind = headline.pairs.load_kind
    off_runs: dict[float, dict[str, Run]] = {}
    for arm in used:
        for cell in arm.pairs.cells:
            if math.isfinite(cell.load):
                off_runs.setdefault(cell.load, {}).update({r.run_id: r for r in cell.off})
    limits = tuple(most) if kind is not LoadKind.REQUEST_RATE else ()
    own = _gpus_differ(used)
    at_off = {x: tuple(r.values()) for x, r in off_runs.items()}
    off = _curve(OFF, at_off, rate, slo, own, _least((m.off, m.why) for m in limits))
    if not len(off.loads):
        return None
    with_drafter = _least((m.on, m.why) for m in limits)
    arms = []
    for arm in used:
        runs = {c.load: c.on for c in arm.pairs.cells if math.isfinite(c.load)}
        flat = [r for at in runs.values() for r in at]
        if drafts_on_random_tokens(flat) and not accept_random:
            left_out.append(f"{arm.label}: {NEEDS_CONSENT}.")
            continue
        curve = _curve(arm.label, runs, rate, slo, own, with_drafter)
        if not len(curve.loads):
            left_out.append(f"{arm.label}: {NO_TPS}.")
            continue
        if found.metric.name == "output_tps":
            curve = _with_interval(curve, arm, off, level)
        else:
            unknown = np.full(len(curve.loads), math.nan)
            curve = replace(curve, low_tps=unknown, high_tps=unknown)
        curve = replace(curve, method=method_of(arm.pairs))
        fixed = 0 if scheduled_off(arm.pairs) else k_of(arm.pairs)
        k = -1 if fixed is None else fixed
        arms.append(replace(curve, k=np.full(len(curve.loads), k)))
    if len({_own_price(c) for c in (off, *arms)}) > 1:
        off, *arms = (replace(c, usd_per_hour=None, missing=(ONE_PRICE,)) for c in (off, *arms))
    paid = None if any(_own_price(c) for c in (off, *arms)) else rate
    return Capacities(off, tuple(arms), tuple(left_out), kind, slo, paid)


def _own_price(curve: Curve) -> bool:
    return any(r.usd_per_hour is not None for at in curve.runs for r in at)


def _gpus_differ(arms: Sequence[ArmFinding]) -> bool:
    counts = {r.gpu_count for a in arms for c in a.pairs.cells for r in (*c.off, *c.on)}
    return len(counts - {None}) > 1


def _least(limits: Iterable[tuple[float | None, str]]) -> tuple[float, str]:
    return min(((most, why) for most, why in limits if most is not None), default=(math.inf, ""))


def _curve(
    arm: str,
    by_load: dict[float, tuple[Run, ...]],
    rate: Rate,
    slo: Slo | None,
    own: bool,
    limit: tuple[float, str],
) -> Curve:
    metric = METRICS["output_tps"]
    means = {x: m for x, runs in sorted(by_load.items()) if (m := log_mean_of_runs(runs, metric))}
    loads = list(means)
    flat = [r for x in loads for r in by_load[x]]
    hourly, missing = usd_per_hour(flat, rate, recorded_first=own) if flat else (None, [])
    if hourly is not None and arm != OFF:
        added = rate.added_usd_per_hour
        missing += [] if added is not None else ["type the drafter's $/GPU-h"]
        hourly = None if added is None else hourly + added
    recorded = recorded_gpus(flat)
    tps = np.array([math.exp(means[x].mean) for x in loads])
    most, why = limit
    full = f"{why} holds {most:,.0f} requests at once"
    states = [full if x > most else _standing(by_load[x], slo) for x in loads]
    proven, binds, why_not = judged(loads, tps, states)
    return Curve(
        arm=arm,
        loads=np.array(loads, dtype=float),
        output_tps=tps,
        tpot_ms=np.array([_mean(r.tpot_ms_mean for r in by_load[x]) for x in loads]),
        ttft_ms=np.array([_mean(r.ttft_ms_p50 for r in by_load[x]) for x in loads]),
        proven=proven,
        binds=binds,
        low_tps=tps,
        high_tps=tps,
        k=np.zeros(len(loads), dtype=np.int64),
        untaxed=np.zeros(len(loads), dtype=bool),
        states=tuple(states),
        runs=tuple(by_load[x] for x in loads),
        gpus=recorded or rate.gpu_count if own else rate.gpu_count or recorded,
        usd_per_hour=hourly,
        missing=tuple(missing),
        why_not=why_not,
    )


def _standing(runs: Sequence[Run], slo: Slo | None) -> str:
    """met, missed or unknown; empty with no service level; else why the runs size nothing."""
    refused = next((why for r in runs if (why := _refused(r))), "")
    if refused:
        return refused
    if slo is None or not slo.limits:
        return ""
    state = slo_state(runs, slo)
    waits = queue_bound(runs, slo, state)
    return f"queue-bound ({waits})" if waits and state != "missed" else state


def _refused(run: Run) -> str:
    """Why the run sizes nothing. One that kept up with its request rate did serve that rate: it
    compares no throughput, and still proves what a replica holds."""
    why, kept_up = blocks_pricing(run), open_loop(run)
    return "" if kept_up and why.startswith(kept_up) else why


def judged(
    loads: Sequence[float], output_tps: Floats, states: Sequence[str]
) -> tuple[NDArray[np.bool_], str, str]:
    """Which measured points may be run at, what binds at the last, and why there is none.

    `states` are met, missed, unknown, empty (no service level) or a reason, by load.
    """
    held = len(list(takewhile(lambda s: s != "missed", states)))
    proven = np.array([i < held and s in ("met", "") for i, s in enumerate(states)], dtype=bool)
    if not proven.any():
        if not states:
            return proven, "", NO_TPS
        named = distinct(s for s in states if s)
        words = {
            "missed": f"misses the SLO at {loads[0]:g}, its lowest measured load",
            "unknown": "SLO unknown: no file decides it",
        }
        return proven, "", words.get(named[0], named[0])
    last = int(np.flatnonzero(proven)[-1])
    peak = int(np.argmax(output_tps[: last + 1]))
    if peak < last:
        return proven, f"throughput: most at {loads[peak]:g}, less above", ""
    if last + 1 < len(states):
        what = states[last + 1]
        if what == "missed":
            return proven, f"SLO: missed at {loads[last + 1]:g}", ""
        return proven, "SLO unknown" if what == "unknown" else what, ""
    return proven, f"measured range: above {loads[last]:g} is not measured", ""


def _with_interval(curve: Curve, arm: ArmFinding, off: Curve, level: float) -> Curve:
    """tok/s at the ends of M's interval over the same off."""
    base = dict(zip(off.loads.tolist(), off.output_tps.tolist(), strict=True))
    low, high = [], []
    for load in curve.loads.tolist():
        point = arm.at(load)
        ends = point.interval(level) if point is not None and load in base else None
        low.append(math.nan if ends is None else base[load] * ends[0])
        high.append(math.nan if ends is None else base[load] * ends[1])
    return replace(curve, low_tps=np.array(low), high_tps=np.array(high))


def _mean(values: Iterable[float | None]) -> float:
    stated = [v for v in values if v is not None]
    return sum(stated) / len(stated) if stated else math.nan
