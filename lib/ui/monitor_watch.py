"""The servers that this process watches, for every session alike, and their past from the store."""

import os
import time
from collections.abc import Mapping

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

from lib.addresses import HOSTS, address_of
from lib.errors import DraftworthError, FetchError
from lib.probe.completions import TOKEN
from lib.report.format import plain_md
from lib.serving.history import windows_of_samples
from lib.serving.scraping import Endpoint
from lib.serving.watcher import Watcher
from lib.serving.windows import Window, total
from lib.settings import get
from lib.ui import study
from lib.ui.allowed import app_allowed

EVERY_S = 5.0
RECENT_S = 60.0
MOST_POINTS = 180  # of a line
HISTORY_TTL_S = 30
DAY_S = 86_400.0
SPANS = {"15 min": 900.0, "1 h": 3600.0, "6 h": 21_600.0, "24 h": DAY_S, "all": 0.0}


@st.cache_resource(show_spinner=False, on_release=lambda found: found.stop())
def watcher() -> Watcher:
    """The one watcher of this process; it runs from the first server on."""
    return Watcher(EVERY_S, study.store(), keep_days())


def keep_days() -> int:
    """How many days of scrapes the store keeps."""
    return int(get("DRAFTWORTH_MONITOR_DAYS"))


def add(text: str) -> None:
    """Watch a server, host:port or URL. Raises FetchError, InputError in one line."""
    text = text.strip()
    url = text if "://" in text else f"http://{text}"
    address, allowed = address_of(url), app_allowed()
    if not allowed.permits(address):
        also = ", and this machine's own ports" if allowed.loopback else ""
        raise FetchError(
            f"{address.shown} may not be asked: allowed are the servers of {HOSTS}{also}; start "
            f"the dashboard with {HOSTS}={address.shown} to add it"
        )
    watcher().add(Endpoint(url, allowed, token()))
    watcher().start()


def token() -> str:
    """The bearer token that servers ask for, from the secrets or the environment; never shown."""
    try:
        found = str(st.secrets.get(TOKEN, ""))
    except StreamlitSecretNotFoundError:
        found = ""
    return found or os.environ.get(TOKEN, "")


def latest(shown: str = "") -> tuple[Window, ...]:
    """The windows of the last minute, of a server or of all together, from a restart on.

    What restarted is another server than before: the two are not one number.
    """
    since_s = time.time() - RECENT_S
    found = watcher().windows_of(shown, since_s) if shown else watcher().windows(since_s)
    first = max((at for at, w in enumerate(found) if w.restarts), default=0)
    return found[first:]


def recent(shown: str = "") -> Window | None:
    """Those windows as one; None without any."""
    found = latest(shown)
    return total(found) if found else None


def span_s(name: str) -> float:
    """Seconds that a choice of SPANS reaches back."""
    return SPANS[name] or max(keep_days(), 1) * DAY_S


def tracks(name: str) -> dict[str, tuple[Window, ...]]:
    """The windows of every server over a span: what the store has, then what came since."""
    past = _past(name)
    since_s = time.time() - span_s(name)
    found = {}
    for state in watcher().endpoints():
        before = past.get(state.shown, ())
        ended_s = before[-1].began_at_s + before[-1].seconds if before else since_s
        # Both are cut at the same scrapes; half a window absorbs rounding.
        after = watcher().windows_of(state.shown, ended_s)
        kept = (w for w in after if w.began_at_s >= ended_s - EVERY_S / 2)
        found[state.shown] = (*before, *kept)
    return {**found, **{k: v for k, v in past.items() if k not in found}}


@st.cache_resource(ttl=HISTORY_TTL_S, max_entries=len(SPANS), show_spinner=False)
def _past(name: str) -> Mapping[str, tuple[Window, ...]]:
    opened = study.store()
    if opened is None:
        return {}
    seconds = span_s(name)
    try:
        rows = opened.samples(time.time() - seconds, max(seconds / MOST_POINTS, EVERY_S))
        return windows_of_samples(rows)
    except DraftworthError:
        return {}


def kept() -> None:
    """How long the history lasts, and what keeps it from being written."""
    problem = watcher().store_problem
    if keep_days() and not watcher().has_store:
        problem = (
            "the store could not be opened when the watch began; the sidebar says why if it still "
            "cannot, else restart the app"
        )
    if problem:
        st.warning(plain_md(f"Not kept: {problem}"), icon=":material/database:")
        return
    days = keep_days()
    lasts = f"for {days} day{'' if days == 1 else 's'}" if days else "for an hour, in memory only"
    st.caption(f"Scrapes are kept {lasts} (DRAFTWORTH_MONITOR_DAYS).")
