"""What the watched servers say of the decision: whether they keep what the plan promises."""

from lib.decision import Live
from lib.report.monitor_text import Quantity, doubts, live_line, quantities
from lib.serving.alerts import Alert, alerts
from lib.serving.plan import Plan
from lib.ui import monitor_plan, monitor_watch


def found_alerts(plan: Plan | None) -> tuple[Alert, ...]:
    """What to act on, of the last minute, the worst first."""
    watched = monitor_watch.watcher()
    return alerts(monitor_watch.latest(), plan, watched.problems, watched.restarts)


def fleet_quantities(plan: Plan | str) -> tuple[Quantity, ...]:
    """What is shown of all servers together: an hour costs that of each one that was read.

    A server that was read for half of the time adds half of its cost, as it adds its tokens.
    """
    each, windows = monitor_plan.usd_per_hour(plan), monitor_watch.latest()
    seconds = sum(w.seconds for w in windows)
    if each is None or not seconds:
        return quantities(each)
    return quantities(each * sum(len(w.parts) * w.seconds for w in windows) / seconds)


def now() -> Live | None:
    """The last minute of all watched servers; None where they are idle or there is no plan.

    Where nothing could be read in it only the alerts say why.
    """
    states = monitor_watch.watcher().endpoints()
    if not states:
        return None
    plan, window = monitor_plan.in_hand(), monitor_watch.recent()
    if isinstance(plan, str):
        return None
    found = found_alerts(plan)
    if window is None or window.idle:
        failing = tuple(a.sentence for a in found if a.severity == "alert")
        return Live("", failing) if failing else None
    source = states[0].shown if len(states) == 1 else f"{len(states)} servers"
    return Live(
        live_line(window, source, fleet_quantities(plan)),
        tuple(a.sentence for a in found if a.severity == "alert"),
        doubts(window, plan, found),
    )
