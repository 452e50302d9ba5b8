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
from lib.ui import command_blocks, schedule_card, study

MOST_CELLS = 8


def draw(found: Findings) -> None:
    """The card of the compare page: which cell, why, by which tool, with what to copy."""
    st.subheader("Measure next", anchor=False)
    wanted = _wanted(found)[:MOST_CELLS]
    if not wanted:
        st.caption(NOTHING if any(a.points for a in found.arms) else NOT_COMPARED)
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
    command_blocks.steps(steps)
    command_blocks.beside(found.study, label, steps)


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
    command_blocks.sweep(built, found.study, "next")


def _powers(loads: tuple[float, ...], load: float) -> list[float]:
    """Powers of two from 1 to the highest load, which a sweep is best measured at."""
    finite = [x for x in (*loads, load) if x != float("inf")]
    top = max(finite, default=1.0)
    return [float(2**i) for i in range(17) if 2**i <= top]
