"""The process that `worker` starts: `python -m lib.probe.child`.

It reads a setup as one line of JSON on standard input and answers on standard output, a line of
JSON each: `progress` as it goes, then one `result` (the document of `to_json`) or one `error`.
"""

import contextlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

from lib.errors import DraftworthError
from lib.probe.measuring import measure
from lib.probe.result import Probe, to_json
from lib.probe.setup import Setup
from lib.probe.timing import Progress

Measure = Callable[[Setup, Callable[[Progress], None]], Probe]


def serve(measuring: Measure = measure) -> None:
    """Measure what standard input asks for, and answer."""
    # What libraries print goes to standard error: the answers have their own copy of the stream.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setup = Setup(**json.loads(_first_line()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _step_back()
    try:
        probe = measuring(setup, lambda p: _answer(answers, "progress", asdict(p)))
    except DraftworthError as error:
        _answer(answers, "error", str(error))
    except Exception as error:  # whatever stops it is one line there, and the rest in the log
        traceback.print_exc()
        _answer(answers, "error", _plain(error))
    else:
        _answer(answers, "result", to_json(probe).decode())
    # Not by way of the interpreter's end, where a driver's own clean-up can crash or hang.
    sys.stderr.flush()
    os._exit(0)


def _answer(answers: IO[str], kind: str, value: object) -> None:
    answers.write(json.dumps({kind: value}) + "\n")
    answers.flush()


def _plain(error: Exception) -> str:
    first = next(iter(str(error).splitlines()), "")[:300]
    if isinstance(error, MemoryError) or "out of memory" in first.lower():
        return (
            "out of memory while measuring: choose a smaller model, batch or context, or stop "
            f"what else uses it ({first or type(error).__name__})"
        )
    if "cuda" in first.lower():
        return f"CUDA failed while measuring: {first}; measure again, then check the driver"
    return f"the measurement failed: {type(error).__name__}: {first}"


def _first_line() -> bytes:
    # Unbuffered: a thread that waits in a buffered read would hold its lock at the end.
    line = b""
    while not line.endswith(b"\n"):
        one = os.read(0, 1)
        if not one:
            break
        line += one
    return line


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


def _step_back() -> None:
    """Leave no core, and be the first that the system ends where memory is short."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    serve()
