"""Should this deployment speculate, and how far? The gates from screen to monitor."""

import streamlit as st

from lib import decision
from lib.decision import MARKS, Gate, ScreenInputs, State
from lib.estimate import Basis
from lib.evidence.findings import Findings
from lib.money.pricing import price_pairs
from lib.report.format import percent, plain_md
from lib.report.load_figures import multiplier_figure
from lib.report.screening import Screening
from lib.report.sentences import compare_answer
from lib.report.tables import multiplier_table
from lib.ui import chips, inputs, navigation, protocol, schedule_card, study
from lib.ui.figure import chart, mode

COLOR = {
    State.PASSED: "green",
    State.FAILED: "red",
    State.UNDECIDED: "orange",
    State.MISSING: "gray",
}


def screen_inputs() -> ScreenInputs:
    alpha, gamma, c = (inputs.value(k) for k in ("alpha", "gamma", "c"))
    preset = Screening(alpha, gamma, c).preset
    basis = Basis.PUBLISHED if preset else Basis.ASSUMED
    source = f"From {preset.citation}." if preset else "From your sliders."
    return ScreenInputs(alpha, gamma, c, basis, source)


def verdict(found: Findings) -> decision.Verdict:
    result = decision.verdict(found, study.operating_load(), study.stated())
    if result.state is State.MISSING:
        sentence, estimate = compare_answer(found, None)
    else:
        sentence, estimate = result.sentence, result.multiplier
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/flag:")
        return result
    notes = [found.study.caveat]
    if result.share is not None:
        word = "the loss" if estimate.value < 1 else "the win"
        notes.append(f"{word} holds in {percent(result.share)} of redraws of the measured ratios")
    chips.answer(plain_md(sentence), estimate, note=plain_md("; ".join(filter(None, notes))))
    if result.state is State.MISSING:
        st.info(result.sentence, icon=":material/flag:")
    return result


def gate(row: Gate) -> None:
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(f"{MARKS[row.state]} {row.state}", color=COLOR[row.state])
            st.markdown(f"**{row.title}**")
            if row.basis is not None:
                chips.basis_chip(row.basis)
            if row.page:
                st.page_link(navigation.pages()[row.page], label="open", icon=None)
        if row.known:
            st.markdown(plain_md(row.known))
        if row.missing:
            st.caption(plain_md(row.missing))


def path(found: Findings, result: decision.Verdict) -> None:
    load, paid = study.operating_load(), study.rate()
    pairs = [p for arm in found.arms for p in price_pairs(found, arm, paid, study.slo())]
    priced = [p for p in pairs if load is None or p.on.load == load]
    for row in decision.gates(found, result, screen_inputs(), priced, schedule_card.build(found)):
        gate(row)


def draw(found: Findings) -> None:
    result = verdict(found)
    if found.study.read_only:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("A shipped study is in hand; it cannot be changed.", width="content")
            st.page_link(navigation.pages()["results"], label="Use my own files")
    protocol.strip(found)
    left, right = st.columns([1, 1], gap="large")
    with left:
        path(found, result)
    with right:
        chart(
            "multiplier",
            f"Multiplier on {found.metric.label.lower()}",
            multiplier_figure(found, mode()),
            f"Multiplier over load. {compare_answer(found, None)[0]}",
            lambda: multiplier_table(found),
        )
        protocol.caption(found)


chips.question("Should this deployment speculate, and how far?")
if (found := study.findings()) is not None:
    draw(found)
st.warning(
    f"{decision.PRACTITIONER_REPORT} Source: {decision.PRACTITIONER_SOURCE}.",
    icon=":material/report:",
)
