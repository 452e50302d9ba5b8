"""Two snapshots to a window, windows to longer ones, engines to a fleet."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError, UnreadableFile
from lib.serving.buckets import Histogram
from lib.serving.metrics import Counters, Gauges, Replica, Snapshot, snapshot
from lib.serving.windows import Window, between, total, window
from lib.theory.measured_round import measured_speedup
from lib.theory.walltime import tau as tau_of
from tests.unit.serving.metrics_standin import histogram, line, vllm
from tests.unit.serving.test_metrics import SGLANG, TRTLLM

SCRAPES = Path(__file__).resolve().parents[2] / "fixtures" / "metrics"


def over(before: str, after: str, seconds: float = 10.0) -> Window:
    return window("metrics", snapshot("m", before, 0.0), snapshot("m", after, seconds))


def zeroed(text: str) -> str:
    return re.sub(r"^(\w.*) \S+$", r"\1 0", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("name", "gamma"), [("metrics-k4", 4), ("metrics-k2", 2)])
def test_the_scrapes_of_a_known_engine_give_tau_and_alpha(name: str, gamma: int) -> None:
    text = (SCRAPES / f"{name}.txt").read_text()
    found = over(zeroed(text), text)
    assert found.alpha is not None
    assert found.alpha.low is not None
    assert found.alpha.high is not None
    assert found.alpha.low < 0.7 < found.alpha.high
    assert found.tau == pytest.approx(float(tau_of(0.7, gamma)), rel=0.005)
    assert found.run.num_speculative_tokens == gamma
    assert found.coverage is not None
    assert found.coverage.share == pytest.approx(1, abs=0.02)


def test_the_baselines_scrape_shows_no_speculation() -> None:
    text = (SCRAPES / "metrics-base.txt").read_text()
    found = over(zeroed(text), text)
    assert (found.tau, found.alpha, found.speculation) == (None, None, "not counted")
    assert "no speculation metrics found" in found.notes[-1]
    assert found.output_tps == pytest.approx((found.counters.output_tokens or 0) / 10)


def test_counts_rates_and_means() -> None:
    latency = "vllm:time_to_first_token_seconds"
    first = vllm(100, 400, 200, 1000, 5, (80, 60, 40, 20)) + histogram(latency, {0.1: 5}, 5, 0.25)
    later = vllm(300, 1200, 700, 1900, 9, (230, 190, 160, 120), running=7) + histogram(
        latency, {0.1: 7}, 9, 0.65
    )
    found = over(first, later)
    c = found.counters
    assert (c.drafts, c.draft_tokens, c.accepted_tokens, c.output_tokens) == (200, 800, 500, 900)
    assert (c.completed, c.accepted_per_position) == (4, (150, 130, 120, 100))
    assert found.tau == 3.5
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(500 / (500 + 100))
    assert (found.output_tps, found.request_rps, found.gauges.running) == (90, 0.4, 7)
    assert c.ttft is not None
    assert c.ttft.mean_ms == pytest.approx(100)
    assert found.coverage is not None
    assert found.coverage.share == pytest.approx(700 / 900)


def test_steps_without_drafts_leave_the_length_blind() -> None:
    found = over(vllm(), vllm(1000, 4000, 1500, 10_000))
    assert found.coverage is not None
    assert (found.tau, found.coverage.share) == (2.5, 0.25)
    assert found.coverage.tokens_per_step == pytest.approx(1.176, abs=5e-4)
    assert found.notes == (
        "speculation made 25% of 10,000 tokens: over all steps 1.176 tokens a step, not 2.5",
    )


@pytest.mark.parametrize(
    ("accepted", "change", "alpha", "speedup"),
    [
        (251, 0.0, 0.779, 2.34),
        (182, -0.197, 0.681, 1.88),
        (169, -0.234, 0.659, 1.79),
        (145, -0.302, 0.614, 1.63),
        (0, -0.715, 0.0, 0.67),
    ],
)
def test_a_length_below_its_qualified_value(
    accepted: int, change: float, alpha: float, speedup: float
) -> None:
    found = over(vllm(), vllm(100, 500, accepted, 100 + accepted))
    assert found.tau is not None
    assert found.tau / 3.51 - 1 == pytest.approx(change, abs=5e-4)
    assert measured_speedup(found.tau, 5, 0.1, 1) == pytest.approx(speedup, abs=6e-3)
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(alpha, abs=1e-3)
    assert found.alpha.low is None, "no counts by position, so no interval"


def test_draft_lengths_that_vary_have_tau_only() -> None:
    found = over(vllm(), vllm(100, 250, 120, 220, positions=(70, 50)))
    assert (found.tau, found.alpha) == (2.2, None)


def test_a_window_without_drafts_says_so() -> None:
    found = over(vllm(50, 200, 100, 150), vllm(50, 200, 100, 400))
    assert (found.tau, found.alpha, found.speculation) == (None, None, "none")
    assert found.notes == ("no speculation in this window: its counters did not move",)


def test_sglang_without_verify_calls_is_a_point_sample() -> None:
    found = over(SGLANG, SGLANG.replace("1000", "3000"))
    assert (found.speculation, found.tau, found.alpha) == ("point sample", 2.5, None)
    assert any("point sample" in note for note in found.notes)
    assert found.output_tps == 200, "by the counter, not the gauge"


def test_sglang_with_verify_calls_counts() -> None:
    calls = "sglang:spec_verify_calls_total"
    before = SGLANG + line(calls, 400, model_name="m")
    after = SGLANG.replace("1000", "3000").replace(
        '_total{model_name="m"} 10\n', '_total{model_name="m"} 30\n'
    )
    found = over(before, after + line(calls, 1000, model_name="m"))
    assert found.speculation == "counted"
    assert found.tau == pytest.approx(1 + (2000 - 20 - 600) / 600)


def test_a_gauge_of_an_idle_server_is_no_sample() -> None:
    idle = SGLANG.replace("} 6\n", "} 0\n")
    found = over(idle, idle)
    assert found.idle
    assert (found.tau, found.output_tps) == (None, 0)
    assert any(note.startswith("idle") for note in found.notes)


def test_what_a_gauge_showed_while_idle_is_in_no_mean() -> None:
    idle = SGLANG.replace("} 6\n", "} 0\n")
    still, busy = over(idle, idle), over(SGLANG, SGLANG.replace("1000", "3000"))
    stale = replace(still, gauges=replace(still.gauges, tau=4.9))
    assert total([stale, busy]).tau == total([busy, stale]).tau == busy.tau


def test_trtllm_counts_by_position() -> None:
    found = over(zeroed(TRTLLM), TRTLLM)
    assert found.tau == pytest.approx(2.4)
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(140 / (140 + 40))


@pytest.mark.parametrize("start", ["", "process_start_time_seconds"])
def test_a_restart_counts_from_zero_and_says_so(start: str) -> None:
    drafts = (100, 30) if not start else (10, 30)
    times = [line(start, t) if start else "" for t in (1000.0, 5000.0)]
    found = over(
        vllm(drafts[0], 400, 200, 300, running=9) + times[0],
        vllm(drafts[1], 900, 600, 700) + times[1],
    )
    assert (found.counters.drafts, found.restarts, found.running_before) == (30, 1, 0)
    assert "restarted" in found.notes[0]


def test_a_series_that_is_gone_is_a_restart() -> None:
    found = over(
        vllm(100, 400, 200, 300),
        line("vllm:generation_tokens_total", 400, engine="0", model_name="acme/target"),
    )
    assert (found.counters.output_tokens, found.restarts) == (400, 1)


def test_an_engine_that_appears_counts_from_then_on() -> None:
    two = vllm(100, 200, 100, 300, engine="1", model_name="m")
    found = over(vllm(10, 20, 5, 20), vllm(20, 40, 10, 40) + two)
    assert (found.counters.drafts, found.restarts) == (10, 0)


def test_a_series_that_appears_counted_nothing_before() -> None:
    found = over(vllm(0, 0, 0, 10), vllm(50, 100, 75, 150, positions=(45, 30)))
    assert found.counters.accepted_per_position == (45, 30)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (vllm(100, 200, 300, 500), "300 accepted of 200 drafted tokens"),
        (
            vllm(100, 400, 300, 500, positions=(120, 80)),
            "120 accepted at the first position of 100 drafts",
        ),
    ],
)
def test_more_than_everything_is_an_error_with_the_numbers(after: str, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        over(vllm(), after)


def test_time_has_to_pass() -> None:
    with pytest.raises(InputError, match="later scrape"):
        over(vllm(), vllm(), seconds=0.0)


def test_engines_add_up_as_a_ratio_of_sums() -> None:
    def text(a: int, b: int) -> str:
        return vllm(10 * a, 20 * a, 10 * a, 20 * a, running=3, engine="0", model_name="m") + vllm(
            30 * b, 120 * b, 90 * b, 120 * b, running=5, engine="1", model_name="m"
        )

    found = over(text(1, 1), text(2, 3))
    assert [p.tau for p in found.parts] == [2.0, 4.0]
    assert found.tau == pytest.approx(1 + (10 + 180) / (10 + 60)), "not the mean of 2 and 4"
    assert found.gauges.running == 8
    assert found.output_tps == pytest.approx(sum(p.output_tps or 0 for p in found.parts))


def test_what_was_not_seen_for_a_while_goes_on_from_where_it_was() -> None:
    a0, a2 = (vllm(n, 2 * n, n, 2 * n, engine="0", model_name="m") for n in (10, 50))
    b = [vllm(n, 4 * n, 3 * n, 4 * n, engine="1", model_name="m") for n in (5, 6, 8)]
    scrapes = [snapshot("m", t, float(i)) for i, t in enumerate((a0 + b[0], b[1], a2 + b[2]))]
    first, second = between("m", scrapes)
    assert (first.counters.drafts, second.counters.drafts) == (1, 42)
    assert total((first, second)).counters.drafts == 43
    assert [p.seconds for p in total((first, second)).parts] == [2.0, 2.0]


def test_no_window_is_no_total() -> None:
    with pytest.raises(InputError, match="two scrapes"):
        total([])


counts = st.one_of(st.none(), st.integers(0, 10**6))
EDGES = (0.01, 0.1, 1.0)


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    in_buckets = [draw(st.integers(0, 50)) for _ in range(len(EDGES) + 1)]
    sums = [float(sum(in_buckets[: n + 1])) for n in range(len(in_buckets))]
    return Histogram(sums[-1], float(draw(st.integers(0, 1000))), EDGES, tuple(sums[:-1]))


@st.composite
def counted(draw: st.DrawFn) -> Counters:
    accepted = draw(st.integers(0, 1000))
    positions = draw(st.lists(st.integers(0, accepted), min_size=3, max_size=3))
    return Counters(
        drafts=1000 + draw(st.integers(0, 1000)),
        draft_tokens=accepted + draw(st.integers(0, 1000)),
        accepted_tokens=accepted,
        accepted_per_position=tuple(positions),
        output_tokens=draw(st.integers(0, 10**6)),
        completed=draw(st.integers(0, 1000)),
        ttft=draw(histograms()),
        e2e=draw(histograms()),
    )


@given(counted(), counted(), counted(), st.integers(1, 100), st.integers(1, 100))
def test_windows_add_up(
    start: Counters, first: Counters, second: Counters, one_s: int, two_s: int
) -> None:
    def at(seconds: float, counters: Counters) -> Snapshot:
        return Snapshot(seconds, {(): Replica("vLLM", "", counters, Gauges())})

    a, b = at(0.0, start), at(one_s, start.plus(first))
    c = at(one_s + two_s, start.plus(first).plus(second))
    whole, parts = window("m", a, c), (window("m", a, b), window("m", b, c))
    joined = total(parts)
    assert joined.counters == whole.counters == first.plus(second)
    assert (joined.seconds, joined.began_at_s) == (whole.seconds, whole.began_at_s)
    assert joined.tau == whole.tau
    assert joined.parts[0].counters == whole.parts[0].counters


def test_gauges_of_a_longer_window_are_means_over_time() -> None:
    scrapes = [
        snapshot("m", vllm(n, n, n, n, running=r), float(t))
        for n, r, t in ((0, 9, 0), (1, 4, 1), (2, 8, 4))
    ]
    whole = total(tuple(between("m", scrapes)))
    assert whole.gauges.running == pytest.approx((4 * 1 + 8 * 3) / 4)
    assert whole.running_before == 9


def test_notes_of_several_restarts_count_them() -> None:
    once = over(vllm(5, 10, 5, 10), vllm(1, 2, 1, 2))
    assert "once" in once.notes[0]
    assert "2 times" in replace(once, restarts=2).notes[0]
