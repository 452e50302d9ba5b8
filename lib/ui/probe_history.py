"""Every probe that is stored: which one is shown, the table of all, and taking one out."""

from collections.abc import Sequence

import streamlit as st

from lib.errors import DraftworthError
from lib.probe.result import Probe
from lib.report.format import plain_md
from lib.report.probe_text import history_table, label
from lib.ui import probed
from lib.ui.figure import csv_button

REFUSED = "probe refused"


def pick(probes: Sequence[Probe], shown: Probe) -> None:
    """Which of several is shown."""
    if len(probes) < 2:
        return
    ids = [p.id for p in probes]
    labels = {p.id: label(p) for p in probes}
    st.session_state["probe-pick"] = shown.id
    st.selectbox(
        "Probe",
        ids,
        format_func=labels.__getitem__,
        key="probe-pick",
        on_change=lambda: probed.choose(st.session_state["probe-pick"]),
        label_visibility="collapsed",
    )


def delete(shown: Probe) -> None:
    """A popover that asks before the probe is deleted."""
    with st.popover("Delete", icon=":material/delete:", key="probe-delete"):
        st.markdown("It is taken out of the store for good. Download its JSON to keep it.")
        st.button("Delete this probe", key="probe-delete-now", on_click=_forget, args=(shown,))


def _forget(shown: Probe) -> None:
    try:
        probed.forget(shown)
    except DraftworthError as error:
        st.session_state[REFUSED] = str(error)


def table(probes: Sequence[Probe]) -> None:
    """All of them, newest first."""
    if refused := st.session_state.pop(REFUSED, ""):
        st.error(plain_md(refused))
    if not probes:
        return
    st.subheader("History", anchor=False)
    st.dataframe(
        history_table(probes),
        hide_index=True,
        placeholder="–",
        column_config={
            "taken, UTC": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            **{n: st.column_config.NumberColumn(format="%.4f") for n in ("c", "low", "high")},
            "v at γ": st.column_config.NumberColumn(format="%.3f"),
        },
        alt="Every stored probe with its c, GPU, target, drafter and setup.",
    )
    csv_button("probes", lambda: history_table(probes))
