"""The model that a probe times: its passes, ready to launch, and what it needs of the device."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from lib.errors import ProbeError
from lib.probe import architecture
from lib.probe.architecture import Architecture
from lib.probe.setup import CPU

if TYPE_CHECKING:
    from torch import Tensor

GIB = 2**30
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
WARM_UP = 3
REQUIREMENTS = "pip install -r requirements-probe.txt"
MEMORY = Path("/proc/meminfo")
EAGER = (
    "{name}: its passes could not be captured as CUDA graphs ({reason}); launch overhead is part "
    "of its time"
)


class Model(Protocol):
    """What a decoder needs of a model: a pass that can be repeated, and nothing else."""

    def logits(self, tokens: int) -> "Tensor":
        """(requests · tokens, vocabulary) logits of a pass over `tokens` new tokens each."""
        ...


class Decoder:
    """Passes of one model over a filled KV cache.

    `architecture` is None for a checkpoint. `graphs` says whether passes are captured as CUDA
    graphs; where capture failed, `warning` says why. `sampled` holds the token ids of the newest
    pass.
    """

    def __init__(
        self,
        model: Model,
        *,
        name: str,
        device: str,
        most_tokens: int,
        sampling: str = "argmax",
        architecture: Architecture | None = None,
    ) -> None:
        self.name = name
        self.device = device
        self.most_tokens = most_tokens
        self.sampling = sampling
        self.architecture = architecture
        self.graphs = device != CPU
        self.warning = ""
        self.sampled: Tensor | None = None
        self._model: Model | None = model
        self._graphs: dict[int, Any] = {}

    def step(self, tokens: int) -> Callable[[], None]:
        """A pass over `tokens` new tokens of each request, sampling included, ready to launch.

        Each call launches it, without waiting for a GPU, and does the same work again. Raises
        ProbeError where the model has no room for that many tokens or the pass fails.
        """
        if self._model is None:
            raise ProbeError(f"{self.name}: released; load it again")
        if not 1 <= tokens <= self.most_tokens:
            raise ProbeError(f"{self.name}: {tokens} tokens a pass; 1 to {self.most_tokens} fit")
        try:
            self._prepare(tokens)
        except RuntimeError as error:
            raise ProbeError(f"{self.name}: a pass failed: {_first_line(error)}") from error
        return lambda: self._launch(tokens)

    def release(self) -> None:
        """Gives the memory back; steps handed out before do nothing any more."""
        self._model = None
        self.sampled = None
        self._graphs.clear()
        if self.device != CPU:
            _torch().cuda.empty_cache()

    def _prepare(self, tokens: int) -> None:
        if not self.graphs or tokens in self._graphs:
            return
        try:
            self._graphs[tokens] = self._captured(tokens)
        except _torch().OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.graphs = False
            self._graphs.clear()
            self.warning = EAGER.format(name=self.name, reason=_first_line(error))

    def _captured(self, tokens: int) -> Any:
        """A CUDA graph of the pass, warmed up on a stream of its own as capture asks."""
        torch = _torch()
        with torch.cuda.device(self.device):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):
                    self._pass(tokens)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            pool = next((g.pool() for g in self._graphs.values()), None)
            with torch.cuda.graph(graph, pool=pool):
                self._pass(tokens)
        return graph

    def _launch(self, tokens: int) -> None:
        if tokens in self._graphs:
            self._graphs[tokens].replay()
        else:
            self._pass(tokens)

    def _pass(self, tokens: int) -> None:
        from lib.probe.sampling import sample

        if self._model is None:
            return
        with _torch().inference_mode():
            self.sampled = sample(self._model.logits(tokens), self.sampling)


def load(
    name: str,
    *,
    dtype: str,
    device: str,
    batch: int,
    context: int,
    most_tokens: int,
    sampling: str = "argmax",
) -> Decoder:
    """A row of data/models.csv with random weights, or a checkpoint: a local folder or a hub id.

    The cache is filled to `context` tokens of each of `batch` requests, with room for
    `most_tokens` more. Raises ProbeError in one line where torch or transformers is missing, no
    kernel runs on the device, or it does not fit.
    """
    torch = _torch()
    preflight(device)
    if device == CPU:
        # Steps of milliseconds: threads that wait for one another would be most of the spread.
        torch.set_num_threads(1)
    needed = memory_bytes(name, dtype, batch, context, most_tokens)
    free = free_bytes(device)
    if free is not None and needed > free:
        raise ProbeError(
            f"{name}: needs {needed / GIB:.1f} GiB in {dtype} at batch {batch} and context "
            f"{context:,}, {free / GIB:.1f} GiB are free on {device}: take a smaller model, batch "
            "or context"
        )
    row = architecture.get(name) if name in architecture.names() else None
    model: Model
    try:
        if row is None:
            from lib.probe import checkpoint

            model = checkpoint.build(name, dtype, device, batch, context, most_tokens)
        else:
            from lib.probe import network

            model = network.build(row, dtype, device, batch, context, most_tokens)
    except torch.OutOfMemoryError:
        raise ProbeError(f"{name}: {device} ran out of memory while it was loaded") from None
    except RuntimeError as error:
        raise ProbeError(f"{name}: could not be loaded: {_first_line(error)}") from error
    return Decoder(
        model,
        name=name,
        device=device,
        most_tokens=most_tokens,
        sampling=sampling,
        architecture=row,
    )


def memory_bytes(name: str, dtype: str, batch: int, context: int, most_tokens: int) -> int:
    """Weights, KV cache and logits of a model, before it is loaded; no torch for a row of the CSV.

    Raises InputError for a name that is neither a row of data/models.csv nor a checkpoint, and
    ProbeError for a checkpoint that cannot be read.
    """
    if name not in architecture.names():
        _torch()
        from lib.probe import checkpoint

        return checkpoint.memory_bytes(name, dtype, batch, context, most_tokens)
    row = architecture.get(name)
    cached = sum(row.cached_tokens(i, context) + most_tokens for i in range(row.layers))
    states = batch * most_tokens * row.hidden
    logits = batch * most_tokens * row.head_vocab
    values = row.parameters + batch * cached * row.kv_values + states + logits
    return values * BYTES[dtype]


def free_bytes(device: str) -> int | None:
    """Memory free on a device; None where it cannot be read."""
    if device != CPU:
        return int(_torch().cuda.mem_get_info(device)[0])
    try:
        lines = MEMORY.read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return None


def preflight(device: str) -> None:
    """Launches one tiny kernel. Raises ProbeError where the device does not run it."""
    if device == CPU:
        return
    torch = _torch()
    if not torch.cuda.is_available():
        raise ProbeError(
            f"{device}: torch {torch.__version__} sees no CUDA device; --device cpu checks the "
            "method only"
        )
    index = int(device.partition(":")[2] or 0)
    count = torch.cuda.device_count()
    if index >= count:
        raise ProbeError(f"{device}: torch sees {count} CUDA devices, numbered from 0")
    try:
        torch.ones(8, device=device).add_(1)
        torch.cuda.synchronize(device)
    except RuntimeError as error:
        major, minor = torch.cuda.get_device_capability(index)
        built = ", ".join(torch.cuda.get_arch_list()) or "no GPU"
        raise ProbeError(
            f"{device}: a first kernel failed ({_first_line(error)}): the GPU has compute "
            f"capability {major}.{minor}, torch {torch.__version__} is built for {built}; install "
            "a build that covers it"
        ) from error


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError:
        raise ProbeError(f"torch is not installed: {REQUIREMENTS}") from None
    return torch


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
