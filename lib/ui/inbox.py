"""The watched folder beside the app: begun with it, shown on the results page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

from lib.errors import StoreError
from lib.report.format import plain_md
from lib.results.inbox import Arrival, Inbox
from lib.settings import ROOT, get
from lib.ui import study

MOST = 5


@st.cache_resource(show_spinner=False, on_release=lambda found: found and found.stop())
def _watched() -> Inbox | None:
    folder = str(get("DRAFTWORTH_INBOX"))
    if not folder:
        return None
    inbox = Inbox(study.open_store(), (ROOT / Path(folder).expanduser()).resolve())
    inbox.start()
    return inbox


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Watch from the server's start, not only from the first visit."""
    watch()
    yield


def watch() -> Inbox | None:
    """The inbox, begun once a process; None where no folder is named or the store is taken."""
    try:
        return _watched()
    except StoreError:
        return None


def status() -> None:
    """What the inbox brought, newest first, kept up to date; nothing where none is watched."""
    inbox = watch()
    if inbox is not None:
        _draw(inbox)


@st.fragment(run_every=5)
def _draw(inbox: Inbox) -> None:
    folder = plain_md(str(inbox.folder))
    if not inbox.folder.is_dir():
        st.warning(f"The inbox {folder} is no folder: create it, or correct DRAFTWORTH_INBOX.")
        return
    arrivals = list(inbox.arrivals)
    if not arrivals:
        st.caption(f":material/inbox: Watching {folder}: files dropped there are imported.")
        return
    count = sum(len(a.report.refused) + bool(a.error) for a in arrivals)
    more = f" · {count} refused so far" if count else ""
    with st.expander(f"Inbox: {_line(arrivals[0])}{more}", icon=":material/inbox:"):
        for arrival in arrivals[:MOST]:
            st.caption(_line(arrival))
            for refused in arrival.report.refused[:MOST]:
                st.caption(plain_md(f"refused: {refused.reason}"))
        st.caption(f"Watching {folder}.")


def _line(arrival: Arrival) -> str:
    if arrival.error:
        return plain_md(f"{arrival.study}: {arrival.error}")
    report = arrival.report
    refused = f", {len(report.refused)} refused" if report.refused else ""
    runs, files = report.imported, len(report.files)
    text = (
        f"{runs} run{'' if runs == 1 else 's'} from {files} file{'' if files == 1 else 's'} "
        f"into {arrival.study} at {arrival.at:%H:%M} UTC{refused}"
    )
    return plain_md(text)
