"""A person's word that prices and schedules may rest on random tokens, asked where they would."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.run import drafts_on_random_tokens

KEY = "random_ok"
ASKED = (
    "Speculation was measured on random tokens here: no price and no schedule is made of it. "
    "Measure it on real prompts."
)
LABEL = "Use it all the same: acceptance on random tokens is not representative"


def random_ok() -> bool:
    """Whether the person accepts it; before its box is first drawn it is in the link alone."""
    said = st.session_state.get(KEY)
    return st.query_params.get(KEY) == "true" if said is None else bool(said)


def ask(found: Findings) -> None:
    """One line and a box, where an arm of the comparison drafted on random tokens."""
    compared = [r for a in found.arms for c in a.pairs.cells for r in c.on]
    if not drafts_on_random_tokens(compared):
        return
    if not random_ok():
        st.warning(ASKED, icon=":material/shuffle:")
    st.checkbox(LABEL, key=KEY, bind="query-params")
