"""The GPUs of this machine through NVML: who they are, and what they do right now.

Nothing here raises for what NVML cannot tell: every reading is optional by itself, and what is
missing is said in a sentence. A failure is not remembered, so a driver that comes later is found.
"""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.probe import nvml_text
from lib.probe.nvml_calls import (
    Asked,
    Unreadable,
    call,
    call_or_none,
    find,
    initialise,
    mig_enabled,
    pci_bus_id,
    place_of,
    plain_uuid,
    shutdown,
    slices,
)
from lib.probe.result import Conditions

__all__ = [
    "BUSY",
    "Devices",
    "Gpu",
    "Memory",
    "Process",
    "Reading",
    "conditions",
    "devices",
    "is_busy",
    "match",
    "reading",
    "shutdown",
]

BUSY = 0.10  # the utilisation before the start above which a GPU is another's
_GIB = 2**30
_GRAPHICS, _SM, _MEMORY = 0, 1, 2  # NVML's clock types
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Memory:
    """GiB; None is not known. `unified` memory is the machine's own, shared with the CPU."""

    total_gib: float | None = None
    used_gib: float | None = None
    free_gib: float | None = None
    unified: bool = False


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a MIG slice of one. None is not known; empty text likewise.

    `pci_bus_id` is the board's, as NVML writes it. `cuda` is the highest version that the driver
    serves. `mig_enabled` says that the board is split, `is_slice` that this is one of the slices.
    """

    uuid: str
    name: str
    pci_bus_id: str = ""
    driver: str = ""
    cuda: str = ""
    compute_capability: str = ""
    memory: Memory = Memory()
    mig_enabled: bool | None = None
    is_slice: bool = False
    max_sm_clock_mhz: float | None = None
    max_mem_clock_mhz: float | None = None
    power_limit_w: float | None = None

    @property
    def mig(self) -> bool:
        """Whether work here runs on a part of the board."""
        return self.is_slice or bool(self.mig_enabled)


@dataclass(frozen=True)
class Devices:
    """What NVML shows on `host`; `problem` says why something is not visible, and the way out."""

    found: tuple[Gpu, ...] = ()
    problem: str = ""
    host: str = ""


@dataclass(frozen=True)
class Process:
    """A process that computes on a GPU; its memory is None where the system hides it."""

    pid: int
    memory_gib: float | None = None


@dataclass(frozen=True)
class Reading:
    """Live values of one GPU; None is not readable here.

    `utilization` is the fraction of time in which any kernel ran: near 1 at batch 1 already, so it
    says nothing of head-room. `energy_j` counts since the driver was loaded. `clock_events` names
    what holds the clocks down, `idle` included. `problems` are sentences about what was refused.
    """

    memory: Memory = Memory()
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    graphics_clock_mhz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_j: float | None = None
    temperature_c: float | None = None
    utilization: float | None = None
    clock_events: tuple[str, ...] = ()
    processes: tuple[Process, ...] | None = None
    problems: tuple[str, ...] = ()


def devices() -> Devices:
    """The GPUs in NVML's order, each board followed by its MIG slices. Never raises."""
    host = socket.gethostname()
    try:
        initialise()
        count = call("DeviceGetCount")
    except Unreadable as error:
        return Devices((), str(error), host)
    found: list[Gpu] = []
    problems = [] if count else [nvml_text.NONE_FOUND]
    for index in range(count):
        try:
            board = call("DeviceGetHandleByIndex", index)
        except Unreadable as error:
            problems.append(f"GPU {index}: {error}")
            continue
        one = _gpu(board)
        if one.uuid or one.pci_bus_id:
            found.append(one)
        else:
            problems.append(f"GPU {index}: it names neither its UUID nor its PCI id.")
        found += [_gpu(part, one) for part in slices(board)]
    return Devices(tuple(found), " ".join(problems), host)


def reading(uuid: str) -> Reading:
    """What the GPU of this UUID (or PCI id) does now. Never raises; see `problems`."""
    try:
        initialise()
        handle = find(uuid)
    except Unreadable as error:
        return Reading(problems=(str(error),))
    if handle is None:
        return Reading(problems=(nvml_text.sentence(nvml_text.GPU_NOT_FOUND),))
    ask = Asked(handle)
    used = ask("utilisation", "GetUtilizationRates")
    running = ask("processes", "GetComputeRunningProcesses")
    return Reading(
        _memory(ask),
        sm_clock_mhz=ask("SM clock", "GetClockInfo", _SM),
        mem_clock_mhz=ask("memory clock", "GetClockInfo", _MEMORY),
        graphics_clock_mhz=ask("graphics clock", "GetClockInfo", _GRAPHICS),
        power_w=_thousandth(ask("power", "GetPowerUsage")),
        power_limit_w=_thousandth(ask("power limit", "GetEnforcedPowerLimit")),
        energy_j=_thousandth(ask("energy", "GetTotalEnergyConsumption")),
        temperature_c=ask("temperature", "GetTemperature", 0),
        utilization=None if used is None else used.gpu / 100,
        clock_events=_clock_events(ask),
        processes=None if running is None else tuple(map(_process, running)),
        problems=_problems(ask),
    )


def conditions(uuid: str, when: str) -> Conditions:
    """The GPU's clocks, load and neighbours at one moment of a probe: before, during or after.

    `utilization` is a fraction of time. Never raises: what cannot be read is None.
    """
    now = reading(uuid)
    return Conditions(
        when,
        sm_clock_mhz=now.sm_clock_mhz,
        mem_clock_mhz=now.mem_clock_mhz,
        power_w=now.power_w,
        temperature_c=now.temperature_c,
        utilization=now.utilization,
        throttle=tuple(e for e in now.clock_events if e != nvml_text.IDLE),
        others=_others(now.processes, when),
    )


def is_busy(before: Conditions) -> bool:
    """Whether others use the GPU: above 10 % utilisation, or processes that are not this one."""
    return (before.utilization or 0) > BUSY or bool(before.others)


def match(uuid: str | None, pci_bus_id: str | None = None) -> Gpu | None:
    """The GPU that CUDA calls so, by UUID (with or without its prefix), else by PCI id.

    Never by index: NVML counts all GPUs in PCI order, CUDA the visible ones in an order of its own.
    """
    found = devices().found
    if uuid:
        return next((g for g in found if plain_uuid(g.uuid) == plain_uuid(uuid)), None)
    place = place_of(pci_bus_id or "")
    return next((g for g in found if place and place_of(g.pci_bus_id) == place), None)


def _gpu(handle: Any, board: Gpu | None = None) -> Gpu:
    """Who a handle is; what a slice does not say of itself is its board's."""
    ask = Asked(handle)
    capability = ask("compute capability", "GetCudaComputeCapability")
    name = ask("name", "GetName") or (f"{board.name} slice" if board else "NVIDIA GPU")
    version = call_or_none("SystemGetCudaDriverVersion_v2")
    return Gpu(
        uuid=ask("UUID", "GetUUID") or "",
        name=name,
        pci_bus_id=board.pci_bus_id if board else pci_bus_id(handle),
        driver=call_or_none("SystemGetDriverVersion") or "",
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else "",
        compute_capability=".".join(map(str, capability))
        if capability
        else (board.compute_capability if board else ""),
        memory=_memory(ask),
        mig_enabled=board.mig_enabled if board else mig_enabled(handle),
        is_slice=board is not None,
        max_sm_clock_mhz=ask("clock", "GetMaxClockInfo", _SM),
        max_mem_clock_mhz=ask("clock", "GetMaxClockInfo", _MEMORY),
        power_limit_w=_thousandth(ask("power limit", "GetEnforcedPowerLimit")),
    )


def _memory(ask: Asked) -> Memory:
    """A GPU without memory of its own, such as GB10, does not support the question."""
    info = ask("memory", "GetMemoryInfo")
    if ask.refused.get("memory") == nvml_text.NOT_SUPPORTED:
        return _of_the_machine()
    if info is None or not info.total:
        return Memory()
    return Memory(info.total / _GIB, info.used / _GIB, info.free / _GIB)


def _of_the_machine() -> Memory:
    kib: dict[str, float] = {}
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text().splitlines():
            key, _, rest = line.partition(":")
            if key in ("MemTotal", "MemAvailable"):
                kib[key] = float(rest.split()[0])
    if len(kib) < 2:
        return Memory(unified=True)
    total, free = kib["MemTotal"] / 2**20, kib["MemAvailable"] / 2**20
    return Memory(total, total - free, free, unified=True)


def _clock_events(ask: Asked) -> tuple[str, ...]:
    """Names of the reasons; a driver before CUDA 12.2 knows the call by its old name only."""
    mask = ask("clock events", "GetCurrentClocksEventReasons")
    if ask.refused.get("clock events") == nvml_text.FUNCTION_NOT_FOUND:
        mask = ask("clock events", "GetCurrentClocksThrottleReasons")
    return nvml_text.reasons(mask or 0)


def _problems(ask: Asked) -> tuple[str, ...]:
    """A sentence a cause, with what it keeps from being read."""
    by_code: dict[int, list[str]] = {}
    for what, code in ask.refused.items():
        if code != nvml_text.NOT_SUPPORTED:
            by_code.setdefault(code, []).append(what)
    split = nvml_text.NO_PERMISSION in by_code and mig_enabled(ask.handle)
    said = {code: nvml_text.sentence(code) for code in by_code}
    if split:
        said[nvml_text.NO_PERMISSION] = nvml_text.MIG_BOARD
    return tuple(f"{', '.join(names)}: {said[code]}" for code, names in by_code.items())


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000


def _process(found: Any) -> Process:
    memory = found.usedGpuMemory
    return Process(int(found.pid), None if memory is None else memory / _GIB)


def _others(processes: tuple[Process, ...] | None, when: str) -> int | None:
    """How many of the processes are not this one.

    In a container NVML may number them as the host does: this one cannot be told from others then,
    except before it has begun to use the GPU.
    """
    if processes is None:
        return None
    pids, own = {p.pid for p in processes}, os.getpid()
    unseen = pids and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    return None if unseen and when != "before" else len(pids - {own})
