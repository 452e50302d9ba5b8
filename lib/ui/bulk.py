"""One field of many runs, stated in one go: of those that are ticked, or of all that are shown."""

from collections.abc import Callable, Iterable, Sequence

import streamlit as st

from lib.errors import DraftworthError
from lib.results.fields import convert
from lib.results.store import Store
from lib.run import Run, Study
from lib.ui import run_editor
from lib.ui.dropped import runs_text
from lib.ui.run_editor import ARM, fields_of

Afresh = Callable[[str, Iterable[str]], None]
TICKED, SHOWN = "ticked", "shown"


def draw(
    store: Store, found: Study, picked: Sequence[Run], shown: Sequence[Run], afresh: Afresh
) -> None:
    """The popover: a field, its value, and of which runs. `afresh` draws their table again."""
    count = len(picked or shown)
    with st.popover(f"Set for {runs_text(count)}", icon=":material/edit_note:", key="bulk"):
        scopes = [TICKED, SHOWN] if picked else [SHOWN]
        counts = {TICKED: len(picked), SHOWN: len(shown)}
        with st.form("bulk-form", border=False):
            scope = st.radio(
                "Of which runs",
                scopes,
                format_func=lambda name: f"the {runs_text(counts[name])} {name}",
                key=f"bulk-scope-{len(scopes)}",  # ticking runs makes them what is meant
                horizontal=True,
            )
            name = st.selectbox(
                "Field", (ARM, *run_editor.OFTEN, *run_editor.RARELY), key="bulk-field"
            )
            value = st.text_input(
                "Value",
                placeholder="empty takes it back",
                key="bulk-value",
                help="An arm is off, METHOD or METHOD:K. What was typed there is replaced.",
            )
            asked = st.form_submit_button("Set it", type="primary", key="bulk-apply")
    if asked:
        runs = picked if scope == TICKED else shown
        with st.spinner(f"Setting {name} of {runs_text(len(runs))}"):
            _apply(store, found, [r.run_id for r in runs], name, value.strip(), afresh)
        st.rerun()


def _apply(
    store: Store, found: Study, ids: Sequence[str], name: str, value: str, afresh: Afresh
) -> None:
    try:
        fields = fields_of(name, value if name == ARM or not value else convert(name, value))
        changed = store.update(found.name, ids, fields)
    except DraftworthError as error:
        st.session_state["runs refused"] = str(error)
        return
    afresh(found.name, ids)
    what = f"{name} is {value}" if value else f"{name} is not stated any more"
    st.session_state["runs changed"] = f"{what} in {runs_text(changed)}"
