"""What must be acted on: live servers against their plan, the worst first, each in one sentence.

Codes, by severity:

- alert `scrape_failing`: a server cannot be read; `drafter_dead`: hardly a draft is accepted;
  `below_break_even`: a round emits less than it costs; `schedule_inactive`: what is drafted is not
  what the schedule has at that batch; `schedule_lost`: a schedule under data parallel.
- warning `acceptance_down`: tau is under the plan's; `too_close`: tau is at break-even;
  `not_speculating`: no draft is counted; `restarted`: counters fell.
- note `unmeasured_load`: no round cost is known at this load; `other_draft_length`: the server
  drafts another K than the plan; `few_drafted`: most of the output had no draft; `point_sample`:
  tau is a gauge; `few_rounds`: too few to judge; `idle`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lib.estimate import Estimate
from lib.evidence.ratio import TIE
from lib.run import LoadKind
from lib.serving.off_schedule import SAME_K, not_on_schedule
from lib.serving.plan import Plan
from lib.serving.speculating import Speculating, lost_a_day, speculating, worse_than_off
from lib.serving.windows import Window, total
from lib.theory.mixing import FEW_DRAFTED

Severity = Literal["alert", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("alert", "warning", "note")

DEAD_TAU = 1.05
DOWN = 0.05  # of tau, below the plan's
FEWEST_ROUNDS = 100


@dataclass(frozen=True)
class Alert:
    """One thing to know. `usd_per_day` is what it costs, None where that is not known."""

    code: str
    severity: Severity
    sentence: str
    usd_per_day: Estimate | None = None


def alerts(
    windows: Sequence[Window],
    plan: Plan | None = None,
    problems: Mapping[str, str] | None = None,
    restarts: Mapping[str, float] | None = None,
) -> tuple[Alert, ...]:
    """What to act on, the worst first.

    `windows` are recent ones of all servers together, oldest first, as `Watcher.windows` gives
    them: the parts of each are its servers. Rates are those over all of them. `problems` is what
    keeps a server from being read, `restarts` the Unix time of its last restart, both by
    host:port; a restart before the first window is old.
    """
    by_server: dict[str, list[Window]] = {}
    for window in windows:
        for part in window.parts or (window,):
            by_server.setdefault(part.label, []).append(part)
    found = [
        Alert("scrape_failing", "alert", f"Scrape failing: {problem}")
        for problem in (problems or {}).values()
    ]
    found += _restarted(by_server, windows, restarts or {})
    for label, parts in by_server.items():
        name = f"{label}: " if label and len(by_server) > 1 else ""
        found += _of_server(name, parts, plan)
    return tuple(sorted(found, key=lambda a: SEVERITIES.index(a.severity)))


def _restarted(
    by_server: Mapping[str, Sequence[Window]],
    windows: Sequence[Window],
    restarts: Mapping[str, float],
) -> Iterator[Alert]:
    since_s = windows[0].began_at_s if windows else -math.inf
    told = [shown for shown, at_s in restarts.items() if at_s >= since_s]
    seen = [label for label, parts in by_server.items() if any(w.restarts for w in parts)]
    for label in dict.fromkeys((*told, *seen)):
        yield Alert(
            "restarted",
            "warning",
            f"{label or 'The server'} was restarted: its counters fell and are counted from 0 "
            "since; where nobody restarted it, the address leads to several servers in turn.",
        )


def _of_server(name: str, parts: Sequence[Window], plan: Plan | None) -> Iterator[Alert]:
    whole = total(parts)
    if whole.idle:
        yield Alert("idle", "note", f"{name}Idle: nothing runs and nothing was generated.")
        return
    if plan is not None:
        for code, said in not_on_schedule(parts, plan):
            yield Alert(code, "alert", f"{name}{said}")
    server = speculating(whole)
    if server is None:
        if plan is not None and _should_draft(whole, plan):
            yield Alert(
                "not_speculating",
                "warning",
                f"{name}No draft is counted and {plan.arm} drafts: the server was started without "
                "speculation, or its version does not count it.",
            )
        return
    if whole.speculation == "point sample":
        said = f"{name}τ is a point sample of a gauge: it says nothing of the time between."
        yield Alert("point_sample", "note", said)
    made = whole.coverage
    if made is not None and made.share < FEW_DRAFTED:
        yield Alert(
            "few_drafted",
            "note",
            f"{name}Speculation made {made.share:.0%} of the output: over all steps "
            f"{made.tokens_per_step:.4g} tokens a step, not τ {server.tau:.4g}.",
        )
    if (whole.counters.drafts or FEWEST_ROUNDS) < FEWEST_ROUNDS:
        said = f"{name}{whole.counters.drafts} rounds: at least {FEWEST_ROUNDS} are needed"
        yield Alert("few_rounds", "note", f"{said} to judge τ.")
        return
    yield from _acceptance(name, server, plan)


def _should_draft(whole: Window, plan: Plan) -> bool:
    """Whether the plan drafts at this load; a schedule that is not run is said by itself."""
    if not (plan.tau or plan.gamma) or not whole.counters.output_tokens:
        return False
    if plan.schedule is None:
        return True
    return whole.speculation == "not counted" and bool(plan.k_at(whole.gauges.running or 0))


def _acceptance(name: str, server: Speculating, plan: Plan | None) -> Iterator[Alert]:
    same = plan is not None and _same_draft_length(server, plan)
    if server.tau <= DEAD_TAU:
        usd = lost_a_day(server, plan) if plan is not None and same else None
        yield Alert(
            "drafter_dead",
            "alert",
            f"{name}The drafter is dead: τ {server.tau:.2f}, hardly a draft is accepted. "
            "Switch speculation off until it is mended.",
            usd,
        )
    if plan is None:
        return
    if not same:
        yield Alert(
            "other_draft_length",
            "note",
            f"{name}It drafts {server.k:.3g} a round and {plan.arm} was measured at K = "
            f"{plan.gamma}: τ is not compared.",
        )
        return
    yield from _against_plan(name, server, plan)
    yield from _against_cost(name, server, plan)


def _same_draft_length(server: Speculating, plan: Plan) -> bool:
    if server.k is None or plan.gamma is None:
        return True
    return abs(server.k - plan.gamma) <= SAME_K * max(plan.gamma, 1)


def _against_plan(name: str, server: Speculating, plan: Plan) -> Iterator[Alert]:
    promised = plan.tau
    if promised is None or server.tau <= DEAD_TAU:
        return
    fallen = 1 - server.tau / promised.value
    least = promised.value if promised.low is None else promised.low
    if fallen < DOWN or server.high >= least:
        return
    alpha, planned = server.whole.alpha, plan.alpha
    now = f" (α {alpha.value:.3f})" if alpha is not None else ""
    then = f" (α {planned.value:.3f})" if planned is not None else ""
    yield Alert(
        "acceptance_down",
        "warning",
        f"{name}Acceptance is down: τ {server.tau:.2f}{now} instead of "
        f"{promised.value:.2f}{then}, {fallen:.1%} less.{_still(server, plan)}",
        lost_a_day(server, plan),
    )


def _still(server: Speculating, plan: Plan) -> str:
    load = live_load(server.whole, plan)
    cost = None if load is None else plan.break_even(load)
    if cost is None:
        return ""
    if cost.low is None or cost.high is None:
        return f" A round costs {cost.value:.3g} plain steps: S {server.tau / cost.value:.2f}."
    least, most = server.tau / cost.high, server.tau / cost.low
    steps = f"{cost.low:.3g} to {cost.high:.3g} plain steps"
    return f" A round costs {steps}: S {least:.2f} to {most:.2f}."


def _against_cost(name: str, server: Speculating, plan: Plan) -> Iterator[Alert]:
    load = live_load(server.whole, plan)
    cost = None if load is None else plan.break_even(load)
    if load is None or cost is None:
        measured = sorted(x for x in plan.round_cost if math.isfinite(x))
        if measured and load is not None:
            yield Alert(
                "unmeasured_load",
                "note",
                f"{name}At {load:.3g} {_unit(plan)} no round cost was measured (measured: "
                f"{measured[0]:g} to {measured[-1]:g}): whether it pays there is open.",
            )
        return
    tie = cost.value * math.expm1(TIE)
    low = cost.value - tie if cost.low is None else cost.low
    high = cost.value + tie if cost.high is None else cost.high
    where = f"at {load:.3g} {_unit(plan)}"
    needs = f"{cost.value:.2f}" if low == high else f"{cost.value:.2f} ({low:.2f} to {high:.2f})"
    if server.high < low:
        yield Alert(
            "below_break_even",
            "alert",
            f"{name}Speculation loses {where}: τ {server.tau:.2f} is below the {needs} "
            "that a round costs in plain steps. Switch it off there.",
            worse_than_off(server, plan, cost),
        )
    elif server.low <= high:
        yield Alert(
            "too_close",
            "warning",
            f"{name}Too close to call {where}: τ {server.tau:.2f}, and a round costs "
            f"{needs} plain steps.",
        )


def live_load(window: Window, plan: Plan) -> float | None:
    """A server's load as the plan counts loads: requests a second, else requests that run."""
    if plan.load_kind is LoadKind.REQUEST_RATE:
        return window.request_rps
    return window.gauges.running or None


def _unit(plan: Plan) -> str:
    return "requests a second" if plan.load_kind is LoadKind.REQUEST_RATE else "running"
