"""What the drafter takes of a replica's memory: sizes from the table of architectures."""

import streamlit as st

from lib.errors import InputError
from lib.evidence.findings import Findings
from lib.money.memory import Held, Room, held
from lib.probe import architecture
from lib.report.fleet_text import memory_line
from lib.report.format import plain_md
from lib.run import distinct
from lib.ui import inputs, study
from lib.ui.live_slider import live_slider

TARGET, DRAFT, CACHE = "memory_target", "memory_draft", "cache_bytes"
SLIDERS = ("gpu_gib", "memory_share", "request_tokens")


def in_hand(found: Findings) -> Held | str:
    """Requests that fit with what is typed, or what is missing."""
    target, draft = _chosen(TARGET), _chosen(DRAFT)
    values = {key: inputs.value(key) for key in SLIDERS}
    gpus = _gpus(found)
    if target is None or draft is None:
        return "Choose the target and the drafter to see what the drafter takes."
    if None in values.values():
        return "Type the memory, the engine's share and the tokens a request."
    if gpus is None:
        return "Type the GPUs of a replica."
    lookahead = max((r.num_speculative_tokens or 0 for r in found.study.runs), default=0)
    try:
        room = Room(
            float(values["gpu_gib"] or 0),
            gpus,
            float(values["memory_share"] or 0),
            float(values["request_tokens"] or 0),
            lookahead,
        )
        return held(architecture.get(target), architecture.get(draft), room)
    except InputError as error:
        return str(error)


def _chosen(key: str) -> str | None:
    chosen = st.session_state.get(key) or st.query_params.get(key)
    return chosen if chosen in architecture.names() else None


def _gpus(found: Findings) -> int | None:
    counts = {r.gpu_count for r in found.study.runs} - {None}
    return study.rate().gpu_count or (counts.pop() if len(counts) == 1 else None)


def draw(found: Findings, fits: Held | str) -> None:
    """The choices and the sentence; loads above the limit are left out by the page."""
    names = [n for n in architecture.names() if not n.startswith("tiny-")]
    rows = {n: architecture.get(n) for n in names}
    targets = [n for n, row in rows.items() if row.role != "draft"]
    drafts = [n for n, row in rows.items() if row.role != "target"]
    left, right = st.columns(2)
    for place, label, key, options in (
        (left, "Target", TARGET, targets),
        (right, "Drafter", DRAFT, drafts),
    ):
        place.selectbox(
            label,
            options,
            index=None,
            placeholder="not chosen",
            key=key,
            bind="query-params",
            help="Two bytes a value. Of another size: nothing is guessed.",
        )
    if isinstance(fits, str):
        st.caption(plain_md(fits))
    else:
        st.markdown(plain_md(memory_line(fits)))
    recorded = distinct(r.target for r in found.study.runs)
    if recorded:
        st.caption(plain_md(f"The study's target: {', '.join(recorded)}."))
    for place, key in zip(st.columns(len(SLIDERS)), SLIDERS, strict=True):
        with place:
            live_slider(key)
