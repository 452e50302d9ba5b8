"""How an estimate looks on a page: the answer, its basis and how it was derived."""

from collections.abc import Mapping

import streamlit as st

from lib.estimate import Basis, Estimate
from lib.report.format import estimate as estimate_text
from lib.report.format import plain_md

MEANING = {
    Basis.THEOREM: "from a published formula and its inputs; it holds under its assumptions only.",
    Basis.MEASURED: "from your own benchmark files or probes.",
    Basis.DERIVED: "computed from measured values, between or beside the measured points.",
    Basis.ASSUMED: "typed or dragged by a person; nothing was measured.",
    Basis.PUBLISHED: "taken from the cited publication.",
}
COLOR = {
    Basis.THEOREM: "violet",
    Basis.MEASURED: "green",
    Basis.DERIVED: "blue",
    Basis.ASSUMED: "orange",
    Basis.PUBLISHED: "gray",
}


def question(text: str) -> None:
    """The page's title: the question that it answers."""
    with st.container(key="question"):
        st.title(text, anchor=False)


def basis_chip(basis: Basis) -> None:
    """A small label that says where a number comes from."""
    st.badge(basis, color=COLOR[basis])  # type: ignore[arg-type]


def answer(
    sentence: str,
    estimate: Estimate,
    rests_on: Mapping[str, Estimate] | None = None,
    note: str = "",
    key: str = "answer",
) -> None:
    """The page's answer in large type, its basis, and a popover with its derivation.

    `sentence` and `note` are Markdown: names from files go through `plain_md` first. `rests_on`
    are the inputs by name; a chip a basis says what they rest on, "some" where they differ. A
    second answer on a page needs a `key` of its own that begins with "answer".
    """
    inputs = dict(rests_on or {})
    bases = sorted({e.basis for e in inputs.values()})
    chips = f":{COLOR[estimate.basis]}-badge[{estimate.basis}]"
    which = "inputs" if len(bases) == 1 else "some inputs"
    chips += "".join(f" :{COLOR[basis]}-badge[{which} {basis}]" for basis in bases)
    with st.container(key=f"{key}-sentence"):
        st.markdown(sentence)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(chips, width="content")
        how(estimate, inputs, f"{key}-how")
    if note:
        st.caption(note)


def how(estimate: Estimate, rests_on: Mapping[str, Estimate], key: str) -> None:
    """A popover, filled when it is opened: value, formula, inputs with sources, citation."""
    derivation = st.popover("how", type="tertiary", key=key, on_change="rerun")
    if not derivation.open:
        return
    with derivation:
        st.markdown(f"**{plain_md(estimate_text(estimate))}** · {estimate.basis}")
        if estimate.how:
            st.code(estimate.how, language=None, wrap_lines=True)
        for name, used in rests_on.items():
            st.markdown(
                f"{plain_md(name)} = **{plain_md(estimate_text(used))}** · {used.basis}  \n"
                f":gray[:small[{plain_md(used.source)}]]"
            )
        st.caption(plain_md(estimate.source))
        st.caption(f"{str(estimate.basis).capitalize()}: {MEANING[estimate.basis]}")
