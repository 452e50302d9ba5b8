"""The servers that one process watches: scraped over and over, what they did kept in memory.

A scrape that fails leaves the others alone. What was read goes to the store in batches.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

from lib.errors import DraftworthError, InputError
from lib.results.exposition import Labels
from lib.results.samples import Sample
from lib.serving.history import labelled, samples_of, together
from lib.serving.metrics import Replica, Snapshot
from lib.serving.scraping import Endpoint
from lib.serving.windows import Window, window

EVERY_S = (1.0, 3600.0)
MOST_SERVERS = 32
MOST_WAITING = 20_000  # samples that wait for a store that does not take them
FLUSH_S = 30.0
PRUNE_S = 3600.0
SECONDS_PER_DAY = 86_400.0

_log = logging.getLogger(__name__)


class SampleStore(Protocol):
    """Where samples are kept; each call is one transaction."""

    def add_samples(self, rows: Sequence[Sample], prune_before_s: float | None = None) -> None:
        """Keep the rows, forget those from before a moment. Raises StoreError."""


@dataclass(frozen=True)
class Watched:
    """How a server stands. `last_at_s` is its last scrape that could be read, Unix time.

    `problem` is why the newest one could not, in one line, or empty. `engine` is empty until it
    was read once. `restarted_at_s` is when its counters were last seen to have fallen.
    """

    shown: str
    last_at_s: float | None = None
    problem: str = ""
    engine: str = ""
    restarted_at_s: float | None = None


@dataclass
class _Server:
    endpoint: Endpoint
    state: Watched
    last: Snapshot | None = None
    seen: dict[Labels, Replica] = field(default_factory=dict)
    windows: deque[Window] = field(default_factory=deque)


class Watcher:
    """One a process. `start` scrapes each server every `every_s` seconds in a thread until `stop`.

    Windows of the last `keep_s` seconds stay in memory. Every 30 s the samples go to `store`, which
    forgets those of more than `keep_days` days ago; 0 days keep none. A server that does not
    answer holds the others up for as long as one request may take. All methods may be called from
    any thread.
    """

    def __init__(
        self,
        every_s: float = 5.0,
        store: SampleStore | None = None,
        keep_days: float = 7.0,
        keep_s: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        low, high = EVERY_S
        if not low <= every_s <= high:
            raise InputError(f"every {every_s:g} s: {low:g} to {high:,.0f} seconds are allowed")
        self.every_s = every_s
        self.keep_days = keep_days
        self.store_problem = ""
        self._store = store
        self._keep_s = keep_s
        self._clock = clock
        self._servers: dict[str, _Server] = {}
        self._fleet: deque[Window] = deque()
        self._pending: deque[Sample] = deque(maxlen=MOST_WAITING)
        self._flushed_at_s = -math.inf
        self._pruned_at_s = -math.inf
        self._last_tick_s: float | None = None
        self._lock = (
            threading.Lock()
        )  # of the state; never held while a server or the store is asked
        self._turn = threading.Lock()  # one tick or flush at a time
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, endpoint: Endpoint) -> str:
        """Watch a server, from the next scrape on; its host:port. Takes a new token or path.

        Raises FetchError for an address that may not be written so, InputError over 32 servers.
        """
        shown = endpoint.shown
        with self._lock:
            known = self._servers.get(shown)
            if known is not None:
                known.endpoint = endpoint
            elif len(self._servers) >= MOST_SERVERS:
                raise InputError(
                    f"{shown}: {MOST_SERVERS} servers are watched, the most there may be; remove "
                    "one first"
                )
            else:
                self._servers[shown] = _Server(endpoint, Watched(shown))
        return shown

    def remove(self, shown: str) -> None:
        """Watch a server no longer; what is in the store of it stays. Unknown ones are none."""
        with self._lock:
            self._servers.pop(shown, None)
            rest = ([p for p in w.parts if p.label != shown] for w in self._fleet)
            self._fleet = deque(together(parts) for parts in rest if parts)

    def endpoints(self) -> tuple[Watched, ...]:
        """How each server stands, in the order in which they were added."""
        with self._lock:
            return tuple(server.state for server in self._servers.values())

    @property
    def problems(self) -> Mapping[str, str]:
        """Why servers could not be read just now, by host:port, as `alerts` takes them."""
        return {s.shown: s.problem for s in self.endpoints() if s.problem}

    @property
    def restarts(self) -> Mapping[str, float]:
        """When servers were last restarted (Unix time), by host:port, as `alerts` takes them."""
        found = ((s.shown, s.restarted_at_s) for s in self.endpoints())
        return {shown: at_s for shown, at_s in found if at_s is not None}

    def windows(self, since_s: float) -> tuple[Window, ...]:
        """All servers together, one window a tick that ended after `since_s` (Unix time).

        The parts of a window are the servers that could be read at both of its ends: one that
        answers again after a failure is in it from the next tick on, so that rates stay true.
        """
        with self._lock:
            return _after(self._fleet, since_s)

    def windows_of(self, shown: str, since_s: float) -> tuple[Window, ...]:
        """One server's windows that ended after `since_s`; over a failure one is longer."""
        with self._lock:
            server = self._servers.get(shown)
            return _after(server.windows, since_s) if server else ()

    @property
    def has_store(self) -> bool:
        """Whether what is read goes to a store."""
        return self._store is not None

    def start(self) -> None:
        """Begin to scrape; nothing where it runs already."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread and keep what it has not kept yet. It may be started again."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.flush()

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.tick()
            except Exception:  # a fault in one tick must not end the watch
                if not threading.main_thread().is_alive():
                    return  # the process ends: no more threads can be started
                _log.exception("monitor: a scrape failed unexpectedly")
            self._stop.wait(max(began + self.every_s - time.monotonic(), 0.0))

    def tick(self) -> None:
        """Scrape every server once, now by the clock, and keep what is due."""
        with self._turn:
            at_s = self._clock()
            with self._lock:
                asked = [(shown, s.endpoint) for shown, s in self._servers.items()]
            if asked:
                # All at once: one that waits behind a silent server is read later than `at_s`.
                with ThreadPoolExecutor(len(asked)) as pool:
                    answers = list(pool.map(lambda one: _scrape(one[1], at_s), asked))
                self._take(at_s, dict(zip((shown for shown, _ in asked), answers, strict=True)))
            due = at_s - self._flushed_at_s >= FLUSH_S
        if due:
            self.flush()

    def _take(self, at_s: float, answers: Mapping[str, Snapshot | str]) -> None:
        with self._lock:
            if self._last_tick_s is not None and at_s <= self._last_tick_s:
                self._begin_again()
            parts = []
            for shown, answer in answers.items():
                server = self._servers.get(shown)
                if server is None:  # removed while it was asked
                    continue
                found = self._taken(server, answer)
                if found is not None and found.began_at_s == self._last_tick_s:
                    parts.append(found)
                _drop(server.windows, at_s - self._keep_s)
            if parts:
                self._fleet.append(together(parts))
            _drop(self._fleet, at_s - self._keep_s)
            self._last_tick_s = at_s

    def _begin_again(self) -> None:
        """Forget the windows of a clock that was set back: they would be of times to come."""
        self._fleet.clear()
        for server in self._servers.values():
            server.windows.clear()
            server.last, server.seen = None, {}
            server.state = replace(server.state, restarted_at_s=None)
        self._flushed_at_s = self._pruned_at_s = -math.inf

    def _taken(self, server: _Server, answer: Snapshot | str) -> Window | None:
        """The window that a scrape ends, if it ends one; the server's state is brought up to it."""
        if isinstance(answer, str):
            server.state = replace(server.state, problem=answer)
            return None
        shown, last, found = server.state.shown, server.last, None
        problem, restarted_at_s = "", server.state.restarted_at_s
        if self._store is not None and self.keep_days > 0:
            self._pending.extend(samples_of(shown, answer))
        if last is not None:
            try:
                before = replace(last, replicas=server.seen)
                found = labelled(window(shown, before, answer), shown)
            except DraftworthError as error:
                problem = str(error)
        if found is not None:
            server.windows.append(found)
            restarted_at_s = answer.at_s if found.restarts else restarted_at_s
        server.last, server.seen = answer, {**server.seen, **answer.replicas}
        engines = dict.fromkeys(r.engine for r in answer.replicas.values())
        server.state = Watched(shown, answer.at_s, problem, ", ".join(engines), restarted_at_s)
        return found

    def flush(self) -> None:
        """Hand what waits to the store, in one transaction; what it does not take waits on."""
        with self._turn:
            now_s = self._clock()
            self._flushed_at_s = now_s
            with self._lock:
                rows = tuple(self._pending)
            prune = now_s - self._pruned_at_s >= PRUNE_S
            if self._store is None or not (rows or prune):
                return
            before_s = now_s - self.keep_days * SECONDS_PER_DAY if prune else None
            try:
                self._store.add_samples(rows, before_s)
            except DraftworthError as error:
                self.store_problem = str(error)
                return
            self.store_problem = ""
            self._pruned_at_s = now_s if prune else self._pruned_at_s
            with self._lock:
                for _ in rows:
                    self._pending.popleft()


def _scrape(endpoint: Endpoint, at_s: float) -> Snapshot | str:
    """What the server counts, or why that is not known."""
    try:
        return endpoint.scrape(at_s)
    except DraftworthError as error:
        return str(error)
    except Exception:  # whatever a server answers, the others go on
        _log.exception("monitor: %s could not be scraped", endpoint.shown)
        return f"{endpoint.shown}: its metrics could not be read; the log has the reason"


def _after(found: deque[Window], since_s: float) -> tuple[Window, ...]:
    return tuple(w for w in found if w.began_at_s + w.seconds > since_s)


def _drop(found: deque[Window], before_s: float) -> None:
    while found and found[0].began_at_s + found[0].seconds <= before_s:
        found.popleft()
