"""The GPUs of the machine that this page runs on, live; or why none is visible."""

import streamlit as st

from lib.probe import nvml
from lib.probe.nvml import Devices, Gpu
from lib.report.format import plain_md
from lib.report.probe_text import LIKELY_CAUSES, gpu_line, reading_line

EVERY_S = 2


def draw(found: Devices) -> None:
    """A card a GPU with live readings; one calm line where there is none."""
    if found.found:
        _cards(found)
        if found.problem:
            st.caption(plain_md(found.problem))
        return
    problem = found.problem.split(". ")[0].rstrip(".")
    st.info(
        f"{plain_md(problem)}. Everything else works, and there are three other ways to a c.",
        icon=":material/memory:",
    )
    with st.expander("Why no GPU may be visible"):
        st.markdown(plain_md(found.problem))
        st.markdown("\n".join(f"- {cause}" for cause in LIKELY_CAUSES))
        st.markdown(
            "A GPU elsewhere: run `python -m lib probe --json` there and import what it prints, or "
            "type c on the screen page."
        )


@st.fragment(run_every=EVERY_S)
def _cards(found: Devices) -> None:
    for gpu in found.found:
        with st.container(border=True, gap=None):
            _card(gpu, found.host)


def _card(gpu: Gpu, host: str) -> None:
    st.markdown(f"**{plain_md(gpu.name)}** :gray[{plain_md(gpu_line(gpu, host))}]")
    now = nvml.reading(gpu.uuid or gpu.pci_bus_id)
    if line := reading_line(gpu, now):
        st.markdown(plain_md(line))
    for problem in now.problems:
        st.caption(plain_md(problem))
