"""The measurement under way: how far it is, how to end it, and what came of it."""

import streamlit as st

from lib.report.format import plain_md
from lib.report.probe_text import round_answer
from lib.ui import chips, probed
from lib.ui.probe_runs import Job, bench

EVERY_S = 1
SEEN = "probe job seen"


def draw() -> None:
    """Progress while one runs; once it is over, what it found becomes what is shown."""
    job = bench().job
    if job is None:
        return
    if not job.over:
        with st.container(border=True, key="probe-progress"):
            _watch(job)
    elif st.session_state.get(SEEN) != job.started_at:
        _tell(job)


@st.fragment(run_every=EVERY_S)
def _watch(job: Job) -> None:
    if job.over:
        if job.probe is not None:
            probed.choose(job.probe.id)
        st.rerun()
    step = job.step
    share = step.done / step.of if step is not None and step.of else 0.0
    what = step.what if step is not None else "starting"
    st.markdown(f"**{plain_md(job.title)}**")
    st.progress(min(share, 1.0), plain_md(what))
    st.button("Cancel", key="probe-cancel", icon=":material/stop:", on_click=job.cancel)


def _tell(job: Job) -> None:
    """What came of it, until it is dismissed or another runs."""
    if job.cancelled:
        st.info(f"{plain_md(job.title)}: cancelled, nothing was kept.", icon=":material/stop:")
    elif job.trouble:
        st.error(f"{plain_md(job.title)}: {plain_md(job.trouble)}")
    elif job.round is not None:
        sentence, estimate = round_answer(job.round)
        chips.answer(plain_md(sentence), estimate, key="answer-round")
        for line in job.round.warnings:
            st.caption(plain_md(line))
    else:
        return
    st.button("Dismiss", key="probe-dismiss", on_click=_dismiss, args=(job,))


def _dismiss(job: Job) -> None:
    st.session_state[SEEN] = job.started_at
