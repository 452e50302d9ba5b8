"""The process apart: whatever becomes of it is one line, and no c without its whole measurement."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lib.errors import ProbeError
from lib.probe import turn, worker
from lib.probe.result import Interval, Measured, Probe, to_json
from lib.probe.setup import Setup
from lib.probe.worker import Running

ROOT = Path(__file__).resolve().parents[3]
SETUP = Setup(target="tiny-target", draft="tiny-draft", device="cpu", dtype="float32")
PROBE = Probe(
    c=Interval(0.125, 0.12, 0.13),
    t_draft_ms=1.0,
    t_target_ms=8.0,
    setup=Measured(gpu="G", target="t", draft="d", dtype="float32", batch=1, context=512, gamma=5),
    taken_at=datetime(2026, 1, 2, tzinfo=UTC),
)
MEASURING = """
import os, signal, sys, threading, time
from lib.errors import ProbeError
from lib.probe.child import serve
from lib.probe.result import from_json
from lib.probe.timing import Progress

def measuring(setup, tell):
    tell(Progress(1, 3, "loading the target"))
{body}
    return from_json({document!r})

serve(measuring)
"""


def script(body: str) -> list[str]:
    """A child that measures nothing but does what `body` says in between."""
    indented = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    code = MEASURING.format(document=to_json(PROBE).decode(), body=indented)
    return [sys.executable, "-c", code]


def started(body: str = "pass", **bounds: float) -> Running:
    return worker.start(SETUP, command=script(body), **bounds)  # type: ignore[arg-type]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def test_progress_streams_and_the_result_comes() -> None:
    running = started("tell(Progress(2, 3, setup.target))")
    assert running.result() == PROBE
    assert running.done
    assert [p.what for p in running.events()] == ["loading the target", "tiny-target"]
    assert running.events() == []


def test_progress_comes_before_the_end() -> None:
    running = started("time.sleep(60)")
    seen: list[worker.Progress] = []
    until(lambda: bool(seen.extend(running.events()) or seen))
    assert not running.done
    running.cancel()
    with pytest.raises(ProbeError, match="cancelled"):
        running.result()
    assert running.done


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (signal.SIGKILL, "was killed (out of memory?)"),
        (signal.SIGSEGV, "crashed (Segmentation fault)"),
        (signal.SIGABRT, "crashed (Aborted)"),
    ],
)
def test_a_crash_is_one_line(number: signal.Signals, says: str) -> None:
    running = started(f"os.kill(os.getpid(), {int(number)})")
    with pytest.raises(ProbeError) as caught:
        running.result()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_end_without_a_result_has_its_last_lines_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "draftworth")
    running = started("print('the last words', file=sys.stderr, flush=True)\nos._exit(3)")
    with pytest.raises(ProbeError, match=r"without a result \(status 3\)"):
        running.result()
    assert "the last words" in caplog.text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ProbeError('no kernel image: sm_120, built for 9.0')", "no kernel image: sm_120"),
        ("raise MemoryError", "out of memory while measuring"),
        ("raise RuntimeError('CUDA out of memory. Tried\\nmore')", "CUDA out of memory. Tried"),
        ("raise RuntimeError('CUDA error: device-side assert')", "CUDA failed while measuring"),
        ("raise KeyError('weights')", "the measurement failed: KeyError"),
    ],
)
def test_an_error_is_one_line(body: str, says: str) -> None:
    with pytest.raises(ProbeError) as caught:
        started(body).result()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hang_ends_at_the_time_bound() -> None:
    running = started("time.sleep(600)", seconds=4)
    with pytest.raises(ProbeError, match="did not end within 4 s"):
        running.result()


def test_one_that_falls_silent_ends_at_the_time_bound() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(600)"
    running = worker.start(SETUP, command=[sys.executable, "-c", code], seconds=2)
    with pytest.raises(ProbeError, match="did not end within 2 s"):
        running.result()


def test_one_that_ignores_the_wish_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GRACE_S", 0.5)
    running = started(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "tell(Progress(2, 3, 'deaf'))\ntime.sleep(600)"
    )
    until(lambda: bool(running.events()))
    running.cancel()
    with pytest.raises(ProbeError, match="cancelled"):
        running.result()


def test_memory_is_bounded() -> None:
    running = started("kept = bytearray(2**30)\ntime.sleep(600)", most_bytes=512 * 2**20)
    with pytest.raises(ProbeError, match=r"more than 0.5 GiB of memory"):
        running.result()


def test_what_libraries_print_is_no_answer() -> None:
    noise = """
        print('{"result": "forged"}')
        print('Loading checkpoint shards: 100%')
        os.write(1, bytes(range(256)) * 1000)
        os.system('echo from a program of its own')
    """
    assert started(noise).result() == PROBE


@pytest.mark.parametrize(
    "line", ["garbage", "[]", "{}", '{"progress": {"done": 1}}', '{"progress": 3}', "\\xff\\xfe"]
)
def test_lines_that_are_no_answer_are_left(line: str) -> None:
    document = to_json(PROBE).decode()
    code = (
        f"import json, sys; sys.stdin.readline(); print({line!r}); "
        f"print(json.dumps({{'result': {document!r}}}))"
    )
    assert worker.start(SETUP, command=[sys.executable, "-c", code]).result() == PROBE


def test_half_a_result_is_none() -> None:
    half = to_json(PROBE).decode()[:80]
    code = f"import json, sys; sys.stdin.readline(); print(json.dumps({{'result': {half!r}}}))"
    with pytest.raises(ProbeError, match="answer cannot be read"):
        worker.start(SETUP, command=[sys.executable, "-c", code]).result()


def test_no_process_is_one_line() -> None:
    with pytest.raises(ProbeError, match="no process to measure in"):
        worker.start(SETUP, command=["/nowhere/python"])


def test_a_second_probe_on_a_device_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hold = """
        from lib.probe.turn import taken
        with taken("GPU-1", "NVIDIA H100"):
            tell(Progress(2, 3, "held"))
            time.sleep({seconds})
    """
    first = started(hold.format(seconds=600))
    held: list[str] = []
    until(lambda: bool(held.extend(p.what for p in first.events()) or "held" in held))
    with pytest.raises(ProbeError, match="a probe already runs on NVIDIA H100"):
        started(hold.format(seconds=0)).result()
    assert started(hold.format(seconds=0).replace("GPU-1", "GPU-2")).result() == PROBE
    first.cancel()
    until(lambda: first.done)
    assert started(hold.format(seconds=0)).result() == PROBE


def test_a_turn_is_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with turn.taken("GPU-1", "G"), pytest.raises(ProbeError), turn.taken("GPU-1", "G"):
        pass
    with turn.taken("GPU-1", "G"), turn.taken("GPU-2", "H"):
        pass
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ProbeError, match="set TMPDIR"), turn.taken("GPU-1", "G"):
        pass


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    child = script(f"open({str(said)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    parent = f"""
import time
from lib.probe import worker
from lib.probe.setup import Setup
worker.start(Setup(target="t", draft="d"), command={child!r})
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT)
    try:
        until(lambda: said.exists() and said.read_text() != "")
        pid = int(said.read_text())
        assert running_still(pid)
    finally:
        process.kill()
        process.wait()
    until(lambda: not running_still(pid))


def running_still(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "s",
    "OPENAI_API_KEY": "s",
    "DRAFTWORTH_STORE": "ducklake:postgres:password=s",
    "HF_TOKEN": "s",
    "HTTPS_PROXY": "http://user:s@proxy",
}


def test_secrets_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, "CUDA_VISIBLE_DEVICES": "1", "HF_HOME": "/models"}.items():
        monkeypatch.setenv(name, value)
    known = worker._environment(SETUP, os.environ)
    assert not known.keys() & SECRETS.keys()
    assert known["CUDA_VISIBLE_DEVICES"] == "1"
    assert known["HF_HOME"] == "/models"
    assert known["PATH"] == os.environ["PATH"]
    from_hub = Setup(target="meta-llama/Llama-3.1-8B", draft="tiny-draft")
    hub = worker._environment(from_hub, os.environ)
    assert hub.keys() & SECRETS.keys() == {"HF_TOKEN", "HTTPS_PROXY"}
