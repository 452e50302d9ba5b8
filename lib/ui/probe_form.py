"""What to measure: target, drafter and the step; on a GPU, or on the CPU to check the method."""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import get_args

import streamlit as st

from lib.errors import DraftworthError, InputError
from lib.probe import architecture, worker
from lib.probe.result import CPU_ONLY
from lib.probe.setup import CPU, LIMITS, MIN_SAMPLES, Dtype, Sampling, Setup
from lib.report.format import plain_md
from lib.ui.allowed import is_local
from lib.ui.probe_runs import bench

NO_TORCH = (
    "Timing needs PyTorch, which is not installed here: "
    "`pip install -r requirements-probe.txt`, then restart."
)
TYPED = "A row of the list, a folder of a checkpoint on the machine of this page, or a hub id."
LISTED_ONLY = (
    "Models of the list only: this machine reads or downloads a checkpoint for nobody but who sits "
    "at it. There: `python -m lib probe --target FOLDER_OR_HUB_ID --draft …`."
)
FIRST_TARGET, FIRST_DRAFT = "llama-3.1-8b", "eagle3-llama-3.1-8b"
TINY_TARGET, TINY_DRAFT = "tiny-target", "tiny-draft"


def on_gpu(count: int) -> None:
    """The form for `count` GPUs of this machine."""
    devices = ["cuda"] if count < 2 else [f"cuda:{i}" for i in range(count)]
    _form("gpu", FIRST_TARGET, FIRST_DRAFT, devices, "bfloat16", context=512)


def on_cpu() -> None:
    """The form of the method check."""
    st.caption(f"{CPU_ONLY}. It shows what a probe does, on models that are tiny.")
    _form("cpu", TINY_TARGET, TINY_DRAFT, [CPU], "float32", context=128)


def targets() -> list[str]:
    """Architectures that a drafter may draft for."""
    return [n for n in architecture.names() if architecture.get(n).role != "draft"]


def drafts(target: str) -> list[str]:
    """What may draft for a target: its own heads first, then models; no other target's heads."""
    rows = [architecture.get(n) for n in architecture.names() if n != target]
    own = [r.name for r in rows if r.for_target == target]
    return own + [r.name for r in rows if r.role != "target" and not r.for_target]


def _form(
    place: str,
    first_target: str,
    first_draft: str,
    devices: Sequence[str],
    dtype: Dtype,
    context: int,
) -> None:
    if find_spec("torch") is None:
        st.info(NO_TORCH, icon=":material/extension:")
        return
    typed = is_local()
    target = _model("Target", f"{place}-target", targets(), first_target, typed)
    draft = _model("Drafter", f"{place}-draft-of-{target}", drafts(target), first_draft, typed)
    if not typed:
        st.caption(LISTED_ONLY)
    first, second, third = st.columns(3)
    with first:
        tokens = _whole("Context", f"{place}-context", "context", context)
    with second:
        gamma = _whole("γ", f"{place}-gamma", "gamma", 5)
    with third:
        batch = _whole("Batch", f"{place}-batch", "batch", 1)
    with st.expander("Precision, sampling, how long"):
        chosen = _one_of("Precision", f"{place}-dtype", get_args(Dtype), dtype)
        sampling = _one_of("Sampling", f"{place}-sampling", get_args(Sampling), "argmax")
        samples = _whole("Samples", f"{place}-samples", "samples", MIN_SAMPLES)
        seconds = _whole("At most, seconds", f"{place}-seconds", "max_seconds", 600)
    device = devices[0]
    if len(devices) > 1:
        device = _one_of("Device, as CUDA numbers it", f"{place}-device", devices, device)
    label = "Check the method" if device == CPU else "Run the probe"
    asked = st.button(
        label,
        type="primary",
        icon=":material/play_arrow:",
        key=f"{place}-run",
        disabled=bench().busy,
        width="stretch",
    )
    if not asked:
        return
    try:
        # A list in a browser keeps nobody from sending another name.
        if not typed and not {target, draft} <= {*architecture.names()}:
            raise InputError(LISTED_ONLY)
        setup = Setup(
            target=target,
            draft=draft,
            context=tokens,
            gamma=gamma,
            batch=batch,
            dtype=chosen,  # type: ignore[arg-type]
            device=device,
            sampling=sampling,  # type: ignore[arg-type]
            samples=samples,
            max_seconds=seconds,
        )
        where = "the CPU" if setup.on_cpu else device
        bench().begin(f"{draft} for {target} on {where}", partial(worker.start, setup))
    except DraftworthError as error:
        st.error(plain_md(str(error)))
        return
    st.rerun()


def _model(label: str, key: str, names: Sequence[str], first: str, typed: bool) -> str:
    chosen = st.selectbox(
        label,
        list(names),
        index=names.index(first) if first in names else 0,
        key=key,
        persist_state="session",
        format_func=_named,
        accept_new_options=typed,
        help=TYPED if typed else None,
    )
    return str(chosen or "")


def _named(name: str) -> str:
    return architecture.get(name).label if name in architecture.names() else name


def _whole(label: str, key: str, limit: str, start: int) -> int:
    low, high = LIMITS[limit]
    value = st.number_input(
        label, low, high, start, 1, key=key, persist_state="session", help=f"{low} to {high:,}"
    )
    return int(value)


def _one_of(label: str, key: str, options: Sequence[str], first: str) -> str:
    chosen = st.selectbox(
        label, list(options), index=options.index(first), key=key, persist_state="session"
    )
    return str(chosen)
