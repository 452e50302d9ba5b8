"""What a verify round costs over load, drawn where tau is known; the reason where it is not."""

import streamlit as st

from lib.evidence.acceptance_groups import groups
from lib.evidence.builds import rebuilt
from lib.evidence.findings import Findings
from lib.evidence.round_cost import round_costs
from lib.report.format import plain_md
from lib.report.round_figures import round_alt, round_columns, round_figure
from lib.report.round_text import (
    MEANING,
    TITLE,
    build_noise,
    build_title,
    missing_lines,
    round_lines,
)
from lib.report.split_text import split_lines
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
        protocol.caption(found, again=True)
    for line in missing_lines(arms):
        st.caption(plain_md(line))
    _builds(found)


def _builds(found: Findings) -> None:
    """What changed between two builds of one arm: acceptance, or the time of a step."""
    pairs = rebuilt(groups(found.study))
    if not pairs:
        return
    labels = {f"{i}: {build_title(*pair)}": pair for i, pair in enumerate(pairs, 1)}
    chosen = st.selectbox("Between two builds", list(labels), key=f"builds-{found.study.name}")
    for line in split_lines(*labels[chosen]):
        st.markdown(plain_md(line))
    if noise := build_noise(*labels[chosen]):
        st.caption(noise)
