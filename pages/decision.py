"""Should this deployment speculate, and how far? The gates from screen to monitor."""

import streamlit as st

from lib import decision
from lib.decision import State
from lib.evidence.findings import Findings
from lib.evidence.schedule import Schedule
from lib.report.decision_text import headline, share_text
from lib.report.format import plain_md
from lib.report.load_figures import multiplier_figure
from lib.report.sentences import compare_answer
from lib.report.tables import multiplier_table
from lib.ui import (
    chips,
    consent,
    decision_cards,
    navigation,
    next_step,
    protocol,
    schedule_card,
    study,
)
from lib.ui.figure import chart, mode


def answer(found: Findings, result: decision.Verdict, built: Schedule | str) -> None:
    claim = decision.claim(found, result, decision_cards.priced(found), built)
    sentence, estimate, share = headline(found, result, claim)
    if result.state is State.MISSING:
        sentence, estimate = compare_answer(found, None)
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/flag:")
    else:
        notes = [found.study.caveat]
        if share is not None:
            notes.append(share_text(share))
        together = plain_md(sentence).replace(" %", "&nbsp;%")
        chips.answer(together, estimate, note=plain_md("; ".join(filter(None, notes))))
    if result.state is State.MISSING and estimate is not None:
        st.info(result.sentence, icon=":material/flag:")


def draw(found: Findings) -> None:
    result = decision.verdict(found, study.operating_load(), study.stated())
    built = schedule_card.build(found)
    answer(found, result, built)
    stands = decision.stands(
        found, result, decision_cards.priced(found), built, study.rate().utilization
    )
    decision_cards.flips(found, stands)
    next_step.line(found)
    if found.study.read_only:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("A shipped study is in hand; it cannot be changed.", width="content")
            st.page_link(navigation.pages()["results"], label="Use my own files")
    protocol.strip(found)
    left, right = st.columns([1, 1], gap="large")
    with left:
        consent.ask(found)
        decision_cards.gates(decision_cards.steps(found, result, built))
    with right:
        chart(
            "multiplier",
            f"Multiplier on {found.metric.label.lower()}",
            multiplier_figure(found, mode()),
            f"Multiplier over load. {compare_answer(found, None)[0]}",
            lambda: multiplier_table(found),
        )
        protocol.caption(found)
    decision_cards.guardrails(found, result, built)


chips.question("Should this deployment speculate, and how far?")
if (found := study.findings()) is not None:
    draw(found)
st.warning(
    f"{decision.PRACTITIONER_REPORT} Source: {decision.PRACTITIONER_SOURCE}.",
    icon=":material/report:",
)
