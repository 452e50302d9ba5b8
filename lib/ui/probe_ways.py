"""The ways to a c: this machine's GPU, a document from elsewhere, two servers, the CPU."""

import streamlit as st

from lib.errors import DraftworthError
from lib.probe.nvml import Devices
from lib.probe.result import from_json
from lib.report.format import plain_md
from lib.report.probe_text import sentence
from lib.ui import probe_form, probe_servers, probed

MOST_MB = 8
ROUND, SAID = "probe import round", "probe import said"


def draw(found: Devices) -> None:
    """A tab a way; that of the GPU where there is one."""
    names = ["Import", "Two servers", "CPU check"]
    if found.found:
        names.insert(0, "GPU")
    tabs = dict(zip(names, st.tabs(names, key="probe-ways"), strict=True))
    if found.found:
        with tabs["GPU"]:
            # Of a split board CUDA sees one slice at a time.
            probe_form.on_gpu(sum(not gpu.mig for gpu in found.found))
    with tabs["Import"]:
        _import()
    with tabs["Two servers"]:
        probe_servers.draw()
    with tabs["CPU check"]:
        probe_form.on_cpu()


def _import() -> None:
    st.caption("Run this on the machine with the GPU, then drop the file here:")
    st.code(
        "python -m lib probe --target llama-3.1-8b --draft eagle3-llama-3.1-8b --json > probe.json",
        language="bash",
        wrap_lines=True,
    )
    done = st.session_state.setdefault(ROUND, 0)
    files = st.file_uploader(
        "What `probe --json` printed",
        accept_multiple_files=True,
        key=f"probe-files-{done}",
        max_upload_size=MOST_MB,
    )
    if files:
        st.session_state[SAID] = [_read(f.name, f.getvalue()) for f in files]
        st.session_state[ROUND] = done + 1
        st.rerun()
    for good, text in st.session_state.pop(SAID, ()):
        (st.success if good else st.error)(plain_md(text))


def _read(name: str, data: bytes) -> tuple[bool, str]:
    """Store one document; whether it is in the store now, and what to say of it."""
    try:
        probe = from_json(data)
        new = probed.keep(probe)
    except DraftworthError as error:
        return False, f"{name}: {error}"
    probed.choose(probe.id)
    return True, f"{name}: {sentence(probe)}" if new else f"{name}: known already"
