"""A command run with the GPUs recorded beside it: memory, power, energy, load, clock.

The record is JSON lines, each written out at once: a header, a sample every so many seconds, a
footer. It names the program that ran and nothing of its arguments, which may hold secrets.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from lib.errors import InputError
from lib.probe import nvml
from lib.probe.nvml_calls import plain_uuid

SCHEMA = "draftworth.gpu_record/1"
EVERY_S = (0.1, 60.0)
_LAST_SAMPLE_S = 5.0  # how long the last sample may take before the record is closed without it
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_OF_A_TERMINAL = ("SIGINT", "SIGQUIT")

Warn = Callable[[str], None]


def record(
    command: Sequence[str],
    out: Path,
    uuids: Sequence[str] = (),
    every_s: float = 1.0,
    warn: Warn = lambda _: None,
) -> int:
    """Run `command` on our standard streams; its exit status, 128 + n where signal n ended it.

    `uuids` name the GPUs (default: all boards). The first sample is taken before the command
    starts, the last after it has ended. Signals go on to the command. Where no GPU can be read the
    command runs all the same, `warn` hears why in one line and so does the file. Raises InputError,
    with nothing started or written, for what cannot be recorded.
    """
    if not command:
        raise InputError(
            "command: name the benchmark to run, as in: record --out f.jsonl -- vllm …"
        )
    low, high = EVERY_S
    if not low <= every_s <= high:
        raise InputError(f"every = {every_s:g}: {low:g} to {high:g} seconds is allowed")
    seen = nvml.devices()
    gpus = _chosen(seen, uuids)
    try:
        file = out.open("xb", buffering=0)
    except FileExistsError:
        raise InputError(f"out = {out}: exists already; name a new file") from None
    except FileNotFoundError:
        raise InputError(f"out = {out}: there is no folder {out.parent}; make it first") from None
    except OSError as error:
        raise InputError(f"out = {out}: cannot be written ({error.strerror})") from None
    with file:
        if seen.problem:
            warn(f"{'not every' if gpus else 'no'} GPU is recorded: {seen.problem}")
        sampler = _Sampler(file, [g.uuid or g.pci_bus_id for g in gpus], every_s, warn)
        sampler.put(_header(command, seen, gpus, every_s))
        sampler.sample()
        try:
            status = _run(command, sampler)
        except OSError as error:
            out.unlink()
            raise InputError(
                f"command = {command[0][:80]}: cannot be started ({error.strerror})"
            ) from None
        sampler.close({"ended_at": time.time(), "exit_status": status})
    return status


def _chosen(seen: nvml.Devices, uuids: Sequence[str]) -> list[nvml.Gpu]:
    """The GPUs named; without names every board, whose slices are parts of it."""
    if not uuids or not seen.found:
        return [g for g in seen.found if not g.is_slice]
    known = {plain_uuid(g.uuid): g for g in seen.found if g.uuid}
    if missing := [u for u in uuids if plain_uuid(u) not in known]:
        visible = ", ".join(g.uuid for g in seen.found if g.uuid) or "none"
        raise InputError(f"gpus: {missing[0][:80]} is not here; visible are {visible}")
    return list({plain_uuid(u): known[plain_uuid(u)] for u in uuids}.values())


def _header(
    command: Sequence[str], seen: nvml.Devices, gpus: Sequence[nvml.Gpu], every_s: float
) -> dict[str, Any]:
    now = datetime.now().astimezone()
    offset = now.utcoffset()
    return {
        "schema": SCHEMA,
        "started_at": now.astimezone(UTC).isoformat(timespec="milliseconds"),
        "utc_offset_s": None if offset is None else offset.total_seconds(),
        "host": seen.host,
        "program": Path(command[0]).name[:80],
        "every_s": every_s,
        "driver": gpus[0].driver if gpus else "",
        "gpus": [
            {"uuid": g.uuid or g.pci_bus_id, "name": g.name, "mem_gib": g.memory.total_gib}
            for g in gpus
        ],
        "problem": seen.problem,
    }


class _Sampler:
    """Writes a sample when asked and every so many seconds; one writer at a time."""

    def __init__(self, file: BinaryIO, names: Sequence[str], every_s: float, warn: Warn) -> None:
        self._file, self._names, self._every_s, self._warn = file, names, every_s, warn
        self._stop, self._writing = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = False

    def start(self) -> None:
        if self._names:
            self._thread.start()

    def sample(self) -> None:
        """One line with what each GPU does now."""
        if self._names:
            self.put({"t": time.time(), "gpus": [_values(name) for name in self._names]})

    def close(self, footer: dict[str, Any]) -> None:
        """Take the last sample and write the footer; a driver that hangs does not keep us."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_SAMPLE_S)
        self.put(footer, last=True)

    def _run(self) -> None:
        due = time.monotonic() + self._every_s
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self.sample()
            due = max(due + self._every_s, time.monotonic())
        self.sample()

    def put(self, line: dict[str, Any], last: bool = False) -> None:
        """Write one line; none after the last, or after one that could not be written."""
        with self._writing:
            if self._ended:
                return
            try:
                self._write((json.dumps(line, ensure_ascii=False) + "\n").encode())
            except OSError as error:
                self._warn(f"the record ends here: it cannot be written ({error.strerror})")
                last = True
            self._ended = last

    def _write(self, data: bytes) -> None:
        """The whole line or nothing of it. Raises OSError."""
        written = self._file.write(data) or 0
        if written < len(data):
            self._file.truncate(self._file.tell() - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _values(name: str) -> dict[str, Any]:
    now = nvml.reading(name)
    return {
        "uuid": name,
        "mem_gib": None if now.memory.unified else now.memory.used_gib,
        "power_w": now.power_w,
        "energy_j": now.energy_j,
        "util": now.utilization,
        "sm_mhz": now.sm_clock_mhz,
    }


def _run(command: Sequence[str], sampler: _Sampler) -> int:
    """The command's exit status; raises OSError where it cannot be started."""
    with _forwarding() as give:
        child = subprocess.Popen(command)
        give(child)
        sampler.start()
        status = child.wait()
    return 128 - status if status < 0 else status


@contextmanager
def _forwarding() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Hand signals on to a child, and those that come before it is there as soon as it is.

    What a terminal's keys send reaches the child by itself, as it is in the same group.
    """
    pending: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        if signal.Signals(number).name in _OF_A_TERMINAL and _in_foreground():
            return
        for child in children:
            with suppress(OSError):
                child.send_signal(number)
        if not children:
            pending.append(number)

    def give(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in pending:
            child.send_signal(number)

    numbers = [n for name in _FORWARDED if (n := getattr(signal, name, None)) is not None]
    before = {
        n: signal.signal(n, forward) for n in numbers if signal.getsignal(n) != signal.SIG_IGN
    }
    try:
        yield give
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether a terminal sends its keys to this process and its children."""
    if sys.platform == "win32":
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
