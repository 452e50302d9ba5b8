"""Streamlit apps as child processes, and sessions that drive them without a browser."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parent.parent
FLOORS = Path(__file__).resolve().parent / "floors"


def free_port() -> int:
    """A port of the loopback address that nobody holds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(app: Path) -> Iterator[int]:
    """Run an app with the project's settings and an empty store; its port once it is healthy."""
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        store = str(Path(place) / "store.duckdb")
        env = {**os.environ, "DRAFTWORTH_STORE": store, "PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)],
            cwd=ROOT,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(port, child)
            yield port
        finally:
            child.terminate()
            child.wait(20)


def _wait(port: int, child: subprocess.Popen[bytes]) -> None:
    while child.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    raise RuntimeError("the server ended before it was healthy")


class Session:
    """One visitor: a web socket that asks for a page and waits until its script has run."""

    def __init__(self, port: int, page: str = "") -> None:
        self.port = port
        self.page = page

    async def __aenter__(self) -> "Session":
        self.socket = await websockets.connect(
            f"ws://127.0.0.1:{self.port}/_stcore/stream",
            subprotocols=[websockets.Subprotocol("streamlit")],
            max_size=None,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()

    async def run(self) -> None:
        """Ask for one full run of the page and read until it is finished without an error."""
        message = BackMsg()
        message.rerun_script.query_string = ""
        message.rerun_script.page_name = self.page
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            data = await self.socket.recv()
            answer.ParseFromString(data if isinstance(data, bytes) else data.encode())
            kind = answer.WhichOneof("type")
            if kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                raise RuntimeError(answer.delta.new_element.exception.message)
            if kind == "script_finished":
                finished = answer.script_finished
                if finished == ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY:
                    return


async def _together(port: int, page: str, sessions: int, runs: int) -> float:
    visitors = [Session(port, page) for _ in range(sessions)]
    for visitor in visitors:
        await visitor.__aenter__()
    try:
        await asyncio.gather(*(v.run() for v in visitors))  # first runs warm the caches

        async def all_runs(visitor: Session) -> None:
            for _ in range(runs):
                await visitor.run()

        started = time.perf_counter()
        await asyncio.gather(*(all_runs(v) for v in visitors))
        return (time.perf_counter() - started) / (sessions * runs)
    finally:
        for visitor in visitors:
            await visitor.__aexit__()


def seconds_a_run(port: int, page: str = "", sessions: int = 20, runs: int = 5) -> float:
    """Mean seconds a full page run takes while `sessions` visitors ask at once."""
    return asyncio.run(_together(port, page, sessions, runs))


def first_run(port: int, page: str = "") -> None:
    """One visitor's first page, drawn."""

    async def once() -> None:
        async with Session(port, page) as visitor:
            await visitor.run()

    asyncio.run(once())
