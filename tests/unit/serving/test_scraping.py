"""A server watched over HTTP: what it counts, restarts, silence and hostile answers."""

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.server import free_port
from lib.addresses import Allowed
from lib.errors import DraftworthError, FetchError, InputError, UnreadableFile
from lib.serving.scraping import Endpoint, watch
from lib.serving.windows import Window, total
from tests.unit.serving.metrics_standin import Standin, serving, vllm

LOOPBACK = Allowed(loopback=True)
ENGINE = Path(__file__).resolve().parents[4] / "shared" / "tools" / "simengine.py"
needs_engine = pytest.mark.skipif(not ENGINE.is_file(), reason="no simulated engine beside")


def watched(server: Standin, texts: list[str], missed: list[str] | None = None) -> list[Window]:
    """The windows of a server that shows these texts, one a scrape; empty: no metrics then."""
    left = iter(texts)
    server.text = next(left)

    def answer(path: str, _: bytes) -> tuple[int, bytes]:
        return (200, server.text.encode()) if server.text and path == "/metrics" else (503, b"")

    server.answer = answer

    def sleep(_: float) -> None:
        server.text = next(left)

    said: list[str] = [] if missed is None else missed
    endpoint = Endpoint(server.url, LOOPBACK)
    return list(watch(endpoint, len(texts) - 1, 1, said.append, sleep))


def test_windows_of_a_server_over_time() -> None:
    texts = [vllm(n, 4 * n, 2 * n, 3 * n) for n in (10, 30, 60)]
    with serving(Standin()) as server:
        found = watched(server, texts)
    assert [w.counters.drafts for w in found] == [20, 30]
    assert [w.tau for w in found] == [3.0, 3.0]
    assert total(found).counters.drafts == 50


def test_a_restart_in_between() -> None:
    texts = [vllm(n, 4 * n, 2 * n, 3 * n) for n in (100, 130, 20, 25)]
    with serving(Standin()) as server:
        whole = total(watched(server, texts))
    assert (whole.counters.drafts, whole.restarts, whole.tau) == (30 + 20 + 5, 1, 3.0)


def test_a_scrape_that_fails_makes_the_next_window_longer() -> None:
    missed: list[str] = []
    with serving(Standin()) as server:
        found = watched(server, [vllm(10), "", vllm(40), vllm(50)], missed)
    assert [w.counters.drafts for w in found] == [30, 10]
    assert len(missed) == 1
    assert "status 503" in missed[0]


def test_a_server_that_never_answers_again_is_an_error() -> None:
    with serving(Standin()) as server, pytest.raises(FetchError, match="status 503"):
        watched(server, [vllm(10), "", ""])


def test_the_path_of_tensorrt_llm_is_found() -> None:
    def answer(path: str, _: bytes) -> tuple[int, bytes]:
        there = path == "/prometheus/metrics"
        return (200, b"trtllm_generation_tokens_total 5\n") if there else (404, b"")

    with serving(Standin(answer=answer)) as server:
        found = Endpoint(server.url, LOOPBACK).scrape(0.0)
        assert [r.engine for r in found.replicas.values()] == ["TensorRT-LLM"]
        Endpoint(f"{server.url}/prometheus/metrics", LOOPBACK).scrape(0.0)
        assert [path for path, _, _ in server.asked[1:]] == ["/prometheus/metrics"] * 2


def test_an_address_with_a_query_is_refused_unsaid() -> None:
    with pytest.raises(FetchError, match="has a query; leave out") as caught:
        Endpoint("http://127.0.0.1:8000/metrics?key=hidden", Allowed(loopback=True))
    assert "hidden" not in str(caught.value)


def test_a_token_is_sent_and_asked_for() -> None:
    with serving(Standin(answer=lambda *_: (401, b""))) as server:
        with pytest.raises(FetchError, match="DRAFTWORTH_TOKEN") as caught:
            Endpoint(f"{server.url}/v1", LOOPBACK, "sk-secret").scrape(0.0)
        assert server.asked == [("/metrics", b"", "Bearer sk-secret")]
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("times", [(0.5, 0.5), (10, 0.1), (10, 20), (1e9, 5)])
def test_times_out_of_range_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="allowed"):
        watch(Endpoint("http://127.0.0.1:1", LOOPBACK), *times, print)


def test_other_hosts_are_not_asked() -> None:
    with pytest.raises(FetchError, match="may not be asked"):
        Endpoint("http://10.1.2.3:8000", LOOPBACK).scrape(0.0)


HOSTILE = {
    "not UTF-8": b"\xff\xfe\x00vllm:" + bytes(range(256)),
    "a web page": b"<html>" * 1000,
    "nothing": b"",
    "many series": b'vllm:a{x="1"} 1\n' * 500_000,
    "over the limit": b"vllm:a 1\n" * 1_000_000,
    "one long line": b"vllm:a{x=" + b"y" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_one_line(name: str) -> None:
    with serving(Standin(answer=lambda *_: (200, HOSTILE[name]))) as server:
        with pytest.raises(DraftworthError) as caught:
            Endpoint(server.url, LOOPBACK).scrape(0.0)
        assert "\n" not in str(caught.value)
        assert server.url.removeprefix("http://") in str(caught.value)


def test_bytes_that_are_no_text_in_a_label_are_read_past() -> None:
    body = vllm(10).encode().replace(b"acme", b"\xff\xfe")
    with serving(Standin(answer=lambda *_: (200, body))) as server:
        (replica,) = Endpoint(server.url, LOOPBACK).scrape(0.0).replicas.values()
    assert replica.counters.drafts == 10


def test_more_accepted_than_drafted_ends_the_watch() -> None:
    with serving(Standin()) as server, pytest.raises(UnreadableFile, match="over 100 %"):
        watched(server, [vllm(), vllm(10, 20, 30, 60)])


@contextmanager
def engine(port: int) -> Iterator[None]:
    child = subprocess.Popen([sys.executable, str(ENGINE), "--port", str(port), "--gamma", "4"])
    try:
        deadline = time.monotonic() + 60
        while True:
            assert child.poll() is None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield
    finally:
        child.kill()
        child.wait(20)


@contextmanager
def load(port: int, streams: int = 8) -> Iterator[None]:
    over = threading.Event()
    asked = {"model": "sim", "prompt": "hello", "max_tokens": 64}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json"},
    )

    def ask() -> None:
        while not over.is_set():
            try:
                urllib.request.urlopen(request, timeout=30).read()
            except OSError:
                time.sleep(0.05)

    threads = [threading.Thread(target=ask) for _ in range(streams)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


@needs_engine
def test_a_simulated_engine_under_load_and_restarted() -> None:
    port = free_port()
    endpoint = Endpoint(f"http://127.0.0.1:{port}", LOOPBACK)
    with load(port):
        with engine(port):
            first = total(list(watch(endpoint, 3, 1, print)))
            windows = watch(endpoint, 4, 1, print)
            found = [next(windows)]
        with engine(port):
            found += list(windows)
    assert first.engine == "vLLM"
    assert first.counters.drafts
    assert first.tau == pytest.approx(2.7731, abs=12 / first.counters.drafts**0.5)
    assert first.alpha is not None
    assert first.alpha.value == pytest.approx(0.7, abs=4 / first.counters.drafts**0.5)
    assert first.gauges.running
    whole = total(found)
    assert whole.restarts == 1
    assert whole.counters.drafts
    assert whole.tau == pytest.approx(2.7731, abs=12 / whole.counters.drafts**0.5)
