"""What a fleet costs a day, in sentences and tables."""

from typing import Any

import numpy as np

from lib.estimate import Basis, Estimate
from lib.money.demand import DAY
from lib.money.fleet import MOST_TAX, Plan, Saved, WhatIf, pace
from lib.money.fleet_day import Day
from lib.money.fleet_tiers import SCHEDULE
from lib.money.memory import Held
from lib.report.format import money, percent, significant
from lib.run import OFF, LoadKind

Columns = dict[str, list[Any]]
NO_MONEY = "No money here, only latency"
NAMED_LOAD = "the load named for a replica"


def named(plan: Plan) -> str:
    """The arm in a sentence."""
    return {OFF: "without speculation", SCHEDULE: "with the schedule"}.get(
        plan.arm, f"with {plan.arm}"
    )


def hours_text(plan: Plan) -> str:
    """`480 GPU-hours`, or replica-hours while the GPUs of a replica are not known."""
    return f"{_hours(plan):,.0f} {'replica' if plan.gpu_hours is None else 'GPU'}-hours"


def _hours(plan: Plan) -> float:
    return (plan.replica_hours if plan.gpu_hours is None else plan.gpu_hours) or 0.0


def fleet_answer(day: Day) -> tuple[str, Estimate | None]:
    """The page's answer and the estimate that it rests on: $ a day, else GPU-hours a day."""
    best = day.best
    if day.off.why_not and best is None:
        return f"Nothing is sized: off: {day.off.why_not}.", None
    if best is None:
        reasons = " ".join(left_out_lines(day)) or "an arm has a price and another none."
        return (
            f"{_cost(day.off)} a day without speculation; no arm with it is sized: {reasons}",
            _estimate(day, day.off, None),
        )
    if day.off.why_not:
        return (
            f"{_cost(best)} a day {named(best)}; without speculation there is no fleet: "
            f"{day.off.why_not}.",
            _estimate(day, best, None),
        )
    found = day.saved(day.off, best)
    sentence = _hours_only(day, best) if found is None else _priced(day, best, found)
    return sentence, _estimate(day, best, found)


def _cost(plan: Plan) -> str:
    usd = plan.usd_per_day
    return hours_text(plan) if usd is None else money(usd)


def _priced(day: Day, best: Plan, found: Saved) -> str:
    off, usd = day.off.usd_per_day or 0.0, best.usd_per_day or 0.0
    if abs(found.usd_per_day) < 0.005:
        return _no_money(day, best)
    if found.low is not None and found.high is not None and found.too_close:
        return (
            f"Too close to call: {named(best)} the fleet saves between {money(found.low)} and "
            f"{money(found.high)} of {money(off)} a day ({_against(day, best)})."
        )
    share = percent(abs(found.usd_per_day) / off) if off else ""
    less = "less" if found.usd_per_day > 0 else "more"
    text = (
        f"{money(usd)} a day {named(best)} instead of {money(off)}: "
        f"{money(abs(found.usd_per_day))} {less} ({share}), {_against(day, best)}"
    )
    return f"{text}{_interval(day, found)}."


def _against(day: Day, best: Plan) -> str:
    """`392 instead of 480 GPU-hours`."""
    return f"{hours_text(best).split(' ')[0]} instead of {hours_text(day.off)}"


def _interval(day: Day, found: Saved) -> str:
    if found.low is None or found.high is None:
        rates = day.sizes.load_kind is LoadKind.REQUEST_RATE
        return f"; {'request rates' if rates else 'one run an arm'}, so no interval"
    ends = sorted((abs(found.low), abs(found.high)))
    return f"; the difference lies between {money(ends[0])} and {money(ends[1])}"


def _no_money(day: Day, best: Plan) -> str:
    faster = pace(day.off, best, day.demand)
    same = f"{hours_text(best)} a day either way"
    if _hours(best) != _hours(day.off):
        same = f"{_against(day, best)} a day at the same {_cost(day.off)}"
    if faster is None:
        return f"No money here: {same} {named(best)}, and no latency was recorded to compare."
    if faster.after_ms < faster.before_ms:
        return (
            f"{NO_MONEY}: {same}; {named(best)} a token takes {significant(faster.after_ms)} ms "
            f"instead of {significant(faster.before_ms)}."
        )
    return f"No money here, and no latency: {same}, {named(best)}."


def _hours_only(day: Day, best: Plan) -> str:
    before, after = _hours(day.off), _hours(best)
    if before == after:
        return _no_money(day, best)
    less = "less" if after < before else "more"
    share = percent(abs(after / before - 1))
    said = f"{_against(day, best)} a day {named(best)}: {share} {less}"
    if day.off.usd_per_day is None or best.usd_per_day is None:
        missing = ", ".join(dict.fromkeys((*day.off.curve.missing, *best.curve.missing)))
        said += f". {missing[:1].upper()}{missing[1:]} to read dollars" if missing else ""
    return f"{said}."


def _estimate(day: Day, best: Plan, found: Saved | None) -> Estimate | None:
    curve = best.curve
    arms = " and ".join(dict.fromkeys((OFF, best.arm)))
    source = f"measured curve{'s' if best is not day.off else ''} of {arms}; {day.demand.said}"
    how = (
        "each hour: replicas = ceil(demand × (1 + headroom) ÷ tok/s of a replica)"
        f"{' + 1' if day.rules.spare else ''}"
        f"{'; the largest all day' if day.rules.reserved else ''}\n"
        f"at most {curve.capacity_tps:,.5g} tok/s a replica at load {curve.operating_load:g}\n"
        f"{best.replica_hours or 0:,.0f} replica-hours a day"
    )
    usd = best.usd_per_day
    if usd is None or curve.usd_per_hour is None:
        value = best.gpu_hours if best.gpu_hours is not None else best.replica_hours
        unit = "GPU-hours a day" if best.gpu_hours is not None else "replica-hours a day"
        return None if value is None else Estimate(value, unit, Basis.DERIVED, source, how=how)
    how += f" × ${curve.usd_per_hour:,.4g}/h = {money(usd)}"
    if day.sizes.rate is not None and day.sizes.rate.source:
        source += f"; $/GPU-h: {day.sizes.rate.source}"
    low = high = None
    if found is not None and found.low is not None and found.high is not None:
        off = day.off.usd_per_day or 0.0
        low, high = min(off - found.high, usd), max(off - found.low, usd)
    return Estimate(usd, "$ a day", Basis.DERIVED, source, low, high, how)


def rests_on(day: Day, basis: Basis) -> dict[str, Estimate]:
    """The inputs of the answer, each with its own basis."""
    found = {
        "average demand": Estimate(day.demand.mean_tps, "tok/s", day.demand.basis, day.demand.said)
    }
    for plan in (day.off, day.best):
        if plan is not None and not plan.why_not:
            found[f"a replica, {plan.arm}"] = Estimate(
                plan.curve.capacity_tps,
                "tok/s",
                basis if plan.arm != SCHEDULE else Basis.DERIVED,
                f"at load {plan.curve.operating_load:g}; {plan.curve.binds}",
            )
    return found


def schedule_lines(day: Day) -> list[str]:
    """What the schedule is worth on this traffic, or why nothing can be said."""
    switched = day.schedule
    if switched is None:
        return [f"No schedule: {day.why_no_schedule}"]
    if switched.why_not:
        return [f"The schedule has no fleet: {switched.why_not}."]
    lines = []
    if switched.lower_bound:
        hours = int(switched.untaxed.sum())
        lines.append(
            f"The schedule needs at least {hours_text(switched)} a day: in {hours} of "
            f"{day.demand.hours:,} hours it is at K = 0, which is not speculation off, and the tax "
            "of that is not measured. Type it to price the schedule."
        )
    else:
        for name, rival in (("no speculation", day.off), (_fixed(day), day.best_fixed)):
            if rival is not None and (found := day.saved(rival, switched)) is not None:
                lines.append(f"Against {name} the schedule {_saves(found)}.")
        curve = switched.curve
        if np.any(curve.k == 0) and (day.tax is not None or not curve.untaxed.any()):
            lines.append(f"K = 0 is slower than off by {_tax(day)}.")
    for name, tax in ((_fixed(day), day.tax_against_fixed), ("off", day.tax_against_off)):
        if tax is not None and tax < MOST_TAX:
            upto = f"up to a K = 0 tax of {percent(tax, 1)}" if tax else "only without a K = 0 tax"
            lines.append(f"It costs no more than {name} {upto}.")
    return lines


def _tax(day: Day) -> str:
    if day.tax is not None:
        return f"{percent(day.tax, 1)}, as typed"
    return "what a server that never drafts was measured to pay"


def _fixed(day: Day) -> str:
    return f"{day.best_fixed.arm} all day" if day.best_fixed else "a fixed K"


def _saves(found: Saved) -> str:
    if abs(found.usd_per_day) < 0.005:
        return "saves $0 a day"
    word = "saves" if found.usd_per_day > 0 else "costs"
    more = "" if found.usd_per_day > 0 else " more"
    close = " (too close to call)" if found.too_close else ""
    return f"{word} {money(abs(found.usd_per_day))}{more} a day{close}"


def latency_lines(day: Day) -> list[str]:
    """The other use of the same measurement: the GPUs of off, and faster users."""
    lines = []
    seen = set()
    for plan in (day.best_fixed, day.schedule):
        if plan is None or plan.lower_bound:
            continue
        found = pace(day.off, plan, day.demand)
        if found is None or found in seen:
            continue
        seen.add(found)
        covered = f", in {found.hours} of {day.demand.hours:,} hours"
        covered = "" if found.hours == day.demand.hours else covered
        name = "the schedule" if plan.arm == SCHEDULE else plan.arm
        lines.append(
            f"Same GPUs, faster users: on the replicas that off needs, {name} takes "
            f"{significant(found.after_ms)} ms a token instead of {significant(found.before_ms)} "
            f"(mean over the day's tokens{covered})."
            if found.after_ms < found.before_ms
            else f"Same GPUs: on the replicas that off needs, {name} is no faster, "
            f"{significant(found.after_ms)} ms a token instead of {significant(found.before_ms)}."
        )
    return lines


def fleet_table(day: Day) -> Columns:
    """One row an arm: replicas, hours, money and what binds."""
    names = (
        "arm",
        "GPU-hours a day",
        "$ a day",
        "$ a month",
        "$ saved a day",
        "replicas at peak",
        "what binds",
        "tok/s a replica",
        "at load",
        "fractional",
        "mean TPOT, ms",
    )
    named_loads = not np.isnan(day.demand.load).any()
    differ = np.unique(day.demand.load).size > 1
    rows = []
    for p in day.plans:
        found = None if p is day.off else day.saved(day.off, p)
        gpus, sized = p.curve.gpus, not p.why_not
        binds = NAMED_LOAD if named_loads else p.curve.binds
        note = f"at least; the tax of K = 0 is unknown. {binds}" if p.lower_bound else ""
        rows.append(
            (
                p.arm,
                p.gpu_hours,
                p.usd_per_day,
                p.usd_per_month,
                None if found is None else found.usd_per_day,
                float(p.replicas.max()) if sized else None,
                p.why_not or note or binds,
                *(_replica(day, p) if sized and not differ else (None, None)),
                float(p.fractional.mean()) * DAY * gpus if sized and gpus else None,
                _weighted(day, p),
            )
        )
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _replica(day: Day, plan: Plan) -> tuple[float, float]:
    """tok/s of a replica and the load that it is run at, where every hour has the same."""
    asked = day.demand.load[:1]
    load = plan.curve.operating_load if np.isnan(asked[0]) else min(asked[0], plan.curve.top)
    return float(plan.curve.capacity_at(asked)[0]), float(load)


def _weighted(day: Day, plan: Plan) -> float | None:
    known = ~np.isnan(plan.tpot_ms) & (day.demand.output_tps > 0)
    if not plan.known or not known.any():
        return None
    return float(np.average(plan.tpot_ms[known], weights=day.demand.output_tps[known]))


def hour_table(day: Day) -> Columns:
    """One row an hour: the demand, and for each fleet its replicas, load and latency."""
    table: Columns = {
        "hour": list(range(day.demand.hours)),
        "demand, output tok/s": day.demand.output_tps.tolist(),
    }
    for p in day.shown:
        table[f"{p.arm}, replicas"] = p.replicas.tolist()
        for what, values in (
            ("load a replica", p.load),
            ("TPOT, ms", p.tpot_ms),
            ("TTFT, ms", p.ttft_ms),
        ):
            table[f"{p.arm}, {what}"] = [None if np.isnan(v) else v for v in values.tolist()]
    return table


def what_if_table(day: Day, rows: tuple[WhatIf, ...]) -> Columns:
    """$ a day (GPU-hours without a price) of every arm after each change alone."""
    priced = any(p.usd_per_day is not None for p in day.plans)
    unit = "$ a day" if priced else "GPU-hours"
    table: Columns = {"change": ["as it is", *(r.change for r in rows)]}
    for p in day.plans:
        now = p.usd_per_day if priced else p.gpu_hours if p.known else None
        then = [(r.usd_per_day if priced else r.gpu_hours)[p.arm] for r in rows]
        table[f"{p.arm}, {unit}"] = [now, *then]
    return table


def memory_line(found: Held) -> str:
    """What the drafter takes, in one sentence."""
    return (
        f"Memory holds {found.on:,.0f} requests a replica with the drafter instead of "
        f"{found.off:,.0f} without ({percent(found.lost)} fewer): its weights take "
        f"{significant(found.draft_gib)} GiB and each request "
        f"{significant(found.draft_kv_gib_a_request)} GiB more than "
        f"{significant(found.kv_gib_a_request)} GiB of KV cache. An upper bound: activations and "
        "graphs are not in it. Loads above are not used."
    )


def left_out_lines(day: Day) -> list[str]:
    """Arms without a curve, in one line each."""
    return [*day.sizes.left_out, *(f"{p.arm}: {p.why_not}." for p in day.arms if p.why_not)]
