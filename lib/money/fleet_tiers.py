"""A schedule as one replica: at each load the measured arm of the K that it drafts there.

K = 0 is not speculation off (design of the engines): its tok/s is off's less the tax that a server
which never drafts was measured to pay, or that a person types. While neither is known the loads at
K = 0 are marked, and no money is made of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lib.errors import InputError
from lib.evidence.schedule import Schedule
from lib.evidence.tiers import Tier
from lib.money.capacity import Capacities, Curve, Floats, judged
from lib.money.demand import Demand
from lib.money.fleet import MOST_TAX, Plan, Rules, plan
from lib.money.pricing import slo_state
from lib.run import LoadKind, Run, Slo

SCHEDULE = "schedule"
SLOWED = ("tpot_ms", "e2e_ms")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")


def scheduled(schedule: Schedule, sizes: Capacities, tax: float | None = None) -> Curve | str:
    """The schedule's replica on this study's measured arms, or why there is none.

    `tax` is the typed slow-down of K = 0 as a fraction; None leaves the measured one, else it is
    unknown. The operating points are measured loads; the edges of the tiers are interpolated.
    """
    if sizes.load_kind is LoadKind.REQUEST_RATE:
        return "a schedule switches on requests in flight, and these loads are request rates"
    if len(schedule.tiers) < 2:
        return "one K at every batch: a fixed K, no schedule"
    if tax is not None and not 0 <= tax <= MOST_TAX:
        raise InputError(f"K = 0 tax = {tax:g}: from 0 to 1 (100 %)")
    by_k = {0: sizes.off}
    for arm in sizes.arms:
        if arm.method == (schedule.method or arm.method) and arm.k[0] > 0:
            by_k.setdefault(int(arm.k[0]), arm)
    absent = sorted({t.k for t in schedule.tiers} - by_k.keys())
    if absent:
        return f"K = {absent[0]} has no curve here: {'; '.join(sizes.left_out) or 'not measured'}"
    points = _points(schedule.tiers, by_k)
    if not points:
        return "its tiers hold no measured load"
    return _built(points, _taxes(sizes, by_k[max(by_k)].method, tax), by_k, sizes.slo)


@dataclass(frozen=True)
class _Point:
    load: float
    curve: Curve
    k: int
    at: int | None  # index in the curve where it was measured there


def _points(tiers: Sequence[Tier], by_k: Mapping[int, Curve]) -> list[_Point]:
    """Measured loads and edges of tiers, inside the range of the arm that runs there."""
    highest = max(c.loads[-1] for c in by_k.values())
    found = []
    for tier in tiers:
        curve = by_k[tier.k]
        measured = {x: i for i, x in enumerate(curve.loads.tolist())}
        inside = [x for x in measured if tier.first <= x < tier.last + 1]
        edges = [x for x in (float(tier.first), float(tier.last)) if x <= highest]
        for load in sorted({*inside, *edges}):
            if curve.loads[0] <= load <= curve.loads[-1]:
                found.append(_Point(load, curve, tier.k, measured.get(load)))
    return found


def _taxes(sizes: Capacities, method: str, typed: float | None) -> Callable[[float], float]:
    """Tax of K = 0 by load: as typed, else as a server that never drafts was measured, else nan."""
    if typed is not None:
        return lambda _load: typed
    never = next((a for a in sizes.arms if a.method == method and a.k[0] == 0), None)
    if never is None:
        return lambda _load: math.nan
    x, y = np.log2(never.loads), _at(sizes.off, never.loads) / never.output_tps - 1.0
    return lambda load: float(np.interp(math.log2(load), x, y, left=math.nan, right=math.nan))


def _at(curve: Curve, loads: Floats) -> Floats:
    return np.interp(np.log2(loads), np.log2(curve.loads), curve.output_tps)


def _built(
    points: Sequence[_Point],
    tax_at: Callable[[float], float],
    by_k: Mapping[int, Curve],
    slo: Slo | None,
) -> Curve:
    taxes = [tax_at(p.load) if p.k == 0 else 0.0 for p in points]
    slower = np.array([1.0 + (0.0 if math.isnan(t) else t) for t in taxes])
    loads = np.array([p.load for p in points])
    tps = _read(points, "output_tps") / slower
    states = [
        _state(p, by, slo) if p.at is not None else "edge"
        for p, by in zip(points, slower.tolist(), strict=True)
    ]
    measured = [i for i, s in enumerate(states) if s != "edge"]
    proven = np.zeros(len(points), dtype=bool)
    kept, binds, why_not = judged(
        [points[i].load for i in measured], tps[measured], [states[i] for i in measured]
    )
    proven[measured] = kept
    paid = [c for k, c in by_k.items() if k] or list(by_k.values())
    return Curve(
        arm=SCHEDULE,
        loads=loads,
        output_tps=tps,
        tpot_ms=_read(points, "tpot_ms") * slower,
        ttft_ms=_read(points, "ttft_ms"),
        proven=proven,
        binds=binds,
        low_tps=_read(points, "low_tps") / slower,
        high_tps=_read(points, "high_tps") / slower,
        k=np.array([p.k for p in points]),
        untaxed=np.array([math.isnan(t) for t in taxes]),
        states=tuple(states),
        method=paid[0].method,
        gpus=paid[0].gpus,
        usd_per_hour=paid[0].usd_per_hour,
        missing=paid[0].missing,
        why_not=why_not,
    )


def _read(points: Sequence[_Point], field: str) -> Floats:
    """A quantity of the arm that runs at each point, on straight lines over log2 load."""
    return np.array(
        [
            np.interp(math.log2(p.load), np.log2(p.curve.loads), getattr(p.curve, field))
            for p in points
        ]
    )


def _state(point: _Point, slower: float, slo: Slo | None) -> str:
    """As the arm stands at that load; K = 0 with its tax on the pace, TTFT as measured."""
    assert point.at is not None
    state = point.curve.states[point.at]
    if slower == 1.0 or slo is None or state not in ("met", "missed", "unknown"):
        return state
    return slo_state([_slowed(r, slower) for r in point.curve.runs[point.at]], slo)


def _slowed(run: Run, slower: float) -> Run:
    names = [f"{latency}_{s}" for latency in SLOWED for s in STATISTICS]
    changed = {n: v * slower for n in names if (v := getattr(run, n)) is not None}
    return replace(run, **changed)


def largest_tax(
    schedule: Schedule, sizes: Capacities, demand: Demand, rules: Rules, rival: Plan
) -> float | None:
    """The largest tax of K = 0, to 0.1 %, at which the schedule costs no more than `rival`.

    None where it costs more at no tax, or where nothing can be told; 1 where it still wins at 1.
    """

    def wins(tax: float) -> bool:
        curve = scheduled(schedule, sizes, tax)
        if isinstance(curve, str):
            return False
        ours, theirs = plan(curve, demand, rules).cost, rival.cost
        return ours is not None and theirs is not None and ours <= theirs

    if not wins(0.0):
        return None
    low, high = 0, round(MOST_TAX * 1000)
    if wins(MOST_TAX):
        return MOST_TAX
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wins(middle / 1000) else (low, middle)
    return low / 1000
