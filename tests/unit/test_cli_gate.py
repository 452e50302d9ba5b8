"""The gate from the command line: exit statuses, and the recorded sweeps each way."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from lib.results import published
from lib.results.importing import import_paths
from lib.results.mapping import signature
from lib.results.store import Store
from tests.unit.results.test_mapping import offered
from tests.unit.results.test_shared_values import CORPUS, SPECSTUDY, SPECSTUDY_MAPPING

KEYS = ("name", "baseline", "candidate", "ratio", "low", "high", "limit", "verdict")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["gate", *args])


def answer(status: int, study: str, baseline: str, candidate: str, *more: str) -> dict[str, Any]:
    sides = ("--baseline", baseline, "--candidate", candidate)
    result = run("--study", study, *sides, *more, "--json")
    assert result.exit_code == status, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def label(store: Store, study: str) -> None:
    """`off-c8-r1`: arm, concurrency and repeat."""
    for r in store.study(study).runs:
        name = f"{r.arm}-c{r.offered_load:g}-r{r.repeat}"
        store.update(study, [r.run_id], {"label": name})


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("gate")
        patch.setenv("DRAFTWORTH_STORE", str(folder / "store.duckdb"))
        yield folder


@pytest.fixture(scope="module")
def sim(place: Path) -> str:
    """Files of the demo, three repeats of off and two arms at five loads."""
    for name, data in published.demo_files():
        if name.endswith(".json") and name.split("-")[1] in ("c1", "c2", "c8", "c16", "c64"):
            (place / name).write_bytes(data)
    store = Store.open()
    import_paths(store, [place], "sim", ["base-*=off", "k2-*=sim:2", "k4-*=sim:4"])
    label(store, "sim")
    store.close()
    return "sim"


@pytest.mark.parametrize(
    ("baseline", "candidate", "status", "verdict"),
    [
        ("off-c8-*", "sim:2-c8-*", 0, "pass"),
        ("sim:2-c8-*", "off-c8-*", 1, "regressed"),
        ("off-c64-*", "sim:2-c64-*", 1, "regressed"),
        ("off-*", "sim:2-*", 1, "regressed"),  # behind at 64, by the worst of five loads
        ("sim:2-c2-*", "sim:4-c2-*", 3, "undecided"),
        ("sim:2-c1-r1", "sim:2-c1-r2", 3, "undecided"),  # one run a side
        ("sim:2-c1-*,sim:2-c2-*", "sim:4-c1-*", 3, "undecided"),  # c2 was not measured
    ],
)
def test_the_exit_status_is_the_verdict(
    sim: str, baseline: str, candidate: str, status: int, verdict: str
) -> None:
    found = answer(status, sim, baseline, candidate)
    assert found["verdict"] == verdict
    assert [m["name"] for m in found["metrics"]] == [
        "usd_per_million",
        "tpot_ms",
        "tau",
        "crossover",
    ]
    assert all(set(KEYS) <= set(m) for m in found["metrics"])
    assert (found["repeats_needed"] == 0) == (verdict != "undecided")


def test_metrics_carry_their_numbers(sim: str) -> None:
    found = answer(0, sim, "off-c8-*", "sim:2-c8-*", "--usd-per-hour", "2")
    price, tpot, tau, crossing = found["metrics"]
    assert price["ratio"] == pytest.approx(1 / 1.702, abs=5e-4)
    assert price["low"] < price["ratio"] < price["high"] < price["limit"] == pytest.approx(1.02)
    assert price["baseline"] == pytest.approx(2e6 / 3600 / 589.7, rel=0.01)
    assert price["at"] == "sim:2 at 8 concurrent"
    assert tpot["verdict"] == "pass"
    assert tpot["candidate"] < tpot["baseline"]
    assert (tau["verdict"], tau["why"]) == ("missing", "a side drafts nothing")
    assert crossing["verdict"] == "missing"
    assert found["notes"] == ["the arms differ: baseline off, candidate sim:2"]


def test_a_limit_and_a_bound(sim: str) -> None:
    sides = (sim, "off-c64-*", "sim:2-c64-*")
    assert answer(1, *sides)["metrics"][0]["ratio"] == pytest.approx(1 / 0.836, abs=1e-3)
    assert answer(0, *sides, "--max-regression", "50%")["verdict"] == "pass"
    assert answer(0, *sides, "--max-regression", "0.5")["verdict"] == "pass"
    cost = ("--usd-per-hour", "2", "--max-regression", "50%", "--max-usd-per-million")
    assert answer(0, *sides, *cost, "1")["metrics"][1]["limit"] == 1
    bound = answer(1, *sides, *cost, "0.1")["metrics"][1]
    assert (bound["name"], bound["verdict"]) == ("usd_per_million_max", "regressed")
    assert bound["low"] > 0.1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--max-regression", "2"), "2 % is written 2%"),
        (("--max-regression", "100%"), "as 2% or 0.02\n"),
        (("--max-regression", "much"), "as 2% or 0.02"),
        (("--max-regression", "-1%"), "0% to below 100%"),
        (("--max-regression", "nan"), "as 2% or 0.02"),
        (("--max-usd-per-million", "3"), "--usd-per-hour"),
        (("--max-usd-per-million", "0", "--usd-per-hour", "2"), "above 0"),
        (("--usd-per-hour", "0"), "above 0"),
        (("--override", "hat"), "override 'hat'"),
        (("--candidate", "nothing-*"), "has that label or id"),
        (("--candidate", "off-c8-r1"), "on one side"),
        (("--study", "absent"), "there is none"),
    ],
)
def test_wrong_usage_is_2_and_one_line(sim: str, more: tuple[str, ...], said: str) -> None:
    result = run(
        *("--study", sim, "--baseline", "off-c8-*", "--candidate", "sim:2-c8-*"), *more, "--json"
    )
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_a_missing_side_is_wrong_usage() -> None:
    assert run("--study", "sim", "--baseline", "off-*").exit_code == 2


def test_what_is_not_comparable_is_3_with_the_reason(sim: str) -> None:
    found = answer(3, sim, "off-c8-*", "sim:2-c16-*")
    assert (found["verdict"], found["metrics"], found["repeats_needed"]) == ("undecided", [], None)
    assert "no arm was measured at one load on both sides" in found["reason"]
    lacking = answer(3, sim, "sim:2-c8-*,sim:2-c16-*", "sim:4-c8-*")
    assert lacking["reason"] == "the candidate was not measured: sim:4 at 16 concurrent"


def test_a_store_in_use_is_no_regression(sim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lib.errors import StoreLocked

    def locked() -> Store:
        raise StoreLocked("another process holds the store")

    monkeypatch.setattr(Store, "open", staticmethod(locked))
    result = run("--study", sim, "--baseline", "off-c8-*", "--candidate", "sim:2-c8-*", "--json")
    assert (result.exit_code, result.stderr) == (3, "error: another process holds the store\n")


def test_for_people_it_is_lines(sim: str) -> None:
    result = run("--study", sim, "--baseline", "off-c8-*", "--candidate", "sim:2-c8-*")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "verdict: pass\nmetrics:\n  name usd_per_million, at sim:2 at 8"
    )


def test_a_published_study_by_its_ids() -> None:
    name = "trtllm_l4_qwen25_1p5b_draft0p5b_load"
    found = answer(3, name, "*: off at *", "*: draft*")
    assert found["metrics"][0]["why"] == "one run a side has no interval"
    assert found["metrics"][0]["ratio"] == pytest.approx(309.4 / 161.6, rel=1e-3)


replicates = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


@pytest.fixture(scope="module")
def gsm8k(place: Path) -> str:
    """Three repeats by a home-made harness, read through a saved mapping."""
    store = Store.open()
    leaves = offered((SPECSTUDY / "none-gsm8k-c1.json").read_bytes())
    store.save_mapping(signature(leaves), leaves, SPECSTUDY_MAPPING, "none-gsm8k-c1.json")
    import_paths(store, [SPECSTUDY / "phase3"], "gsm8k")
    label(store, "gsm8k")
    store.close()
    return "gsm8k"


@replicates
@pytest.mark.parametrize(
    ("baseline", "candidate", "status"),
    [
        ("off-c8-*", "eagle3:5-c8-*", 0),
        ("off-c[138]*", "eagle3:5-c[138]*", 0),
        ("eagle3:5-*", "off-*", 1),
        ("off-*", "eagle3:5-*", 3),  # 1.035 (1.004-1.067) at 64 holds the limit
    ],
)
def test_replicates_each_way(gsm8k: str, baseline: str, candidate: str, status: int) -> None:
    assert answer(status, gsm8k, baseline, candidate)["reason"] == ""


@replicates
def test_one_replicate_against_the_others(gsm8k: str) -> None:
    found = answer(3, gsm8k, "*-r0", "*-r[12]")
    names = {m["name"]: m for m in found["metrics"]}
    assert names["tau"]["why"] == "one run a side has no interval"
    assert names["tau"]["baseline"] == pytest.approx(2.8894, abs=5e-4)
    assert names["crossover"]["baseline"] == pytest.approx(58.68, abs=0.01)
    assert found["split"]["at"] == "eagle3:5 at 64 concurrent"
    assert found["split"]["acceptance"] == pytest.approx(0.998, abs=1e-3)
    assert found["repeats_needed"] == 2


# Mean tok/s ± sd of 3 runs; the numbers are made up.
MEANS_AND_SD = """concurrency,nospec_tok_s,nospec_sd,spec_tok_s,spec_sd,repeats
1,100,0.5,40,0.2,3
4,150,0.4,36,0.9,3
8,190,14,30,0.7,3
"""
LLAMA_CPP = CORPUS.parent / "published" / "llamacpp_draft_n8_negative.csv"


@pytest.mark.parametrize("shared", [False, True], ids=["made up", "published"])
def test_a_published_mean_with_its_sd_is_enough(place: Path, shared: bool) -> None:
    if shared and not LLAMA_CPP.exists():
        pytest.skip("no ../shared/published")
    table, study = place / f"sd-{shared}.csv", f"sd-{shared}"
    table.write_text(LLAMA_CPP.read_text() if shared else MEANS_AND_SD)
    store = Store.open()
    import_paths(store, [table], study)
    runs = store.study(study).runs
    store.close()
    off, on = (
        ",".join(r.run_id for r in runs if (r.arm == "off") is wanted) for wanted in (True, False)
    )
    worse = answer(1, study, off, on)["metrics"][0]
    assert (worse["verdict"], worse["at"]) == ("regressed", "speculation at 8 concurrent")
    tps = {r.arm: r.output_tps or 0.0 for r in runs if r.offered_load == 8}
    assert worse["ratio"] == pytest.approx(tps["off"] / tps["speculation"])
    assert answer(0, study, on, off)["verdict"] == "pass"
