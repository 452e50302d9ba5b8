"""A measurement in a process of its own: it may crash, hang or be cancelled; the caller goes on.

`start` gives the handle. The child gets its setup as one line of JSON and answers in such lines
(see `child`). Its standard input stays open as long as this process lives.
"""

import collections
import json
import logging
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lib import settings
from lib.errors import InputError, ProbeError
from lib.probe import architecture, decoder
from lib.probe.result import Probe, from_json
from lib.probe.setup import CPU, Setup
from lib.probe.timing import Progress

__all__ = ["CANCELLED", "Progress", "Running", "start"]

COMMAND = (sys.executable, "-m", "lib.probe.child")
CANCELLED = "the measurement was cancelled"
STARTING_S = 60  # for the imports of the child, on top of max_seconds
GRACE_S = 3.0  # between asking it to end and killing it
MOST_OF_MEMORY = 0.9  # of what was available at the start
LONGEST_LINE = 64 * 2**20
LAST_LINES = 20
LOG = logging.getLogger("draftworth")

_TICK_S = 0.2
_KEPT = re.compile(
    "PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|VIRTUAL_ENV|XDG_CACHE_HOME"
    "|LD_LIBRARY_PATH|LD_PRELOAD"
    "|(LC|CUDA|NVIDIA|CUBLAS|NCCL|PYTORCH|TORCH|TORCHINDUCTOR|TRITON|OMP|MKL|KMP|HF)_.*|PYTHON.*"
)
_FOR_THE_HUB = re.compile(
    "(HTTP|HTTPS|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|HF_TOKEN(_PATH)?"
    "|HUGGING_FACE_HUB_TOKEN"
)
_SECRET = re.compile("TOKEN|SECRET|PASSWORD|KEY")


class Running:
    """A measurement under way. Every method may be called from any thread."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float, most_bytes: float) -> None:
        self._process = process
        self._ends_at = time.monotonic() + seconds
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._events: collections.deque[Progress] = collections.deque(maxlen=1000)
        self._last_lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._document = ""
        self._error = ""
        self._stopped_for = ""
        self._cancel = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="probe", daemon=True)
        self._follower.start()

    @property
    def done(self) -> bool:
        """Whether `result` answers at once."""
        return not self._follower.is_alive()

    def events(self) -> list[Progress]:
        """What came since the last call; does not wait."""
        found = []
        with suppress(IndexError):
            while True:
                found.append(self._events.popleft())
        return found

    def cancel(self) -> None:
        """End the measurement; `result` then says that it was cancelled."""
        self._cancel.set()

    def result(self) -> Probe:
        """The probe, when it is there. Raises ProbeError: there is no partial result."""
        self._follower.join()
        if self._stopped_for or self._error:
            raise ProbeError(self._stopped_for or self._error)
        if not self._document:
            raise ProbeError(_how_it_ended(self._process.returncode))
        try:
            return from_json(self._document)
        except InputError as error:
            raise ProbeError(f"the measurement's answer cannot be read: {error}") from None

    def _follow(self) -> None:
        """Read both streams until the child has ended, and see to it that it does."""
        process, asked_at = self._process, 0.0
        assert process.stdout
        assert process.stderr
        lines = {process.stdout.fileno(): self._heard, process.stderr.fileno(): self._logged}
        rests = dict.fromkeys(lines, b"")
        with selectors.DefaultSelector() as streams:
            for fd in lines:
                streams.register(fd, selectors.EVENT_READ)
            while True:
                ended = process.poll() is not None
                ready = streams.select(0 if ended else _TICK_S)
                for key, _ in ready:
                    chunk = os.read(key.fd, 2**16)
                    *whole, rests[key.fd] = (rests[key.fd] + chunk).split(b"\n")
                    rests[key.fd] = rests[key.fd][:LONGEST_LINE]
                    for line in whole:
                        lines[key.fd](line)
                    if not chunk:
                        streams.unregister(key.fd)
                if ended and not ready:
                    break  # a process that it started may hold the streams open
                if asked_at and time.monotonic() > asked_at + GRACE_S:
                    _signal(process, signal.SIGKILL)
                elif not asked_at and self._should_stop():
                    asked_at = time.monotonic()
                    _signal(process, signal.SIGTERM)
        self._close()

    def _heard(self, line: bytes) -> None:
        """One line of the child's answer; what is none is left."""
        try:
            said = json.loads(line)
            if "progress" in said:
                self._events.append(Progress(**said["progress"]))
            elif "result" in said:
                self._document = str(said["result"])
            elif "error" in said:
                self._error = " ".join(str(said["error"]).split())
        except (ValueError, TypeError, RecursionError):
            self._logged(line)

    def _logged(self, line: bytes) -> None:
        self._last_lines.append(line[:500].decode("utf-8", "replace"))

    def _should_stop(self) -> bool:
        """Whether there is a reason to end the child; it is kept for `result`."""
        if self._cancel.is_set():
            self._stopped_for = CANCELLED
        elif time.monotonic() > self._ends_at:
            self._stopped_for = (
                f"the measurement did not end within {self._seconds:.0f} s and was stopped: allow "
                "more with max_seconds, or choose a smaller model, gamma, batch or context"
            )
        elif _resident_bytes(self._process.pid) > self._most_bytes:
            self._stopped_for = (
                f"the measurement took more than {self._most_bytes / 2**30:.1f} GiB of memory and "
                "was stopped: choose a smaller model, batch or context"
            )
        return bool(self._stopped_for)

    def _close(self) -> None:
        process = self._process
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with suppress(OSError):
                    stream.close()
        if not (self._document or self._error or self._stopped_for):
            for line in self._last_lines:
                LOG.warning("probe: %s", line)


def start(
    setup: Setup,
    *,
    command: Sequence[str] = COMMAND,
    seconds: float | None = None,
    most_bytes: float | None = None,
) -> Running:
    """Begin a measurement in a process of its own; returns at once.

    `seconds` bounds its life (default: `setup.max_seconds` and a minute for its start),
    `most_bytes` its resident memory (default: 90 % of what is available now). Raises ProbeError
    where no process can be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=settings.ROOT,
            env=_environment(setup, os.environ),
            start_new_session=True,
        )
    except OSError as error:
        raise ProbeError(f"no process to measure in ({error.strerror})") from None
    assert process.stdin
    with suppress(OSError):  # one that has ended already says so by its status
        process.stdin.write(json.dumps(asdict(setup)).encode() + b"\n")
        process.stdin.flush()
    if seconds is None:
        seconds = setup.max_seconds + STARTING_S
    if most_bytes is None:
        most_bytes = MOST_OF_MEMORY * (decoder.free_bytes(CPU) or math.inf)
    return Running(process, seconds, most_bytes)


def _environment(setup: Setup, env: Mapping[str, str]) -> dict[str, str]:
    """What the child needs of the environment: no secrets, but for a gated model on the hub."""
    known = architecture.names()
    from_hub = any(n not in known and not Path(n).exists() for n in (setup.target, setup.draft))

    def is_kept(name: str) -> bool:
        if _FOR_THE_HUB.fullmatch(name):
            return from_hub
        return bool(_KEPT.fullmatch(name)) and not _SECRET.search(name)

    return {name: value for name, value in env.items() if is_kept(name.upper())}


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the child and whatever it started."""
    with suppress(OSError):
        os.killpg(process.pid, number)


def _resident_bytes(pid: int) -> float:
    """0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _how_it_ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return (
            "the measurement's process was killed (out of memory?): choose a smaller model, batch "
            "or context"
        )
    if status < 0:
        name = signal.strsignal(-status) or f"signal {-status}"
        return (
            f"the measurement's process crashed ({name}): the log has its last lines; try again, "
            "then another version of torch or of the driver"
        )
    return (
        f"the measurement's process ended without a result (status {status}): the log has its "
        "last lines"
    )
