"""The decoder: steps that repeat, memory refused with numbers, devices that run no kernel."""

import builtins
import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from lib.errors import InputError, ProbeError
from lib.probe import architecture, decoder
from lib.probe.architecture import get
from tests.unit.probe.conftest import need

torch = need("torch")

from lib.probe import sampling  # noqa: E402

TINY = ("tiny-target", "tiny-draft", "tiny-moe", "tiny-eagle3")


def load(name: str, **changed: Any) -> decoder.Decoder:
    settings: dict[str, Any] = {"dtype": "float32", "device": "cpu", "batch": 1, "context": 32}
    return decoder.load(name, **{**settings, "most_tokens": 6, **changed})


@pytest.mark.parametrize("name", TINY)
def test_a_step_does_the_same_work_at_each_call(name: str) -> None:
    model = load(name, batch=3)
    assert model.architecture == get(name)
    assert not model.graphs
    assert model.warning == ""
    for tokens in (1, 6, 1):
        step = model.step(tokens)
        step()
        first = model.sampled
        step()
        assert first is not None
        assert first is not model.sampled
        assert torch.equal(first, model.sampled)
        assert first.shape == (3 * tokens,)
        assert 0 <= first.min() <= first.max() < get(name).head_vocab


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", TINY)
def test_half_precision_runs_on_the_cpu_too(name: str, dtype: str) -> None:
    model = load(name, dtype=dtype)
    model.step(2)()
    assert model.sampled is not None
    logits = model._model.logits(2)  # type: ignore[union-attr]
    assert logits.dtype == getattr(torch, dtype)
    assert logits.isfinite().all()


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize(("batch", "context"), [(1, 16), (4, 2000)])
def test_memory_is_known_before(name: str, batch: int, context: int) -> None:
    expected = decoder.memory_bytes(name, "float32", batch, context, 6)
    model: Any = load(name, batch=batch, context=context)._model
    held = [*model.parameters(), model.ids, model.states, model.cos, model.sin, model.logits(6)]
    held += [tensor for layer in model.layers for tensor in layer.attention.cache.tensors]
    assert sum(t.numel() * t.element_size() for t in held) == pytest.approx(expected, rel=0.1)


def test_llamas_memory() -> None:
    # 8.03 billion weights, 2 bytes each; 128 KiB of KV a token; six rows of logits.
    found = decoder.memory_bytes("llama-3.1-8b", "bfloat16", 8, 4096, 6)
    assert found == pytest.approx(2 * 8.03e9 + 8 * (4102 * 131072 + 6 * 2 * 128256), rel=0.001)


def test_what_does_not_fit_is_refused_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "free_bytes", lambda _: 3 * 2**30)
    with pytest.raises(ProbeError) as refused:
        load("llama-3.1-8b", dtype="bfloat16", context=8192)
    assert str(refused.value) == (
        "llama-3.1-8b: needs 16.0 GiB in bfloat16 at batch 1 and context 8,192, 3.0 GiB are free "
        "on cpu: take a smaller model, batch or context"
    )


def test_free_memory_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(decoder, "MEMORY", meminfo)
    assert decoder.free_bytes("cpu") is None
    meminfo.write_text("MemTotal:  24000000 kB\nMemAvailable:   1000000 kB\n")
    assert decoder.free_bytes("cpu") == 1_024_000_000
    meminfo.write_text("MemTotal:  24000000 kB\n")
    assert decoder.free_bytes("cpu") is None
    load("tiny-draft").step(1)()


def test_more_tokens_than_there_is_room_for() -> None:
    model = load("tiny-draft")
    for tokens in (0, 7):
        with pytest.raises(ProbeError, match=rf"{tokens} tokens a pass; 1 to 6 fit"):
            model.step(tokens)


def test_release_gives_the_memory_back() -> None:
    model = load("tiny-draft")
    step = model.step(1)
    step()
    weights = weakref.ref(model._model.embedding)  # type: ignore[union-attr]
    cached = weakref.ref(model._model.layers[0].attention.cache.tensors[0])  # type: ignore[union-attr]
    model.release()
    gc.collect()
    assert weights() is None
    assert cached() is None
    step()
    with pytest.raises(ProbeError, match="tiny-draft: released; load it again"):
        model.step(1)


def test_a_name_that_is_no_model() -> None:
    with pytest.raises(InputError, match="close: tiny-target"):
        load("tiny-targe")


def test_the_nucleus_holds_every_draw() -> None:
    torch.manual_seed(1)
    chances = torch.tensor([0.5, 0.3, 0.1, 0.06, 0.03, 0.01])
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    logits = chances.log()[order].repeat(20_000, 1)
    counts = sampling.sample(logits, "top-p").bincount(minlength=6)
    # 0.5 + 0.3 + 0.1 + 0.06 is the first sum of at least 0.95; what is left is drawn in proportion.
    shares = counts[order.argsort()] / len(logits)
    torch.testing.assert_close(shares[:4], chances[:4] / 0.96, atol=0.012, rtol=0)
    assert shares[4:].sum() == 0
    assert torch.equal(sampling.sample(logits[:3], "argmax"), torch.tensor([1, 1, 1]))


def test_a_step_samples_as_asked() -> None:
    model = load("tiny-draft", sampling="top-p", batch=64)
    step = model.step(6)
    step()
    first = model.sampled
    step()
    assert first is not None
    assert first.shape == (384,)
    assert not torch.equal(first, model.sampled)


def test_without_torch_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def blocked(name: str, *args: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(ProbeError, match="torch is not installed: pip install -r requirements-p"):
        load("tiny-draft")
    with pytest.raises(ProbeError, match="torch is not installed"):
        decoder.memory_bytes("meta-llama/Llama-3.1-8B", "bfloat16", 1, 32, 6)
    # What a model needs is known all the same.
    assert (
        decoder.memory_bytes("tiny-draft", "float32", 1, 32, 6) > 4 * get("tiny-draft").parameters
    )


# Devices, with torch.cuda replaced: the order of calls is what is held here.


def test_no_cuda_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ProbeError, match="sees no CUDA device; --device cpu checks the method only"
    ):
        load("tiny-draft", device="cuda")


def test_no_such_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ProbeError, match="cuda:2: torch sees 2 CUDA devices, numbered from 0"):
        load("tiny-draft", device="cuda:2")


def test_a_gpu_that_the_build_has_no_kernels_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "CUDA error: no kernel image is available for execution on the device\nCompile with"
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (12, 0))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_80", "sm_90"])
    monkeypatch.setattr(torch, "ones", fails)
    monkeypatch.setattr(decoder, "memory_bytes", lambda *_: pytest.fail("went on"))
    with pytest.raises(ProbeError) as refused:
        load("tiny-draft", device="cuda")
    said = str(refused.value)
    assert "no kernel image is available for execution on the device" in said
    assert "compute capability 12.0" in said
    assert f"torch {torch.__version__} is built for sm_80, sm_90" in said
    assert "\n" not in said


class FakeGraph:
    """Stands for a captured pass: counts its replays."""

    def __init__(self) -> None:
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1


def on_cuda(monkeypatch: pytest.MonkeyPatch, captured: Any) -> decoder.Decoder:
    """A decoder that takes the CPU's model for a CUDA one."""
    model = load("tiny-draft")._model
    assert model is not None
    monkeypatch.setattr(decoder.Decoder, "_captured", captured)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return decoder.Decoder(model, name="tiny-draft", device="cuda", most_tokens=6)


def test_a_captured_pass_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: dict[int, FakeGraph] = {}

    def captured(_: Any, tokens: int) -> FakeGraph:
        assert tokens not in graphs
        graphs[tokens] = FakeGraph()
        return graphs[tokens]

    model = on_cuda(monkeypatch, captured)
    for tokens in (1, 6, 1):
        model.step(tokens)()
    assert {tokens: graph.replays for tokens, graph in graphs.items()} == {1: 2, 6: 1}
    assert model.graphs
    assert model.sampled is None
    model.release()


def test_where_capture_fails_passes_are_launched_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def captured(_: Any, tokens: int) -> FakeGraph:
        if tokens == 1:
            return FakeGraph()
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore")

    model = on_cuda(monkeypatch, captured)
    first = model.step(1)
    model.step(6)()
    assert not model.graphs
    assert "tiny-draft: its passes could not be captured as CUDA graphs" in model.warning
    assert "operation not permitted when stream is capturing)" in model.warning
    assert model.sampled is not None
    assert len(model.sampled) == 6
    # An earlier step is launched like that too: never one side of a ratio as a graph alone.
    first()
    assert len(model.sampled) == 1


def test_out_of_memory_is_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(_: Any, tokens: int) -> FakeGraph:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")

    model = on_cuda(monkeypatch, captured)
    with pytest.raises(ProbeError, match="a pass failed: CUDA out of memory"):
        model.step(6)


def test_every_row_says_what_it_needs() -> None:
    needs = {n: decoder.memory_bytes(n, "bfloat16", 1, 512, 6) for n in architecture.names()}
    assert all(bytes_ > 2 * get(name).parameters for name, bytes_ in needs.items())
    assert needs["deepseek-v3"] > 1.3e12


def test_a_pass_is_warmed_up_on_its_own_stream_before_it_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    class Stream:
        def __init__(self, name: str = "own") -> None:
            self.name = name

        def wait_stream(self, other: "Stream") -> None:
            events.append(f"{self.name} waits for {other.name}")

    class Graph(FakeGraph):
        def pool(self) -> str:
            return "pool of the first"

    @contextmanager
    def graph(_: Graph, pool: str | None = None) -> Iterator[None]:
        events.append(f"capture in {pool}")
        yield
        events.append("captured")

    @contextmanager
    def stream(on: Stream) -> Iterator[None]:
        events.append(f"on {on.name}")
        yield

    fakes = {
        "Stream": Stream,
        "CUDAGraph": Graph,
        "graph": graph,
        "stream": stream,
        "current_stream": lambda: Stream("current"),
        "device": lambda _: nullcontext(),
        "empty_cache": lambda: None,
    }
    for name, fake in fakes.items():
        assert hasattr(torch.cuda, name)
        monkeypatch.setattr(torch.cuda, name, fake)
    network: Any = load("tiny-draft")._model
    logits = network.logits
    monkeypatch.setattr(network, "logits", lambda n: events.append(f"pass {n}") or logits(n))
    model = decoder.Decoder(network, name="tiny-draft", device="cuda", most_tokens=6)
    steps = [model.step(1), model.step(6)]
    assert model.graphs
    warm = ["own waits for current", "on own", "pass 1", "pass 1", "pass 1"]
    captured = ["current waits for own", "capture in None", "pass 1", "captured"]
    assert events[:9] == [*warm, *captured]
    assert events[-3:] == ["capture in pool of the first", "pass 6", "captured"]
    events.clear()
    for step in steps:
        step()
    assert events == []
    assert [g.replays for g in model._graphs.values()] == [1, 1]
