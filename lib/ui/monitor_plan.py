"""What a watched server is held against: an arm of the study in hand at the operating load."""

import streamlit as st

from lib import decision
from lib.errors import InputError
from lib.evidence.findings import Findings
from lib.report.format import plain_md
from lib.report.monitor_text import plan_lines
from lib.serving.plan import Plan, plan_of
from lib.ui import consent, schedule_card, study

ARM, DEPLOYED = "monitor_arm", "monitor_schedule"


def in_hand() -> Plan | str:
    """The plan, or what it still needs; its controls need not be drawn."""
    found = study.findings(quiet=True)
    if found is None:
        return "The study in hand compares no arms: pick one with a measured arm and off."
    load = study.operating_load()
    if load is None:
        return "Name the operating load in the sidebar: the plan is what was measured there."
    name = _arm(found)
    arm = next((a for a in found.arms if a.label == name), None)
    if arm is None:
        return "The study in hand has no arm that speculates."
    built = schedule_card.build(found) if _deployed() else ""
    try:
        return plan_of(
            found,
            arm,
            load,
            study.rate(),
            study.slo(),
            schedule=None if isinstance(built, str) else built.ranges,
            accept_random=consent.random_ok(),
        )
    except InputError as error:
        return f"No plan: {error}."


def usd_per_hour(plan: Plan | str) -> float | None:
    """What one server costs an hour: the plan's price, else what is typed."""
    if isinstance(plan, Plan) and plan.usd_per_hour is not None:
        return plan.usd_per_hour
    rate = study.rate()
    if rate.usd_per_gpu_hour is None or rate.gpu_count is None or rate.added_usd_per_hour is None:
        return None
    return rate.usd_per_gpu_hour * rate.gpu_count + rate.added_usd_per_hour


def choose(plan: Plan | str) -> None:
    """The arm that is deployed, and the plan in lines."""
    found = study.findings(quiet=True)
    if found is not None and found.arms:
        names = [a.label for a in found.arms]
        if st.session_state.get(ARM) not in names:
            st.session_state[ARM] = _arm(found)
        st.selectbox(
            "Deployed arm",
            names,
            key=ARM,
            bind="query-params",
            help="The arm of the study in hand that the watched servers run.",
        )
        st.checkbox(
            "The study's schedule is deployed",
            key=DEPLOYED,
            bind="query-params",
            help="K by batch size as the compare page writes it: its ranges are then watched too.",
        )
    if isinstance(plan, str):
        st.caption(plain_md(plan))
        return
    first, sources = plan_lines(plan)
    st.markdown(f"**Plan.** {plain_md(first)}")
    st.caption(plain_md(sources))
    if usd_per_hour(plan) is None:
        st.caption(
            "Type a $/GPU-h and the GPUs on the price page to see what a million tokens costs."
        )


def _arm(found: Findings) -> str | None:
    """As chosen, else the verdict's, else the strongest at the load."""
    names = [a.label for a in found.arms]
    chosen = st.session_state.get(ARM) or st.query_params.get(ARM)
    if chosen in names:
        return str(chosen)
    load = study.operating_load()
    named = decision.verdict(found, load, study.stated()).arm
    if named in names:
        return named
    strongest = found.headline(load)
    return None if strongest is None else strongest.label


def _deployed() -> bool:
    return bool(st.session_state.get(DEPLOYED) or st.query_params.get(DEPLOYED) == "true")
