"""The two queues that steps are timed on: a CUDA device, and the CPU."""

import time
from collections.abc import Sequence
from typing import Any

_FLUSH_BYTES = 256 * 2**20


class CpuDevice:
    """Work is done when its call returns; the clock is the CPU time of this process.

    One thread works, so that this is what a step takes where nothing else runs: what neighbours on
    the machine do moves it little, and no thread's work is missed.
    """

    def __init__(self, torch: Any) -> None:
        torch.set_num_threads(1)
        self._marks_ns: list[int] = []

    def mark(self) -> None:
        """The time now: everything before has been done."""
        self._marks_ns.append(time.process_time_ns())

    def wait(self) -> Sequence[float]:
        """ms of each mark from the first."""
        marks, self._marks_ns = self._marks_ns, []
        return [(mark - marks[0]) / 1e6 for mark in marks]

    def flush(self) -> None:
        """Nothing: a CPU checks the method, and its caches are part of it."""


class CudaDevice:
    """The current CUDA device and stream; its clock is events on the GPU.

    The flush overwrites a buffer of twice the L2 cache and at least 256 MiB. It also keeps the GPU
    busy while the next step is being launched, so that the launch does not count.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        size = max(_FLUSH_BYTES, 2 * getattr(properties, "L2_cache_size", 0))
        self._buffer = torch.empty(size, dtype=torch.int8, device="cuda")
        self._events: list[Any] = []

    def mark(self) -> None:
        """Record an event."""
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def wait(self) -> Sequence[float]:
        """Synchronise; ms of each event from the first, by the GPU's clock."""
        self._torch.cuda.synchronize()
        events, self._events = self._events, []
        return [events[0].elapsed_time(event) for event in events]

    def flush(self) -> None:
        """Overwrite the L2 cache."""
        self._buffer.zero_()
