"""Two servers that run already: c of a drafter beside its target, or what a round costs."""

from collections.abc import Callable
from threading import Event, Thread

import streamlit as st

from lib.addresses import HOSTS, Allowed, address_of
from lib.errors import DraftworthError, FetchError, ProbeError
from lib.probe.asking import Asking, OnProgress
from lib.probe.completions import Server
from lib.probe.result import Probe
from lib.probe.server_round import SINGLE_STREAM, Round, measure_round
from lib.probe.servers import APPROXIMATION, measure_c
from lib.probe.timing import Progress
from lib.report.format import plain_md
from lib.ui.allowed import app_allowed
from lib.ui.probe_runs import bench

ALONE, SPECULATING = "Target and drafter, each alone", "One plain, one speculating"
SECOND = {ALONE: ("Drafter's address", "draft"), SPECULATING: ("Speculating server", "speculating")}
Measure = Callable[[OnProgress], Probe | Round]


class Asked:
    """Servers being asked in a thread, with the face of a measurement under way."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._stop = Event()
        self._steps: list[Progress] = []
        self._found: Probe | Round | None = None
        self._error: Exception | None = None
        self._thread = Thread(target=self._ask, name="ask-servers", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether `result` answers at once."""
        return not self._thread.is_alive()

    def events(self) -> list[Progress]:
        """How far it is."""
        return self._steps[-1:]

    def cancel(self) -> None:
        """End it after the answer that is being waited for."""
        self._stop.set()

    def result(self) -> Probe | Round:
        """What was measured. Raises what kept it from being so."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._found is not None
        return self._found

    def _ask(self) -> None:
        try:
            self._found = self._measure(self._tell)
        except Exception as error:
            self._error = error

    def _tell(self, done: int, of: int, what: str) -> None:
        if self._stop.is_set():
            raise ProbeError("cancelled")
        self._steps.append(Progress(done, of, what))


def draw() -> None:
    """Two addresses, what is known of the servers, and the button."""
    kind = st.radio("What runs", (ALONE, SPECULATING), key="servers-kind", persist_state="session")
    second, _ = SECOND[kind]
    urls = [
        st.text_input(
            label,
            key=key,
            persist_state="session",
            placeholder="http://127.0.0.1:8000",
        ).strip()
        for label, key in (
            ("Target's address" if kind == ALONE else "Plain server", "servers-first"),
            (second, "servers-second"),
        )
    ]
    token = st.text_input(
        "Token, where they ask for one", type="password", key="servers-token", help="Not stored."
    )
    gpu = dtype = ""
    if kind == ALONE:
        gpu = st.text_input(
            "GPU of both",
            key="servers-gpu",
            persist_state="session",
            placeholder="not stated",
            help="As you name it; c is bound to it.",
        )
        dtype = st.text_input(
            "Precision of the target",
            key="servers-dtype",
            persist_state="session",
            placeholder="bfloat16",
        )
    st.caption(
        APPROXIMATION if kind == ALONE else SINGLE_STREAM,
    )
    asked = st.button(
        "Ask both",
        key="servers-run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=bench().busy or not all(urls),
        width="stretch",
    )
    if not asked:
        return
    try:
        allowed = app_allowed()
        first, other = (_server(url, token, allowed) for url in urls)
        asking = Asking(gpu=gpu.strip(), dtype=dtype.strip())
        measure = measure_c if kind == ALONE else measure_round
        bench().begin(
            f"{other.shown} beside {first.shown}",
            lambda: Asked(lambda tell: measure(first, other, allowed, asking, tell)),
        )
    except DraftworthError as error:
        st.error(plain_md(str(error)))
        return
    st.rerun()


def _server(url: str, token: str, allowed: Allowed) -> Server:
    """The server at an address that may be asked. Raises InputError, FetchError."""
    server = Server(url, token=token)
    if not allowed.permits(address_of(url)):
        raise FetchError(f"{server.shown}: not on the list of hosts; add it to {HOSTS}")
    return server
