"""Where does it stop paying? Multipliers and crossings, the measured curves, the schedule."""

import streamlit as st

from lib.evidence.competing import GOODPUT
from lib.evidence.findings import Findings
from lib.evidence.ratio import METRICS
from lib.report.format import plain_md
from lib.report.load_figures import multiplier_figure
from lib.report.sentences import compare_answer, crossing_lines
from lib.report.tables import multiplier_table
from lib.run import Slo
from lib.ui import (
    chips,
    goodput_card,
    measured_curve,
    next_step,
    protocol,
    round_cost,
    schedule_card,
    study,
)
from lib.ui.figure import chart, csv_button, mode
from lib.ui.live_slider import begin_page, whole_page_unless_dragged


def choose_metric() -> str:
    chosen = st.pills(
        "Compare on",
        list(METRICS),
        default=next(iter(METRICS)),
        format_func=lambda name: METRICS[name].label,
        key="metric",
        bind="query-params",
    )
    return chosen or next(iter(METRICS))


def card(found: Findings, slo: Slo | None) -> None:
    if any(a.points for a in found.arms) or not found.loads:
        for line in crossing_lines(found):
            st.markdown(plain_md(line))
    if found.how:
        st.caption(plain_md(found.how))
    else:
        st.caption(
            plain_md(f"SLO: {slo.text}." if slo else "No SLO named: no load is judged by it.")
        )


def answer(found: Findings) -> str:
    sentence, estimate = compare_answer(found, study.operating_load())
    if estimate is None:
        st.info(plain_md(sentence))
    else:
        chips.answer(plain_md(sentence), estimate, note=plain_md(found.study.caveat))
    return sentence


def figures(found: Findings, slo: Slo | None, sentence: str) -> None:
    if any(a.points for a in found.arms):
        chart(
            "multiplier",
            f"Multiplier on {found.metric.label.lower()}",
            multiplier_figure(found, mode()),
            f"Multiplier over load. {sentence}",
            lambda: multiplier_table(found, slo),
        )
    goodput_card.gaps(found)
    protocol.caption(found)
    measured_curve.draw(found, slo)
    round_cost.draw(found)


@st.fragment
def live() -> Findings | None:
    """All that the SLO's sliders change; what rests on it follows when a slider is released."""
    whole_page_unless_dragged()
    said, strip = st.container(), st.container()
    left, right = st.columns([1, 2], gap="large")
    controls = left.container(border=True, key="controls")
    slo = study.slo()
    with controls:
        metric = choose_metric()
        found = study.findings(metric)
        if found is not None:
            card(found, slo)
    if found is not None:
        with said:
            sentence = answer(found)
        with strip:
            protocol.strip(found)
        if found.loads:
            with right:
                figures(found, slo, sentence)
            with st.expander("Every point as a table"):
                st.dataframe(multiplier_table(found, slo), hide_index=True, placeholder="–")
                csv_button("multiplier-table", lambda: multiplier_table(found, slo))
    if metric == GOODPUT:
        with controls:
            goodput_card.limits()
    return found


chips.question("Where does it stop paying?")
begin_page()
if (found := live()) is not None:
    next_step.draw(found)
    if any(a.points for a in found.arms):
        schedule_card.draw(found)
