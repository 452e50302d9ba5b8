"""The imports of the study in hand, and taking one back."""

import streamlit as st

from lib.errors import DraftworthError, StudyNotFound
from lib.report.format import plain_md
from lib.results import catalogue
from lib.results.parsing import counted
from lib.results.store import Store
from lib.run import Study
from lib.ui import staging
from lib.ui.dropped import runs_text

MOST = 10
SAID = "undo said"
LAST = "last"  # the button beside what adding did


def recent(store: Store, found: Study) -> None:
    """The last imports of a study of one's own, each with a way to take it back."""
    box = st.popover("Imports", icon=":material/history:", key="imports", on_change="rerun")
    if not box.open:
        return
    with box:
        try:
            listed = store.imports(found.name)
        except DraftworthError as error:
            st.caption(plain_md(str(error)))
            return
        for one in listed[:MOST]:
            with st.container(horizontal=True, vertical_alignment="center"):
                who = f" by {one.by}" if one.by else ""
                text = (
                    f"{one.at:%Y-%m-%d %H:%M} UTC{who} · {counted(one.files, 'file')} · "
                    f"{runs_text(one.runs)}"
                )
                st.markdown(plain_md(text))
                undo_button(store, found.name, one.id, one.id)
        if len(listed) > MOST:
            st.caption(f"and {len(listed) - MOST} earlier ones")
        st.caption("Undo takes the runs of an import out and brings back those that it replaced.")


def undo_button(store: Store, study: str, import_id: str, slot: str) -> None:
    """A button that takes one import back."""
    st.button(
        "Undo",
        key=f"undo-{slot}",
        icon=":material/undo:",
        on_click=_undo,
        args=(store, study, import_id, slot == LAST),
        help="Take this import back: its runs, their requests and files.",
    )


def undone(by_last: bool) -> None:
    """What the last undo did; said once, near the button that asked for it."""
    said = st.session_state.get(SAID)
    if said is None or said[2] is not by_last:
        return
    text, failed, _ = st.session_state.pop(SAID)
    if failed:
        st.error(plain_md(text), icon=":material/block:")
    else:
        st.success(plain_md(text), icon=":material/undo:")


def _undo(store: Store, study: str, import_id: str, by_last: bool) -> None:
    try:
        did = store.undo(study, import_id)
    except StudyNotFound:
        st.session_state[SAID] = (f"{study}: nothing left to take back", True, by_last)
        return
    except DraftworthError as error:
        st.session_state[SAID] = (str(error), True, by_last)
        return
    brought = (
        f"{runs_text(did.restored)} brought back as before"
        if did.restored
        else "nothing was replaced by it"
    )
    text = f"Taken back from {study}: {runs_text(did.removed)} removed, {brought}."
    st.session_state[SAID] = (text, False, by_last)
    staging.current().outcome = None
    if study not in store.studies():
        st.session_state["study"] = catalogue.names(store)[0].name
