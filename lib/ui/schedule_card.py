"""The schedule to deploy, with its evidence and warnings; and a checker for one of your own."""

import json

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import engine_schedule
from lib.evidence import schedule as schedules
from lib.evidence.findings import Findings
from lib.report.format import plain_md
from lib.run import distinct
from lib.ui import study


def draw(found: Findings) -> None:
    """Both tabs: write a schedule from the study, judge one that exists."""
    st.subheader("Schedule", anchor=False)
    write, judge = st.tabs(["From this study", "Check one"])
    with write:
        _write(found)
    with judge:
        _judge()


def _write(found: Findings) -> None:
    columns = st.columns(3)
    objective = columns[0].selectbox(
        "Objective", list(schedules.OBJECTIVES), key="objective", bind="query-params"
    )
    tail = columns[1].selectbox(
        "Above the measured range",
        schedules.TAILS,
        index=None,
        placeholder="not chosen",
        key="tail",
        bind="query-params",
        help="off writes K = 0 there, carry keeps the last K; both are unmeasured.",
    )
    methods = distinct(r.draft_method for r in found.study.runs)
    method = (
        columns[2].selectbox("Draft method", methods, key="method", bind="query-params")
        if len(methods) > 1
        else next(iter(methods), None)
    )
    max_num_seqs = study.max_num_seqs()
    if max_num_seqs is None:
        st.info("Type the engine's max_num_seqs in the sidebar: the schedule must reach up to it.")
        return
    try:
        built = schedules.build(
            found.comparison, max_num_seqs, str(objective), tail=tail, method=method
        )
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    _tiers(built)
    _config(built, method or "METHOD")
    for warning in built.warnings:
        st.caption(f":material/warning: {plain_md(warning)}")


def _config(built: schedules.Schedule, method: str) -> None:
    try:
        config = schedules.speculative_config(built, method, None)
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    if config:
        st.code(json.dumps(config), language="json", wrap_lines=True)
        st.code(schedules.vllm_flag(config), language="bash", wrap_lines=True)


def _tiers(built: schedules.Schedule) -> None:
    st.dataframe(
        {
            "from batch": [t.first for t in built.tiers],
            "to batch": [t.last for t in built.tiers],
            "K": [t.k for t in built.tiers],
            "gain against off": [t.gain for t in built.tiers],
            "measured at": [", ".join(f"{x:g}" for x in t.measured) for t in built.tiers],
            "K = 0 tax at which the next K wins": [t.tax for t in built.tiers],
        },
        hide_index=True,
        placeholder="–",
        column_config={
            "gain against off": st.column_config.NumberColumn(format="%.2f×"),
            "K = 0 tax at which the next K wins": st.column_config.NumberColumn(format="percent"),
        },
    )


def _judge() -> None:
    columns = st.columns([2, 1, 1])
    text = columns[0].text_area(
        "num_speculative_tokens_per_batch_size",
        placeholder="[[1, 16, 3], [17, 64, 0]]",
        key="schedule-text",
        persist_state="session",
    )
    most = columns[1].number_input(
        "num_speculative_tokens", min_value=1, value=None, step=1, key="check-k"
    )
    seqs = columns[2].number_input(
        "max_num_seqs", min_value=1, max_value=study.MAX_SEQS, value=None, step=1, key="check-seqs"
    )
    if not text or most is None or seqs is None:
        st.caption("Paste a schedule and type both numbers: it is judged as the engine would.")
        return
    judged = engine_schedule.check(text, most, seqs)
    if judged.valid:
        st.success("Valid: the engine starts with it.", icon=":material/check:")
    for error in judged.errors:
        st.error(plain_md(error))
    for warning in judged.warnings:
        st.warning(plain_md(warning))
    if judged.effective:
        st.caption("What the engine will really use:")
        st.dataframe(
            {
                "from batch": [r[0] for r in judged.effective],
                "to batch": [r[1] for r in judged.effective],
                "K": [r[2] for r in judged.effective],
            },
            hide_index=True,
        )
