"""What was promised of an arm at a load: the measured study that a live server is held against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.evidence.acceptance_groups import pooled
from lib.evidence.engine_schedule import Range
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogMean, log_mean
from lib.evidence.round_cost import round_costs
from lib.money.pricing import PricedPair, Rate, half_width, price_pairs
from lib.run import LoadKind, Run, Slo
from lib.theory.acceptance import Ratio

SAME_LOAD = 0.1  # a live load this near a measured one is that one


@dataclass(frozen=True)
class Plan:
    """What one arm of a study was measured to do at a load; None where it was not.

    `usd_per_million` is the price while the server runs at that load, utilisation 1, as a live
    price is; `usd_per_hour` is that of one server with speculation, `off_usd_per_hour` without.
    `round_cost` holds R in plain decode steps by measured load. `gamma`, `c` and `v` stand in for
    it where no round cost was measured. `schedule` are (first, last, K) by batch, None for a fixed
    K. `sources` says what it rests on, line by line.
    """

    study: str
    arm: str
    load: float | None = None
    load_kind: LoadKind | None = None
    tau: Estimate | None = None
    alpha: Estimate | None = None
    tpot_ms: Estimate | None = None
    ttft_ms: Estimate | None = None
    output_tps: Estimate | None = None
    usd_per_million: Estimate | None = None
    round_cost: Mapping[float, Estimate] = field(default_factory=dict)
    slo: Slo | None = None
    usd_per_hour: float | None = None
    off_usd_per_hour: float | None = None
    gamma: int | None = None
    c: float | None = None
    v: float | None = None
    schedule: tuple[Range, ...] | None = None
    data_parallel: int | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("usd_per_hour", "off_usd_per_hour", "c"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"plan {name} = {value}: a number of at least 0 is needed")
        if self.v is not None and not 0 < self.v < math.inf:
            raise InputError(f"plan v = {self.v}: a number above 0 is needed")

    def k_at(self, batch: float) -> int | None:
        """The schedule's K at a batch: above its last range that range's; None without one."""
        if not self.schedule or batch < 1:
            return None
        return next((k for first, _, k in reversed(self.schedule) if batch >= first), None)

    def break_even(self, load: float) -> Estimate | None:
        """R, the tokens a round that break even at a load; None outside the measured loads.

        A load within 10 % of a measured one is that one.

        Between two measured loads R lies between theirs, nothing is interpolated: `low` and `high`
        hold both, with their intervals. Without a measured round cost it is gamma c + v.
        """
        curve = sorted((x, r) for x, r in self.round_cost.items() if math.isfinite(x))
        if not curve:
            return self._stored_cost()
        near = min(curve, key=lambda p: abs(math.log(load / p[0])) if load > 0 else math.inf)
        if abs(load / near[0] - 1) <= SAME_LOAD:
            return near[1]
        around = next(((a, b) for a, b in pairwise(curve) if a[0] < load < b[0]), None)
        if around is None:
            return None
        (below, first), (above, second) = around
        ends = [x for r in (first, second) for x in (r.value, r.low, r.high) if x is not None]
        return Estimate(
            math.sqrt(first.value * second.value),
            "plain steps",
            Basis.DERIVED,
            f"{self.arm} at {below:g} and {above:g}, the measured loads around {load:.3g}",
            min(ends),
            max(ends),
            f"R = τ ÷ M is {first.value:.3g} at {below:g} and {second.value:.3g} at {above:g}: in "
            "between it is taken to lie between the two",
        )

    def _stored_cost(self) -> Estimate | None:
        if self.gamma is None or self.c is None or self.v is None:
            return None
        return Estimate(
            self.gamma * self.c + self.v,
            "plain steps",
            Basis.DERIVED,
            f"stored c = {self.c:g} and v = {self.v:g}",
            how=f"R = γc + v = {self.gamma} × {self.c:g} + {self.v:g}",
        )


def plan_of(
    found: Findings,
    arm: ArmFinding,
    load: float,
    rate: Rate,
    slo: Slo | None = None,
    *,
    c: float | None = None,
    v: float | None = None,
    schedule: Sequence[Range] | None = None,
    accept_random: bool = False,
) -> Plan:
    """What an arm of a study promises at a load; `found` are findings on output throughput.

    `schedule` is the one deployed, where one is. Raises InputError where the arm was not measured
    at the load.
    """
    cell = next((x for x in arm.pairs.cells if x.load == load), None)
    if cell is None:
        loads = ", ".join(f"{x.load:g}" for x in arm.pairs.cells) or "none"
        raise InputError(f"load {load:g}: {arm.label} was measured against off at {loads}")
    on, basis = cell.on, found.study.basis
    source = f"{len(on)} run{'s' if len(on) > 1 else ''} of {arm.label} at {load:g}"
    accepted = pooled(on, basis, source)
    always = replace(rate, utilization=1.0, on_utilization=None)
    pairs = price_pairs(found, arm, always, slo, accept_random=accept_random)
    pair = next((p for p in pairs if p.on.load == load), None)
    ks = {r.num_speculative_tokens for r in on}
    ranks = [r.data_parallel for r in on if r.data_parallel]
    return Plan(
        found.study.name,
        arm.label,
        load,
        next((r.load_kind for r in on), None),
        _of_ratio(accepted.tau, "tokens", basis, source) if accepted else None,
        _of_ratio(accepted.alpha, "", basis, source) if accepted and accepted.alpha else None,
        _mean(on, "tpot_ms_mean", "ms", basis, source),
        _mean(on, "ttft_ms_mean", "ms", basis, source),
        _mean(on, "output_tps", "tok/s", basis, source),
        None if pair is None else pair.on.price,
        _costs(found, arm),
        slo,
        None if pair is None else pair.on.usd_per_hour,
        None if pair is None else pair.off.usd_per_hour,
        ks.pop() if len(ks) == 1 else None,
        c,
        v,
        tuple(sorted(schedule)) if schedule else None,
        max(ranks, default=None),
        _sources(found, source, pair, rate, c, v),
    )


def _of_ratio(ratio: Ratio, unit: str, basis: Basis, source: str) -> Estimate:
    return Estimate(
        ratio.value, unit, basis, source, ratio.low, ratio.high, f"by {ratio.method.value}"
    )


def _mean(runs: Sequence[Run], name: str, unit: str, basis: Basis, source: str) -> Estimate | None:
    values = [v for r in runs if (v := getattr(r, name)) is not None]
    if not values or min(values) <= 0:
        return None
    found: LogMean = log_mean(values)
    half = half_width(found)
    low, high = (None, None) if half is None else (found.mean - half, found.mean + half)
    return Estimate(
        math.exp(found.mean),
        unit,
        basis,
        source,
        None if low is None else math.exp(low),
        None if high is None else math.exp(high),
        "mean of the logs over the runs",
    )


def _costs(found: Findings, arm: ArmFinding) -> dict[float, Estimate]:
    rounds = next((r for r in round_costs(found) if r.label == arm.label), None)
    return {
        p.load: Estimate(
            p.cost,
            "plain steps",
            Basis.DERIVED,
            f"{arm.label} and off at {p.load:g}",
            p.low,
            p.high,
            f"R = τ ÷ M = {p.tau:.4g} ÷ {p.speedup:.4g}",
        )
        for p in (rounds.points if rounds else ())
        if not p.flag
    }


def _sources(
    found: Findings,
    source: str,
    pair: PricedPair | None,
    rate: Rate,
    c: float | None,
    v: float | None,
) -> tuple[str, ...]:
    said = [f"study {found.study.name}: {source}"]
    if found.study.citation:
        said.append(found.study.citation)
    if found.study.caveat:
        said.append(found.study.caveat)
    if pair is not None and pair.on.price is None:
        said.append(f"no price: {pair.on.why_not}")
    elif rate.source:
        said.append(f"$/GPU-h: {rate.source}")
    if c is not None or v is not None:
        said.append(", ".join(f"{n} = {x:g}" for n, x in (("c", c), ("v", v)) if x is not None))
    return tuple(said)
