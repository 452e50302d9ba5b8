"""What a run does not say, and what each gap blocks."""

from typing import Any

from lib.run import LoadKind, Run, SpecState
from lib.ui.dropped import common_folder, natural
from lib.ui.file_card import missing, repeats


def run(run_id: str = "r", **fields: Any) -> Run:
    whole: dict[str, Any] = {
        "spec_state": SpecState.OFF,
        "load_kind": LoadKind.CONCURRENCY,
        "offered_load": 8.0,
        "output_tps": 100.0,
        "tpot_ms_mean": 9.0,
        "gpu_count": 1,
        "usd_per_hour": 2.0,
    }
    return Run(run_id=run_id, **{**whole, **fields})


def test_a_whole_run_misses_nothing() -> None:
    assert missing([run()]) == []


def test_each_gap_says_what_it_blocks() -> None:
    lines: dict[str, dict[str, Any]] = {
        "no arm named: not compared until it is": {"spec_state": SpecState.UNKNOWN},
        "no load, or not of which kind: not compared until it is stated": {"offered_load": None},
        "no output tok/s: throughput not compared, not priced": {"output_tps": None},
        "a speedup without tok/s: compared, never priced": {"output_tps": None, "multiplier": 1.5},
        "no $/h: not priced until you state it here or on Price": {"usd_per_hour": None},
        "no TPOT: latency not compared": {"tpot_ms_mean": None},
    }
    for line, gap in lines.items():
        assert missing([run(**gap)]) == [line]
    both = missing([run(usd_per_hour=None, gpu_count=None)])
    assert both == ["no GPU count and no $/h: not priced until you state them here or on Price"]


def test_a_gap_of_some_runs_says_of_how_many() -> None:
    assert missing([run(), run(output_tps=None)]) == [
        "no output tok/s in 1 of 2 runs: throughput not compared, not priced"
    ]


def test_an_interval_needs_three_runs_of_one_arm_and_load() -> None:
    three = [run(str(at)) for at in range(3)]
    assert repeats(three[:1], three) == ""
    assert repeats(three[:1], three[:2]).startswith("fewer than 3 runs of one arm and load")
    other = run("x", offered_load=16.0)
    assert "at 1 of 2 loads" in repeats([three[0], other], [*three, other])
    assert repeats([run(spec_state=SpecState.UNKNOWN)], []) == ""


def test_names_sort_by_their_numbers_and_lose_what_all_share() -> None:
    assert sorted(["c16", "c2", "c1"], key=natural) == ["c1", "c2", "c16"]
    assert common_folder(["a.zip/x/1.json", "a.zip/y/1.json"]) == "a.zip/"
    assert common_folder(["a/b/1.json", "a/b/2.json"]) == "a/b/"
    assert common_folder(["a/b/1.json", "a/c"]) == "a/"
    assert common_folder(["1.json", "a/2.json"]) == ""
    assert common_folder(["a/1.json"]) == ""
