"""A benchmark run with the GPUs recorded beside it: it notices nothing, and nothing is lost."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lib.errors import InputError
from lib.probe import nvml_text
from lib.probe.record import SCHEMA, record
from tests.unit.probe.standin import H100, L4, ROOT, Machine, needs_gcc

pytestmark = needs_gcc
PYTHON = sys.executable
RECORD = [PYTHON, "-m", "lib", "record"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).gpus(L4, H100)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "gpu.jsonl"


def started(machine: Machine, out: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*RECORD, "--out", str(out), "--every", "0.1", *words],
        env=machine.env,
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


def lines(out: Path) -> list[dict[str, Any]]:
    text = out.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_the_command_has_our_streams_and_we_its_status(machine: Machine, out: Path) -> None:
    code = "import sys; print(input()[::-1]); print('e', file=sys.stderr); sys.exit(7)"
    process = started(machine, out, "--", PYTHON, "-c", code, "--api-key", "sk-secret")
    printed, errors = process.communicate("abc\n")
    assert (process.returncode, printed, errors) == (7, "cba\n", "e\n")
    assert "secret" not in out.read_text()
    assert lines(out)[-1]["exit_status"] == 7


def test_what_is_written(machine: Machine, out: Path) -> None:
    before = time.time()
    process = started(machine, out, "sleep", "0.6")  # no -- is needed where nothing is ambiguous
    process.communicate()
    header, *samples, footer = lines(out)
    began = datetime.fromisoformat(header.pop("started_at"))
    assert began.utcoffset() is not None
    assert before - 1 <= began.timestamp() <= footer["ended_at"]
    assert header.pop("host")
    assert isinstance(header.pop("utc_offset_s"), float)
    assert header == {
        "schema": SCHEMA,
        "program": "sleep",
        "every_s": 0.1,
        "driver": "580.95.05",
        "gpus": [
            {"uuid": L4["uuid"], "name": "NVIDIA L4", "mem_gib": pytest.approx(22.494, abs=1e-3)},
            {
                "uuid": H100["uuid"],
                "name": H100["name"],
                "mem_gib": pytest.approx(79.647, abs=1e-3),
            },
        ],
        "problem": "",
    }
    assert len(samples) >= 3
    times = [s["t"] for s in samples]
    assert times == sorted(times)
    assert times[-1] - times[0] >= 0.6, "the first before it starts, the last after it has ended"
    assert footer == {"ended_at": pytest.approx(times[-1], abs=1), "exit_status": 0}
    small, large = samples[0]["gpus"]
    assert (small["uuid"], small["energy_j"], small["sm_mhz"]) == (L4["uuid"], None, None)
    assert large == {
        "uuid": H100["uuid"],
        "mem_gib": 2,
        "power_w": 412.5,
        "energy_j": pytest.approx(123456.789),
        "util": 0.04,
        "sm_mhz": 1980,
    }


def test_the_gpus_named(machine: Machine, out: Path) -> None:
    named = str(H100["uuid"]).removeprefix("GPU-").upper()
    started(machine, out, "--gpus", f"{named}, {H100['uuid']}", "true").communicate()
    header, sample, *_ = lines(out)
    assert [g["uuid"] for g in header["gpus"]] == [H100["uuid"]]
    assert [g["uuid"] for g in sample["gpus"]] == [H100["uuid"]]


def test_slices_are_parts_of_their_board(machine: Machine, out: Path) -> None:
    part = {
        "gpu1.mig": 1,
        "gpu1.slices": 1,
        "gpu1.slice0.uuid": "MIG-5",
        "gpu1.slice0.total": 2**30,
    }
    machine.set(part)
    started(machine, out, "true").communicate()
    assert [g["uuid"] for g in lines(out)[0]["gpus"]] == [L4["uuid"], H100["uuid"]]
    out.unlink()
    started(machine, out, "--gpus", "MIG-5", "true").communicate()
    assert [g["uuid"] for g in lines(out)[0]["gpus"]] == ["MIG-5"]


def test_memory_of_the_machine_is_not_a_gpus(tmp_path: Path, out: Path) -> None:
    bare = {k: v for k, v in H100.items() if k not in ("total", "used", "free")}
    started(Machine(tmp_path).gpus(bare), out, "true").communicate()
    assert lines(out)[1]["gpus"][0]["mem_gib"] is None


TRAP = (
    "import signal, sys, time\n"
    "def leave(number, frame): print('got', number, flush=True); sys.exit(5)\n"
    "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1): signal.signal(n, leave)\n"
    "print('ready', flush=True)\n"
    "time.sleep(60)\n"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_go_on_to_the_command_once(machine: Machine, out: Path, number: int) -> None:
    process = started(machine, out, "--", PYTHON, "-c", TRAP)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    printed, errors = process.communicate()
    assert (process.returncode, printed, errors) == (5, f"got {number}\n", "")
    assert lines(out)[-1]["exit_status"] == 5


COUNT = (
    "import signal, time\n"
    "seen = []\n"
    "signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))\n"
    "print('ready', flush=True)\n"
    "while not seen: time.sleep(0.01)\n"
    "time.sleep(0.3)\n"
    "print(len(seen), 'interrupt', flush=True)\n"
)


def test_keys_of_a_terminal_reach_the_command_once(machine: Machine, out: Path) -> None:
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        words = [*RECORD, "--out", str(out), "--", PYTHON, "-c", COUNT]
        os.execve(PYTHON, words, machine.env)
    shown = b""
    while b"interrupt" not in shown:
        shown += os.read(terminal, 1024)
        if b"ready" in shown and b"^C" not in shown:
            os.write(terminal, b"\x03")
            time.sleep(0.1)
    assert b"1 interrupt" in shown
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert lines(out)[-1]["exit_status"] == 0


def test_a_command_that_a_signal_ended(machine: Machine, out: Path) -> None:
    process = started(machine, out, "sh", "-c", "kill -KILL $$")
    process.communicate()
    assert process.returncode == 128 + signal.SIGKILL
    assert lines(out)[-1]["exit_status"] == 137


def test_killed_it_loses_no_sample(machine: Machine, out: Path) -> None:
    process = started(machine, out, "sleep", "60")
    while not out.exists() or out.read_bytes().count(b"\n") < 4:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    header, *samples = lines(out)
    assert header["schema"] == SCHEMA
    assert len(samples) >= 3


def test_without_nvml_the_command_runs_and_the_file_says_why(tmp_path: Path, out: Path) -> None:
    machine = Machine(tmp_path, library=False)
    process = started(machine, out, "--gpus", "GPU-1", "sh", "-c", "echo ran; exit 4")
    printed, errors = process.communicate()
    assert (process.returncode, printed) == (4, "ran\n")
    assert errors == f"no GPU is recorded: {nvml_text.LIBRARY_MISSING}\n"
    header, footer = lines(out)
    assert (header["gpus"], header["problem"]) == ([], nvml_text.LIBRARY_MISSING)
    assert footer["exit_status"] == 4


def test_a_gpu_that_is_lost_on_the_way_leaves_gaps(machine: Machine, out: Path) -> None:
    process = started(machine, out, "sh", "-c", "read line")
    while not out.exists() or out.read_bytes().count(b"\n") < 3:
        time.sleep(0.05)
    machine.set({"fail.nvmlDeviceGetPowerUsage.gpu1": 15})
    have = out.read_bytes().count(b"\n")
    while out.read_bytes().count(b"\n") < have + 3:
        time.sleep(0.05)
    process.communicate("go\n")
    _, *samples, footer = lines(out)
    powers = [s["gpus"][1]["power_w"] for s in samples]
    assert (powers[0], powers[-1], samples[-1]["gpus"][0]["power_w"]) == (412.5, None, 36)
    assert footer["exit_status"] == 0


def test_a_gpu_that_cannot_be_opened_is_said(machine: Machine, out: Path) -> None:
    machine.set({"fail.nvmlDeviceGetHandleByIndex_v2.gpu0": 15})
    _, errors = started(machine, out, "true").communicate()
    assert errors == f"not every GPU is recorded: GPU 0: {nvml_text.sentence(15)}\n"
    assert [g["uuid"] for g in lines(out)[0]["gpus"]] == [H100["uuid"]]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--gpus", "GPU-9", "true"),
            f"GPU-9 is not here; visible are {L4['uuid']}, {H100['uuid']}",
        ),
        (("--every", "0", "true"), "every = 0: 0.1 to 60 seconds is allowed"),
        (("no-such-benchmark",), "no-such-benchmark: cannot be started"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    machine: Machine, out: Path, words: tuple[str, ...], says: str
) -> None:
    process = started(machine, out, *words)
    _, errors = process.communicate()
    assert process.returncode == 2
    assert says in errors
    assert errors.count("\n") == 1
    assert not out.exists()


def test_a_file_that_is_there_is_kept(machine: Machine, out: Path) -> None:
    out.write_text("mine")
    process = started(machine, out, "true")
    _, errors = process.communicate()
    assert (process.returncode, out.read_text()) == (2, "mine")
    assert "exists already; name a new file" in errors


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make it first"):
        record(["true"], tmp_path / "none" / "f.jsonl")
    with pytest.raises(InputError, match="name a new file"):
        record(["true"], tmp_path)
    with pytest.raises(InputError, match="name the benchmark"):
        record([], tmp_path / "f.jsonl")


def test_a_full_disk_ends_the_record_and_not_the_command(machine: Machine, out: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from lib.probe.record import record\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1200, 1200))\n"
        f"warn = lambda line: print(line, file=sys.stderr)\n"
        f"sys.exit(record(['sh', '-c', 'sleep 0.8; exit 6'], Path({str(out)!r}), (), 0.1, warn))"
    )
    done = subprocess.run(
        [PYTHON, "-c", code], env=machine.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 6
    assert done.stderr.startswith("the record ends here: it cannot be written")
    assert done.stderr.count("\n") == 1
    assert len(lines(out)) >= 2, "what is there is whole"
