"""The monitor page: calm when empty, a server beside its plan, alerts, refusals, the gate."""

import html
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_plus

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lib.addresses import listed
from lib.results.importing import import_paths
from lib.results.store import Store
from lib.serving.scraping import Endpoint
from lib.serving.watcher import Watcher
from lib.ui import monitor_watch
from tests.pages.conftest import ROOT
from tests.pages.test_decision_page import badges, said
from tests.pages.test_pages import figures, start
from tests.unit.serving.metrics_standin import Standin, serving, vllm
from tests.unit.serving.test_prometheus_server import counted, matrix

PAID = {"usd_per_gpu_hour": "3", "gpu_count": "1"}
MINE = {"study": "mine", "load": "8", **PAID}
SECRET = "token-of-the-test"


class Clocked:
    """A watcher of one stand-in whose clock the test moves; it runs in no thread."""

    def __init__(self, standin: Standin, store: Store | None) -> None:
        self.now_s = time.time() - 50
        self.standin = standin
        self.rounds = 0
        self.watcher = Watcher(store=store, clock=lambda: self.now_s)

    def add(self) -> None:
        self.watcher.add(Endpoint(self.standin.url, listed(loopback=True), SECRET))

    def after(self, rounds: int, accepted: float, running: int = 8) -> None:
        """Five seconds later so many rounds at K = 3 more, `accepted` drafts in each."""
        self.now_s += 5
        self.rounds += rounds
        each = int(self.rounds * accepted / 3)
        self.standin.text = vllm(
            self.rounds,
            3 * self.rounds,
            3 * each,
            self.rounds + 3 * each,
            self.rounds // 20,
            (each, each, each),
            running,
        )
        self.watcher.tick()


@pytest.fixture
def store(own_store: None) -> None:
    """The store that the pages open, with a study: K = 3, tau 2.8, R 2.24 at 8."""
    path = Path(os.environ["DRAFTWORTH_STORE"])
    opened = Store.open(path)
    folder = ROOT / "tests" / "fixtures" / "vllm"
    rules = ["off-*=off", "eagle3-*=eagle3:3"]
    import_paths(opened, [folder / n for n in ("off-c8.json", "eagle3-c8.json")], "mine", rules)
    opened.close()


@pytest.fixture
def clocked(store: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    with serving(Standin()) as standin:
        found = Clocked(standin, None)
        monkeypatch.setattr(monitor_watch, "watcher", lambda: found.watcher)
        yield found


def texts(app: AppTest) -> str:
    blocks = [said(app), *(str(b.value) for b in (*app.error, *app.metric))]
    return html.unescape("\n".join(blocks)).replace("\u2060", "")


def metrics(app: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in app.metric}


def test_nothing_watched_is_calm() -> None:
    app = start("monitor")
    assert not app.exception
    assert not app.error
    text = texts(app)
    assert "No server is watched yet" in text
    assert "Name the operating load in the sidebar" in text
    assert not figures(app)


def test_a_server_beside_its_plan(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(3):
        clocked.after(500, 1.8)
    app = start("monitor", **MINE)
    assert not app.exception
    text = texts(app)
    assert "As planned: τ 2.80, 280 tok/s, " in text
    assert "eagle3:3 at 8" in text
    found = metrics(app)
    assert (found["τ"], found["running"]) == ("2.80", "8")
    assert next(m.delta for m in app.metric if m.label == "τ") == "plan 2.80"
    titles = [f["title"] for f in figures(app)]
    assert titles[:3] == ["τ, tokens a round", "Output throughput", "Mean TPOT"]
    assert "Acceptance by position" in titles
    assert all(f["alt"] for f in figures(app))
    assert SECRET not in repr(app) + text


def test_falling_acceptance_says_what_it_costs_a_day(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(3):
        clocked.after(500, 0.3)
    app = start("monitor", **MINE)
    text = texts(app)
    assert re.search(r"Acceptance is down: τ 1\.30 .*\$[\d.]+ .*per day", text)
    assert "Speculation loses at 8 running: τ 1.30 is below the 2.24" in text
    assert any("measured" in m.value for m in app.markdown)


def test_after_a_restart_only_the_new_server_counts(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(3):
        clocked.after(500, 1.8)
    clocked.rounds = 0
    clocked.after(400, 0.9)
    app = start("monitor", **MINE)
    assert not app.exception
    assert metrics(app)["τ"] == "1.90"
    assert "was restarted: its counters fell" in texts(app)


def test_a_server_that_is_gone_keeps_its_history(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(3):
        clocked.after(500, 1.8)
    clocked.standin.answer = lambda path, body: (503, b"")
    clocked.now_s += 5
    clocked.watcher.tick()
    app = start("monitor", **MINE)
    assert not app.exception
    text = texts(app)
    assert "Scrape failing" in text
    assert "scrape failing" in text
    spec = next(f["spec"] for f in figures(app) if f["title"] == "τ, tokens a round")
    assert "2.8" in str(spec)


def test_without_a_plan_the_numbers_stand_alone(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(2):
        clocked.after(500, 1.8)
    app = start("monitor", study="mine")
    assert not app.exception
    assert "Now: τ 2.80, 280 tok/s." in texts(app)
    assert metrics(app)["$/1M now"] == "–"


def test_history_comes_back_from_the_store(store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Standin()) as standin:
        opened = Store.open(Path(os.environ["DRAFTWORTH_STORE"]))
        before = Clocked(standin, opened)
        before.add()
        for _ in range(3):
            before.after(500, 1.8)
        before.watcher.flush()
        opened.close()
        after = Clocked(standin, None)
        monkeypatch.setattr(monitor_watch, "watcher", lambda: after.watcher)
        app = start("monitor", **MINE)
    assert not app.exception
    assert "No server is watched yet" in texts(app)
    assert next(f["title"] for f in figures(app)) == "τ, tokens a round"


def test_only_servers_of_the_list_are_added(clocked: Clocked) -> None:
    app = start("monitor", **MINE)
    for address, why in (
        ("10.0.0.7:8000", "10.0.0.7:8000 may not be asked"),
        ("file:///etc/passwd", "http://host:port or https://host:port is allowed"),
        ("", "address:"),
    ):
        app.text_input(key="monitor-address-0").set_value(address)
        app.button(key="monitor-add").click().run()
        assert not app.exception
        assert len(app.error) == 1
        assert why in texts(app)
    assert clocked.watcher.endpoints() == ()


def test_a_listed_server_is_added_and_removed(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = clocked.standin.url.removeprefix("http://")
    monkeypatch.setenv("DRAFTWORTH_MONITOR_HOSTS", shown)
    monkeypatch.setattr(clocked.watcher, "start", lambda: None)
    app = start("monitor", **MINE)
    app.text_input(key="monitor-address-0").set_value(shown)
    app.button(key="monitor-add").click().run()
    assert not app.error
    assert [s.shown for s in clocked.watcher.endpoints()] == [shown]
    assert app.text_input(key="monitor-address-1").value == ""
    app.button(key=f"remove-{shown}").click().run()
    assert not app.exception
    assert clocked.watcher.endpoints() == ()


def test_the_token_comes_from_secrets_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_TOKEN", SECRET)
    assert monitor_watch.token() == SECRET
    monkeypatch.setattr(st, "secrets", {"DRAFTWORTH_TOKEN": "kept"})
    assert monitor_watch.token() == "kept"


@pytest.mark.parametrize(
    ("accepted", "state"), [(1.8, "passed"), (1.0, "failed"), (None, "missing")]
)
def test_the_gate_of_the_decision(clocked: Clocked, accepted: float | None, state: str) -> None:
    if accepted is not None:
        clocked.add()
        for _ in range(3):
            clocked.after(500, accepted)
    app = start("decision", **MINE)
    assert not app.exception
    assert badges(app)[5] == state


def test_the_gate_fails_of_a_server_that_cannot_be_read(clocked: Clocked) -> None:
    clocked.add()
    clocked.standin.answer = lambda path, body: (503, b"")
    clocked.after(500, 1.8)
    app = start("decision", **MINE)
    assert not app.exception
    assert badges(app)[5] == "failed"
    assert "Scrape failing" in texts(app)


def test_together_costs_what_was_read(clocked: Clocked) -> None:
    with serving(Standin(answer=lambda *_: (503, b""))) as silent:
        clocked.add()
        clocked.watcher.add(Endpoint(silent.url, listed(loopback=True)))
        for _ in range(3):
            clocked.after(500, 1.8)
        app = start("monitor", **MINE)
    assert not app.exception
    prices = {m.value for m in app.metric if m.label == "$/1M now"}
    assert len(prices - {"–"}) == 1, "all together is the one that was read"


def test_without_a_store_nothing_is_said_to_be_kept(clocked: Clocked) -> None:
    clocked.add()
    for _ in range(2):
        clocked.after(500, 1.8)
    app = start("monitor", **MINE)
    assert "Not kept: the store could not be opened" in texts(app)
    assert "Scrapes are kept" not in texts(app)


def test_two_ranks_of_a_dump_are_one_server(store: None) -> None:
    app = start("monitor", **MINE)
    for name, rounds in (("first.txt", 0), ("later.txt", 1000)):
        counts = (rounds, 3 * rounds, 0.7 * rounds, 1.7 * rounds)
        text = "".join(vllm(*counts, running=4, engine=rank) for rank in "01")
        app.file_uploader(key="dumps").upload(name, text.encode())
    app.run()
    app.number_input(key="dump-seconds").set_value(10.0).run()
    assert not app.exception
    assert texts(app).count("Acceptance is down") == 1


def test_two_dumps_are_a_window_beside_the_plan(store: None) -> None:
    app = start("monitor", **MINE)
    dumps = {
        "later.txt": vllm(1100, 3300, 780, 1880, 60, (400, 260, 120), 8),
        "first.txt": vllm(100, 300, 80, 180, 10, (40, 30, 10), 8),
    }
    for name, text in dumps.items():
        app.file_uploader(key="dumps").upload(name, text.encode())
    app.run()
    assert "Type the seconds between the two" in texts(app)
    app.number_input(key="dump-seconds").set_value(10.0).run()
    assert not app.exception
    table = next(d.value for d in app.dataframe if "measured" in d.value)
    first = dict(zip(table["what"], table["measured"], strict=True))
    assert first["τ, tokens a round"] == "1.70"
    assert first["Output throughput"] == "170 tok/s"
    assert "Acceptance is down: τ 1.70" in texts(app)


def test_one_dump_is_refused_in_one_line(store: None) -> None:
    app = start("monitor", **MINE)
    app.file_uploader(key="dumps").upload("a.txt", vllm(1).encode()).run()
    app.number_input(key="dump-seconds").set_value(10.0).run()
    assert not app.exception
    assert [e.value for e in app.error] == [
        "text dumps: 1 given; two are needed, one taken before the other"
    ]


def test_a_prometheus_server_is_read_over_a_range(
    store: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = {time.time() - 60 + 15 * n: counted(100 + 400 * n, 2.5) for n in range(4)}
    bodies = iter([matrix({"10.0.0.1:8000": samples})])
    with serving(Standin(answer=lambda *_: (200, next(bodies, matrix({}))))) as server:
        monkeypatch.setenv("DRAFTWORTH_MONITOR_HOSTS", server.url.removeprefix("http://"))
        app = start("monitor", **MINE)
        app.text_input(key="prom-url").set_value(server.url)
        app.text_input(key="prom-labels").set_value('job="llm"')
        next(b for b in app.button if b.label == "Read").click().run()
        assert not app.exception
        assert not app.error
        assert 'job="llm"' in unquote_plus(server.asked[0][1].decode())
    spec = next(f["spec"] for f in figures(app) if f["title"] == "τ, tokens a round")
    assert "2.5" in str(spec)
    app.text_input(key="prom-url").set_value("10.0.0.9:9090")
    next(b for b in app.button if b.label == "Read").click().run()
    assert not app.exception
    assert "may not be asked" in texts(app)
