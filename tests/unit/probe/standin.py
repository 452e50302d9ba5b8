"""A machine with NVIDIA GPUs, played by a small shared library that the real binding loads."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "tests" / "fixtures" / "nvml" / "standin.c"
LIBRARY = "libnvidia-ml.so.1"

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is needed to build the stand-in for NVML"
)

H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-aaaa-bbbb-cccc-000000000001",
    "pci": "00000000:4B:00.0",
    "capability": "9.0",
    "total": 85520809984,
    "used": 2 * 2**30,
    "free": 85520809984 - 2 * 2**30,
    "sm": 1980,
    "mem": 2619,
    "graphics": 1980,
    "max_sm": 1980,
    "max_mem": 2619,
    "power": 412500,
    "limit": 700000,
    "energy": 123456789,
    "temperature": 51,
    "gpu_util": 4,
    "mem_util": 2,
    "events": 0,
    "mig": 0,
    "pids": 0,
}
L4 = {
    "name": "NVIDIA L4",
    "uuid": "GPU-22222222-aaaa-bbbb-cccc-000000000002",
    "pci": "00000000:3B:00.0",
    "capability": "8.9",
    "total": 24152899584,
    "used": 2**30,
    "free": 24152899584 - 2**30,
    "power": 36000,
    "gpu_util": 0,
}


@cache
def _built(*flags: str) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="nvml-standin-")
    out = Path(folder.name) / LIBRARY
    options = [f"-D{flag}" for flag in flags]
    subprocess.run(["gcc", "-shared", "-fPIC", *options, "-o", out, SOURCE], check=True)
    return folder


class Machine:
    """A host whose NVML answers what `said` holds; `flags` leave out what old drivers lack."""

    def __init__(self, folder: Path, *flags: str, library: bool = True) -> None:
        self.libraries = folder / "lib"
        self.libraries.mkdir()
        self.built = Path(_built(*flags).name) / LIBRARY
        self.answers = folder / "answers.txt"
        self.said: dict[str, object] = {"driver": "580.95.05", "cuda": 13000}
        if library:
            self.install()

    def install(self) -> None:
        (self.libraries / LIBRARY).symlink_to(self.built)

    def gpus(self, *gpus: dict[str, Any], **said: object) -> "Machine":
        self.said["count"] = len(gpus)
        for index, gpu in enumerate(gpus):
            self.said |= {f"gpu{index}.{key}": value for key, value in gpu.items()}
        return self.set(said)

    def set(self, said: dict[str, Any]) -> "Machine":
        self.said |= said
        self.answers.write_text("".join(f"{k} {v}\n" for k, v in self.said.items()))
        return self

    @property
    def env(self) -> dict[str, str]:
        if not self.answers.exists():
            self.set({})
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.libraries),
            "NVML_STANDIN": str(self.answers),
            "PYTHONPATH": str(ROOT),
        }

    def run(self, code: str) -> Any:
        """What `code` leaves in `found`, through JSON, of a process that loads this NVML."""
        script = (
            f"import json\nfrom dataclasses import asdict\nfrom lib.probe import nvml\n{code}\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script + "print(json.dumps(found))"],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def devices(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run("found = asdict(nvml.devices())")
        return found

    def reading(self, uuid: object = H100["uuid"]) -> dict[str, Any]:
        found: dict[str, Any] = self.run(f"found = asdict(nvml.reading({uuid!r}))")
        return found
