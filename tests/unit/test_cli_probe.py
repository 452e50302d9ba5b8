"""The probe from the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from lib.cli import probe as command
from lib.errors import ProbeError
from lib.probe import nvml, place, worker
from lib.probe.result import CPU_ONLY, Interval, Measured, Probe, VerifyCost, from_json, to_json
from lib.probe.setup import Setup
from lib.probe.timing import Progress
from tests.unit.probe.conftest import need

ROOT = Path(__file__).resolve().parents[2]
PROBE = Probe(
    c=Interval(0.061, 0.058, 0.064),
    t_draft_ms=0.31,
    t_target_ms=5.08,
    setup=Measured(
        gpu="NVIDIA H100 80GB HBM3",
        target="llama-3.1-8b",
        draft="eagle3-llama-3.1-8b",
        dtype="bfloat16",
        batch=4,
        context=512,
        gamma=1,
    ),
    taken_at=datetime(2026, 1, 2, tzinfo=UTC),
    v=(VerifyCost(2, 1.02, 1.01, 1.03), VerifyCost(64, 1.31, 1.29, 1.34)),
    critical_tokens=141.0,
    critical_low=128.0,
    spread_draft=0.01,
    spread_target=0.02,
    energy_draft_j=0.2,
    draft_bytes=0.9e9,
    target_bytes=15e9,
    warnings=("the GPU was busy before the start",),
)


class Ended:
    """A measurement that is over."""

    done = True

    def __init__(self, probe: Probe | None = PROBE) -> None:
        self.probe = probe
        self.left = [Progress(n, 4, what) for n, what in enumerate(("loading", "round 1", "done"))]

    def events(self) -> list[Progress]:
        left, self.left = self.left, []
        return left

    def result(self) -> Probe:
        if self.probe is None:
            raise ProbeError("the measurement's process was killed (out of memory?)")
        return self.probe


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Setup]:
    """The setups that would be measured; torch and a GPU are taken to be here."""
    setups: list[Setup] = []

    def start(setup: Setup) -> Ended:
        setups.append(setup)
        return Ended()

    monkeypatch.setattr(place, "has_torch", lambda: True)
    monkeypatch.setattr(place, "require_gpu", lambda: None)
    monkeypatch.setattr(worker, "start", start)
    return setups


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["probe", *args])


PAIR = ("--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b")


def test_json_is_the_document_and_progress_is_apart(asked: list[Setup]) -> None:
    found = run(*PAIR, "--context", "2048", "--gamma", "7", "--batch", "4", "--json")
    assert found.exit_code == 0
    assert found.stdout.encode() == to_json(PROBE) + b"\n"
    assert from_json(found.stdout) == PROBE
    assert found.stderr.splitlines() == ["  0%  loading", " 25%  round 1", " 50%  done"]
    (setup,) = asked
    assert (setup.target, setup.draft) == (PAIR[1], PAIR[3])
    assert (setup.context, setup.gamma, setup.batch) == (2048, 7, 4)
    assert (setup.device, setup.dtype, setup.samples) == ("cuda", "bfloat16", 50)


def test_for_a_person(asked: list[Setup]) -> None:
    said = run(*PAIR).stdout
    assert "c: 0.061 (0.058 to 0.064)" in said
    assert "T_D: 0.31 ms a step of the batch, IQR 1.0%, 0.2 J of the board" in said
    assert "T_T: 5.08 ms" in said
    assert "  64: 1.31 (1.29 to 1.34)" in said
    assert "at 141 verified tokens (128 to above 256): where to look in the load sweep" in said
    assert "bytes read, draft over target: 0.06" in said
    assert "  the GPU was busy before the start" in said
    assert f"id: {PROBE.id}" in said


def test_a_critical_batch_that_was_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = replace(PROBE, critical_tokens=None, critical_low=None)
    monkeypatch.setattr(place, "has_torch", lambda: True)
    monkeypatch.setattr(worker, "start", lambda setup: Ended(flat))
    said = run(*PAIR, "--device", "cuda").stdout
    assert "v stays within 10 % of 1 up to 256 verified tokens, the most timed" in said


def test_the_cpu_has_defaults_of_its_own(asked: list[Setup]) -> None:
    run("--device", "cpu")
    run("--device", "cpu", "--draft", "tiny-eagle3", "--dtype", "bfloat16")
    assert [(s.target, s.draft, s.dtype) for s in asked] == [
        ("tiny-target", "tiny-draft", "float32"),
        ("tiny-target", "tiny-eagle3", "bfloat16"),
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--target", "llama-3.1-8b"), "name --target and --draft: rows of --list"),
        ((*PAIR, "--gamma", "65"), "gamma = 65: allowed is a whole number, 1 to 64"),
        ((*PAIR, "--context", "0"), "context = 0"),
        ((*PAIR, "--samples", "49"), "samples = 49: allowed is a whole number, 50 to"),
        ((*PAIR, "--device", "gpu"), "device = gpu: allowed is cpu, cuda or cuda:N"),
        ((*PAIR, "--dtype", "int8"), "--dtype"),
        ((*PAIR, "--sampling", "greedy"), "--sampling"),
    ],
)
def test_wrong_use_is_status_2(asked: list[Setup], args: Sequence[str], says: str) -> None:
    found = run(*args)
    assert found.exit_code == 2
    assert says in found.stderr
    assert found.stdout == ""
    assert asked == []


def test_a_failed_measurement_is_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "has_torch", lambda: True)
    monkeypatch.setattr(worker, "start", lambda setup: Ended(None))
    found = run(*PAIR, "--device", "cuda", "--json")
    assert found.exit_code == 1
    assert found.stdout == ""
    assert found.stderr.splitlines()[-1].startswith("error: the measurement's process was killed")


def test_without_torch_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "has_torch", lambda: False)
    found = run("--device", "cpu", "--json")
    assert found.exit_code == 1
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert "torch" in line
    assert "requirements-probe.txt" in line


def test_without_a_gpu_one_line_names_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind:
        class cuda:  # noqa: N801
            @staticmethod
            def is_available() -> bool:
                return False

    monkeypatch.setattr(place, "has_torch", lambda: True)
    monkeypatch.setattr(place, "load_torch", lambda: Blind)
    monkeypatch.setattr(nvml, "devices", lambda: nvml.Devices(problem="No GPU is visible here."))
    for args in ((), PAIR):
        found = run(*args)
        assert found.exit_code == 1
        (line,) = found.stderr.splitlines()
        assert line.startswith("error: No GPU is visible here. --device cpu checks the method")


def test_the_models_are_listed() -> None:
    found = run("--list", "--json")
    assert found.exit_code == 0
    rows = {row["name"]: row for row in json.loads(found.stdout)["models"]}
    assert rows["eagle3-llama-3.1-8b"]["for"] == "llama-3.1-8b"
    assert rows["llama-3.1-8b"]["parameters"] == pytest.approx(8.03e9, rel=0.001)
    assert rows["llama-3.1-8b"]["source"]
    assert "tiny-target" in run("--list").stdout


def test_a_person_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Ended):
        def events(self) -> list[Progress]:
            raise KeyboardInterrupt

        def cancel(self) -> None:
            self.probe = None

        def result(self) -> Any:
            assert self.probe is None
            raise ProbeError(worker.CANCELLED)

    with pytest.raises(ProbeError, match="cancelled"):
        command._followed(Interrupted())  # type: ignore[arg-type]


ON_CPU = ("--device", "cpu", "--gamma", "1", "--context", "64", "--json")


def test_on_the_cpu_of_this_machine(tmp_path: Path) -> None:
    need("torch")
    done = subprocess.run(
        [sys.executable, "-m", "lib", "probe", *ON_CPU],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = from_json(done.stdout)
    assert CPU_ONLY in found.warnings
    assert (found.setup.target, found.setup.draft) == ("tiny-target", "tiny-draft")
    assert 0 < found.c.value < 1
    assert len(found.samples_draft_ms) == 50
    assert "loading the target" in done.stderr
    assert "round 1 of 50" in done.stderr
