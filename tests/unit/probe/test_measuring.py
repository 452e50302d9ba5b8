"""From a setup to a probe, with a made-up torch, made-up models and what NVML says typed in."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.errors import ProbeError
from lib.probe import architecture, measuring, nvml, place, result, timing
from lib.probe.devices import CudaDevice
from lib.probe.result import CPU_ONLY, Conditions, Probe
from lib.probe.setup import Setup
from lib.probe.timing import Hooks, Progress
from tests.unit.probe.made_up import Model, Torch, gpu

TARGET, DRAFT = "llama-3.1-8b", "eagle3-llama-3.1-8b"
UUID = "GPU-7f3a0000-0000-0000-0000-000000000001"
H100 = nvml.Gpu(UUID, "NVIDIA H100 80GB HBM3", "00000000:3B:00.0", driver="580.95", cuda="13.0")
CALM = Conditions("", sm_clock_mhz=1980, utilization=0.02, others=0)


class Bench:
    """One machine: its torch, what NVML knows, and what was loaded on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, torch: Torch) -> None:
        self.torch = torch
        self.gpu: nvml.Gpu | None = H100
        self.moments: dict[str, Conditions] = {}
        self.loads: list[tuple[str, dict[str, Any]]] = []
        self.models: list[Model] = []
        self.asked: list[tuple[str | None, str | None]] = []
        self.draft_ms: Callable[[int], float] = lambda n: 0.5
        self.target_ms: Callable[[int], float] = lambda n: 5.0 * max(1.0, n / 100)
        self.graphs = {TARGET: True, DRAFT: True}
        self.room = 1024
        for module in (measuring, place):
            monkeypatch.setattr(module, "load_torch", lambda: torch)
        monkeypatch.setattr(nvml, "match", self._match)
        monkeypatch.setattr(nvml, "conditions", lambda uuid, when: self._conditions(when))
        monkeypatch.setattr(
            nvml,
            "reading",
            lambda uuid: nvml.Reading(energy_j=0.4 * torch.queue.host_ms),
        )

        def on_its_clock(*args: Any, hooks: Hooks, **kwargs: Any) -> timing.Samples:
            hooks = Hooks(hooks.tell, hooks.midway, hooks.energy_j, torch.queue.now_s)
            return timed(*args, hooks=hooks, **(kwargs | {"deadline_s": 1e6}))

        timed = timing.measure
        monkeypatch.setattr(timing, "measure", on_its_clock)

    def _match(self, uuid: str | None, pci: str | None) -> nvml.Gpu | None:
        self.asked.append((uuid, pci))
        return self.gpu

    def _conditions(self, when: str) -> Conditions:
        return Conditions(**{**vars(self.moments.get(when, CALM)), "when": when})

    def load(self, name: str, **how: Any) -> Model:
        self.loads.append((name, how))
        if how["most_tokens"] > self.room:
            raise ProbeError("does not fit: needs 90.0 GiB, 79.1 free")
        known = architecture.get(name) if name in architecture.names() else None
        drafts = how["most_tokens"] == 1
        model = Model(
            self.torch.queue,
            self.draft_ms if drafts else self.target_ms,
            known,
            self.graphs.get(name, True),
        )
        self.models.append(model)
        return model

    def measure(self, **changes: Any) -> Probe:
        values = {"target": TARGET, "draft": DRAFT, "gamma": 3, **changes}
        return measuring.measure(Setup(**values), load=self.load)


@pytest.fixture(autouse=True)
def own_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch, Torch(gpu()))


def test_a_probe_and_what_it_holds_for(bench: Bench) -> None:
    found = bench.measure(batch=2, context=1024)
    assert found.c.value == pytest.approx(0.1)
    assert found.t_draft_ms == pytest.approx(0.5)
    assert found.t_target_ms == pytest.approx(5.0)
    assert [p.tokens for p in found.v] == [2, 3, 4, 8, 16, 32, 64, 91, 108, 128]
    at = found.v_at(3)
    assert at is not None
    assert at.value == pytest.approx(1.0)
    assert found.critical_tokens is not None
    assert 128 < found.critical_tokens < 256
    assert len(found.samples_draft_ms) == len(found.samples_target_ms) == 50
    assert found.energy_target_j == pytest.approx(2.0, rel=0.05)
    setup = found.setup
    assert (setup.gpu, setup.driver, setup.cuda) == ("NVIDIA H100 80GB HBM3", "580.95", "13.0")
    assert (setup.compute_capability, setup.graphs, setup.mig) == ("9.0", True, False)
    assert (setup.batch, setup.context, setup.gamma) == (2, 1024, 3)
    assert setup.versions["torch"] == "2.13.0"
    assert not found.busy
    assert found.warnings == ()
    assert [c.when for c in found.conditions] == ["before", "during", "after"]
    assert result.from_json(result.to_json(found)) == found
    assert all(model.released for model in bench.models)


def test_bytes_are_of_the_architectures(bench: Bench) -> None:
    found = bench.measure(context=2048)
    least = architecture.byte_ratio(architecture.get(TARGET), architecture.get(DRAFT), context=2048)
    assert found.byte_ratio == pytest.approx(least)
    found = bench.measure(dtype="float32", context=2048)
    assert found.byte_ratio == pytest.approx(least)
    assert bench.measure(target="someone/checkpoint").byte_ratio is None


def test_models_are_loaded_as_asked(bench: Bench) -> None:
    bench.measure(batch=4, context=256, dtype="float16", sampling="top-p")
    (draft, small), (target, how) = bench.loads
    assert (target, draft) == (TARGET, DRAFT)
    assert (how["most_tokens"], small["most_tokens"]) == (256, 1)
    for one in (how, small):
        assert (one["batch"], one["context"], one["dtype"]) == (4, 256, "float16")
        assert (one["device"], one["sampling"]) == ("cuda", "top-p")


def test_a_target_without_room_for_long_passes_takes_short_ones(bench: Bench) -> None:
    bench.room = 4
    assert [p.tokens for p in bench.measure().v] == [2, 3, 4]
    bench.room = 3
    with pytest.raises(ProbeError, match=r"needs 90.0 GiB"):
        bench.measure()


def test_the_gpu_is_found_by_uuid_or_pci_id(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Torch(gpu(name="NVIDIA L4", uuid="other", pci_bus_id=1), gpu())
    bench = Bench(monkeypatch, two)
    found = bench.measure(device="cuda:1")
    assert two.current == 1
    assert bench.asked == [("7f3a0000-0000-0000-0000-000000000001", "00000000:3b:00.0")]
    assert found.setup.gpu == "NVIDIA H100 80GB HBM3"


def test_without_a_match_the_name_is_torchs(bench: Bench) -> None:
    bench.gpu = None
    found = bench.measure()
    assert found.setup.gpu == "NVIDIA H100 80GB HBM3"
    assert found.setup.driver == ""
    assert found.energy_draft_j is None
    assert all(c.sm_clock_mhz is None for c in found.conditions)
    assert any("NVML does not show" in w for w in found.warnings)


def test_a_busy_gpu_is_marked(bench: Bench) -> None:
    bench.moments["before"] = Conditions("", utilization=0.26, others=1)
    found = bench.measure()
    assert found.busy
    assert any("26% utilisation, other processes: 1" in w for w in found.warnings)


def test_clocks_held_down_are_named(bench: Bench) -> None:
    bench.moments["during"] = Conditions("", throttle=("software power cap",))
    assert any("held down" in w and "power cap" in w for w in bench.measure().warnings)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_slice_does_not_transfer(monkeypatch: pytest.MonkeyPatch, by_name: bool) -> None:
    name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    bench = Bench(monkeypatch, Torch(gpu(name=name if by_name else "NVIDIA H100")))
    bench.gpu = None if by_name else nvml.Gpu("MIG-1", "slice", is_slice=True)
    found = bench.measure()
    assert found.setup.mig
    assert found.energy_target_j is None
    assert any("does not transfer to a full GPU nor to its $/h" in w for w in found.warnings)


def test_c_below_the_bytes_is_impossible(bench: Bench) -> None:
    bench.draft_ms = lambda n: 0.05
    found = bench.measure()
    assert found.byte_ratio is not None
    assert found.c.value < found.byte_ratio
    assert any(measuring.IMPOSSIBLE in w for w in found.warnings)


def test_graphs_missing_on_one_side(bench: Bench) -> None:
    bench.graphs[DRAFT] = False
    found = bench.measure()
    assert not found.setup.graphs
    assert found.warnings == (
        "its passes could not be captured",
        "no CUDA graph of the draft alone: c weighs launches, not steps",
    )


def test_a_head_of_another_model(bench: Bench) -> None:
    found = bench.measure(draft="eagle3-qwen3-8b")
    assert "eagle3-qwen3-8b is the head of qwen3-8b, not of llama-3.1-8b" in found.warnings
    with pytest.raises(ProbeError, match="drafter's head: name the model"):
        bench.measure(target=DRAFT)


def test_times_that_spread_are_unstable(bench: Bench) -> None:
    bench.torch.queue.drift = lambda at_ms: 1.2 if int(at_ms / 100) % 2 else 1.0
    found = bench.measure()
    assert found.unstable
    assert any(w.startswith("unstable") for w in found.warnings)


def test_a_local_checkpoint_goes_by_its_last_part(bench: Bench, tmp_path: Any) -> None:
    folder = tmp_path / "Llama-3.1-8B-Instruct"
    folder.mkdir()
    assert bench.measure(target=str(folder)).setup.target == "Llama-3.1-8B-Instruct"


def test_the_cpu_checks_the_method_only(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch()
    bench = Bench(monkeypatch, torch)
    monkeypatch.setattr(measuring, "device_of", lambda setup: torch.queue)
    found = bench.measure(device="cpu", dtype="float32")
    assert found.warnings == (CPU_ONLY,)
    assert found.setup.gpu.startswith("CPU ")
    assert found.conditions == ()


def test_progress_begins_with_loading(bench: Bench) -> None:
    told: list[Progress] = []
    measuring.measure(Setup(target=TARGET, draft=DRAFT, gamma=1), told.append, bench.load)
    assert [p.what for p in told[:3]] == ["loading the draft", "loading the target", "warming up"]
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].of


@pytest.mark.parametrize(
    ("torch", "device", "says"),
    [
        (Torch(), "cuda", "is built for CUDA 13.0 and sees no GPU here.*--device cpu"),
        (Torch(built_for=None), "cuda", "has no CUDA and sees no GPU"),
        (Torch(gpu()), "cuda:1", "cuda:1: torch sees 1; the last is 0"),
    ],
)
def test_no_such_gpu_is_one_line(
    monkeypatch: pytest.MonkeyPatch, torch: Torch, device: str, says: str
) -> None:
    bench = Bench(monkeypatch, torch)
    with pytest.raises(ProbeError, match=says) as caught:
        bench.measure(device=device)
    assert "\n" not in str(caught.value)
    assert bench.loads == []


def test_without_torch_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "has_torch", lambda: False)
    with pytest.raises(ProbeError, match=r"torch .*requirements-probe.txt"):
        measuring.measure(Setup(target=TARGET, draft=DRAFT))


def test_cuda_events_enclose_the_step_and_are_read_after_a_wait() -> None:
    torch = Torch(gpu(L2_cache_size=200 * 2**20))
    device = CudaDevice(torch)
    assert torch.buffers == [400 * 2**20]
    step = torch.queue.work("step", 1.36)
    device.flush()
    device.mark()
    step()
    device.mark()
    assert torch.queue.host_ms < 1
    assert device.wait() == pytest.approx([0.0, 1.36])
    assert device.wait() == []
    assert timing.block_ms(device, step, 20) == pytest.approx(1.36)
    assert CudaDevice(Torch(gpu())).wait() == []
