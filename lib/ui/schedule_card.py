"""The schedule to deploy, with its evidence and warnings; and a checker for one of your own."""

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import schedule as schedules
from lib.evidence.engine_support import RUNNERS
from lib.evidence.findings import Findings
from lib.evidence.pairing import Comparison, compare
from lib.report.format import plain_md
from lib.report.schedule_text import tier_table, verdict, worth
from lib.run import distinct
from lib.ui import chips, consent, schedule_check, schedule_export, study
from lib.ui.figure import csv_button

GAIN = st.column_config.NumberColumn(format="%.2f×")
FIELD_WIDTH = 220


def draw(found: Findings) -> None:
    """Both tabs: write a schedule from the study, judge one that exists."""
    st.subheader("Schedule", anchor=False)
    write, judge = st.tabs(["From this study", "Check one"])
    with write:
        _write(found)
    with judge:
        schedule_check.draw()


def build(found: Findings, max_num_seqs: int | None = None) -> schedules.Schedule | str:
    """The schedule under the choices of this card, on whichever page; or why there is none.

    `max_num_seqs` stands in for the engine's while that is not typed.
    """
    max_num_seqs = study.max_num_seqs() or max_num_seqs
    if max_num_seqs is None:
        return "Type the engine's max_num_seqs in the sidebar: the schedule must reach up to it."
    objective = st.session_state.get("objective") or next(iter(schedules.OBJECTIVES))
    slo = study.slo()
    try:
        pairs = _pairs(found, objective)
        return schedules.build(
            pairs,
            max_num_seqs,
            objective,
            tail=st.session_state.get("tail"),
            method=_chosen("method", methods(found)),
            protocol=_chosen("protocol", protocols(found)),
            slo=slo,
            good_rps=_goodput(pairs) if objective == "goodput" else None,
            runner=st.session_state.get("runner"),
            accept_random=consent.random_ok(),
        )
    except DraftworthError as error:
        return str(error)


def _pairs(found: Findings, objective: str) -> Comparison:
    """The pairs on the objective's own metric: throughput leaves out runs that latency needs."""
    metric = schedules.OBJECTIVES[objective]
    if metric == found.metric.name:
        return found.comparison
    return compare(found.study, study.overrides(), metric)


def _goodput(pairs: Comparison) -> dict[str, float]:
    runs = {r.run_id: r for a in pairs.arms for c in a.cells for r in (*c.off, *c.on)}
    return study.goodput(pairs.study, list(runs.values()), study.slo())


def methods(found: Findings) -> list[str]:
    """Draft methods that a schedule can be written for: those with a fixed K."""
    return distinct(r.draft_method for r in found.study.runs if r.num_speculative_tokens)


def protocols(found: Findings) -> list[str]:
    """What tells curves of one arm apart, where the study has several."""
    return distinct(a.pairs.protocol for a in found.arms)


def _chosen(key: str, options: list[str]) -> str | None:
    chosen = st.session_state.get(key)
    return chosen if chosen in options else next(iter(options), None)


def _write(found: Findings) -> None:
    with st.container(horizontal=True, gap="small"):
        _controls(found)
    consent.ask(found)
    built = build(found)
    if isinstance(built, str):
        st.info(plain_md(built))
        return
    _worth(built, found)
    _tiers(built)
    for warning in built.warnings:
        if warning not in built.engine_notes:
            st.caption(f":material/warning: {plain_md(warning)}")
    schedule_export.draw(built, found.study)


def _worth(built: schedules.Schedule, found: Findings) -> None:
    """The schedule's gain in one line, with its basis and how it was derived."""
    sentence, estimate = f"**{plain_md(verdict(built))}**", worth(built, found.study.basis)
    if estimate is None:
        st.markdown(sentence)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        badge = f":{chips.COLOR[estimate.basis]}-badge[{estimate.basis}]"
        st.markdown(f"{sentence} {badge}", width="content")
        chips.how(estimate, {}, "schedule-how")
    if found.study.caveat:
        st.caption(plain_md(found.study.caveat))


def _controls(found: Findings) -> None:
    st.selectbox(
        "Objective",
        list(schedules.OBJECTIVES),
        key="objective",
        bind="query-params",
        width=FIELD_WIDTH,
        help="Output tok/s, mean TPOT, or good requests per second at the sidebar's limits.",
    )
    st.selectbox(
        "Above the measured range",
        schedules.TAILS,
        index=None,
        placeholder="not chosen",
        key="tail",
        bind="query-params",
        width=FIELD_WIDTH,
        help="off writes K = 0 there, carry keeps the last K; both are unmeasured.",
    )
    st.selectbox(
        "vLLM model runner",
        RUNNERS,
        index=None,
        placeholder="not known",
        key="runner",
        bind="query-params",
        width=FIELD_WIDTH,
        help="VLLM_USE_V2_MODEL_RUNNER decides it; the log names it at start.",
    )
    for label, key, options in (
        ("Draft method", "method", methods(found)),
        ("Protocol", "protocol", protocols(found)),
    ):
        if len(options) > 1:
            st.selectbox(label, options, key=key, bind="query-params", width=FIELD_WIDTH)


def _tiers(built: schedules.Schedule) -> None:
    table = tier_table(built)
    against_fixed = f"against fixed K = {built.best_fixed_k}"
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        column_config={"gain against off": GAIN, against_fixed: GAIN},
    )
    csv_button("schedule", lambda: table)
