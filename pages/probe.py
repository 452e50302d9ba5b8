"""How expensive is a draft step on this GPU? c measured here, elsewhere or between two servers."""

import streamlit as st

from lib.probe import nvml
from lib.probe.result import Probe
from lib.ui import (
    chips,
    probe_devices,
    probe_history,
    probe_progress,
    probe_view,
    probe_ways,
    probed,
)

WAITING = (
    "No probe yet. It times one draft step and one plain target step and gives c, their ratio: "
    "with α it says whether drafting can pay at low batch."
)


def show(probe: Probe, probes: tuple[Probe, ...]) -> None:
    probe_history.pick(probes, probe)
    with st.container(horizontal=True, gap="small"):
        probe_view.use(probe)
        probe_view.download(probe)
        probe_history.delete(probe)
    probe_view.notes(probe)
    probe_view.charts(probe)
    probe_view.details(probe)


chips.question("How expensive is a draft step on this GPU?")
devices = nvml.devices()
top = st.container()
left, right = st.columns([1, 2], gap="large")
with left.container(border=True, key="controls"):
    probe_ways.draw(devices)
probes = probed.all_probes()
shown = probed.shown(probes)
with top:
    if shown is None:
        st.info(WAITING, icon=":material/speed:")
    else:
        probe_view.answer(shown)
with right:
    probe_progress.draw()
    probe_devices.draw(devices)
    if shown is not None:
        show(shown, probes)
probe_history.table(probes)
