"""Scenario inputs: values of the rows of data/assumptions.csv, in the session and in links.

A value lives in the session under its row's key. A session's first run fills it from the URL;
every page run writes back what differs from its start, because a page switch drops parameters.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from lib.assumptions import Input, table
from lib.errors import InputError
from lib.numbers import number
from lib.report.format import plain_md
from lib.results.findings import shown

Value = float | int | None

OPENED = "inputs opened"
IGNORED = "inputs ignored"
REVISION = "inputs revision"


def begin() -> None:
    """First thing of every page run: fill the session from the URL once, then keep the URL."""
    if not st.session_state.get(OPENED):
        st.session_state[OPENED] = True
        st.session_state[IGNORED] = _read_url()
    for row in table().values():
        if row.key not in st.session_state:
            st.session_state[row.key] = _start(row)
    write_url()


def _start(row: Input) -> Value:
    return None if row.start is None else row.check(row.start)


def _read_url() -> list[str]:
    ignored = []
    for key, row in table().items():
        if key in st.query_params and key not in st.session_state:
            try:
                st.session_state[key] = row.parse(st.query_params[key])
            except InputError as error:
                ignored.append(str(error))
    return ignored


def show_ignored() -> None:
    """A quiet note on what the link asked for and did not get; once."""
    for message in st.session_state.pop(IGNORED, None) or ():
        st.caption(f"Ignored in this link: {plain_md(message)}")


@contextmanager
def told(key: str, start: object, allowed: str) -> Iterator[None]:
    """Around a widget bound to the link: what the link asks and the widget does not take is told.

    `start` is the widget's value without a link. Before `show_ignored`, in a session's first run.
    """
    asked = None if key in st.session_state else st.query_params.get(key)
    yield
    if asked and st.session_state.get(key) == start and asked != str(start):
        said = f"{key} = {shown(asked)}: {allowed}"
        st.session_state[IGNORED] = [*(st.session_state.get(IGNORED) or ()), said]


def write_url() -> None:
    """Make the URL carry every input that is not at its start, and no other."""
    wanted = {
        key: number(st.session_state[key])
        for key, row in table().items()
        if st.session_state.get(key) is not None and st.session_state[key] != row.start
    }
    present = {key: st.query_params[key] for key in table() if key in st.query_params}
    for key in present.keys() - wanted.keys():
        del st.query_params[key]
    changed = {key: text for key, text in wanted.items() if present.get(key) != text}
    if changed:
        st.query_params.update(changed)


def value(key: str) -> Value:
    """The input's value now; None while it is empty."""
    row = table()[key]
    found: Value = st.session_state.get(key, _start(row))
    return found


def take(key: str, new: object) -> bool:
    """Store what the browser sent, if the row allows it; the client is not trusted."""
    row = table()[key]
    if new is None:
        if row.start is not None:
            return False
        st.session_state[key] = None
        return True
    try:
        st.session_state[key] = row.check(new)
    except InputError:
        return False
    return True


def put(**values: Value) -> None:
    """Set inputs from a button or a preset: sliders follow, the URL too. InputError if outside."""
    checked = {k: None if v is None else table()[k].check(v) for k, v in values.items()}
    revisions = st.session_state.setdefault(REVISION, {})
    for key, new in checked.items():
        st.session_state[key] = new
        revisions[key] = revisions.get(key, 0) + 1
    write_url()


def revision(key: str) -> int:
    """Counts how often `put` has set the input, so that a slider knows when to follow."""
    return int(st.session_state.get(REVISION, {}).get(key, 0))
