"""The main job from the command line, on the recorded sweep and the published tables."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from lib.results import published
from lib.results.store import Store
from tests.unit.evidence.builders import PRINTED

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "vllm"
RULES = ("--arm", "base-*=off", "--arm", "k2-*=sim:2", "--arm", "k4-*=sim:4")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def answer(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The demo's files imported once into a store of their own; what the import said."""
    place = tmp_path_factory.mktemp("sweep")
    folder = place / "results"
    folder.mkdir()
    for name, data in published.demo_files():
        (folder / name).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTWORTH_STORE", str(place / "store.duckdb"))
        yield answer("import", str(folder), "--study", "sim", *RULES), folder


def test_import_reads_the_whole_sweep(imported: Any) -> None:
    said, _ = imported
    assert said["imported"] == 63
    assert said["refused"] == []
    assert len(said["files"]) == 65
    assert {d["of"] for d in said["duplicates"]} == {"base-c8-r1.json", "k4-c8-r1.json"}
    by_name = {f["file"]: f for f in said["files"]}
    assert by_name["base-c1-r1.json"]["tool"] == "guidellm"
    assert by_name["base-c1-r1.json"]["version"] == "0.8.1"
    assert by_name["base-c1-r1.json"]["runs"] == 1
    assert by_name["base-c8-r1.csv"]["runs"] == 0
    assert by_name["base-c8-r1.csv"]["flags"] == ["duplicate"]


def test_a_second_import_adds_nothing(imported: Any) -> None:
    _, folder = imported
    again = answer("import", str(folder), "--study", "sim", *RULES)
    assert again["imported"] == 0
    assert len(again["duplicates"]) == 65


def test_compare_reproduces_every_multiplier(imported: Any) -> None:
    said = answer("compare", "--study", "sim")
    assert said["baseline"] == "off"
    assert [a["arm"] for a in said["arms"]] == ["sim:2", "sim:4"]
    for arm in said["arms"]:
        found = {
            p["load"]: tuple(round(p[k], 3) for k in ("multiplier", "low", "high"))
            for p in arm["points"]
        }
        assert found == PRINTED[arm["arm"].replace("sim:", "k")]
        assert all(p["runs"] == [3, 3] for p in arm["points"])
    two, four = said["arms"]
    (crossing,) = two["crossings"]
    assert crossing["between"] == [32, 64]
    assert crossing["at"] == pytest.approx(45.55, abs=0.005)
    assert crossing["low"] < crossing["at"] < crossing["high"]
    (crossing,) = four["crossings"]
    assert crossing["between"] == [16, 32]
    assert crossing["at"] == pytest.approx(31.45, abs=0.005)
    assert crossing["direction"] == "down"
    assert {p["load"]: p["mark"] for p in four["points"]}[32] == "too close to call"
    assert four["outside"] is None


def test_schedule_of_the_sweep(imported: Any) -> None:
    ranges = [[1, 8, 4], [9, 38, 2], [39, 64, 0]]
    said = answer("schedule", "--study", "sim", "--max-num-seqs", "64")
    assert said["num_speculative_tokens"] == 4
    assert said["num_speculative_tokens_per_batch_size"] == ranges
    assert said["tail_unmeasured"] is None
    checked = answer(
        *("schedule", "--check", json.dumps(ranges)),
        *("--num-speculative-tokens", "4", "--max-num-seqs", "64"),
    )
    assert checked["valid"]
    assert checked["effective"] == ranges
    longer = answer("schedule", "--study", "sim", "--max-num-seqs", "256")
    assert longer["tail_unmeasured"] == [65, 256]
    assert any("unmeasured" in w for w in longer["warnings"])


def test_an_slo_is_judged_by_percentiles(imported: Any) -> None:
    said = answer("compare", "--study", "sim", "--slo", "tpot_ms=14,percentile=p95")
    points = {p["load"]: p["slo"] for p in said["arms"][0]["points"]}
    assert points[1] == ["met", "met"]
    assert points[64] == ["missed", "missed"]


def test_import_with_an_unmatched_file_flags_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    name, data = published.demo_files()[0]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "page.html").write_text("<html></html>")
    result = run("import", str(tmp_path / name), str(tmp_path / "page.html"), "--study", "s")
    assert result.exit_code == 0
    said = answer("import", str(tmp_path / name), "--study", "t", "--set", "gpu=H100")
    assert said["files"][0]["flags"] == ["arm_unknown"]
    refused = run("import", str(tmp_path / "page.html"), "--study", "s", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["refused"][0]["file"] == "page.html"


def test_importing_again_names_the_arm_of_stored_runs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in published.demo_files():
        if name.endswith("c8-r1.json") and not name.startswith("k2"):
            (folder / name).write_bytes(data)
    to = (str(folder), "--study", "s")
    assert answer("import", *to, "--arm", "base-*=off", "--set", "gpu=L4")["imported"] == 2
    silent = answer("import", *to, "--set", "gpu=H100")
    assert {tuple(f["flags"]) for f in silent["files"]} == {("duplicate",)}

    rules = ("--arm", "k4-*=sim:4", "--arm", "base-*=mtp:2", "--set", "gpu=H100")
    again = answer("import", *to, *rules)
    assert again["imported"] == 0
    assert {d["file"] for d in again["duplicates"]} == {"base-c8-r1.json", "k4-c8-r1.json"}
    by_name = {f["file"]: f for f in again["files"]}
    assert by_name["base-c8-r1.json"]["flags"] == ["duplicate"]
    assert by_name["k4-c8-r1.json"]["flags"] == ["duplicate", "arm_named"]
    assert by_name["k4-c8-r1.json"]["messages"][1] == "the arm of 1 stored run was named"
    store = Store.open()
    try:
        assert {(r.arm, r.gpu) for r in store.study("s").runs} == {("off", "L4"), ("sim:4", "H100")}
    finally:
        store.close()
    once_more = answer("import", *to, *rules)
    assert {tuple(f["flags"]) for f in once_more["files"]} == {("duplicate",)}


def test_a_folder_of_sidecars_is_no_failure(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "run.pytorch.json").write_text('[{"benchmark": {}, "model": {}, "metric": {}}]')
    (folder / "x.failure.json").write_text('{"error_type": "RuntimeError", "error": "no GPU"}')
    said = answer("import", str(folder), "--study", "s")
    assert (said["imported"], said["refused"], said["duplicates"]) == (0, [], [])
    assert {(f["file"], f["runs"], *f["flags"]) for f in said["files"]} == {
        ("run.pytorch.json", 0, "sidecar"),
        ("x.failure.json", 0, "failed_run"),
    }
    assert any("RuntimeError: no GPU" in m for f in said["files"] for m in f["messages"])
    store = Store.open()
    try:
        assert store.studies() == ()
    finally:
        store.close()


@pytest.mark.parametrize(
    "args",
    [
        ("nowhere", "--study", "s"),
        (".", "--study", " "),
        (".", "--study", "s", "--arm", "k4"),
        (".", "--study", "s", "--set", "colour=red"),
    ],
)
def test_a_wrong_import_changes_nothing(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    (tmp_path / "in").mkdir()
    name, data = published.demo_files()[0]
    (tmp_path / "in" / name).write_bytes(data)
    target = str(tmp_path / "in") if args[0] == "." else str(tmp_path / args[0])
    result = run("import", target, *args[1:], "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1


def test_published_crossings() -> None:
    eagle, eagle3 = answer("compare", "--study", "eagle3_sglang_h100_llama31_8b")["arms"]
    assert (eagle["arm"], eagle3["arm"]) == ("eagle:3", "eagle3:3")
    (crossing,) = eagle["crossings"]
    assert crossing["at"] == pytest.approx(17.45, abs=0.005)
    assert crossing["low"] is None
    assert eagle3["crossings"] == []
    assert eagle3["outside"] == "above 64"
    (l4,) = answer("compare", "--study", "trtllm_l4_qwen25_1p5b_draft0p5b_load")["arms"]
    assert l4["crossings"][0]["at"] == pytest.approx(1.37, abs=0.005)


def test_the_eight_b300_schedule() -> None:
    said = answer("schedule", "--study", "vllm_dspark_dsv4pro_b300", "--max-num-seqs", "256")
    assert said["num_speculative_tokens_per_batch_size"] == [
        [1, 4, 6],
        [5, 18, 5],
        [19, 56, 3],
        [57, 66, 5],
        [67, 256, 3],
    ]
    assert any("adaptive" in w for w in said["warnings"])


def test_the_schedule_says_what_it_is_worth_and_how_to_prove_it(imported: Any) -> None:
    said = answer("schedule", "--study", "sim", "--max-num-seqs", "64", "--trtllm-version", "1.3.0")
    assert said["best_fixed_k"] == 2
    assert "Up to 11.5 % over a fixed K = 2" in said["verdict"]
    assert [a["name"] for a in said["measure"]["arms"]] == ["off", "sim:2", "sim:schedule"]
    assert said["draft_len_schedule"] == {"8": 4, "38": 2}
    assert [t["measured"] for t in said["tiers"]] == [[1, 2, 4, 8], [16, 32], [64]]


def test_a_schedule_by_goodput_counts_stored_requests(imported: Any) -> None:
    options = ("--study", "sim", "--max-num-seqs", "64", "--objective", "goodput", "--tail", "off")
    said = answer("schedule", *options, "--slo", "tpot_ms=20")
    assert said["num_speculative_tokens_per_batch_size"] is not None
    assert any("Goodput" in w and "TPOT ≤ 20 ms" in w for w in said["warnings"])
    refused = run("schedule", *options)
    assert refused.exit_code == 2
    assert "no SLO is named" in refused.stderr


def test_a_pasted_command_needs_no_number_beside_it() -> None:
    text = """vllm serve m --max-num-seqs 64 --speculative-config '{"method": "dflash",
    "num_speculative_tokens": 3, "num_speculative_tokens_per_batch_size": [[1,16,5],[17,64,0]]}'"""
    said = answer("schedule", "--check", text)
    assert said["effective"] == [[1, 16, 3], [17, 64, 0]]
    assert any("clamped" in w for w in said["warnings"])
    asked = run("schedule", "--check", "[[1,16,3]]", "--json")
    assert asked.exit_code == 2
    assert "num_speculative_tokens and max_num_seqs needed" in asked.stderr
    refused = run("schedule", "--check", "[[2,16,3]]", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["valid"] is False


def test_an_unknown_study_is_one_line() -> None:
    result = run("compare", "--study", "nothing-of-that-name", "--json")
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "in"
    folder.mkdir()
    name, data = published.demo_files()[0]
    (folder / name).write_bytes(data)
    (folder / os.fsdecode(b"\xff.json")).write_bytes(b"{}")
    said = answer("import", str(folder), "--study", "s", "--arm", "base*=off")
    assert said["imported"] == 1
    assert len(said["refused"]) == 1


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project")
def test_a_real_pair_from_its_folders(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    rules = ("--arm", "*-off/*=off", "--arm", "*-eagle3/*=eagle3:3")
    assert answer("import", str(CORPUS), "--study", "w4", *rules)["imported"] == 10
    said = answer("compare", "--study", "w4")
    (crossing,) = said["arms"][0]["crossings"]
    assert crossing["between"] == [1, 4]
    assert crossing["at"] is None
    assert crossing["measure_at"] == 2
    assert any("0.7 % with one run each: too close to call" in n for n in said["notes"])


def test_a_schedule_on_random_tokens_needs_a_word(tmp_path: Path, monkeypatch: Any) -> None:
    """C52."""
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in published.demo_files():
        if "-r1.json" in name and not name.startswith("k2"):
            (folder / name).write_bytes(data)
    rules = ("--arm", "base-*=off", "--arm", "k4-*=sim:4", "--set", "dataset=random")
    assert answer("import", str(folder), "--study", "s", *rules)["imported"] == 14
    assert answer("compare", "--study", "s")["arms"][0]["points"]
    options = ("schedule", "--study", "s", "--max-num-seqs", "64")
    refused = run(*options, "--json")
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "--accept-random" in refused.stderr
    said = answer(*options, "--accept-random")
    assert any("random tokens" in w for w in said["warnings"])


def test_goodput_is_compared_at_the_slo(imported: Any) -> None:
    asked = ("compare", "--study", "sim", "--metric", "goodput_rps")
    loose, tight = (answer(*asked, "--slo", f"tpot_ms={x}") for x in (100, 20))
    assert any("counted from per-request records" in n for n in loose["notes"])
    arms = [{a["arm"]: a for a in said["arms"]}["sim:4"] for said in (loose, tight)]
    bracket = [arm["crossings"][0]["between"] for arm in arms]
    assert bracket[0] == [16, 32]
    assert all(p["multiplier"] > 0 for arm in arms for p in arm["points"])
    gaps = {g["load"] for g in arms[1]["without_ratio"]}
    assert gaps.isdisjoint(p["load"] for p in arms[1]["points"])
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "name a limit on TTFT, TPOT or the end-to-end time" in refused.stderr
