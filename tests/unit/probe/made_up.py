"""A device, its torch and models that are made up, on one clock that only work moves."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from lib.probe.architecture import Architecture
from lib.probe.timing import Launch

LAUNCH_MS = 0.03


class Queue:
    """Work that runs behind its caller: a launch returns after 0.03 ms, whatever it takes.

    `drift` scales the work by the time at which it begins.
    """

    def __init__(self, drift: Callable[[float], float] = lambda _: 1.0) -> None:
        self.host_ms = 0.0
        self.busy_until_ms = 0.0
        self.marks: list[float] = []
        self.flushes = 0
        self.launched: list[str] = []
        self.drift = drift

    def work(self, name: str, takes_ms: float) -> Callable[[], None]:
        def launch() -> None:
            self.host_ms += LAUNCH_MS
            begins = max(self.busy_until_ms, self.host_ms)
            self.busy_until_ms = begins + takes_ms * self.drift(begins)
            self.launched.append(name)

        return launch

    def mark(self) -> None:
        self.marks.append(max(self.busy_until_ms, self.host_ms))

    def wait(self) -> Sequence[float]:
        self.host_ms = max(self.host_ms, self.busy_until_ms)
        marks, self.marks = self.marks, []
        return [mark - marks[0] for mark in marks]

    def flush(self) -> None:
        self.flushes += 1
        self.work("flush", 0.2)()

    def now_s(self) -> float:
        return self.host_ms / 1000


class Event:
    """A CUDA event on a made-up queue: has no time until the queue was waited for."""

    def __init__(self, torch: "Torch") -> None:
        self.torch = torch
        self.at_ms = -1.0

    def record(self) -> None:
        queue = self.torch.queue
        self.at_ms = max(queue.busy_until_ms, queue.host_ms)

    def elapsed_time(self, end: "Event") -> float:
        if end.at_ms > self.torch.queue.host_ms:
            raise RuntimeError("CUDA error: device not ready")
        return end.at_ms - self.at_ms


class Torch:
    """What the probe asks of torch on a machine with the GPUs of `properties`."""

    __version__ = "2.13.0"
    int8 = "int8"

    def __init__(self, *properties: Any, built_for: str | None = "13.0") -> None:
        self.queue = Queue()
        self.version = SimpleNamespace(cuda=built_for)
        self.current = 0
        self.buffers: list[int] = []
        self.cuda = SimpleNamespace(
            is_available=lambda: bool(properties),
            device_count=lambda: len(properties),
            set_device=lambda index: setattr(self, "current", index),
            current_device=lambda: self.current,
            get_device_properties=lambda index: properties[index],
            synchronize=self.queue.wait,
            Event=lambda enable_timing: Event(self),
        )

    def empty(self, size: int, dtype: str, device: str) -> Any:
        self.buffers.append(size)
        return SimpleNamespace(zero_=self.queue.flush)


def gpu(**changes: Any) -> Any:
    """Properties as torch gives them."""
    values = {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "7f3a0000-0000-0000-0000-000000000001",
        "major": 9,
        "minor": 0,
        "L2_cache_size": 50 * 2**20,
        "pci_domain_id": 0,
        "pci_bus_id": 59,
        "pci_device_id": 0,
    }
    return SimpleNamespace(**{**values, **changes})


class Model:
    """A model whose pass over n tokens takes `ms(n)` on a queue."""

    def __init__(
        self,
        queue: Queue,
        ms: Callable[[int], float],
        architecture: Architecture | None = None,
        graphs: bool = True,
    ) -> None:
        self.queue = queue
        self.ms = ms
        self.architecture = architecture
        self.graphs = graphs
        self.warning = "" if graphs else "its passes could not be captured"
        self.released = False

    def step(self, tokens: int) -> Launch:
        return self.queue.work(f"pass over {tokens}", self.ms(tokens))

    def release(self) -> None:
        self.released = True
