"""What a verify round costs over load, drawn where tau is known; the reason where it is not."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.evidence.round_cost import round_costs
from lib.report.format import plain_md
from lib.report.round_figures import round_alt, round_columns, round_figure
from lib.report.round_text import MEANING, TITLE, missing_lines, round_lines
from lib.ui import protocol
from lib.ui.figure import chart, csv_button, mode


def draw(found: Findings) -> None:
    """R beside S for the arms whose tau is known, with why the gain changes."""
    arms = round_costs(found)
    if any(a.curve for a in arms):
        chart(
            "round-cost",
            TITLE,
            round_figure(found, arms, mode()),
            round_alt(arms),
            lambda: round_columns(arms),
        )
    elif any(a.points for a in arms):
        csv_button("round-cost", lambda: round_columns(arms))
    for line in round_lines(found, arms):
        st.markdown(plain_md(line))
    if any(a.points for a in arms):
        st.caption(MEANING)
        protocol.caption(found)
    for line in missing_lines(arms):
        st.caption(plain_md(line))
