"""Paste a schedule in any form and read what its engine makes of it."""

import streamlit as st

from lib.evidence.engine_support import RUNNERS
from lib.evidence.pasted_schedule import Judgement, judge
from lib.report.format import plain_md
from lib.report.schedule_text import range_table
from lib.ui import study

EXAMPLE = "[[1, 16, 5], [17, 32, 4], [33, 64, 3], [65, 128, 1]]"


def draw() -> None:
    """The text, the numbers it may lack, and the engine's verdict."""
    text = st.text_area(
        "A schedule in any form",
        placeholder=EXAMPLE,
        key="schedule-text",
        persist_state="session",
        help="vLLM's list or old map, a whole speculative_config as JSON, YAML or Python, a vllm "
        "serve command, or TensorRT-LLM's draft_len_schedule.",
    )
    with st.container(horizontal=True, gap="small"):
        most = _number("num_speculative_tokens", "check-k", "max_draft_len in TensorRT-LLM.")
        seqs = _number(
            "max_num_seqs",
            "check-seqs",
            "max_batch_size in TensorRT-LLM. Left empty, the sidebar's counts.",
            study.MAX_SEQS,
        )
        version = st.text_input(
            "TensorRT-LLM version",
            placeholder="not needed for vLLM",
            key="check-version",
            persist_state="session",
            width=220,
        )
        runner = st.selectbox(
            "vLLM model runner",
            RUNNERS,
            index=None,
            placeholder="not known",
            key="check-runner",
            persist_state="session",
            width=220,
        )
    if not text:
        st.caption("Paste a schedule: it is judged as its engine would when it starts.")
        return
    _show(judge(text, most, seqs or study.max_num_seqs(), version or None, runner))


def _number(label: str, key: str, help_text: str, most: int | None = None) -> int | None:
    return st.number_input(
        label,
        min_value=1,
        max_value=most,
        value=None,
        step=1,
        key=key,
        persist_state="session",
        width=220,
        help=help_text,
    )


def _show(found: Judgement) -> None:
    if found.engine:
        st.caption(plain_md(f"Read as {found.engine}: {found.form}."))
    for error in found.all_errors:
        st.error(plain_md(error), icon=":material/close:")
    if found.needs and not found.all_errors:
        st.info(plain_md(f"To judge it, type {' and '.join(found.needs)}."))
    checked = found.check
    if checked is not None and checked.valid and not found.errors:
        if checked.warnings:
            st.success(
                "The engine starts with it, but not as it is written.", icon=":material/check:"
            )
        else:
            st.success("Valid: the engine starts with it.", icon=":material/check:")
    for warning in checked.warnings if checked else ():
        st.warning(plain_md(warning), icon=":material/warning:")
    for note in found.notes:
        st.caption(f":material/info: {plain_md(note)}")
    if checked is not None and checked.effective:
        st.markdown("What the engine will really use, every batch filled in:")
        st.dataframe(range_table(checked.effective), hide_index=True)
