"""The schedule in each engine's own words, to copy; and its proof."""

import json

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import engine_schedule, sglang_schedule, trtllm_schedule
from lib.evidence import schedule as schedules
from lib.evidence.schedule import Schedule
from lib.report.format import plain_md
from lib.report.schedule_text import filled_in
from lib.run import Study
from lib.ui import schedule_proof

NO_DRAFTER = "The drafter's model is not recorded: add `{option}` where the method needs one."
NO_TARGET = "The target model is not recorded: write yours for `TARGET`."
NO_METHOD = "The draft method is not recorded: write yours for `METHOD`."


def draw(built: Schedule, found: Study) -> None:
    """One tab an engine, and the proof."""
    vllm, trtllm, sglang, proof = st.tabs(["vLLM", "TensorRT-LLM", "SGLang", "Prove it"])
    with vllm:
        _vllm(built)
    with trtllm:
        _trtllm(built, found)
    with sglang:
        _sglang(built)
    with proof:
        schedule_proof.draw(built, found)


def _advised(built: Schedule) -> int | None:
    """The fixed K to run instead of the ranges, where it is within a hair of them."""
    if built.fixed_k is not None:
        return built.fixed_k
    return built.best_fixed_k if built.keep_fixed and len(built.tiers) > 1 else None


def _vllm(built: Schedule) -> None:
    method, advised = built.method or "METHOD", _advised(built)
    try:
        if advised is not None:
            config = engine_schedule.config(method, built.draft_model, advised)
        else:
            config = schedules.speculative_config(built, method, built.draft_model)
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        config = None
    if config:
        _checked(built, config)
        st.code(json.dumps(config), language="json", wrap_lines=True)
        st.code(schedules.vllm_flag(config), language="bash", wrap_lines=True)
        python = engine_schedule.vllm_python(config, built.target, built.max_num_seqs)
        st.code(python, language="python", wrap_lines=True)
        _unknown(built, "model")
        if built.target is None:
            st.caption(NO_TARGET)
    elif config is not None:
        st.markdown("Start the server without `--speculative-config`.")
    for note in built.engine_notes:
        st.caption(f":material/warning: {plain_md(note)}")


def _unknown(built: Schedule, option: str) -> None:
    """What the copied text lacks because the study does not record it."""
    if built.method is None:
        st.caption(NO_METHOD)
    if built.draft_model is None:
        st.caption(NO_DRAFTER.format(option=option))


def _checked(built: Schedule, config: dict[str, object]) -> None:
    """The engine's own reading of what is about to be copied."""
    if engine_schedule.KEY not in config:
        return
    read = engine_schedule.check(config, built.num_speculative_tokens, built.max_num_seqs)
    for error in read.errors:
        st.error(plain_md(error))
    st.caption(plain_md(f"As vLLM fills it in: {filled_in(read.effective)}."))


def _trtllm(built: Schedule, found: Study) -> None:
    recorded = trtllm_schedule.recorded_version(found.runs)
    typed = st.text_input(
        "TensorRT-LLM version",
        placeholder=f"{recorded}, as recorded" if recorded else "1.3.0",
        key="trtllm_version",
        bind="query-params",
        width=220,
        help="Until 1.2 a key is the first batch of its range; from 1.3 it is the last.",
    )
    if built.ranges is None or built.method is None or _advised(built) is not None:
        st.info("There are no ranges worth writing: see the line above the table.")
        return
    version = typed or recorded
    meaning = trtllm_schedule.meaning_of(version)
    if meaning is None:
        st.info(
            "Type the version: until 1.2 a key of draft_len_schedule is the first batch of its "
            "range, from 1.3 the last, and the same dict means two schedules."
        )
        return
    try:
        text = trtllm_schedule.yaml_config(built.method, built.draft_model, built.ranges, meaning)
        table = trtllm_schedule.schedule_of(built.ranges, meaning)
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    read = trtllm_schedule.check(table, built.num_speculative_tokens, built.max_num_seqs, meaning)
    for refused in read.errors:
        st.error(plain_md(refused))
    st.caption(
        plain_md(f"In {version} a key is the {meaning}. Filled in: {filled_in(read.effective)}.")
    )
    st.code(text, language="yaml", wrap_lines=True)
    _unknown(built, "speculative_model")
    measured = "" if "tensorrt" in (built.engine or "").lower() else "Measure it on TensorRT-LLM: "
    st.caption(f"{measured}{trtllm_schedule.ONE_PATH} {trtllm_schedule.ATTENTION_DP}")


def _sglang(built: Schedule) -> None:
    st.warning(sglang_schedule.CANNOT, icon=":material/block:")
    method = built.method or "METHOD"
    try:
        flags = sglang_schedule.fixed_flags(method, built.draft_model, built.best_fixed_k)
    except DraftworthError as error:
        st.info(plain_md(str(error)))
        return
    if flags:
        st.markdown(f"The best fixed K of this study, {built.best_fixed_k}:")
        st.code(flags, language="shell", wrap_lines=True)
        _unknown(built, "--speculative-draft-model-path")
    else:
        st.markdown("The best fixed K of this study is 0: start without speculation.")
    try:
        adaptive = sglang_schedule.adaptive_config(method, built.ranges or ())
    except DraftworthError:
        return
    st.markdown("Or let it adapt between the same K, by accepted length:")
    st.code(json.dumps(adaptive), language="javascript", wrap_lines=True)
    st.caption(sglang_schedule.ADAPTIVE_LIMITS)
