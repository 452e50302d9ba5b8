"""The probe page without a GPU and without torch, with stored probes, and c carried to screen."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lib.addresses import Allowed
from lib.errors import FetchError, ProbeError
from lib.probe import completions, nvml, worker
from lib.probe.nvml import Devices, Gpu, Memory, Reading
from lib.probe.result import CPU_ONLY, Interval, to_json
from lib.probe.server_round import Round
from lib.probe.setup import Setup
from lib.probe.timing import Progress
from lib.results.importing import import_paths
from lib.results.store import Store
from lib.ui import probe_form, probe_runs, probe_servers
from lib.ui.probe_servers import Asked
from tests import probes
from tests.pages.conftest import ROOT
from tests.pages.test_acceptance_page import HOSTILE, said
from tests.pages.test_pages import figures, sliders, start
from tests.unit.probe.openai_standin import Clock, Engine, served

NOTHING = Devices((), "No GPU is visible here: the library is not found. Likely causes: many.")
CARD = Gpu("GPU-1", "NVIDIA H100", driver="580.95", cuda="13.0", max_sm_clock_mhz=1980.0)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "devices", lambda: NOTHING)


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


def text(app: AppTest) -> str:
    return said(app).replace("\u2060", "").replace("&#45;", "-")


def button(app: AppTest, label: str) -> Any:
    return next(b for b in app.button if b.label == label)


def test_without_gpu_and_torch_the_page_is_calm(no_torch: None) -> None:
    app = start("probe")
    assert not app.exception
    assert not app.error
    assert "No GPU is visible here: the library is not found." in text(app)
    assert "docker run --gpus all" in text(app)
    assert "requirements-probe.txt" in text(app)
    assert [t.label for t in app.tabs] == ["Import", "Two servers", "CPU check"]
    assert not any(b.label == "Check the method" for b in app.button)
    assert not figures(app)


def test_a_gpu_has_a_card_with_what_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "devices", lambda: Devices((CARD,), "", "host-a"))
    now = Reading(
        Memory(80.0, 12.5), sm_clock_mhz=1755.0, utilization=0.26, problems=("power: refused",)
    )
    monkeypatch.setattr(nvml, "reading", lambda uuid: now)
    app = start("probe")
    assert not app.exception
    assert app.tabs[0].label == "GPU"
    assert "on host-a · driver 580.95, CUDA 13.0" in text(app)
    assert "1,755 of 1,980 MHz · 12.5 of 80.0 GiB · 26 % of the time busy" in text(app)
    assert "power: refused" in text(app)


def test_a_stored_probe_is_the_answer(own_store: None) -> None:
    probes.keep(probes.GPU, probes.CPU)
    app = start("probe")
    assert not app.exception
    assert "A draft step costs 0.0610 (0.0590–0.0640) plain steps on NVIDIA H100" in text(app)
    assert "green-badge[measured]" in text(app)
    assert "up to about 74 (68–83) tokens: 12 requests at once at γ = 5" in text(app)
    assert "The lowest c there can be is 0.0560" in text(app)
    assert [f["title"] for f in figures(app)] == [
        "One draft step, T_D",
        "One target step, T_T",
        "Verify cost v over the tokens of a pass",
    ]
    assert len(app.dataframe) == 3


def test_a_cpu_check_says_so_wherever_it_stands(own_store: None) -> None:
    probes.keep(probes.GPU, probes.CPU)
    app = start("probe", probe=probes.CPU.id)
    assert "Method check on a CPU: a draft step costs 0.210" in text(app)
    assert CPU_ONLY in text(app)
    button(app, "Use in screen").click().run()
    app.switch_page(str(ROOT / "pages" / "screen.py")).run()
    assert sliders(app)["c"]["value"] == 0.21
    line = next(c.value for c in app.caption if "method check, does not transfer" in c.value)
    assert line.endswith("(assumed)")


def test_c_and_v_stand_on_screen_with_their_source(own_store: None) -> None:
    probes.keep(probes.GPU)
    app = start("probe", gamma="5", study="eagle3_sglang_h100_llama31_8b")
    button(app, "Use in screen").click().run()
    app.switch_page(str(ROOT / "pages" / "screen.py")).run()
    assert not app.exception
    assert sliders(app)["c"]["value"] == 0.061
    assert sliders(app)["verify_cost"]["value"] == 1.02
    assert app.query_params["c"] == "0.061"
    assert f"c, v from probe {probes.GPU.id[:8]}, 2026-11-02, NVIDIA H100" in text(app)
    assert "green-badge[v measured]" in text(app)
    assert "due for re-measurement" not in text(app)


def test_screen_says_when_the_probe_is_of_another_setup(own_store: None) -> None:
    probes.keep(probes.setup(probes.GPU, gpu="NVIDIA L4"))
    app = start("screen", gamma="7", study="eagle3_sglang_h100_llama31_8b")
    button(app, "Use c = 0.0610").click().run()
    assert "c was probed on GPU NVIDIA L4, not H100: due for re-measurement" in text(app)
    assert sliders(app)["verify_cost"]["value"] == 1.03
    app.session_state["gamma"] = 9
    app.run()
    assert "v was not measured at γ = 9" in text(app)


def test_a_c_above_one_is_not_carried(own_store: None) -> None:
    probes.keep(replace(probes.GPU, c=Interval(1.2)))
    app = start("probe")
    assert button(app, "Use in screen").disabled
    assert "above 1: no draft pays" in text(app)


def upload(app: AppTest, name: str, data: bytes) -> AppTest:
    return app.file_uploader[0].upload(name, data).run()


def test_a_document_is_imported_once(own_store: None) -> None:
    app = upload(start("probe"), "p.json", to_json(probes.GPU))
    assert not app.exception
    assert "A draft step costs 0.0610" in app.success[0].value
    assert "A draft step costs 0.0610" in text(app)
    upload(app, "again.json", to_json(probes.GPU))
    assert "known already" in app.success[0].value
    assert len(app.dataframe[-1].value) == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"schema": 9}', "schema 9; this version reads 1"),
        (json.dumps({**json.loads(to_json(probes.GPU)), "c": {"value": "x"}}).encode(), "c.value"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_document_is_one_line_and_changes_nothing(
    own_store: None, data: bytes, says: str
) -> None:
    app = upload(start("probe"), "bad.json", data)
    assert not app.exception
    assert says in app.error[0].value.replace("\u2060", "")
    assert "No probe yet" in text(app)


def test_names_of_a_document_are_data(own_store: None) -> None:
    hostile = probes.setup(probes.GPU, gpu=HOSTILE, target=HOSTILE, draft=HOSTILE)
    app = upload(start("probe"), f"{HOSTILE}.json", to_json(replace(hostile, warnings=(HOSTILE,))))
    assert not app.exception
    shown = "\n".join(e.value for e in (*app.markdown, *app.caption, *app.warning, *app.success))
    assert "![i]" not in shown
    assert "<b>" not in shown


def test_a_probe_is_deleted(own_store: None) -> None:
    probes.keep(probes.GPU, probes.CPU)
    app = start("probe")
    app.button(key="probe-delete-now").click().run()
    assert "Method check on a CPU" in text(app)
    app.button(key="probe-delete-now").click().run()
    assert not app.exception
    assert "No probe yet" in text(app)


class Played:
    """A measurement under way that a test plays."""

    def __init__(self) -> None:
        self.done = False
        self.cancelled = False
        self.found: Any = probes.GPU

    def events(self) -> list[Progress]:
        return [Progress(3, 10, "round 3 of 10")]

    def cancel(self) -> None:
        self.cancelled = self.done = True

    def result(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, own_store: None) -> Played:
    pytest.importorskip("torch")
    one = Played()
    monkeypatch.setattr(worker, "start", lambda setup: one)
    monkeypatch.setattr(probe_runs, "LOOK_S", 0.01)
    return one


def settled(app: AppTest, over: bool = True) -> AppTest:
    """After the thread that follows the measurement has seen what the test did."""
    deadline = time.monotonic() + 10
    job = probe_runs.bench().job
    assert job is not None
    while job.over is not over or (not over and job.step is None):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return app.run()


def test_a_running_probe_is_found_again_and_becomes_the_answer(played: Played) -> None:
    app = start("probe")
    button(app, "Check the method").click().run()
    settled(app, over=False)
    assert "tiny-draft for tiny-target on the CPU" in text(app)
    other = start("probe")
    assert "tiny-draft for tiny-target on the CPU" in text(other)
    assert button(other, "Check the method").disabled
    played.done = True
    settled(other)
    assert not other.exception
    assert "A draft step costs 0.0610" in text(other)
    assert not any(b.label == "Cancel" for b in other.button)


def test_a_cancelled_probe_leaves_nothing(played: Played) -> None:
    app = start("probe")
    button(app, "Check the method").click().run()
    settled(app, over=False)
    button(app, "Cancel").click().run()
    settled(app)
    assert played.cancelled
    assert "cancelled, nothing was kept" in text(app)
    button(app, "Dismiss").click().run()
    assert "cancelled" not in text(app)
    assert "No probe yet" in text(app)


def test_a_failed_probe_is_one_line(played: Played) -> None:
    played.found = ProbeError("does not fit: needs 300 GiB, 80 free")
    app = start("probe")
    button(app, "Check the method").click().run()
    played.done = True
    settled(app)
    assert not app.exception
    assert "does not fit: needs 300 GiB, 80 free" in app.error[0].value


def test_a_probe_that_cannot_start_is_one_line(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(setup: object) -> None:
        raise ProbeError("a probe already runs on cuda:0")

    monkeypatch.setattr(worker, "start", refuse)
    app = start("probe")
    button(app, "Check the method").click().run()
    assert not app.exception
    assert "a probe already runs on cuda" in app.error[0].value
    assert not button(app, "Check the method").disabled


@pytest.fixture
def begun(played: Played, monkeypatch: pytest.MonkeyPatch) -> list[Setup]:
    """The setups that were begun."""
    found: list[Setup] = []
    monkeypatch.setattr(worker, "start", lambda setup: found.append(setup) or played)
    return found


def sent(monkeypatch: pytest.MonkeyPatch, key: str, name: str) -> None:
    """A browser that sends a name that is not in the list of a field."""
    real = st.selectbox

    def selectbox(*args: Any, **options: Any) -> Any:
        chosen = real(*args, **options)
        return name if options.get("key") == key else chosen

    monkeypatch.setattr(st, "selectbox", selectbox)


TYPED = ("/srv/checkpoints/mine", "somebody/a-model", "../../etc")


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("role", ["target", "draft-of-tiny-target"])
def test_a_checkpoint_is_loaded_for_a_person_at_the_machine(
    begun: list[Setup], monkeypatch: pytest.MonkeyPatch, name: str, role: str
) -> None:
    monkeypatch.setattr(probe_form, "is_local", lambda: True)
    app = start("probe")
    assert "sits at it" not in text(app)
    sent(monkeypatch, f"cpu-{role}", name)
    app.run()
    button(app, "Check the method").click().run()
    assert not app.error
    assert name in (begun[0].target, begun[0].draft)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("role", ["target", "draft-of-tiny-target"])
def test_a_checkpoint_is_loaded_for_nobody_else(
    begun: list[Setup], monkeypatch: pytest.MonkeyPatch, name: str, role: str
) -> None:
    monkeypatch.setattr(probe_form, "is_local", lambda: False)
    app = start("probe")
    assert "who sits at it. There: `python -m lib probe --target" in text(app)
    sent(monkeypatch, f"cpu-{role}", name)
    app.run()
    button(app, "Check the method").click().run()
    assert not app.exception
    assert "Models of the list only" in app.error[0].value
    assert not begun
    sent(monkeypatch, f"cpu-{role}", "tiny-target" if role == "target" else "tiny-draft")
    button(app.run(), "Check the method").click().run()
    assert [(s.target, s.draft) for s in begun] == [("tiny-target", "tiny-draft")]


def test_only_servers_of_the_list_are_asked(own_store: None) -> None:
    app = start("probe")
    app.text_input(key="servers-first").set_value("http://192.0.2.1:8000")
    app.text_input(key="servers-second").set_value("http://192.0.2.1:8001").run()
    button(app, "Ask both").click().run()
    assert not app.exception
    assert "DRAFTWORTH_MONITOR_HOSTS" in app.error[0].value.replace("&#95;", "_")
    app.text_input(key="servers-first").set_value("ftp://x").run()
    button(app, "Ask both").click().run()
    assert not app.exception
    assert app.error


@pytest.fixture
def mine(own_store: None) -> str:
    """A study with counts of acceptance at 8 requests, on no GPU that its files name."""
    store = Store.open()
    folder = ROOT / "tests" / "fixtures" / "vllm"
    rules = ["off-*=off", "eagle3-*=eagle3:3"]
    import_paths(store, [folder / n for n in ("off-c8.json", "eagle3-c8.json")], "mine", rules)
    store.update("mine", [r.run_id for r in store.study("mine").runs], {"gpu": "H100"})
    store.close()
    return "mine"


def test_the_first_gate_takes_c_of_this_setup_and_is_due_for_another(mine: str) -> None:
    store = Store.open()
    target = next(r.target for r in store.study(mine).runs if r.target)
    store.close()
    probe = probes.setup(probes.GPU, target=target, draft="eagle3-head")
    probes.keep(probe)
    app = start("decision", study=mine, load="8")
    assert not app.exception
    assert f"c 0.061, measured: probe {probe.id[:8]}, 2026-11-02, NVIDIA H100" in text(app)
    elsewhere = probes.setup(probe, gpu="NVIDIA L4")
    app = start("probe")
    app.button(key="probe-delete-now").click().run()
    upload(app, "other.json", to_json(elsewhere))
    app.switch_page(str(ROOT / "pages" / "decision.py")).run()
    app.selectbox(key="study").select(mine).run()
    assert "c was probed on GPU NVIDIA L4, not H100: due for re-measurement" in text(app)
    assert "↻ stale" in text(app)


def test_what_a_round_costs_is_told_and_not_stored(played: Played) -> None:
    played.found = Round(
        speedup=Interval(1.42, 1.38, 1.45),
        r=Interval(1.69, 1.66, 1.72),
        tau=Interval(2.4, 2.3, 2.5),
        round_ms=16.9,
        plain_ms=10.0,
        tokens=2400,
        rounds=1000,
        model=HOSTILE,
        host="plain a:1, speculating b:2",
        versions={},
        taken_at=probes.GPU.taken_at,
        unstable=False,
        busy=False,
        samples_round_ms=(),
        samples_plain_ms=(),
        warnings=("One request at a time",),
    )
    app = start("probe")
    button(app, "Check the method").click().run()
    played.done = True
    settled(app)
    assert not app.exception
    assert "1.42× (1.38–1.45) at one request: 2.40 tokens a round" in text(app)
    assert "which costs 1.69 plain steps" in text(app)
    assert "One request at a time" in text(app)
    assert "No probe yet" in text(app)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, own_store: None) -> Iterator[list[str]]:
    """The addresses of a target of 10 ms a step and a drafter of 2 ms, on a clock of their own."""
    clock = Clock()
    monkeypatch.setattr(completions, "perf_counter", clock)
    monkeypatch.setattr(probe_servers, "app_allowed", lambda: Allowed(loopback=True))
    engines = [Engine(clock, step_ms=ms, model=name) for ms, name in ((10, "big"), (2, "small"))]
    with served(engines[0]) as target, served(engines[1]) as draft:
        yield [target, draft]


def test_two_servers_give_c(asked: list[str]) -> None:
    app = start("probe")
    for key, address in zip(("servers-first", "servers-second"), asked, strict=True):
        app.text_input(key=key).set_value(address)
    app.text_input(key="servers-gpu").set_value("H100").run()
    button(app, "Ask both").click().run()
    assert not app.error, app.error[0].value
    settled(app)
    assert not app.exception
    assert "A draft step costs 0.200 (0.200–0.200) plain steps, by two servers." in text(app)
    assert "blue-badge[derived]" in text(app)
    assert "each server's own overheads" in text(app)


def test_asking_servers_can_be_cancelled_and_tells_what_failed() -> None:
    def long(tell: Any) -> Any:
        for i in range(10_000):
            tell(i, 10_000, "asking")
            time.sleep(0.001)

    one = Asked(long)
    one.cancel()
    with pytest.raises(ProbeError, match="cancelled"):
        one.result()
    with pytest.raises(FetchError, match="no route"):
        Asked(lambda tell: (_ for _ in ()).throw(FetchError("no route"))).result()
