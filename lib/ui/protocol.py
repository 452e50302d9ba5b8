"""The strip above a comparison: what differs, what is not recorded, and what a person states."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.evidence.protocol import FIELDS, Difference, grouped, splits
from lib.report.format import plain_md
from lib.run import OFF
from lib.ui import study


def strip(found: Findings) -> None:
    """Protocol differences (red where they block), unrecorded fields, notes of the pairing."""
    comparison = found.comparison
    for difference in comparison.differences:
        _line(difference)
    if comparison.allocation_differs:
        st.info(
            "The arms ran on different allocations: this compares allocation with allocation, each "
            "at its own $/h; no schedule is drawn from it.",
            icon=":material/swap_horiz:",
        )
    if comparison.unassigned:
        count = len(comparison.unassigned)
        st.warning(
            f"{count} run{'s' if count > 1 else ''} not assigned to an arm: name the arm on the "
            "results page.",
            icon=":material/label_off:",
        )
    blocking = [d.field for d in comparison.differences if d.verdict == "blocks"]
    split = _split(found)
    blocking += split
    accepted = study.overrides()
    open_fields = [f for f in comparison.not_recorded if f not in study.stated()]
    summary = f"{len(open_fields)} protocol fields not recorded" if open_fields else "Protocol"
    if apart := [f for f in split if f not in accepted]:
        summary += f" · arms split by {', '.join(apart)}"
    if not (blocking or accepted or comparison.not_recorded or comparison.notes):
        return
    with st.expander(summary, icon=":material/rule:"):
        if comparison.not_recorded:
            st.markdown(
                "Not recorded in both arms: "
                + ", ".join(plain_md(f) for f in comparison.not_recorded)
                + ". The pairs stand; the decision stays open until you state them."
            )
            st.multiselect(
                "I state that both arms agree in",
                comparison.not_recorded,
                key="stated",
                bind="query-params",
            )
        if blocking or accepted:
            st.multiselect(
                "Compare in spite of a difference in",
                sorted({*blocking, *accepted}),
                key="override",
                bind="query-params",
                help="Printed on every figure and result that rests on it.",
            )
        for note in comparison.notes:
            st.caption(plain_md(note))


def _split(found: Findings) -> list[str]:
    """Protocol fields that split an arm into curves, or would without a person's word."""
    arms = grouped((r for r in found.study.runs if r.arm not in (None, OFF)), lambda r: r.arm)
    names = {name for runs in arms.values() for name in splits(runs)}
    return sorted(names & {n for fields in FIELDS.values() for n in fields})


def caption(found: Findings, *, again: bool = False) -> None:
    """What every figure must carry: simulated, overridden, not recorded.

    `again` is for a further figure of one page: the study's own words and the list of fields stand
    under the first, the count of the fields, what was overridden and stated under each.
    """
    parts = [found.study.caveat]
    if not again:
        parts += [found.study.note, found.study.citation]
    overridden = sorted({d.field for d in found.comparison.differences if d.overridden})
    if overridden:
        parts.append(f"a person overrides the difference in {', '.join(overridden)}")
    unknown = [f for f in found.comparison.not_recorded if f not in study.stated()]
    if unknown and again:
        fields = "field" if len(unknown) == 1 else "fields"
        parts.append(f"not recorded: the {len(unknown)} protocol {fields} named above")
    elif unknown:
        parts.append(f"not recorded: {', '.join(unknown)}")
    if study.stated():
        parts.append(f"stated equal by a person: {', '.join(sorted(study.stated()))}")
    text = plain_md(" · ".join(p for p in parts if p))
    if found.study.url and not again:
        text += f" · [source]({found.study.url})"
    st.caption(text)


def _line(difference: Difference) -> None:
    text = plain_md(difference.text)
    if difference.verdict == "blocks" and not difference.overridden:
        st.error(text, icon=":material/block:")
    elif difference.overridden:
        st.warning(text, icon=":material/warning:")
    else:
        st.caption(text)
