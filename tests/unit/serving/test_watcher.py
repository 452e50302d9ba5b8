"""Servers watched over HTTP and over a simulated day: windows, restarts, silence, retention."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.server import free_port
from lib.addresses import Allowed
from lib.errors import FetchError, InputError, StoreError
from lib.estimate import Basis, Estimate
from lib.fetching import fetch
from lib.results.samples import Sample
from lib.results.store import Store
from lib.serving.alerts import alerts
from lib.serving.history import windows_of_samples
from lib.serving.plan import Plan
from lib.serving.scraping import Endpoint
from lib.serving.watcher import MOST_SERVERS, Watcher
from lib.serving.windows import total
from lib.theory.walltime import tau as tau_of
from tests.unit.serving.metrics_standin import Standin, serving, vllm

LOOPBACK = Allowed(loopback=True)
ENGINE = Path(__file__).resolve().parents[4] / "shared" / "tools" / "simengine.py"
DAY = 86_400.0


@dataclass
class Clock:
    now_s: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Kept:
    """A store that notes what it is given, and can refuse."""

    rows: list[Sample] = field(default_factory=list)
    pruned: list[float] = field(default_factory=list)
    batches: int = 0
    refuses: bool = False

    def add_samples(self, rows: Sequence[Sample], prune_before_s: float | None = None) -> None:
        if self.refuses:
            raise StoreError("the store could not do that")
        self.batches += 1
        self.rows += rows
        if prune_before_s is not None:
            self.pruned.append(prune_before_s)


@contextmanager
def standins(count: int) -> Iterator[list[Standin]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(Standin())) for _ in range(count)]


def show(server: Standin, drafts: int, accepted: int = 2) -> None:
    """Counters after so many rounds of 4 drafts; of each `accepted` were accepted."""
    server.text = vllm(drafts, 4 * drafts, accepted * drafts, (1 + accepted) * drafts, running=3)


def watching(clock: Clock, servers: Sequence[Standin], store: object = None) -> Watcher:
    watcher = Watcher(5.0, store, keep_s=3600.0, clock=clock)  # type: ignore[arg-type]
    for server in servers:
        watcher.add(Endpoint(server.url, LOOPBACK))
    return watcher


def test_servers_are_summed_and_kept_apart() -> None:
    clock = Clock()
    with standins(2) as servers:
        watcher = watching(clock, servers)
        for step in range(4):
            show(servers[0], 100 * step, accepted=3)
            show(servers[1], 300 * step, accepted=1)
            watcher.tick()
            clock.now_s += 5
        first, second = (s.shown for s in watcher.endpoints())
    windows = watcher.windows(0)
    assert len(windows) == 3
    whole = total(windows)
    assert whole.tau == pytest.approx((4 * 100 + 2 * 300) / 400), "a ratio of sums"
    assert [p.label for p in whole.parts] == [first, second]
    assert [p.tau for p in whole.parts] == [4, 2]
    assert total(watcher.windows_of(first, 0)).tau == 4
    assert len(watcher.windows(clock.now_s - 8)) == 1
    assert watcher.windows_of("other:1", 0) == ()
    state = watcher.endpoints()[0]
    assert (state.engine, state.problem, state.last_at_s) == ("vLLM", "", clock.now_s - 5)


def test_a_failing_server_leaves_the_other_alone_and_comes_back() -> None:
    clock = Clock()
    with standins(2) as servers:
        watcher = watching(clock, servers)
        for step in range(6):
            for server in servers:
                show(server, 100 * step)
            servers[0].answer = (lambda *_: (503, b"")) if step in (2, 3) else None
            watcher.tick()
            broken = servers[0].url.removeprefix("http://")
            assert set(watcher.problems) == ({broken} if step in (2, 3) else set())
            clock.now_s += 5
    assert "status 503" not in "".join(watcher.problems.values())
    assert [w.seconds for w in watcher.windows_of(broken, 0)] == [5, 15, 5]
    fleet = watcher.windows(0)
    assert [len(w.parts) for w in fleet] == [2, 1, 1, 1, 2]
    assert {w.seconds for w in fleet} == {5}
    assert {p.output_tps for w in fleet for p in w.parts} == {60}
    assert watcher.restarts == {}


def test_a_restart_is_seen_and_counted_from_0() -> None:
    clock = Clock()
    with standins(1) as (server,):
        watcher = watching(clock, [server])
        for drafts in (1000, 1500, 40, 60):
            show(server, drafts)
            watcher.tick()
            clock.now_s += 5
    (state,) = watcher.endpoints()
    assert state.restarted_at_s == clock.now_s - 10
    assert [w.counters.drafts for w in watcher.windows(0)] == [500, 40, 20]
    found = alerts(watcher.windows(0), None, watcher.problems, watcher.restarts)
    assert "restarted" in {a.code for a in found}


def test_counts_that_cannot_be_are_a_problem_and_no_window() -> None:
    clock = Clock()
    with standins(1) as (server,):
        watcher = watching(clock, [server])
        for accepted in (0, 9000, 9100):
            server.text = vllm(accepted // 10, 100, accepted, 10 * accepted)
            watcher.tick()
            clock.now_s += 5
            if accepted == 9000:
                assert "over 100 %" in watcher.problems[watcher.endpoints()[0].shown]
    assert watcher.windows(0) == ()


def test_servers_are_added_removed_and_limited() -> None:
    watcher = Watcher()
    for port in range(MOST_SERVERS):
        watcher.add(Endpoint(f"http://127.0.0.1:{9000 + port}", LOOPBACK))
    assert watcher.add(Endpoint("http://127.0.0.1:9000/metrics", LOOPBACK)) == "127.0.0.1:9000"
    with pytest.raises(InputError, match="32 servers are watched"):
        watcher.add(Endpoint("http://127.0.0.1:8000", LOOPBACK))
    with pytest.raises(FetchError):
        watcher.add(Endpoint("ftp://127.0.0.1:8000", LOOPBACK))
    watcher.remove("127.0.0.1:9000")
    watcher.remove("127.0.0.1:9000")
    assert len(watcher.endpoints()) == MOST_SERVERS - 1
    with pytest.raises(InputError, match="every 0 s: 1 to 3,600"):
        Watcher(0)


def test_a_removed_server_counts_no_longer() -> None:
    clock = Clock()
    with standins(2) as servers:
        watcher = watching(clock, servers)
        for step in range(3):
            for server in servers:
                show(server, 100 * step)
            watcher.tick()
            clock.now_s += 5
    gone, stays = (s.shown for s in watcher.endpoints())
    watcher.remove(gone)
    assert [[p.label for p in w.parts] for w in watcher.windows(0)] == [[stays], [stays]]
    assert total(watcher.windows(0)).output_tps == 60
    watcher.remove(stays)
    assert watcher.windows(0) == ()


def test_a_clock_that_is_set_back_begins_anew() -> None:
    clock, kept = Clock(), Kept()
    with standins(1) as (server,):
        watcher = watching(clock, [server], kept)
        for step, seconds in enumerate((5, 5, -3600, 5, 5)):
            show(server, 100 * step)
            watcher.tick()
            assert watcher.problems == {}
            clock.now_s += seconds
    assert watcher.restarts == {}
    assert [w.output_tps for w in watcher.windows(0)] == [60]
    assert total(watcher.windows(clock.now_s - 60)).seconds == 5
    assert kept.batches == 2, "samples are not held back until the clock is where it was"


def test_servers_that_stay_silent_hold_nothing_up() -> None:
    clock, met = Clock(), threading.Barrier(12)
    with standins(12) as servers:
        watcher = watching(clock, servers)
        for server in servers:
            show(server, 100)
            text = server.text.encode()
            server.answer = lambda *_, text=text: (met.wait(4) >= 0 and 200, text)
        watcher.tick()
    assert watcher.problems == {}, "all are asked at once"


def test_a_host_that_may_not_be_asked_is_one_line() -> None:
    watcher = Watcher()
    watcher.add(Endpoint("http://10.1.2.3:80", LOOPBACK, "secret"))
    watcher.tick()
    (problem,) = watcher.problems.values()
    assert "may not be asked" in problem
    assert "secret" not in problem + repr(watcher.endpoints())


def test_the_store_gets_batches_and_what_it_refuses_waits() -> None:
    clock, kept = Clock(), Kept()
    with standins(1) as (server,):
        watcher = watching(clock, [server], kept)
        began_s = clock.now_s
        for step in range(25):
            kept.refuses = step == 12
            show(server, 10 * step)
            watcher.tick()
            if step == 12:
                assert watcher.store_problem
            clock.now_s += 5
        assert kept.batches == 4, "at most one transaction in 30 s"
        watcher.stop()
    assert watcher.store_problem == ""
    assert [r.at_s for r in kept.rows] == [began_s + 5 * i for i in range(25)]
    assert kept.pruned == [began_s - 7 * DAY], "once an hour"


def test_no_days_keep_nothing() -> None:
    clock, kept = Clock(), Kept()
    with standins(1) as (server,):
        show(server, 10)
        watcher = Watcher(5.0, kept, keep_days=0, clock=clock)
        watcher.add(Endpoint(server.url, LOOPBACK))
        watcher.tick()
        watcher.stop()
    assert kept.rows == []
    assert kept.pruned == [clock.now_s], "what was kept before goes"


def test_the_thread_scrapes_by_itself_until_it_is_stopped() -> None:
    with standins(1) as (server,):
        show(server, 10)
        watcher = Watcher(1.0)
        watcher.add(Endpoint(server.url, LOOPBACK))
        watcher.start()
        watcher.start()
        deadline = time.monotonic() + 20
        while not watcher.windows(0) and time.monotonic() < deadline:
            time.sleep(0.05)
        watcher.stop()
        asked = len(server.asked)
        assert watcher.windows(0)
        watcher.tick()
        assert len(server.asked) == asked + 1


def test_memory_holds_hours_and_the_store_the_days_that_are_kept(tmp_path: Path) -> None:
    """Eight engines scraped every half hour for three days, of which one is kept."""
    clock = Clock()
    store = Store.open(tmp_path / "store.duckdb")
    engines = 8
    with standins(1) as (server,):
        watcher = Watcher(1800.0, store, keep_days=1, keep_s=6 * 3600.0, clock=clock)
        shown = watcher.add(Endpoint(server.url, LOOPBACK))
        for step in range(3 * 48):
            counts = (10 * step, 40 * step, 20 * step, 30 * step)
            server.text = "".join(vllm(*counts, engine=str(i)) for i in range(engines))
            watcher.tick()
            if step % 16 == 15:
                rows = store.samples(0)
                assert len(rows) <= engines * (48 + 2), "a day, and up to an hour until a prune"
            clock.now_s += 1800
    assert len(watcher.windows(0)) == 12
    assert DAY <= rows[-1].at_s - rows[0].at_s < DAY + 3600
    (windows,) = windows_of_samples(store.samples(0, 7200)).values()
    assert {round(w.seconds) for w in windows[1:-1]} == {7200}
    assert {len(w.parts) for w in windows} == {engines}
    assert (windows[0].label, total(windows).tau) == (shown, 3)
    store.close()


@contextmanager
def engine(port: int, *options: str) -> Iterator[None]:
    command = [sys.executable, str(ENGINE), "--port", str(port), "--step-ms", "4", *options]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    done = threading.Event()

    def ask() -> None:
        body = b'{"prompt": "x", "max_tokens": 64}'
        headers = (("Content-Type", "application/json"),)
        url = f"http://127.0.0.1:{port}/v1/completions"
        while not done.is_set():
            try:
                fetch(url, LOOPBACK, method="POST", body=body, headers=headers)
            except FetchError:
                time.sleep(0.05)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        child.kill()
        child.wait()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(not ENGINE.is_file(), reason="no simulated engine beside")
def test_a_server_that_loses_its_acceptance_dies_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    store = Store.open(tmp_path / "store.duckdb")
    watcher = Watcher(1.0, store)
    shown = watcher.add(Endpoint(f"http://127.0.0.1:{port}", LOOPBACK))
    truth = float(tau_of(0.7, 4))
    plan = Plan(
        "s",
        "K=4",
        8.0,
        tau=Estimate(truth, "tokens", Basis.MEASURED, "3 runs"),
        usd_per_hour=2.0,
        gamma=4,
    )

    def ticks(count: int) -> None:
        deadline = time.monotonic() + 20
        while count and time.monotonic() < deadline:
            watcher.tick()
            busy = watcher.windows_of(shown, time.time() - 0.5)
            count -= bool(busy and busy[-1].output_tps)
            time.sleep(0.6)

    def said(since_s: float) -> dict[str, Estimate | None]:
        found = alerts(watcher.windows(since_s), plan, watcher.problems, watcher.restarts)
        return {a.code: a.usd_per_day for a in found}

    began_s = time.time()
    with engine(port, "--gamma", "4", "--alpha", "0.7"):
        ticks(3)
    assert total(watcher.windows(began_s)).tau == pytest.approx(truth, rel=0.1)
    assert said(began_s) == {}
    watcher.tick()
    assert "scrape_failing" in said(time.time())
    assert watcher.windows(began_s), "what was seen stays"
    again_s = time.time()
    with engine(port, "--gamma", "4", "--alpha", "0.2"):
        ticks(3)
        found = said(again_s)
    assert set(found) == {"acceptance_down", "restarted"}
    lost = found["acceptance_down"]
    assert lost is not None
    assert lost.value == pytest.approx(48 * (1 - float(tau_of(0.2, 4)) / truth), rel=0.15)
    with engine(port, "--gamma", "0"):
        ticks(2)
    watcher.stop()
    newest = watcher.windows_of(shown, 0)[-1]
    assert newest.tau is None
    (history,) = windows_of_samples(store.samples(began_s)).values()
    assert sum(w.restarts for w in history) == 2
    store.close()
