"""The measurement that runs in this process: begun in one session, found again by any other.

It goes on when its page is closed, and what it finds is kept in the store.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import Protocol

import streamlit as st

from lib.errors import DraftworthError, ProbeError
from lib.probe.result import Probe
from lib.probe.server_round import Round
from lib.ui import probed

LOOK_S = 0.2


class Step(Protocol):
    """How far a measurement is."""

    @property
    def done(self) -> int: ...
    @property
    def of(self) -> int: ...
    @property
    def what(self) -> str: ...


class Running(Protocol):
    """A measurement under way, as lib.probe.worker starts it."""

    @property
    def done(self) -> bool: ...
    def events(self) -> Sequence[Step]: ...
    def cancel(self) -> None: ...
    def result(self) -> Probe | Round: ...


class Job:
    """One measurement: what it is of, how far it is, and what came of it.

    `probe` or `round` is set once it has succeeded; `trouble` says what kept it from succeeding or
    from being stored.
    """

    def __init__(self, title: str, running: Running) -> None:
        self.title = title
        self.started_at = datetime.now(UTC)
        self.step: Step | None = None
        self.probe: Probe | None = None
        self.round: Round | None = None
        self.trouble = ""
        self.cancelled = False
        self._running = running
        self._thread = Thread(target=self._follow, name="probe", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End it; nothing is kept."""
        self.cancelled = True
        self._running.cancel()

    def _follow(self) -> None:
        while True:
            ended = self._running.done
            for step in self._running.events():
                self.step = step
            if ended:
                break
            time.sleep(LOOK_S)
        try:
            found = self._running.result()
            if self.cancelled:
                return
            if isinstance(found, Round):
                self.round = found
            else:
                self.probe = found
                probed.keep(found)
        except DraftworthError as error:
            self.trouble = "" if self.cancelled else str(error)
        except Exception:
            self.trouble = "The measurement failed; the log has the reason. Try it again."
            raise


class Bench:
    """Where one measurement at a time runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.job: Job | None = None

    @property
    def busy(self) -> bool:
        """Whether one runs now."""
        return self.job is not None and not self.job.over

    def begin(self, title: str, start: Callable[[], Running]) -> None:
        """Start a measurement. Raises ProbeError while another runs or where it cannot start."""
        with self._lock:
            if self.busy:
                raise ProbeError("a probe already runs here: wait for it, or cancel it")
            self.job = Job(title, start())

    def stop(self) -> None:
        """End what runs."""
        if self.job is not None and self.busy:
            self.job.cancel()


@st.cache_resource(show_spinner=False, on_release=lambda found: found.stop())
def bench() -> Bench:
    """The one bench of this process."""
    return Bench()
