"""Real models on this machine's CPU: times follow the models, and the process keeps its word."""

import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from lib.errors import ProbeError
from lib.probe import architecture, decoder, measuring, ratios, timing, worker
from lib.probe.devices import CpuDevice
from lib.probe.result import CPU_ONLY, from_json, to_json
from lib.probe.setup import Setup
from lib.probe.timing import Samples
from tests.unit.probe.conftest import need

torch = need("torch")
TINY = architecture.get("tiny-target")
ROWS = {
    "base": replace(TINY, name="base", layers=6),
    "shallow": replace(TINY, name="shallow", layers=2),
    "wide": replace(TINY, name="wide", layers=6, hidden=1024, heads=16, intermediate=3072),
}


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {name: architecture.get(name) for name in architecture.names()}
    monkeypatch.setattr(architecture, "_models", lambda: known | ROWS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def loaded(name: str, most_tokens: int = 1) -> decoder.Decoder:
    return decoder.load(
        name, dtype="float32", device="cpu", batch=1, context=64, most_tokens=most_tokens
    )


def test_a_step_takes_longer_with_more_layers_and_wider_ones() -> None:
    device = CpuDevice(torch)
    steps = {name: loaded(name).step(1) for name in ROWS}
    taken: dict[str, list[float]] = {name: [] for name in ROWS}
    for _ in range(15):
        for name, step in steps.items():
            taken[name].append(timing.block_ms(device, step, 2))
    ms = {name: median(times) for name, times in taken.items()}
    # 3 times the layers under the same head, and 4 times the weights of a layer.
    assert ms["base"] / ms["shallow"] > 1.5
    assert ms["wide"] / ms["base"] > 2


def test_c_comes_again() -> None:
    setup = Setup(
        target="base", draft="shallow", context=64, gamma=1, dtype="float32", device="cpu"
    )
    found = [measuring.measure(setup) for _ in range(3)]
    middle = median(probe.c.value for probe in found)
    for probe in found:
        assert probe.c.value == pytest.approx(middle, rel=0.25)
        assert CPU_ONLY in probe.warnings
        assert probe.c.value == pytest.approx(probe.t_draft_ms / probe.t_target_ms, rel=0.25)
        assert from_json(to_json(probe)) == probe
    assert 0.2 < middle < 0.8


def test_longer_passes_take_no_less() -> None:
    # Kernels are picked by size, so a pass over 3 may take longer than one over 4.
    device, tokens = CpuDevice(torch), (1, 2, 8, 32)
    model = loaded("base", most_tokens=32)
    steps = {n: model.step(n) for n in tokens}
    taken: dict[int, list[float]] = {n: [] for n in tokens}
    for turn in range(20):
        for n in timing.order(tokens, turn):
            taken[n].append(timing.block_ms(device, steps[n], 1))
    one, *longer = (tuple(taken[n]) for n in tokens)
    found = ratios.figures(Samples(one, one, dict(zip(tokens[1:], longer, strict=True))))
    assert found.c.value == 1
    assert found.v[-1].value > 1.2
    for before, after in zip(found.v, found.v[1:], strict=False):
        assert (after.high or 0) >= (before.low or 0)


def test_a_measurement_under_way_is_cancelled() -> None:
    running = worker.start(
        Setup(
            target="tiny-target",
            draft="tiny-draft",
            dtype="float32",
            device="cpu",
            samples=10_000,
            max_seconds=3600,
        )
    )
    seen = []
    while not any(p.what.startswith("round") for p in seen):
        assert not running.done
        seen += running.events()
        time.sleep(0.05)
    running.cancel()
    with pytest.raises(ProbeError, match="cancelled"):
        running.result()


def test_what_does_not_fit_is_refused_with_numbers() -> None:
    running = worker.start(
        Setup(target="deepseek-v3", draft="tiny-draft", dtype="float32", device="cpu")
    )
    with pytest.raises(ProbeError, match=r"needs [\d,.]+ GiB .* free"):
        running.result()
