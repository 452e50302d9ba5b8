"""Adding a server to those that are watched."""

import streamlit as st

from lib.errors import DraftworthError
from lib.report.format import plain_md
from lib.ui import monitor_watch

ADDRESS, REFUSED, ADDED = "monitor-address", "monitor refused", "monitor added"


def draw() -> None:
    """An address and the button; why the last one was refused."""
    key = f"{ADDRESS}-{st.session_state.setdefault(ADDED, 0)}"  # a new field after each server
    with st.form("monitor-server", border=False):
        st.text_input(
            "Server to watch",
            key=key,
            placeholder="127.0.0.1:8000",
            help="host:port or URL. A token comes from the secrets or DRAFTWORTH_TOKEN alone.",
        )
        st.form_submit_button(
            "Watch",
            key="monitor-add",
            type="primary",
            icon=":material/add:",
            on_click=_add,
            args=(key,),
            width="stretch",
        )
    if refused := st.session_state.get(REFUSED):
        st.error(plain_md(refused))


def _add(key: str) -> None:
    st.session_state[REFUSED] = ""
    try:
        monitor_watch.add(st.session_state.get(key, ""))
    except DraftworthError as error:
        st.session_state[REFUSED] = str(error)
        return
    st.session_state[ADDED] += 1
