"""A server that speculates, for the monitor to watch: simulated, or counters that just move."""

import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.unit.serving.metrics_standin import histogram, vllm

ENGINE = Path(__file__).resolve().parents[3] / "shared" / "tools" / "simengine.py"
RUNNING = 8
ROUNDS_PER_S = 400.0
BODY = b'{"prompt": "one two three", "max_tokens": 64}'


@contextmanager
def running(port: int, gamma: int, alpha: float) -> Iterator[None]:
    """A vLLM-like server under load until the block ends; the simulated engine where it is."""
    with _simulated(port, gamma, alpha) if ENGINE.exists() else _standin(port, gamma, alpha):
        yield


@contextmanager
def _simulated(port: int, gamma: int, alpha: float) -> Iterator[None]:
    command = [sys.executable, str(ENGINE), "--port", str(port)]
    command += ["--gamma", str(gamma), "--alpha", str(alpha)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stop = threading.Event()
    address = f"http://127.0.0.1:{port}/v1/completions"
    clients = [threading.Thread(target=_ask, args=(address, stop)) for _ in range(RUNNING)]
    try:
        for client in clients:
            client.start()
        yield
    finally:
        stop.set()
        child.kill()
        child.wait(10)
        for client in clients:
            client.join(10)


def _ask(address: str, stop: threading.Event) -> None:
    headers = {"Content-Type": "application/json"}
    while not stop.is_set():
        try:
            request = urllib.request.Request(address, BODY, headers)
            urllib.request.urlopen(request, timeout=10).read()
        except (urllib.error.URLError, OSError):
            stop.wait(0.1)


@contextmanager
def _standin(port: int, gamma: int, alpha: float) -> Iterator[None]:
    """Counters that grow with time as rounds of that acceptance would have them."""
    began = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = _counted(time.monotonic() - began, gamma, alpha).encode()
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    ThreadingHTTPServer.allow_reuse_address = True
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _counted(seconds: float, gamma: int, alpha: float) -> str:
    drafts = int(seconds * ROUNDS_PER_S)
    positions = [int(drafts * alpha ** (at + 1)) for at in range(gamma)]
    generated, accepted = drafts + sum(positions), sum(positions)
    done = generated // 64
    labels = {"engine": "0", "model_name": "sim/target"}
    counts = vllm(drafts, drafts * gamma, accepted, generated, done, positions, RUNNING, **labels)
    kept = [x for x in counts.splitlines(keepends=True) if gamma or ":spec_decode_" not in x]
    return "".join(kept) + "".join(
        histogram(name, {0.005: 0, 0.01: done, 0.05: done}, done, done * 0.008, **labels)
        for name in (
            "vllm:time_to_first_token_seconds",
            "vllm:request_time_per_output_token_seconds",
        )
    )
