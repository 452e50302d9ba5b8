"""What is alpha, really? Acceptance by whatever name, converted, judged and put to use."""

import streamlit as st

from lib.report import acceptance_text as text
from lib.report.format import plain_md
from lib.ui import acceptance_source, acceptance_view, chips, inputs, study
from lib.ui.acceptance_source import Chosen
from lib.ui.live_slider import live_slider

WAITING = (
    "Every engine calls something else its acceptance rate. Say what you have: τ, (τ − 1) / γ and "
    "α then stand here side by side, with how each was read."
)


def show(chosen: Chosen, c: float, v: float) -> None:
    found = chosen.acceptance
    choice = text.choose(found, c, v)
    acceptance_view.metrics(found, choice)
    acceptance_view.charts(found, c, v)
    acceptance_view.judgement(found, choice)
    acceptance_view.table(found)
    if chosen.beside:
        acceptance_view.beside(chosen.beside)


def caveat(chosen: Chosen) -> str:
    found = study.current()
    return found.caveat if found and chosen.beside else ""


@st.fragment
def live() -> None:
    top = st.container()
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with card:
        chosen = acceptance_source.choose()
    if chosen is None:
        right.info(WAITING, icon=":material/info:")
    else:
        with top:
            sentence, estimate = text.answer(chosen.acceptance)
            chips.answer(plain_md(sentence), estimate, note=plain_md(caveat(chosen)))
        with right:
            show(chosen, inputs.value("c") or 0.0, inputs.value("verify_cost") or 1.0)
    with card:
        if chosen is not None and len(chosen.domains) > 1:
            acceptance_view.mix(chosen.domains)
        for key in ("c", "verify_cost"):
            live_slider(key)
        if chosen is not None:
            acceptance_view.use_in_screen(chosen.acceptance)
            acceptance_source.cite(chosen)


chips.question("What is α, really?")
live()
