"""The same windows without watching: from two text dumps, or from a Prometheus server's range."""

import time
from collections.abc import Sequence

import streamlit as st

from lib.errors import DraftworthError
from lib.report import monitor_text as text
from lib.report.format import plain_md
from lib.report.monitor_figures import Times
from lib.report.monitor_text import Quantity
from lib.serving.alerts import alerts
from lib.serving.dumps import window_of
from lib.serving.history import of_one_server
from lib.serving.plan import Plan
from lib.serving.prometheus import Prometheus, Range, by_server
from lib.serving.windows import Window, total
from lib.ui import monitor_view
from lib.ui.allowed import app_allowed
from lib.ui.monitor_watch import MOST_POINTS, token

SHORTEST_STEP_S = 15.0
FOUND = "monitor prometheus"


def draw(plan: Plan | None, shown: Sequence[Quantity]) -> None:
    """Both ways, folded."""
    with st.expander("From text dumps or Prometheus", icon=":material/upload_file:"):
        dumps, prometheus = st.tabs(["Two text dumps", "Prometheus"])
        with dumps:
            _dumps(plan, shown)
        with prometheus:
            _prometheus(plan, shown)


def _dumps(plan: Plan | None, shown: Sequence[Quantity]) -> None:
    st.code("curl -s http://127.0.0.1:8000/metrics > before.txt", language="bash")
    files = st.file_uploader(
        "Two answers of /metrics, one before the other", accept_multiple_files=True, key="dumps"
    )
    seconds = st.number_input(
        "Seconds between them",
        min_value=0.1,
        value=None,
        placeholder="not typed",
        key="dump-seconds",
        help="A text of metrics does not say when it was written.",
    )
    if not files:
        return
    if seconds is None:
        st.caption("Type the seconds between the two: rates need them.")
        return
    try:
        found = window_of([(f.name, f.getvalue()) for f in files], float(seconds))
    except DraftworthError as error:
        st.error(plain_md(str(error)))
        return
    _window(found, plan, shown)


def _window(found: Window, plan: Plan | None, shown: Sequence[Quantity]) -> None:
    st.dataframe(
        text.window_columns(found, shown, plan),
        hide_index=True,
        alt="What was measured between the two, beside the plan.",
    )
    for note in found.notes:
        st.caption(plain_md(note))
    monitor_view.draw_alerts(alerts((of_one_server(found),), plan), "file")


def _prometheus(plan: Plan | None, shown: Sequence[Quantity]) -> None:
    with st.form("prometheus", border=False):
        url = st.text_input("Prometheus", key="prom-url", placeholder="http://127.0.0.1:9090")
        labels = st.text_input(
            "Labels", key="prom-labels", placeholder="job=vllm, model_name=acme/target"
        )
        hours = st.number_input(
            "Hours back", min_value=0.1, max_value=24.0 * 31, value=1.0, key="prom-hours"
        )
        asked = st.form_submit_button("Read", icon=":material/query_stats:")
    if asked:
        try:
            st.session_state[FOUND] = _read(url, labels, float(hours) * 3600)
        except DraftworthError as error:
            st.session_state[FOUND] = None
            st.error(plain_md(str(error)))
    found: tuple[str, tuple[Window, ...]] | None = st.session_state.get(FOUND)
    if found is None:
        return
    name, windows = found
    last = windows[-1]
    times = Times(windows[0].began_at_s, last.began_at_s + last.seconds)
    whole = by_server(total(windows))
    monitor_view.draw_alerts(alerts((whole,), plan), "prometheus")
    if len(whole.parts) > 1:  # the plan and its price are those of one server
        st.caption(f"{len(whole.parts)} servers together: the plan and $/1M are of one server.")
        plan, shown = None, text.quantities(None)
    monitor_view.charts({name: windows}, times, plan, shown, "prometheus")


def _read(url: str, labels: str, seconds: float) -> tuple[str, tuple[Window, ...]]:
    """The windows of the last `seconds`. Raises FetchError, InputError, UnreadableFile."""
    url = url.strip()
    named = {
        name.strip(): value.strip().strip('"')
        for name, _, value in (part.partition("=") for part in labels.split(",") if part.strip())
    }
    server = Prometheus(url if "://" in url else f"http://{url}", app_allowed(), named, token())
    now_s = time.time()
    step_s = max(seconds / MOST_POINTS, SHORTEST_STEP_S)
    return server.shown, server.windows(Range(now_s - seconds, now_s, step_s))
