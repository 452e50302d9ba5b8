"""What was scraped, kept and read again makes the same windows, however far it is thinned out."""

from dataclasses import replace
from pathlib import Path

import pytest

from lib.results.store import Store
from lib.serving.history import samples_of, windows_of_samples
from lib.serving.metrics import Counters, Snapshot, snapshot
from lib.serving.windows import Window, between, total
from tests.unit.serving.metrics_standin import histogram, vllm
from tests.unit.serving.test_metrics import SGLANG, TRTLLM

SHOWN = "10.0.0.1:8000"
TTFT = "vllm:time_to_first_token_seconds"


def scrape(step: int, drafts: int) -> Snapshot:
    ranks = (vllm(drafts, 4 * drafts, 2 * drafts, 3 * drafts, step, engine=str(i)) for i in "01")
    buckets = {0.1: drafts, 0.25: 2 * drafts}
    seconds = (histogram(TTFT, buckets, 2 * drafts, 0.3 * drafts, engine=i) for i in "01")
    return snapshot("m", "".join((*ranks, *seconds)), 1000.0 + 5 * step)


def stored(path: Path, snapshots: list[Snapshot], step_s: float = 1.0) -> tuple[Window, ...]:
    store = Store.open(path / "store.duckdb")
    for found in snapshots:
        store.add_samples(samples_of(SHOWN, found))
    rows = store.samples(0, step_s)
    store.close()
    (windows,) = windows_of_samples(rows).values()
    return windows


def same(first: Window, second: Window) -> bool:
    """All but names, and ITL, which is not kept."""

    def bare(counters: Counters) -> Counters:
        return replace(counters, itl=None)

    return (
        bare(first.counters) == bare(second.counters)
        and first.gauges == second.gauges
        and (first.seconds, first.running_before) == (second.seconds, second.running_before)
        and first.restarts == second.restarts
    )


def test_windows_from_the_store_are_those_that_were_seen(tmp_path: Path) -> None:
    snapshots = [scrape(step, drafts) for step, drafts in enumerate((100, 150, 300, 20, 80))]
    live = tuple(between("m", snapshots))
    kept = stored(tmp_path, snapshots)
    assert len(kept) == 4
    assert all(map(same, live, kept))
    assert {w.label for w in kept} == {SHOWN}
    assert [p.label for p in kept[0].parts] == [p.label for p in live[0].parts]
    assert [w.restarts for w in kept] == [0, 0, 2, 0]


def test_a_window_that_cannot_be_leaves_the_rest(tmp_path: Path) -> None:
    texts = [vllm(n, 4 * n, 2 * n, 3 * n) for n in (100, 200, 300, 400)]
    texts[1] = vllm(200, 800, 900, 600)
    texts[2:] = [vllm(n, 4 * n, 900 + 2 * (n - 200), 3 * n) for n in (300, 400)]
    kept = stored(tmp_path, [snapshot("m", t, 1000.0 + 5 * n) for n, t in enumerate(texts)])
    assert [(w.began_at_s, w.tau) for w in kept] == [(1005, 3), (1010, 3)]


def test_thinned_out_the_totals_stay(tmp_path: Path) -> None:
    snapshots = [scrape(step, 10 + step * step) for step in range(100)]
    kept = stored(tmp_path, snapshots, step_s=100)
    assert len(kept) == 4
    whole, live = total(kept), total(list(between("m", snapshots[19:])))
    assert whole.counters.drafts == live.counters.drafts
    assert whole.counters.ttft is not None
    assert live.counters.ttft is not None
    assert whole.counters.ttft.counts == live.counters.ttft.counts
    assert whole.counters.ttft.mean_ms == pytest.approx(live.counters.ttft.mean_ms)
    assert whole.tau == live.tau == 3


@pytest.mark.parametrize("text", [SGLANG, TRTLLM], ids=["SGLang", "TensorRT-LLM"])
def test_gauges_and_other_engines_are_kept(tmp_path: Path, text: str) -> None:
    snapshots = [snapshot("m", text, at_s) for at_s in (0.0, 5.0)]
    (live,), (kept,) = tuple(between("m", snapshots)), stored(tmp_path, snapshots)
    assert same(live, kept)
    assert (kept.engine, kept.tau) == (live.engine, live.tau)
