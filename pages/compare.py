"""Where does it stop paying? Multipliers and crossings, the measured curves, the schedule."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.evidence.ratio import METRICS
from lib.report.format import plain_md
from lib.report.load_figures import (
    MEASURED,
    Measured,
    measured_figure,
    multiplier_figure,
    recorded,
    runs_by_arm,
)
from lib.report.sentences import compare_answer, crossing_lines
from lib.report.tables import measured_table, multiplier_table
from lib.run import Run, Slo
from lib.ui import chips, next_step, protocol, round_cost, schedule_card, study
from lib.ui.figure import chart, csv_button, mode

COMPARED = ("output_tps", "tpot_ms")


def card(found: Findings, slo: Slo | None) -> None:
    for line in crossing_lines(found):
        st.markdown(plain_md(line))
    st.caption(plain_md(f"SLO: {slo.text}." if slo else "No SLO named: no load is judged by it."))


def _stated(runs: list[Run], what: Measured, values: dict[str, float] | None) -> bool:
    return any(recorded(r, what, values) is not None for r in runs)


def measured(found: Findings, slo: Slo | None) -> None:
    runs = [r for rs in runs_by_arm(found).values() for r in rs]
    counted = study.goodput(found.study, runs, slo)
    values = {"goodput_rps": counted} if counted else {}

    has = {m.label: m for m in MEASURED if _stated(runs, m, values.get(m.attribute))}
    missing = [m.label for m in MEASURED if m.label not in has]
    if not has:
        st.caption("This study records ratios only: there is no measured curve to draw.")
        return
    chosen = st.segmented_control(
        "Measured over load",
        list(has),
        default=next(iter(has)),
        key="measured",
        persist_state="session",
    )
    what = has.get(chosen) or next(iter(has.values()))
    own = values.get(what.attribute)
    title = f"{what.label} over load"
    if what.attribute == "goodput_rps":
        title += f", {slo.text}" if counted and slo else ", SLO not recorded"
    chart(
        "measured-curve",
        title,
        measured_figure(found, what, mode(), own),
        f"{what.label} in {what.unit} over load, for off and each arm.",
        lambda: measured_table(found, what, own),
    )
    protocol.caption(found)
    if missing:
        st.caption(f"Not recorded in this study: {', '.join(missing)}.")


def choose_metric() -> str:
    chosen = st.segmented_control(
        "Compare on",
        list(COMPARED),
        default=COMPARED[0],
        format_func=lambda name: METRICS[name].label,
        key="metric",
        bind="query-params",
    )
    return chosen or COMPARED[0]


def draw() -> None:
    answer, strip = st.container(), st.container()
    left, right = st.columns([1, 2], gap="large")
    with left, st.container(border=True, key="controls"):
        found = study.findings(choose_metric())
        if found is None:
            return
        slo = study.slo()
        card(found, slo)
    sentence, estimate = compare_answer(found, study.operating_load())
    with answer:
        if estimate is None:
            st.info(plain_md(sentence))
        else:
            chips.answer(plain_md(sentence), estimate, note=plain_md(found.study.caveat))
    with strip:
        protocol.strip(found)
    if estimate is None:
        next_step.draw(found)
        return
    with right:
        chart(
            "multiplier",
            f"Multiplier on {found.metric.label.lower()}",
            multiplier_figure(found, mode()),
            f"Multiplier over load. {sentence}",
            lambda: multiplier_table(found, slo),
        )
        protocol.caption(found)
        measured(found, slo)
        round_cost.draw(found)
    with st.expander("Every point as a table"):
        st.dataframe(multiplier_table(found, slo), hide_index=True, placeholder="–")
        csv_button("multiplier-table", lambda: multiplier_table(found, slo))
    next_step.draw(found)
    schedule_card.draw(found)


chips.question("Where does it stop paying?")
draw()
