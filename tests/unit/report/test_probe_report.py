"""What a probe's figures and sentences say."""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from lib.errors import InputError
from lib.estimate import Basis
from lib.probe.nvml import Gpu, Memory, Reading
from lib.probe.result import CPU_ONLY, Interval, Probe, from_json, to_json
from lib.probe.servers import APPROXIMATION
from lib.report import probe_figures as figures
from lib.report import probe_text as text
from lib.run import Run
from tests.probes import CPU, GPU, setup

SERVERS = replace(
    setup(GPU, gamma=0, dtype="", gpu=""), method="servers", v=(), warnings=(APPROXIMATION,)
)


def test_the_answer_of_a_gpu() -> None:
    assert text.sentence(GPU) == (
        "A draft step costs 0.0610 (0.0590–0.0640) plain steps on NVIDIA H100 80GB HBM3."
    )
    found = text.estimate(GPU)
    assert (found.value, found.low, found.high) == (0.061, 0.059, 0.064)
    assert found.basis is Basis.MEASURED
    assert found.how.startswith("c = T_D / T_T(1) = 0.410 ms / 6.72 ms")
    assert GPU.id[:8] in found.source
    assert text.note(GPU).endswith("taken 2026-11-02 12:30 UTC")


def test_a_cpu_never_sounds_like_evidence() -> None:
    assert text.sentence(CPU).startswith("Method check on a CPU:")
    assert text.sentence(CPU).endswith("that does not transfer.")
    assert CPU_ONLY in text.note(CPU)
    assert CPU_ONLY in text.due_line(CPU, ())
    assert text.estimate(CPU).source.startswith("CPU method check, does not transfer")
    assert "method check" in text.label(CPU)
    assert text.history_table([CPU])["GPU"] == [CPU_ONLY]
    assert "caches" in text.bound_line(CPU)


def test_two_servers_are_an_approximation() -> None:
    assert text.estimate(SERVERS).basis is Basis.DERIVED
    assert text.sentence(SERVERS).endswith("plain steps, by two servers.")
    assert APPROXIMATION in text.note(SERVERS)
    assert text.warnings(SERVERS) == []
    assert text.verify_lines(replace(SERVERS, critical_tokens=None)) == []


def test_c_beside_the_ratio_of_bytes() -> None:
    """0.84 GB over 15 GB is 0.056; 0.061 is 1.09 times that."""
    assert "The lowest c there can be is 0.0560" in text.bound_line(GPU)
    assert "840 MB of 15 GB" in text.bound_line(GPU)
    assert "1.09 times that" in text.bound_line(GPU)
    below = replace(GPU, c=Interval(0.05, 0.049, 0.051))
    assert "impossible" in text.bound_line(below)
    assert "below the ratio of the bytes read" in text.doubt_line(below)
    assert text.bound_line(replace(GPU, draft_bytes=None)) == ""


def test_where_verifying_stops_being_free() -> None:
    """74 tokens a pass are 12 requests of γ + 1 = 6."""
    v, free = text.verify_lines(GPU)
    assert v == (
        "Verifying γ + 1 = 6 tokens a request in one pass costs v = 1.02 (1.01–1.03) plain steps."
    )
    assert "up to about 74 (68–83) tokens: 12 requests at once at γ = 5" in free
    assert "prices nothing" in free
    bare = replace(GPU, critical_tokens=None, critical_low=None, critical_high=None)
    assert "up to 128 tokens" in text.verify_lines(bare)[1]
    assert "not free here" in text.verify_lines(replace(GPU, critical_tokens=6.0))[1]


def test_what_speaks_against_a_c() -> None:
    assert text.doubt_line(GPU) == ""
    noisy = replace(GPU, unstable=True, warnings=("one",))
    assert text.warnings(noisy) == [
        "one",
        "No gate passes on this c: its times spread by more than 5 %. Measure it again.",
    ]
    assert text.doubt_line(replace(CPU, unstable=True)) == ""


def test_what_is_due_again_for_a_study() -> None:
    mine = Run(run_id="a", target="Llama-3.1-8B-Instruct", gpu="H100")
    assert text.due_line(GPU, [mine]) == ""
    assert text.due_line(GPU, [replace(mine, gpu="L4")]) == (
        "c was probed on GPU NVIDIA H100 80GB HBM3, not L4: due for re-measurement for the study "
        "in hand."
    )


def test_tables_hold_what_is_known() -> None:
    found = text.setup_table(GPU)
    known = dict(zip(found["setup"], found["value"], strict=True))
    assert known["GPU"] == "NVIDIA H100 80GB HBM3"
    assert known["torch"] == "2.13.0"
    assert "host" not in known
    moments = text.conditions_table(GPU)
    assert moments["utilisation"] == ["2 %", "99 %"]
    assert moments["held down by"] == [None, "software power cap"]
    history = text.history_table([GPU, CPU])
    assert history["v at γ"] == [1.02, 1.02]
    assert {len(column) for column in history.values()} == {2}


def test_a_gpus_card_leaves_out_what_it_cannot_read() -> None:
    gpu = Gpu("GPU-1", "NVIDIA H100", driver="580.95", max_sm_clock_mhz=1980.0, is_slice=True)
    assert text.gpu_line(gpu, "") == "driver 580.95 · MIG slice"
    assert text.reading_line(gpu, Reading()) == ""
    now = Reading(Memory(128.0, 12.5, unified=True), sm_clock_mhz=1755.0, processes=())
    assert text.reading_line(gpu, now) == (
        "1,755 of 1,980 MHz · 12.5 of 128 GiB unified · processes: 0"
    )


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("step", ["draft", "target"])
def test_the_times_of_a_step(mode: figures.Mode, step: figures.Step) -> None:
    figure = figures.step_figure(GPU, step, mode)
    median = GPU.t_draft_ms if step == "draft" else GPU.t_target_ms
    assert figure.layout.shapes[0].x0 == median
    low, high = figure.layout.xaxis.range
    assert low < median < high
    assert sum(figure.data[0].y) == (50 if step == "draft" else 49)


def test_a_far_time_is_counted_and_not_drawn() -> None:
    assert figures.step_figure(GPU, "target", "light").layout.xaxis.range[1] < 9.5
    assert "1 lie further out" in figures.step_alt(GPU, "target")
    assert "further out" not in figures.step_alt(GPU, "draft")
    same = replace(GPU, samples_draft_ms=(0.41,) * 5)
    assert sum(figures.step_figure(same, "draft", "light").data[0].y) == 5


def test_v_over_the_tokens_of_a_pass() -> None:
    """Batch 4: two tokens of each request are eight in the pass."""
    columns = figures.verify_columns(GPU)
    assert columns["tokens_a_pass"][:3] == [4, 8, 12]
    assert figures.verify_columns(replace(GPU, v=GPU.v[1:]))["v"] == columns["v"]
    figure = figures.verify_figure(GPU, "light")
    line = next(t for t in figure.data if t.mode == "lines+markers")
    assert list(line.x) == columns["tokens_a_pass"]
    assert list(line.y) == columns["v"]
    horizontal = {s.y0 for s in figure.layout.shapes if s.xref == "paper"}
    assert horizontal == {1.0, 1.1}
    upright = [s for s in figure.layout.shapes if s.xref != "paper"]
    assert [(s.x0, s.x1) for s in upright] == [(68.0, 83.0), (74.0, 74.0)]
    assert any("about 74 tokens" in a.text for a in figure.layout.annotations)
    assert "about 74 tokens" in figures.verify_alt(GPU)
    x = figure.layout.xaxis.range
    assert x[0] < math.log10(4) < math.log10(128) < x[1]


def test_nothing_is_marked_where_the_critical_tokens_were_not_reached() -> None:
    bare = replace(GPU, critical_tokens=None, critical_low=None, critical_high=None)
    assert len(figures.verify_figure(bare, "dark").layout.shapes) == 2
    assert "passes 1.1" not in figures.verify_alt(bare)


def test_csv_columns_are_equally_long() -> None:
    uneven = replace(GPU, samples_draft_ms=GPU.samples_draft_ms[:3])
    columns = figures.sample_columns(uneven)
    assert [len(c) for c in columns.values()] == [50, 50]
    assert columns["draft_ms"][3:] == [None] * 47


HOSTILE: list[Any] = [
    None, True, -1, 0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 10**30, 10**400,
    "", "x" * 1000, "<b>[a](http://x)$1$", [], {}, [None], ["x"], [[[]]], 1.5,
]  # fmt: skip


def places(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of a document, of lists the first entry."""
    inside = found.items() if isinstance(found, dict) else enumerate(found[:1])
    for key, value in inside:
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from places(value, (*before, key))


def drawn(probe: Probe) -> None:
    """All that a page shows of a probe."""
    for say in (
        text.sentence, text.estimate, text.note, text.warnings, text.label, text.bound_line,
        text.verify_lines, text.doubt_line, text.setup_table, text.conditions_table,
        text.energy_line, figures.verify_alt, figures.sample_columns, to_json,
    ):  # fmt: skip
        say(probe)
    text.history_table([probe])
    if probe.v:
        figures.verify_figure(probe, "light")
    for step in ("draft", "target"):
        if figures.samples(probe, step):
            figures.step_figure(probe, step, "light")
            figures.step_alt(probe, step)


def read(document: str) -> Probe | None:
    """The probe; None where it is refused, in one line."""
    try:
        return from_json(document)
    except InputError as error:
        said = str(error)
    assert len(said) < 300
    assert "\n" not in said
    return None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("place", [*places(json.loads(to_json(GPU)))], ids=str)
def test_what_is_read_of_a_document_can_be_shown(place: tuple[Any, ...]) -> None:
    for value in HOSTILE:
        document = json.loads(to_json(GPU))
        inside = document
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = deepcopy(value)
        if (probe := read(json.dumps(document))) is not None:
            drawn(probe)
