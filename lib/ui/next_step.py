"""Measure next: the cell that says most, why, and the commands to copy."""

import streamlit as st

from lib import decision
from lib.errors import DraftworthError
from lib.evidence.findings import Findings
from lib.evidence.next_measurement import NextMeasurement, next_measurements
from lib.evidence.schedule import Schedule
from lib.report.format import load as load_text
from lib.report.format import plain_md
from lib.report.next_text import NOT_COMPARED, NOTHING, PURPOSE, afterwards, cell, sentence
from lib.run import OFF, distinct
from lib.serving import tools
from lib.serving.commands import BENCH_PARAMS, SERVE_PARAMS
from lib.serving.setup import Command
from lib.ui import schedule_card, study

MOST_CELLS = 8


def draw(found: Findings) -> None:
    """The card of the compare page: which cell, why, by which tool, with what to copy."""
    st.subheader("Measure next", anchor=False)
    wanted = _wanted(found)[:MOST_CELLS]
    if not wanted:
        st.caption(NOTHING if found.loads else NOT_COMPARED)
        return
    with st.container(border=True, key="next-step"):
        st.markdown(plain_md(sentence(wanted[0])))
        left, right = st.columns(2)
        place = left.selectbox(
            "Cell",
            range(len(wanted)),
            format_func=lambda i: cell(wanted[i]),
            key=f"next-cell-{found.study.name}-{found.metric.name}-{study.operating_load()}",
            help="The best one first.",
        )
        chosen = wanted[min(place or 0, len(wanted) - 1)]
        label = right.selectbox(
            "Tool",
            tools.CHOICES,
            index=tools.CHOICES.index(tools.usual(found.study)),
            key=f"next-tool-{found.study.name}",
            persist_state="session",
        )
        if place:
            st.markdown(plain_md(sentence(chosen)))
        _commands(found, chosen, label or tools.SWEEP)
        if chosen.repeats is not None:
            st.caption(PURPOSE)


def line(found: Findings) -> None:
    """One line for the decision page: the best cell, with its commands behind an expander."""
    wanted = _wanted(found)
    if not wanted:
        return
    with st.container(key="next-step"):
        st.markdown(f"**Measure this next.** {plain_md(sentence(wanted[0]))}")
        label = tools.usual(found.study)
        with st.expander("Commands to copy", icon=":material/terminal:"):
            _steps(found, wanted[0], tools.ONE_CELL if label == tools.SWEEP else label)
            if rest := afterwards(wanted[1:]):
                st.caption(plain_md(rest))


def _wanted(found: Findings) -> tuple[NextMeasurement, ...]:
    level = decision.level(found)
    return next_measurements(found, study.operating_load(), _schedule(found), level)


def _schedule(found: Findings) -> Schedule | None:
    built = schedule_card.build(found)
    return None if isinstance(built, str) else built


def _commands(found: Findings, one: NextMeasurement, label: str) -> None:
    if label == tools.SWEEP:
        _sweep(found, one)
    else:
        _steps(found, one, label)


def _steps(found: Findings, one: NextMeasurement, label: str) -> None:
    try:
        steps = tools.steps(found.study, one, label, _schedule(found))
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    for step in steps:
        st.caption(plain_md(step.title))
        st.code(step.text, language="bash", wrap_lines=True)
    _beside(found, label, steps)


def _sweep(found: Findings, one: NextMeasurement) -> None:
    """vLLM's sweep for the arms and loads that are wanted, with the two files that it reads."""
    arms = distinct([OFF, *(r.arm for r in found.study.runs), *one.arms])
    loads = sorted({*found.loads, one.load, *_powers(found.loads, one.load)})
    left, right = st.columns(2)
    own = f"{found.study.name}-{one.arm}-{one.load:g}"
    some = left.multiselect("Arms", arms, list(one.arms), key=f"next-arms-{own}")
    where = right.multiselect(
        "Loads", loads, [one.load], format_func=load_text, key=f"next-loads-{own}"
    )
    try:
        built = tools.sweep_for(found.study, one, some, where, _schedule(found))
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    st.code(built.command.text, language="bash", wrap_lines=True)
    with st.container(horizontal=True, gap="small"):
        for name, text in ((SERVE_PARAMS, built.serve_params), (BENCH_PARAMS, built.bench_params)):
            st.download_button(
                name, text, name, "application/json", key=f"next-{name}", on_click="ignore"
            )
    _beside(found, tools.SWEEP, (built.command,))


def _beside(found: Findings, label: str, steps: tuple[Command, ...]) -> None:
    """What is left to fill in, and what to know, each once."""
    blanks = distinct(b for s in steps for b in s.placeholders)
    if blanks:
        st.caption(plain_md(f"Not recorded, to fill in: {'; '.join(blanks)}."))
    if notes := distinct(n for s in steps for n in s.notes):
        st.caption(plain_md(" ".join(notes)))
    if unlike := tools.mismatch(found.study, label):
        st.caption(f":material/warning: {plain_md(unlike)}")


def _powers(loads: tuple[float, ...], load: float) -> list[float]:
    """Powers of two from 1 to the highest load, which a sweep is best measured at."""
    finite = [x for x in (*loads, load) if x != float("inf")]
    top = max(finite, default=1.0)
    return [float(2**i) for i in range(17) if 2**i <= top]
