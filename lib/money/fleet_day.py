"""The whole answer for one demand: off, every measured arm and the schedule, side by side."""

from dataclasses import dataclass

import numpy as np

from lib.evidence.schedule import Schedule
from lib.money.capacity import Capacities
from lib.money.demand import Demand
from lib.money.fleet import Plan, Rules, Saved, cheapest, plan, saved
from lib.money.fleet_tiers import largest_tax, scheduled


@dataclass(frozen=True, eq=False)
class Day:
    """Plans for one demand under one set of rules.

    `schedule` is None with `why_no_schedule`. `best_fixed` is the cheapest arm at one setting all
    day, off left aside. `tax` is that of K = 0 as typed, None where it is measured or unknown.
    `tax_against_fixed` and `tax_against_off` are the largest tax of K = 0 at
    which the schedule costs no more than that (None: it costs more at no tax, or never drafts 0).
    """

    demand: Demand
    rules: Rules
    sizes: Capacities
    off: Plan
    arms: tuple[Plan, ...]
    schedule: Plan | None
    why_no_schedule: str
    best_fixed: Plan | None
    tax: float | None = None
    tax_against_fixed: float | None = None
    tax_against_off: float | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Off, the arms, the schedule."""
        return (self.off, *self.arms, *([self.schedule] if self.schedule else []))

    @property
    def shown(self) -> tuple[Plan, ...]:
        """Those that a figure compares: off, the best fixed arm, the schedule."""
        found = (self.off, self.best_fixed, self.schedule)
        return tuple(p for p in found if p is not None and not p.why_not)

    @property
    def best(self) -> Plan | None:
        """The cheapest way to speculate that may be priced: a fixed arm or the schedule."""
        known = [p for p in (self.best_fixed, self.schedule) if p is not None and p.known]
        return cheapest(known)

    def saved(self, base: Plan, other: Plan) -> Saved | None:
        """What `other` saves a day against `base`."""
        return saved(base, other, self.demand, self.rules)


def day_of(
    sizes: Capacities,
    demand: Demand,
    rules: Rules,
    schedule: Schedule | str,
    tax: float | None = None,
) -> Day:
    """Every plan for that demand. `schedule` is the emitted one, or why there is none.

    `tax` is the typed tax of K = 0 as a fraction, None while unknown.
    """
    off = plan(sizes.off, demand, rules)
    arms = tuple(plan(c, demand, rules) for c in sizes.arms)
    best = cheapest([p for p in arms if p.known and p.curve.k[0] != 0])
    if isinstance(schedule, str):
        return Day(demand, rules, sizes, off, arms, None, schedule, best)
    curve = scheduled(schedule, sizes, tax)
    if isinstance(curve, str):
        return Day(demand, rules, sizes, off, arms, None, curve, best)
    switched = plan(curve, demand, rules)
    limits: list[float | None] = [None, None]
    if np.any(curve.k == 0):
        limits = [
            None if rival is None else largest_tax(schedule, sizes, demand, rules, rival)
            for rival in (best, off)
        ]
    return Day(demand, rules, sizes, off, arms, switched, "", best, tax, *limits)
