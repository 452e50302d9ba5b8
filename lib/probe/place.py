"""Where a measurement runs: the CPU, or a CUDA device and what NVML calls it."""

import importlib.util
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.errors import ProbeError
from lib.probe import nvml
from lib.probe.devices import CpuDevice, CudaDevice
from lib.probe.result import Conditions
from lib.probe.setup import Setup
from lib.probe.timing import Device

NO_TORCH = (
    "torch is not installed, and step times are measured with it: "
    "pip install -r requirements-probe.txt"
)
ON_CPU = "--device cpu checks the method here; its c does not transfer"


@dataclass(frozen=True)
class Place:
    """A device by the name that torch gives it, and the same one in NVML where it is found there.

    Never by index: NVML counts all GPUs in PCI order, CUDA the visible ones.
    """

    name: str
    key: str
    cuda: str = ""
    compute_capability: str = ""
    gpu: nvml.Gpu | None = None
    mig: bool = False

    def conditions(self, when: str) -> Conditions:
        """Clocks, load and neighbours; all None where NVML does not know the device."""
        return nvml.conditions(self._in_nvml, when) if self.gpu else Conditions(when)

    def energy_j(self) -> float | None:
        """The board's energy counter; None on a slice, whose board also works for others."""
        return nvml.reading(self._in_nvml).energy_j if self.gpu and not self.mig else None

    @property
    def _in_nvml(self) -> str:
        return (self.gpu.uuid or self.gpu.pci_bus_id) if self.gpu else ""


def has_torch() -> bool:
    """Whether torch is installed; does not import it."""
    return importlib.util.find_spec("torch") is not None


def load_torch() -> Any:
    """The module torch. Raises ProbeError."""
    if not has_torch():
        raise ProbeError(NO_TORCH)
    try:
        import torch
    except (ImportError, OSError) as error:
        first = (str(error).splitlines() or ["no reason given"])[0]
        raise ProbeError(
            f"torch is installed but does not load ({first[:200]}): "
            "pip install --force-reinstall -r requirements-probe.txt"
        ) from None
    return torch


def require_gpu() -> None:
    """Raises ProbeError where neither NVML nor torch shows a GPU."""
    found = nvml.devices()
    if not found.found and not load_torch().cuda.is_available():
        raise ProbeError(f"{found.problem} {ON_CPU}.")


def place_of(setup: Setup) -> Place:
    """The device that a setup names, made torch's current one. Raises ProbeError."""
    torch = load_torch()
    if setup.on_cpu:
        return Place(f"CPU {_cpu_name()}", "cpu")
    if not torch.cuda.is_available():
        built = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "has no CUDA"
        raise ProbeError(
            f"torch {torch.__version__} {built} and sees no GPU here: check nvidia-smi and "
            f"CUDA_VISIBLE_DEVICES, or install torch with CUDA; {ON_CPU}"
        )
    index = int(setup.device.partition(":")[2] or 0)
    count = torch.cuda.device_count()
    if index >= count:
        raise ProbeError(f"device = {setup.device}: torch sees {count}; the last is {count - 1}")
    torch.cuda.set_device(index)
    properties = torch.cuda.get_device_properties(index)
    uuid = str(getattr(properties, "uuid", ""))
    gpu = nvml.match(uuid, _pci_bus_id(properties))
    return Place(
        properties.name,
        uuid or f"cuda:{index}",
        cuda=torch.version.cuda or "",
        compute_capability=f"{properties.major}.{properties.minor}",
        gpu=gpu,
        mig=(gpu is not None and gpu.mig) or "MIG" in properties.name.split(),
    )


def device_of(setup: Setup) -> Device:
    """The queue to time on. CUDA takes room for its flush: 256 MiB or twice the L2 cache."""
    torch = load_torch()
    return CpuDevice(torch) if setup.on_cpu else CudaDevice(torch)


def _pci_bus_id(properties: Any) -> str | None:
    parts = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if None in parts:
        return None
    domain, bus, device = parts
    return f"{domain:08x}:{bus:02x}:{device:02x}.0"


def _cpu_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
