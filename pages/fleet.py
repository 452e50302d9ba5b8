"""What does a day of my traffic cost? Replicas by hour from measured capacity."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.report.format import plain_md
from lib.ui import chips, consent, fleet_demand, fleet_memory, fleet_view, protocol, scenarios
from lib.ui.live_slider import begin_page, live_slider

SLIDERS = ("headroom", "usd_per_gpu_hour", "gpu_count", "extra_usd_per_hour", "k0_tax")


@st.fragment
def live(found: Findings) -> None:
    """All that the demand and the sliders change."""
    scenarios.follow()
    said = st.container()
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with card:
        fleet_demand.choose()
        fleet_view.choose_rules()
    fits = fleet_memory.in_hand(found)
    sized, demand = fleet_view.sizes(found, fits), fleet_demand.demand()
    day = None
    if sized is None:
        said.info(
            "Nothing is sized: no load was measured in both arms with its output tok/s. Import "
            "runs with their throughput.",
            icon=":material/dns:",
        )
    elif isinstance(demand, str):
        said.info(plain_md(f"Nothing is sized yet: {demand}."), icon=":material/dns:")
    else:
        day = fleet_view.day(found, sized, demand)
        with said:
            sentence = fleet_view.answer(day, found)
        with right:
            fleet_view.figures(day, sentence)
            fleet_view.lines(day)
            protocol.caption(found)
    with card:
        fleet_demand.slider()
        for key in SLIDERS:
            live_slider(key)
    if day is not None:
        fleet_view.table(day, found)
        with st.expander("What moves it"):
            fleet_view.moves(day)
            live_slider("what_if")
    with st.expander("What the drafter takes of the memory"):
        fleet_memory.draw(found, fits)


begin_page()
chips.question("What does a day of my traffic cost?")
fleet_demand.begin()
if (found := fleet_view.findings()) is not None:
    consent.ask(found)
    live(found)
    protocol.strip(found)
scenarios.draw()
