"""Goodput on the compare page: its limits as live sliders, and the loads without a ratio."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.report import goodput_text
from lib.ui import study
from lib.ui.figure import csv_button
from lib.ui.live_slider import live_slider


def limits() -> None:
    """The sliders of the SLO; drawn after what they change."""
    for key in study.SLO_KEYS:
        live_slider(key)


def gaps(found: Findings) -> None:
    """What the marks of the figure mean; where no load has a ratio, a table in its place."""
    if not any(a.without_ratio for a in found.arms):
        return
    if any(a.points for a in found.arms):
        st.caption(goodput_text.legend(found))
        return
    table = goodput_text.gap_table(found)
    st.dataframe(table, hide_index=True, placeholder="–")
    csv_button("goodput-states", lambda: table)
