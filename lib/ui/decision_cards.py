"""The parts of the decision page: the path of gates, what would flip it, the guardrails."""

from collections.abc import Sequence

import streamlit as st

from lib import decision
from lib.decision import LIGHTS, MARKS, Gate, Guardrail, Light, ScreenInputs, Stands, State
from lib.estimate import Basis
from lib.evidence.findings import Findings
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair, price_pairs
from lib.report.decision_text import flip_estimate, flip_lines
from lib.report.format import plain_md
from lib.report.screening import Screening
from lib.ui import carried, chips, consent, inputs, monitor_live, navigation, probed, study

GATE_COLOR = {
    State.PASSED: "green",
    State.FAILED: "red",
    State.UNDECIDED: "orange",
    State.STALE: "orange",
    State.MISSING: "gray",
}
LIGHT_COLOR = {Light.GREEN: "green", Light.OPEN: "gray", Light.TRIPPED: "red"}
MOST_CLAIMED = 20.0


def screen_inputs() -> ScreenInputs:
    """The screen page's inputs as they stand; published while they are an example's."""
    alpha, c = (float(inputs.value(k) or 0) for k in ("alpha", "c"))
    gamma = int(inputs.value("gamma") or 1)
    preset = Screening(alpha, gamma, c).preset
    basis = Basis.PUBLISHED if preset else Basis.ASSUMED
    kept = "; ".join(carried.lines())
    source = f"From {preset.citation}." if preset else kept or "From your sliders."
    return ScreenInputs(alpha, gamma, c, basis, source)


def priced(found: Findings) -> list[PricedPair]:
    """Every arm's pair at the operating load (all loads until it is named), as typed."""
    load, paid = study.operating_load(), study.rate()
    slo, agreed = study.slo(), consent.random_ok()
    pairs = [p for a in found.arms for p in price_pairs(found, a, paid, slo, accept_random=agreed)]
    return [p for p in pairs if load is None or p.on.load == load]


def steps(found: Findings, result: decision.Verdict, built: Schedule | str) -> tuple[Gate, ...]:
    """The path of gates as it stands, from the screen's inputs to the live server."""
    typed = screen_inputs()
    counts, probes = study.request_acceptance(found.study), probed.all_probes()
    low = decision.low_batch(found, result.arm, typed, counts, probes)
    live = monitor_live.now()
    return decision.gates(found, result, typed, priced(found), built, low, study.rate(), live)


def gates(rows: Sequence[Gate]) -> None:
    """The path, one row a gate."""
    for row in rows:
        with st.container(border=True, gap="small"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.badge(f"{MARKS[row.state]} {row.state}", color=GATE_COLOR[row.state])  # type: ignore[arg-type]
                st.markdown(f"**{row.title}**", width="content")
                if row.basis is not None:
                    chips.basis_chip(row.basis)
                if row.page:
                    st.page_link(navigation.pages()[row.page])
            if row.known:
                st.markdown(plain_md(row.known))
            if row.missing:
                st.caption(plain_md(row.missing))


def flips(found: Findings, stands: Stands | None) -> None:
    """The first input that flips the verdict, its margin and derivation; the others folded."""
    lines = flip_lines(stands, found)
    if stands is None or not lines:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="flip"):
        st.markdown(f"**What would flip this.** {plain_md(lines[0])}", width="content")
        margin = flip_estimate(stands.flips[0])
        chips.basis_chip(margin.basis)
        chips.how(margin, {}, "flip-how")
    if lines[1:]:
        with st.expander("What else would, alone"):
            for line in lines[1:]:
                st.markdown(plain_md(line))


def claimed() -> float | None:
    """The published speedup that the person typed; None until then, before its field is drawn."""
    found = st.session_state.get("claimed_speedup", st.query_params.get("claimed_speedup"))
    try:
        return None if found is None else float(found)
    except ValueError:
        return None


def guardrails(found: Findings, result: decision.Verdict, built: Schedule | str) -> None:
    """The five failure modes for this study, with the claim that one of them compares."""
    st.subheader("Guardrails", anchor=False)
    st.caption("Five ways in which speculation disappoints, judged on this study.")
    rows = decision.guardrails(
        found,
        result,
        study.findings("tpot_ms", quiet=True),
        priced(found),
        built,
        claimed(),
        study.max_num_seqs(),
    )
    with st.container(border=True, gap="medium", key="guardrails"):
        for row in rows:
            _guardrail(row)
    st.number_input(
        "Published speedup of this drafter",
        min_value=0.1,
        max_value=MOST_CLAIMED,
        value=None,
        placeholder="not typed",
        key="claimed_speedup",
        bind="query-params",
        width=280,
        help="The speedup as its publication claims it, for example 2.5. It is only compared.",
    )


def _guardrail(row: Guardrail) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(f"{LIGHTS[row.light]} {row.light}", color=LIGHT_COLOR[row.light])  # type: ignore[arg-type]
        st.markdown(f"**{row.title}.** {plain_md(row.said)}", width="content")
        if row.page:
            st.page_link(navigation.pages()[row.page])
