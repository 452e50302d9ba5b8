"""Published sweeps: cited, equal to their source, never mixed; the demo says what it is."""

import csv
import json
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest

from lib.errors import StudyNotFound
from lib.estimate import Basis
from lib.results import published
from lib.run import LoadKind, Run, SpecState, Study

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT / ".." / "shared"
TABLES = [name for name in published.studies() if name != published.DEMO]
KIND = {name: cited.kind for name, cited in published.citations().items()}
# Tables whose source is a write-up that may not be passed on.
NOT_OURS_TO_SHIP = (
    "llamacpp_draft_n8_negative",
    "sglang_h200_dsv4flash_dspark",
    "vllm_gb10_qwen38_flashnext_mtp",
)


def by_arm(study: Study, field: str) -> dict[str | None, dict[float | None, object]]:
    found: dict = {}
    for run in study.runs:
        found.setdefault(run.arm, {})[run.offered_load] = getattr(run, field)
    return found


def source(table: str) -> list[dict[str, str]]:
    path = SHARED / "published" / f"{table}.csv"
    if not path.exists():
        pytest.skip("the published tables are not at hand")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], load: str, value: str) -> dict[float, float]:
    return {float(r[load]): float(r[value].lstrip("~")) for r in rows}


# Every table


def test_each_table_is_cited_and_each_citation_has_its_file() -> None:
    stems = {p.stem for p in published.PUBLISHED.glob("*.csv")} - {"citations"}
    assert stems == set(TABLES)
    assert published.DEMO_ARCHIVE.exists()
    for cited in published.citations().values():
        assert cited.title
        assert cited.citation
        assert cited.dated
        assert cited.note
        assert cited.kind in ("sweep", "ratio", "latency", "digitised", "simulated")
        assert cited.url == "" or cited.url.startswith("https://")
        assert published.study(cited.study).url == cited.url


def test_a_first_visitor_sees_the_one_that_crosses_then_the_eight_b300() -> None:
    first, second = (published.study(name) for name in published.studies()[:2])
    assert first.name == "trtllm_l4_qwen25_1p5b_draft0p5b_load"
    assert {r.gpu for r in first.runs} == {"L4"}
    assert {(r.gpu, r.gpu_count, r.tensor_parallel) for r in second.runs} == {("B300", 8, 8)}
    assert published.studies()[-1] == published.DEMO


def test_nothing_ships_that_may_not_be_passed_on() -> None:
    names = " ".join(p.name for p in published.PUBLISHED.iterdir())
    assert not [table for table in NOT_OURS_TO_SHIP if table in names]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_reads_as_a_published_study(name: str) -> None:
    study = published.study(name)
    cited = published.citations()[name]
    assert study is published.study(name)
    assert (study.name, study.basis, study.read_only) == (name, Basis.PUBLISHED, True)
    assert (study.title, study.citation, study.note) == (cited.title, cited.text, cited.note)
    assert len({r.run_id for r in study.runs}) == len(study.runs) > 1
    for run in study.runs:
        assert run.study == name
        assert run.arm is not None
        assert run.load_kind is not None
        assert run.target
        assert run.engine
        assert run.extra is None or isinstance(json.loads(run.extra), dict)


@pytest.mark.parametrize("name", TABLES)
def test_both_arms_stand_at_several_loads_of_one_workload(name: str) -> None:
    runs = published.study(name).runs
    loads: dict[str | None, set] = {}
    for run in runs:
        loads.setdefault(run.arm, set()).add(run.offered_load)
    assert len(set(map(frozenset, loads.values()))) == 1
    assert all(len(found) >= 2 for found in loads.values())
    for field in ("target", "dataset", "load_kind", "gpu", "engine_version"):
        assert len({getattr(r, field) for r in runs}) == 1
    assert ("off" in loads) == (KIND[name] != "ratio")


@pytest.mark.parametrize("name", TABLES)
def test_a_ratio_is_compared_and_has_nothing_to_price(name: str) -> None:
    for run in published.study(name).runs:
        if KIND[name] == "ratio":
            assert run.multiplier is not None
            assert run.output_tps is run.tpot_ms_mean is None
        else:
            assert run.multiplier is None
            assert (run.output_tps is None) == (KIND[name] == "latency")


def test_an_unknown_study_names_those_there_are() -> None:
    with pytest.raises(StudyNotFound, match=published.studies()[0]):
        published.study("../citations")


# Equal to the source, where it is at hand


def test_l4_equals_its_source() -> None:
    name = "trtllm_l4_qwen25_1p5b_draft0p5b_load"
    found = by_arm(published.study(name), "output_tps")
    assert found["off"] == {1.0: 74.7, 2.0: 127.2, 4.0: 209.2, 8.0: 309.4}
    assert found["draft_model:4"] == {1.0: 85.1, 2.0: 108.7, 4.0: 133.8, 8.0: 161.6}
    rows = source(name)
    assert found["off"] == column(rows, "concurrency", "baseline_tok_s")
    assert found["draft_model:4"] == column(rows, "concurrency", "spec_tok_s")
    assert {r["K"] for r in rows} == {"4"}


def test_b300_equals_its_source_and_a_rate_per_user_is_no_latency() -> None:
    study = published.study("vllm_dspark_dsv4pro_b300")
    found = by_arm(study, "output_tps")
    fixed = [f"dspark:{k}" for k in (1, 3, 5, 6, 7)]
    assert set(found) == {"off", "dspark-adaptive", *fixed}
    assert list(found["off"].values()) == [101, 1124, 1664, 2774, 4406, 6323]
    assert all(r.tpot_ms_mean is None for r in study.runs)
    rows = source(study.name)
    names = {"nospec": "off", "adaptive": "dspark-adaptive"}
    per_user = by_arm(study, "extra")
    for row in rows:
        arm = names.get(row["arm"], f"dspark:{row['arm'][1:]}")
        load = float(row["concurrency"])
        assert found[arm][load] == float(row["agg_output_tok_s"])
        assert json.loads(str(per_user[arm][load])) == {
            "tok_s_per_user": float(row["tok_s_per_user"])
        }
    assert len(rows) == len(study.runs)


@pytest.mark.parametrize("method", ["eagle", "eagle3"])
def test_eagle_equals_its_source(method: str) -> None:
    study = published.study("eagle3_sglang_h100_llama31_8b")
    found = by_arm(study, "multiplier")
    assert set(found) == {"eagle:3", "eagle3:3"}
    assert {r.load_kind for r in study.runs} == {LoadKind.BATCH}
    assert "chain of 3" in study.note
    rows = source(study.name)
    assert found[f"{method}:3"] == column(rows, "batch_size", f"{method}_speedup")


def test_ngram_equals_its_source() -> None:
    study = published.study("vllm_h100_qwen25_7b_ngram_extractive")
    rows = source(study.name)
    found = by_arm(study, "output_tps")
    assert found["off"] == column(rows, "concurrency", "baseline_tok_s")
    assert found["ngram:5"] == column(rows, "concurrency", "ngram_tok_s")
    rates = by_arm(study, "accept_rate")
    assert rates["ngram:5"] == column(rows, "concurrency", "accepted_over_drafted")


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("vllm_peagle_gptoss20b_digitised", "MT-Bench"),
        ("vllm_peagle_gptoss20b_digitised_humaneval", "HumanEval"),
    ],
)
def test_peagle_keeps_its_datasets_apart_and_leaves_out_what_it_cannot_resolve(
    name: str, dataset: str
) -> None:
    study = published.study(name)
    assert {r.dataset for r in study.runs} == {dataset}
    assert "digitised" in study.note
    found = by_arm(study, "output_tps")
    assert min(load for load in found["off"] if load is not None) == 4
    rows = source("vllm_peagle_gptoss20b_digitised")
    own = [r for r in rows if r["dataset"] == dataset and int(r["concurrency"]) > 2]
    assert found == {
        "off": column(own, "concurrency", "baseline_tps"),
        "eagle3": column(own, "concurrency", "best_eagle3_tps"),
        "p-eagle": column(own, "concurrency", "best_peagle_tps"),
    }


@pytest.mark.parametrize(
    ("name", "arm", "off", "on"),
    [
        ("vllm_eagle31_kimi_k26_gb200", "eagle3.1:3", "nospec_tok_s_user", "spec_tok_s_user"),
        ("vllm_amd_kimi_k25_mi355x", "eagle3", "nospec_tok_s_gpu", "eagle3_bf16_tok_s_gpu"),
    ],
)
def test_ratios_of_rates_that_cannot_be_priced(name: str, arm: str, off: str, on: str) -> None:
    rows = source(name)
    found = by_arm(published.study(name), "multiplier")
    assert found == {
        arm: {
            float(r["concurrency"]): pytest.approx(float(r[on]) / float(r[off]), abs=5e-5)
            for r in rows
        }
    }


def test_gaudi_equals_its_source() -> None:
    study = published.study("gaudi_deepseek_r1_mtp")
    found = by_arm(study, "multiplier")
    assert found == {"mtp": column(source(study.name), "batch_size", "speedup_claimed")}


def test_pipeline_stages_equal_their_source() -> None:
    study = published.study("vllm_pp4_sm80_mtp2_negative")
    found = by_arm(study, "output_tps")
    assert {r.pipeline_parallel for r in study.runs} == {4}
    rows = source(study.name)
    assert found["off"] == column(rows, "concurrency", "nospec_tok_s")
    assert found["mtp:2"] == column(rows, "concurrency", "mtp2_tok_s")


def test_a_scheduled_zero_is_an_arm_of_its_own() -> None:
    study = published.study("vllm_h100_gemma4_31b_dsd_k0_tax")
    found = by_arm(study, "tpot_ms_mean")
    assert set(found) == {"off", "dsd:0"}
    zero = [r for r in study.runs if r.arm == "dsd:0"]
    assert {(r.spec_state, r.num_speculative_tokens) for r in zero} == {(SpecState.ON, 0)}
    rows = source(study.name)
    assert found["off"] == column(rows, "concurrency", "nospec_tpot_ms")
    assert found["dsd:0"] == column(rows, "concurrency", "dsd_k0_tpot_ms")


# The demo


def test_the_demo_is_read_from_its_files_and_says_what_it_is() -> None:
    study = published.study(published.DEMO)
    assert (study.basis, study.read_only) == (Basis.MEASURED, True)
    assert "simulated engine" in study.caveat
    cells = Counter((r.arm, r.offered_load) for r in study.runs)
    arms, loads = ("off", "sim:2", "sim:4"), (1, 2, 4, 8, 16, 32, 64)
    assert cells == {(arm, load): 3 for arm in arms for load in loads}
    assert {r.repeat for r in study.runs} == {1, 2, 3}
    assert len({r.run_id for r in study.runs}) == 63
    assert {r.study for r in study.runs} == {published.DEMO}
    assert {(r.tool, r.zone_known) for r in study.runs} == {("guidellm", True)}


def test_the_demo_has_the_recorded_throughputs() -> None:
    def found(arm: str, load: float) -> list[float]:
        runs = [r for r in published.study(published.DEMO).runs if r.arm == arm]
        cell = sorted((r for r in runs if r.offered_load == load), key=lambda r: r.repeat or 0)
        return [round(r.output_tps or 0, 1) for r in cell]

    assert found("off", 1) == [78.6, 78.5, 78.5]
    assert found("off", 64) == [2943.0, 2887.4, 2729.5]
    assert found("sim:2", 32) == [2197.1, 2016.6, 2129.3]
    assert found("sim:4", 16) == [1526.1, 1416.3, 1507.7]


def test_the_demos_files_are_small_and_without_texts() -> None:
    assert published.DEMO_ARCHIVE.stat().st_size < 3_000_000
    files = dict(published.demo_files())
    assert Counter(Path(name).suffix for name in files) == {".json": 63, ".csv": 2}
    report = json.loads(files["k4-c8-r1.json"])
    served = report["benchmarks"][0]["requests"]["successful"]
    assert len(served) == 32
    assert {(r["request_args"], r["output"]) for r in served} == {("", "")}
    assert not [name for name, data in files.items() if b'"content"' in data]


def test_the_demos_files_differ_from_the_recording_in_texts_only() -> None:
    recorded = SHARED / "sweeps" / "guidellm-0.8.1"
    if not recorded.exists():
        pytest.skip("the recorded sweep is not at hand")
    with ZipFile(published.DEMO_ARCHIVE) as archive:
        assert sorted(archive.namelist()) == sorted(p.name for p in recorded.iterdir())
        for name in ("base-c1-r1.json", "k2-c64-r3.json"):
            whole, ours = json.loads((recorded / name).read_bytes()), json.loads(archive.read(name))
            for request in whole["benchmarks"][0]["requests"]["successful"]:
                request |= {"request_args": "", "output": ""}
            assert ours == whole
        assert archive.read("k4-c8-r1.csv") == (recorded / "k4-c8-r1.csv").read_bytes()


def test_runs_are_named_for_people() -> None:
    runs: tuple[Run, ...] = published.study(published.studies()[0]).runs
    assert runs[0].run_id == "trtllm_l4_qwen25_1p5b_draft0p5b_load: off at 1"
