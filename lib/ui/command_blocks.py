"""Commands on a page: each to copy, the sweep's two files to take home, what is left to fill in."""

from collections.abc import Sequence

import streamlit as st

from lib.report.format import plain_md
from lib.run import Study, distinct
from lib.serving import tools
from lib.serving.commands import BENCH_PARAMS, SERVE_PARAMS, Sweep
from lib.serving.setup import Command

FILE_HEIGHT = 240


def sweep(built: Sweep, found: Study, key: str, *, show_files: bool = False) -> None:
    """vLLM's sweep with the two files that it reads; `show_files` prints these as well."""
    st.code(built.command.text, language="bash", wrap_lines=True)
    files = ((SERVE_PARAMS, built.serve_params), (BENCH_PARAMS, built.bench_params))
    if show_files:
        for place, (name, text) in zip(st.columns(2), files, strict=True):
            with place:
                st.caption(name)
                st.code(text, language="json", height=FILE_HEIGHT)
                _download(name, text, key)
    else:
        with st.container(horizontal=True, gap="small"):
            for name, text in files:
                _download(name, text, key)
    beside(found, tools.SWEEP, (built.command,))


def steps(commands: Sequence[Command]) -> None:
    """One block a command, under its title; several lines scroll."""
    for step in commands:
        st.caption(plain_md(step.title))
        height = FILE_HEIGHT if "\n" in step.text else None
        st.code(step.text, language="bash", wrap_lines=True, height=height)


def beside(found: Study, label: str, commands: Sequence[Command]) -> None:
    """What is left to fill in, and what to know, each once."""
    blanks = distinct(b for s in commands for b in s.placeholders)
    if blanks:
        st.caption(plain_md(f"Not recorded, to fill in: {'; '.join(blanks)}."))
    if notes := distinct(n for s in commands for n in s.notes):
        st.caption(plain_md(" ".join(notes)))
    if unlike := tools.mismatch(found, label):
        st.caption(f":material/warning: {plain_md(unlike)}")


def _download(name: str, text: str, key: str) -> None:
    st.download_button(name, text, name, "application/json", key=f"{key}-{name}", on_click="ignore")
