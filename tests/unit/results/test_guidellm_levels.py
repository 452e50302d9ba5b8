"""GuideLLM 0.2 to 0.8, JSON, YAML and CSV: the same values from every layout."""

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
import yaml

from lib.errors import DraftworthError, UnknownFormat
from lib.results.reading import Reading, read
from lib.results.tools import guidellm, guidellm_csv, guidellm_early
from lib.run import LoadKind, Run, SpecState
from tests.unit.results import guidellm_files as files
from tests.unit.results.shaken import shaken

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")
STRATEGIES = [
    {"type_": "synchronous"},
    {"type_": "throughput", "max_concurrency": 512},
    {"type_": "concurrent", "streams": 4},
    {"type_": "constant", "rate": 2.5},
    {"type_": "poisson", "rate": 7.0},
    {"type_": "unheard of"},
    {"type_": ["x"], "streams": {}},
]
LEVELS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "0.2, 0.3": (files.early_report, "0.2 or 0.3"),
    "0.4": (files.args_report, "0.4"),
    "0.5, 0.6": (files.v1_report, "0.6.1"),
    "0.7": (files.v2_report, "0.7.0"),
}
each_level = pytest.mark.parametrize("level", LEVELS)


def reading(report: object) -> Reading:
    return read("r.json", json.dumps(report).encode())


def differing(one: Run, other: Run) -> set[str]:
    return {f.name for f in fields(Run) if getattr(one, f.name) != getattr(other, f.name)}


@each_level
def test_c74_seven_rates_in_one_file_are_seven_runs(level: str) -> None:
    build, version = LEVELS[level]
    found = reading(build())
    assert (found.tool, found.tool_version) == ("guidellm", version)
    assert [r.offered_load for r in found.runs] == list(files.RATES)
    assert {r.load_kind for r in found.runs} == {LoadKind.REQUEST_RATE}
    assert {r.achieved_load for r in found.runs} == {4.75}
    assert len({r.run_id for r in found.runs}) == 7
    run = found.runs[0]
    assert (run.target, run.seed) == ("acme/m", 7)
    assert (run.completed, run.failed, run.num_prompts, run.duration_s) == (20, 0, 21, 4.0)
    assert (run.input_len, run.output_len, run.output_tokens) == (33.0, 48.0, 960)
    assert (run.output_tps, run.request_rps, run.running_mean) == (240.0, 4.75, 1.5)
    assert (run.ttft_ms_mean, run.ttft_ms_p50) == (30.0, 27.0)
    assert (run.e2e_ms_mean, run.e2e_ms_p99) == pytest.approx((312.0, 436.8))
    assert run.spec_state is SpecState.UNKNOWN
    assert run.token_count is None
    assert run.started_at is not None
    assert run.started_at.timestamp() == files.START
    assert json.loads(run.extra or "")["incomplete"] == 1


@each_level
def test_tpot_is_the_inter_token_latency_in_every_level(level: str) -> None:
    run = reading(LEVELS[level][0]()).runs[0]
    assert (run.tpot_ms_mean, run.tpot_ms_p50) == (6.0, pytest.approx(5.4))
    assert (run.tpot_ms_p90, run.tpot_ms_p95) == pytest.approx((7.2, 7.8))
    assert run.itl_ms_mean is None, "it writes no gaps of chunks"
    assert run.accept_length is None, "tokens an iteration are a hint alone"


@each_level
def test_requests_of_every_level(level: str) -> None:
    found = reading(LEVELS[level][0]())
    table = found.requests[found.runs[0].run_id]
    assert table.num_rows == 20, "those cut off are left out"
    row = table.to_pylist()[0]
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_ms"]) == (0.0, 6.0, 312.0)
    assert (row["arrival_s"], row["output_tokens"]) == (0.0, 48)


@each_level
def test_loads_of_every_level(level: str) -> None:
    found = reading(LEVELS[level][0](STRATEGIES))
    rate, streams = LoadKind.REQUEST_RATE, LoadKind.CONCURRENCY
    assert [(r.load_kind, r.offered_load) for r in found.runs] == [
        *((streams, 1.0), (rate, math.inf), (streams, 4.0), (rate, 2.5), (rate, 7.0)),
        *((None, None), (None, None)),
    ]


@each_level
def test_yaml_is_the_same_tree(level: str) -> None:
    report = LEVELS[level][0](STRATEGIES[:2])
    unshared = json.loads(json.dumps(report))
    by_yaml = read("r.yaml", yaml.safe_dump(unshared).encode()).runs
    for one, other in zip(by_yaml, reading(report).runs, strict=True):
        assert differing(one, other) <= {"source_sha256", "extra"}
        assert json.loads(one.extra or "") == json.loads(other.extra or "")


def test_settings_of_0_6_stand_in_backend_kwargs() -> None:
    run = reading(files.v1_report()).runs[0]
    assert (run.temperature, run.top_p) == (0.5, 0.75)
    assert run.dataset == "prompt_tokens=33,output_tokens=48"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"metadata": {"version": 3, "guidellm_version": "0.9.0"}}, "version 3.*0.9.0"),
        ({"metadata": {}}, "none stated"),
        ({"metadata": []}, "none stated"),
    ],
)
def test_c74_an_unknown_layout_is_named_with_its_keys(change: dict[str, Any], says: str) -> None:
    report = {**files.v2_report(), **change}
    with pytest.raises(
        UnknownFormat, match=f"guidellm version not recognised .{says}.*config, bench"
    ):
        reading(report)
    bare = {"benchmarks": files.v2_report()["benchmarks"], "other": 1}
    with pytest.raises(UnknownFormat, match=r"not recognised.*keys found: benchmarks, other"):
        reading(bare)


def test_items_of_another_kind_are_left_out_and_said() -> None:
    report = files.args_report()
    report["benchmarks"] += [{"type_": "embeddings_benchmark"}, 7]
    found = reading(report)
    assert len(found.runs) == 7
    assert [f.code for f in found.flags if f.run_id is None] == ["other_values"]


def test_zeros_of_a_run_without_a_completed_request_are_no_measurements() -> None:
    report = files.early_report(STRATEGIES[:1])
    report["benchmarks"][0] |= {
        "metrics": {name: {"successful": files.distribution(0.0)} for name in files.EARLY_METRICS},
        "request_totals": {"successful": 0, "errored": 3, "incomplete": 0, "total": 3},
    }
    found = reading(report)
    (run,) = found.runs
    assert (run.output_tps, run.ttft_ms_mean, run.completed, run.failed) == (None, None, 0, 3)
    assert "nothing_completed" in [f.code for f in found.flags]


def test_keys_used_are_of_the_level_s_table() -> None:
    for build, _ in LEVELS.values():
        found = reading(build())
        assert len(found.keys) == len(set(found.keys))
        assert any(set(found.keys) <= set(keys) for keys in guidellm.LEVELS.values())
        assert {"run_id", "offered_load", "tpot_ms_p99", "target"} <= {k.field for k in found.keys}
        assert not {"goodput_rps", "slo"} & {k.field for k in found.keys}


# --- CSV --------------------------------------------------------------------------------------


def test_the_csv_of_0_3_gives_the_runs_of_its_json() -> None:
    report = files.early_report([*files.RATE_STRATEGIES, {"type_": "synchronous"}])
    by_json = reading(report)
    by_csv = read("r.csv", files.early_csv(report).encode())
    assert by_csv.tool_version == by_json.tool_version
    assert set(by_csv.keys) <= set(guidellm_early.LEVELS["0.2, 0.3"])
    for one, other in zip(by_json.runs, by_csv.runs, strict=True):
        assert differing(one, other) <= {"source_sha256", "started_at", "zone_known", "extra"}
        assert not other.zone_known
    assert by_csv.runs[0].ttft_ms_p99 == 42.0


@pytest.mark.parametrize("build", [files.args_report, files.v1_report])
def test_the_csv_of_0_4_to_0_6_gives_the_runs_of_its_json(build: Callable[..., Any]) -> None:
    report = build([{"type_": "concurrent", "streams": s} for s in (1, 8)])
    by_json, by_csv = reading(report), read("r.csv", files.v1_csv(report).encode())
    assert by_csv.tool_version == by_json.tool_version
    assert set(by_csv.keys) <= set(guidellm_csv.LEVELS[guidellm_csv.V1])
    for one, other in zip(by_json.runs, by_csv.runs, strict=True):
        assert differing(one, other) <= {"source_sha256", "started_at", "zone_known", "extra"}
    assert [r.offered_load for r in by_csv.runs] == [1.0, 8.0], "from the profile's strategies"


def shifted(statuses: tuple[str, ...], absent: tuple[str, ...] = ()) -> dict[str, Any]:
    """A report whose second benchmark has columns that the first has not."""
    report = files.v1_report([{"type_": "concurrent", "streams": s} for s in (1, 8)])
    found = report["benchmarks"][1]["metrics"]
    found["request_totals"] = {**files.TOTALS, **dict.fromkeys(statuses, 3)}
    for name in files.MEANS:
        if name not in (*absent, "request_latency", "requests_per_second"):
            for status in statuses:
                found[name][status] = files.distribution(0.7 * files.MEANS[name])
    report["benchmarks"][0]["metrics"]["request_totals"] = {**files.TOTALS, "incomplete": 0}
    report["benchmarks"][1]["duration"] = 4.25
    return report


@pytest.mark.parametrize("statuses", [("incomplete",), ("errored",), ("incomplete", "errored")])
@pytest.mark.parametrize(
    "absent",
    [(), ("time_to_first_token_ms", "time_per_output_token_ms", "inter_token_latency_ms")],
)
def test_a_line_with_other_columns_than_the_headers_is_put_right(
    statuses: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    report = shifted(statuses, absent)
    found = read("r.csv", files.v1_csv(report).encode())
    flags = [f for f in found.flags if f.code == "columns_shifted"]
    assert [f.run_id for f in flags] == [found.runs[1].run_id]
    assert "line 5 has other columns" in flags[0].message
    expected, run = reading(report).runs[1], found.runs[1]
    assert run.run_id == expected.run_id
    for name in ("output_tps", "ttft_ms_mean", "tpot_ms_mean", "tpot_ms_p99", "output_tokens"):
        assert getattr(run, name) == getattr(expected, name), name
    assert run.target == "acme/m", "what stands after the metrics is in place"


def test_a_line_that_cannot_be_put_right_keeps_what_is_sure() -> None:
    report = shifted(("incomplete",))
    broken = report["benchmarks"][1]["metrics"]
    broken["total_token_count"]["successful"] = files.distribution(80.0)
    found = read("r.csv", files.v1_csv(report).encode())
    run = found.runs[1]
    assert (run.output_tps, run.ttft_ms_mean, run.tpot_ms_mean) == (None, None, None)
    assert (run.completed, run.e2e_ms_mean, run.offered_load) == (20, 312.0, 8.0)
    assert "left empty" in next(f.message for f in found.flags if f.code == "columns_shifted")


def test_a_count_too_large_to_be_one_is_not_kept() -> None:
    report = files.v2_report(STRATEGIES[:1])
    report["benchmarks"][0]["metrics"]["request_totals"] = {**files.TOTALS, "incomplete": "1e308"}
    assert "incomplete" not in (reading(report).runs[0].extra or "")


# --- robustness -------------------------------------------------------------------------------


@each_level
def test_reports_gone_wrong_raise_nothing_of_their_own(level: str) -> None:
    random = Random(20260301)
    report = LEVELS[level][0](STRATEGIES[:3])
    for benchmark in report["benchmarks"]:
        benchmark["requests"]["successful"] = benchmark["requests"]["successful"][:2]
    for _ in range(150):
        broken = shaken(report, random)
        tried(lambda broken=broken: reading(broken))
        values = [json.loads(json.dumps(broken))]
        if guidellm.recognise(values):
            tried(lambda values=values: guidellm.find("r", values, "0" * 64))


@pytest.mark.parametrize("reader", [guidellm_csv, guidellm_early])
def test_csvs_gone_wrong_raise_nothing_of_their_own(reader: ModuleType) -> None:
    random = Random(20260301)
    early = reader is guidellm_early
    text = files.early_csv(files.early_report()) if early else files.v1_csv(shifted(("errored",)))
    rows = list(csv.reader(io.StringIO(text)))
    cells = [
        "",
        "x",
        "-1",
        "nan",
        "1e999",
        "[",
        "[" * 300,
        "{}",
        "[None, nan]",
        "{'a': 1j}",
        "\x00",
    ]
    for _ in range(150):
        broken = [list(row) for row in rows]
        for _ in range(random.choice((1, 3, 20))):
            row = random.choice(broken[-3:])
            at = random.randrange(len(row))
            row[at : at + random.choice((1, 1, 2, 5))] = random.choices(
                cells, k=random.randint(0, 3)
            )
            row.append("")
        if reader.recognise_rows(broken):
            tried(lambda broken=broken: reader.find_rows("r", broken, "0" * 64))


def tried(read_it: Callable[[], object]) -> None:
    try:
        read_it()
    except DraftworthError:
        return


# --- files that the real tool wrote -----------------------------------------------------------


@needs_corpus
@pytest.mark.parametrize(
    ("name", "version", "loads", "tpot_ms"),
    [
        ("guidellm-0.2.1-off.json", "0.2 or 0.3", [5.0], [5.28]),
        ("guidellm-0.2.1-on.json", "0.2 or 0.3", [5.0], [4.16]),
        ("guidellm-0.4.0-off.json", "0.4", [1.0, 4.0], [5.69, 5.84]),
        ("guidellm-0.4.0-on.json", "0.4", [1.0, 4.0], [2.82, 2.94]),
        ("guidellm-0.5.4-off.json", "0.5.4", [1.0, 4.0], [5.42, 6.12]),
        ("guidellm-0.5.4-off.csv", "0.5.4", [1.0, 4.0], [5.42, 6.12]),
        ("guidellm-0.5.4-on.json", "0.5.4", [1.0, 4.0], [2.91, 3.02]),
        ("guidellm-0.5.4-on.csv", "0.5.4", [1.0, 4.0], [2.91, 3.02]),
        ("guidellm-0.8.1-off.json", "0.8.1", [1.0, 4.0], [5.37, 5.67]),
        ("guidellm-0.8.1-on.csv", "0.8.1", [1.0, 4.0], [2.86, 3.26]),
    ],
)
def test_recorded_reports(
    name: str, version: str, loads: list[float], tpot_ms: list[float]
) -> None:
    found = read(name, (CORPUS / "generated" / name).read_bytes())
    assert found.tool_version == version
    assert [r.offered_load for r in found.runs] == loads
    assert {r.target for r in found.runs} == {"mock-model"}
    assert [r.tpot_ms_mean for r in found.runs] == pytest.approx(tpot_ms, abs=0.005)


@needs_corpus
@pytest.mark.parametrize("stem", ["0.5.4-off", "0.5.4-on", "0.8.1-off", "0.8.1-on"])
def test_recorded_csvs_hold_the_runs_of_their_reports(stem: str) -> None:
    by_json, by_csv = (
        read(f"r{s}", (CORPUS / "generated" / f"guidellm-{stem}{s}").read_bytes()).runs
        for s in (".json", ".csv")
    )
    allowed = {"source_sha256", "started_at", "zone_known", "extra", "running_mean"}
    for one, other in zip(by_json, by_csv, strict=True):
        assert differing(one, other) <= allowed


@needs_corpus
def test_a_recorded_fixture_of_0_8() -> None:
    path = CORPUS / "guidellm" / "llmd-fixture-report-v2.json"
    runs = read(path.name, path.read_bytes()).runs
    assert [(r.load_kind, r.offered_load) for r in runs] == [
        (LoadKind.REQUEST_RATE, 2.0),
        (LoadKind.REQUEST_RATE, 4.0),
    ]
