"""Is it still paying? Live servers against what was measured, window by window."""

import time

import streamlit as st

from lib.report.monitor_figures import Times
from lib.report.monitor_text import quantities
from lib.serving.plan import Plan
from lib.ui import (
    chips,
    monitor_files,
    monitor_live,
    monitor_plan,
    monitor_servers,
    monitor_view,
    monitor_watch,
)


@st.fragment(run_every=monitor_watch.EVERY_S)
def live() -> None:
    """All that a scrape changes."""
    plan = monitor_plan.in_hand()
    promised = plan if isinstance(plan, Plan) else None
    shown = quantities(monitor_plan.usd_per_hour(plan))
    found = monitor_live.found_alerts(promised)
    fleet = monitor_live.fleet_quantities(plan)
    monitor_view.answer(monitor_watch.recent(), promised, found, fleet)
    monitor_view.draw_alerts(found)
    left, right = st.columns([1, 2], gap="large")
    with left.container(border=True, key="controls"):
        monitor_servers.draw()
        monitor_plan.choose(plan)
    with right:
        monitor_view.cards(promised, shown, fleet)
        span = monitor_view.choose_span()
        if tracks := monitor_watch.tracks(span):
            now_s = time.time()
            times = Times(now_s - monitor_watch.span_s(span), now_s)
            monitor_view.charts(tracks, times, promised, shown)
            monitor_watch.kept()


chips.question("Is it still paying?")
live()
plan = monitor_plan.in_hand()
monitor_files.draw(
    plan if isinstance(plan, Plan) else None, quantities(monitor_plan.usd_per_hour(plan))
)
