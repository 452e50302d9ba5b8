"""Real result files of many tools, where they lie beside the project: what must come out."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.evidence.findings import Findings, find
from lib.results.importing import import_paths
from lib.results.mapping import signature
from lib.results.reading import read
from lib.results.store import Store
from lib.run import Study
from tests.unit.results.test_mapping import offered

SHARED = Path(__file__).resolve().parents[4] / "shared"
CORPUS, SWEEPS = SHARED / "corpus", SHARED / "sweeps"
SPECSTUDY = CORPUS / "other" / "specstudy"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.duckdb")
    yield opened
    opened.close()


SPECSTUDY_MAPPING = {
    "config.concurrency": "concurrency",
    "config.factors.spec_decode": "arm",
    "config.engine_args.num_speculative_tokens": "num_speculative_tokens",
    "config.repeat_idx": "repeat",
    "config.model": "target",
    "config.workload": "dataset",
    "config.engine": "engine",
    "env.engine_version": "engine_version",
    "env.gpu_name": "gpu",
    "env.timestamp_utc": "started_at",
    "measured.throughput_tok_s": "output_tps",
    "measured.wall_time_s": "duration_s",
    "measured.total_completion_tokens": "output_tokens",
    "measured.acceptance_rate": "accept_rate",
    "measured.accepted_length_tau": "accept_length",
    "measured.ttft_ms.mean": "ttft_ms_mean",
    "measured.e2e_latency_ms.mean": "e2e_ms_mean",
    "measured.itl_ms.mean": "itl_ms_mean",
}


def test_a_home_made_harness_through_a_saved_mapping(store: Store) -> None:
    first = (SPECSTUDY / "none-gsm8k-c1.json").read_bytes()
    leaves = offered(first)
    store.save_mapping(signature(leaves), leaves, SPECSTUDY_MAPPING, "none-gsm8k-c1.json")
    report = import_paths(store, [SPECSTUDY], "gsm8k")
    assert report.refused == []
    assert len(report.duplicates) == 8, "r0 of phase3 is the phase-2 file, byte for byte"
    runs = store.study("gsm8k").runs
    assert len(runs) == 8 * 3
    first_runs = {(r.arm, r.offered_load): r.output_tps for r in runs if r.repeat == 0}
    printed = {1: (90.4, 192.8), 8: (626.4, 1099.5), 32: (1590.7, 1944.2), 64: (2236.6, 2173.3)}
    for load, (off, on) in printed.items():
        assert first_runs["off", load] == pytest.approx(off, abs=0.05)
        assert first_runs["eagle3:5", load] == pytest.approx(on, abs=0.05)
    (arm,) = find(store.study("gsm8k")).arms
    assert [(p.n_off, p.n_on) for p in arm.points] == [(3, 3)] * 4
    assert all(p.interval() is not None for p in arm.points)
    (crossing,) = arm.crossover.crossings
    assert crossing.between == (32, 64)
    tau = next(r.accept_length for r in runs if r.arm == "eagle3:5" and r.accept_length)
    assert 2.7 < tau < 3.1


def kubecon(store: Store) -> Study:
    import_paths(store, [CORPUS / "inference-perf"], "kubecon")
    return store.study("kubecon")


def test_two_open_loop_sweeps_are_told_apart_by_their_manifests(store: Store) -> None:
    study = kubecon(store)
    assert {r.arm for r in study.runs} == {"off", "eagle3:4"}
    assert len(study.runs) == 14
    off = sorted(r.offered_load or 0 for r in study.runs if r.arm == "off")
    on = sorted(r.offered_load or 0 for r in study.runs if r.arm == "eagle3:4")
    assert off != on
    found: Findings = find(study, "tpot_ms")
    (arm,) = found.arms
    assert {p.load for p in arm.points} == set(off) & set(on), "measured points need both arms"
    assert all(p.multiplier < 1 for p in arm.points)
    assert arm.crossover.crossings == ()
    saturated = max(r.achieved_load or 0 for r in study.runs if r.arm == "off")
    assert saturated == pytest.approx(106.5, abs=1)


def test_the_throughput_of_an_open_loop_is_only_its_demand(store: Store) -> None:
    found = find(kubecon(store))
    assert all(arm.points == () and arm.crossover.crossings == () for arm in found.arms)
    (note,) = found.comparison.notes
    assert note.startswith("9 runs left out of throughput and price")
    assert "Mean TPOT" in note
    assert "eagle3:4 4277.61, off 6431.06" in note


@pytest.mark.skipif(not SWEEPS.is_dir(), reason="no shared sweeps beside the project")
def test_a_client_that_counts_twice_is_put_right(store: Store) -> None:
    place = SWEEPS / "aiperf-0.13.0"
    rules = ["base-*=off", "k2-*=sim:2", "k4-*=sim:4"]
    report = import_paths(store, [place], "sim", rules)
    assert report.imported == 21
    runs = store.study("sim").runs
    for run in runs:
        assert run.token_count == "server"
        assert run.output_len == pytest.approx(64)
        assert (run.retokenized_tokens or 0) / (run.output_tokens or 1) == pytest.approx(129 / 64)
    printed = {
        "sim:2": (1.813, 1.783, 1.737, 1.702, 1.764, 1.205, 0.836),
        "sim:4": (2.022, 1.870, 1.896, 1.873, 1.471, 0.990, 0.650),
    }
    for arm in find(store.study("sim")).arms:
        for point, expected in zip(arm.points, printed[arm.arm], strict=True):
            assert point.multiplier == pytest.approx(expected, rel=0.15)


def test_an_unlimited_rate_is_no_number() -> None:
    for path in (CORPUS / "generated").glob("sglang-*.jsonl"):
        for run in read(path.name, path.read_bytes()).runs:
            assert run.offered_load is not None
            assert run.load_kind is not None
            assert math.isfinite(run.offered_load) or run.load_kind == "request_rate"


def test_every_file_of_the_manifest_is_read_or_named(store: Store) -> None:
    report = import_paths(store, [CORPUS], "all")
    said = {f.file for f in report.files} | {r.file for r in report.refused}
    listed = [line.split("\t")[0] for line in (CORPUS / "MANIFEST.tsv").read_text().splitlines()]
    assert said == {*listed[1:], "MANIFEST.tsv"}
    known = {"MANIFEST.tsv", *(n for n in said if n.startswith("other/"))}
    assert {r.file for r in report.refused} == known
    assert all("headers found" in r.reason or "the keys" in r.reason for r in report.refused)
    for file in report.files:
        assert file.runs or file.flags, f"{file.file} is no run and has no reason"
