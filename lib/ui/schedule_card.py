"""The schedule to deploy, with its evidence and warnings; and a checker for one of your own."""

import json

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import engine_schedule
from lib.evidence import schedule as schedules
from lib.evidence.findings import Findings
from lib.report.format import plain_md
from lib.run import distinct
from lib.ui import study


def draw(found: Findings) -> None:
    """Both tabs: write a schedule from the study, judge one that exists."""
    st.subheader("Schedule", anchor=False)
    write, judge = st.tabs(["From this study", "Check one"])
    with write:
        _write(found)
    with judge:
        _judge()


def build(found: Findings) -> schedules.Schedule | str:
    """The schedule under the choices of this card, on whichever page; or why there is none."""
    max_num_seqs = study.max_num_seqs()
    if max_num_seqs is None:
        return "Type the engine's max_num_seqs in the sidebar: the schedule must reach up to it."
    try:
        return schedules.build(
            found.comparison,
            max_num_seqs,
            st.session_state.get("objective") or next(iter(schedules.OBJECTIVES)),
            tail=st.session_state.get("tail"),
            method=_chosen("method", methods(found)),
            protocol=_chosen("protocol", protocols(found)),
        )
    except DraftworthError as error:
        return str(error)


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
    places = iter(st.columns(4))
    next(places).selectbox(
        "Objective", list(schedules.OBJECTIVES), key="objective", bind="query-params"
    )
    next(places).selectbox(
        "Above the measured range",
        schedules.TAILS,
        index=None,
        placeholder="not chosen",
        key="tail",
        bind="query-params",
        help="off writes K = 0 there, carry keeps the last K; both are unmeasured.",
    )
    for label, key, options in (
        ("Draft method", "method", methods(found)),
        ("Protocol", "protocol", protocols(found)),
    ):
        if len(options) > 1:
            next(places).selectbox(label, options, key=key, bind="query-params")
    built = build(found)
    if isinstance(built, str):
        st.info(plain_md(built))
        return
    _tiers(built)
    _config(built, found)
    for warning in built.warnings:
        st.caption(f":material/warning: {plain_md(warning)}")


def _config(built: schedules.Schedule, found: Findings) -> None:
    """What to copy: the ranges, or the fixed K where it is within a hair of them."""
    method = _chosen("method", methods(found)) or "METHOD"
    drafter = next(
        iter(distinct(r.draft_model for r in found.study.runs if r.draft_method == method)), None
    )
    advised = built.best_fixed_k if built.gain_over_fixed < schedules.WORTH_A_SCHEDULE else None
    try:
        if advised is not None and len(built.tiers) > 1:
            config = engine_schedule.config(method, drafter, advised) if advised else {}
        else:
            config = schedules.speculative_config(built, method, drafter)
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    if config:
        st.code(json.dumps(config), language="json", wrap_lines=True)
        st.code(schedules.vllm_flag(config), language="bash", wrap_lines=True)
        if drafter is None:
            st.caption(
                "The drafter's model is not recorded: add `model` where the method needs one."
            )


def _tiers(built: schedules.Schedule) -> None:
    st.dataframe(
        {
            "from batch": [t.first for t in built.tiers],
            "to batch": [t.last for t in built.tiers],
            "K": [t.k for t in built.tiers],
            "gain against off": [t.gain for t in built.tiers],
            "measured at": [", ".join(f"{x:g}" for x in t.measured) for t in built.tiers],
            "K = 0 tax at which the next K wins": [t.tax for t in built.tiers],
        },
        hide_index=True,
        placeholder="–",
        column_config={
            "gain against off": st.column_config.NumberColumn(format="%.2f×"),
            "K = 0 tax at which the next K wins": st.column_config.NumberColumn(format="percent"),
        },
    )


def _judge() -> None:
    columns = st.columns([2, 1, 1])
    text = columns[0].text_area(
        "num_speculative_tokens_per_batch_size",
        placeholder="[[1, 16, 3], [17, 64, 0]]",
        key="schedule-text",
        persist_state="session",
    )
    most = columns[1].number_input(
        "num_speculative_tokens",
        min_value=1,
        value=None,
        step=1,
        key="check-k",
        persist_state="session",
    )
    seqs = columns[2].number_input(
        "max_num_seqs",
        min_value=1,
        max_value=study.MAX_SEQS,
        value=None,
        step=1,
        key="check-seqs",
        persist_state="session",
    )
    if not text or most is None or seqs is None:
        st.caption("Paste a schedule and type both numbers: it is judged as the engine would.")
        return
    judged = engine_schedule.check(text, most, seqs)
    if judged.valid:
        st.success("Valid: the engine starts with it.", icon=":material/check:")
    for error in judged.errors:
        st.error(plain_md(error))
    for warning in judged.warnings:
        st.warning(plain_md(warning))
    if judged.effective:
        st.caption("What the engine will really use:")
        st.dataframe(
            {
                "from batch": [r[0] for r in judged.effective],
                "to batch": [r[1] for r in judged.effective],
                "K": [r[2] for r in judged.effective],
            },
            hide_index=True,
        )
