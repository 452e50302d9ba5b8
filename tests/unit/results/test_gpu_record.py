"""Samples of GPUs beside a benchmark: which run they are about, and what they say of it."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.results import bundles
from lib.results.gpu_samples import DATED_AT_THE_END, During
from lib.results.importing import ImportReport, import_paths
from lib.results.reading import Reading, read
from lib.results.store import Store
from lib.results.tools import READERS
from lib.run import Run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RECORD = FIXTURES / "gpu_record" / "off.jsonl"
OFF, ON = (FIXTURES / "vllm" / f"{name}-c8.json" for name in ("off", "eagle3"))
T0 = datetime(2026, 2, 14, 9, 14, 30, tzinfo=UTC).timestamp()
FIELDS = ("gpu_mem_gib", "power_w", "energy_j")
Value = Callable[[float], float | None]


def document(
    *gpus: dict[str, Value],
    times: list[float] | None = None,
    header: dict[str, Any] | None = None,
) -> bytes:
    """A record of GPUs whose values follow from the seconds since its first sample."""
    first = {"schema": "draftworth.gpu_record/1", "every_s": 1.0, "utc_offset_s": 3600.0}
    lines: list[dict[str, Any]] = [first | (header or {})]
    for second in times if times is not None else range(41):
        sample = [
            {"uuid": f"GPU-{at}", **{k: f(second) for k, f in g.items()}}
            for at, g in enumerate(gpus)
        ]
        lines.append({"t": T0 + second, "gpus": sample})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def gpu(**values: Value) -> dict[str, Value]:
    steady: dict[str, Value] = {
        "mem_gib": lambda _: 10.0,
        "power_w": lambda _: 300.0,
        "energy_j": lambda t: 300.0 * t,
        "util": lambda _: 0.9,
    }
    return steady | values


def run(at: float = 10.0, duration_s: float = 20.0, **fields: Any) -> Run:
    moment = datetime.fromtimestamp(T0 + at, UTC)
    known = {"started_at": moment, "zone_known": True, "duration_s": duration_s}
    return Run(**{"run_id": "r", "tool": "guidellm", **known, **fields})


def during(data: bytes, about: Run) -> During:
    beside = read("gpu.jsonl", data).beside
    assert beside is not None
    assert beside.gpus is not None
    return beside.gpus.during(about)


# reading


def test_a_record_is_no_run_and_says_what_it_is() -> None:
    found = read("any name", RECORD.read_bytes())
    assert (found.tool, found.tool_version, found.runs) == ("gpu-record", "schema 1", ())
    (flag,) = found.flags
    assert flag.code == "sidecar"
    assert flag.message.startswith("2 GPUs of gpu-01 over 40 seconds")


def test_a_record_without_samples_says_why() -> None:
    found = read("f", document(times=[], header={"problem": "No GPU is visible here."}))
    assert found.beside is None
    assert [f.code for f in found.flags] == ["not_a_run"]
    assert found.flags[0].message == "a GPU record without samples: No GPU is visible here."
    assert "before the first sample" in read("f", document(times=[])).flags[0].message


def test_a_record_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    whole = RECORD.read_bytes().splitlines(keepends=True)
    assert during(b"".join(whole[:40]), run()).fields["energy_j"] == 10_000


# what it says of a run


def test_energy_by_the_counter_power_by_the_samples_memory_at_its_most() -> None:
    found = during(
        document(gpu(power_w=lambda t: 200.0 + 10 * t, energy_j=lambda t: 200 * t + 5 * t * t)),
        run(at=10, duration_s=20),
    )
    assert found.fields == {
        "gpu_mem_gib": 10,
        "power_w": pytest.approx(400),
        "energy_j": pytest.approx(400 * 20),
    }
    assert found.said == "1 GPU at work; energy by counter"


def test_gpus_are_summed_and_idle_ones_left_out() -> None:
    idle = gpu(util=lambda _: 0.0, power_w=lambda _: 70.0, mem_gib=lambda _: 0.4)
    found = during(document(gpu(), gpu(), idle), run())
    assert found.fields == {"gpu_mem_gib": 20, "power_w": 600, "energy_j": 12_000}
    assert found.said.startswith("2 GPUs of 3 at work")


def test_a_gpu_that_worked_only_outside_the_run_did_not_serve_it() -> None:
    other = gpu(util=lambda t: 0.9 if t < 5 else 0.0)
    assert during(document(gpu(), other), run()).fields["power_w"] == 300


def test_none_at_work_means_that_the_server_is_elsewhere() -> None:
    found = during(document(gpu(util=lambda _: 0.0)), run())
    assert found == During({}, "no GPU worked during the run: its server is elsewhere")


def test_work_that_cannot_be_read_is_no_idleness() -> None:
    assert during(document(gpu(util=lambda _: None)), run()).fields["power_w"] == 300


@pytest.mark.parametrize(
    "counter",
    [lambda _: None, lambda t: 300 * t if t < 20 else 300 * (t - 20), lambda _: 5.0],
    ids=["none", "began anew", "stood still"],
)
def test_without_a_counter_energy_is_mean_power_times_time(counter: Value) -> None:
    found = during(document(gpu(energy_j=counter)), run())
    assert found.fields["energy_j"] == 300 * 20
    assert "energy as mean power × time" in found.said


def test_a_value_that_one_gpu_lacks_has_no_sum() -> None:
    found = during(document(gpu(), gpu(mem_gib=lambda _: None)), run())
    assert "gpu_mem_gib" not in found.fields
    assert found.fields["power_w"] == 600
    assert "gpu_mem_gib not read throughout" in found.said


def test_a_gap_takes_the_mean_and_the_most_and_leaves_the_counter() -> None:
    times = [float(t) for t in range(41) if not 14 <= t <= 24]
    found = during(document(gpu(), times=times), run())
    assert found.fields == {"energy_j": 6000}
    assert "gpu_mem_gib, power_w not read throughout" in found.said


def test_a_gap_at_an_end_takes_the_counter_too() -> None:
    times = [float(t) for t in range(41) if not 2 <= t <= 22]
    found = during(document(gpu(), times=times), run())
    assert found.fields == {}
    assert "energy_j not read throughout" in found.said


def test_a_few_samples_may_be_missing() -> None:
    times = [float(t) for t in range(41) if t not in (15, 16, 20)]
    assert during(document(gpu(), times=times), run()).fields["power_w"] == 300


def test_a_run_between_two_samples() -> None:
    found = during(document(gpu(power_w=lambda t: 10 * t)), run(at=10.25, duration_s=0.5))
    assert found.fields["power_w"] == pytest.approx(105)
    assert found.fields["energy_j"] == pytest.approx(150)


@given(
    st.floats(0, 30),
    st.floats(0.5, 10),
    st.lists(st.floats(1, 1500), min_size=2, max_size=8),
)
def test_energy_and_power_agree_where_the_counter_is_the_integral(
    at: float, duration_s: float, watts: list[float]
) -> None:
    totals = {
        f"GPU-{n}": gpu(power_w=lambda _, w=w: w, energy_j=lambda t, w=w: 7.0 + w * t)
        for n, w in enumerate(watts)
    }
    found = during(document(*totals.values()), run(at, duration_s)).fields
    assert found["power_w"] == pytest.approx(sum(watts), abs=1e-3)
    assert found["energy_j"] == pytest.approx(sum(watts) * duration_s, abs=1e-2)


# which run it is about


@pytest.mark.parametrize(
    ("at", "duration_s", "inside"),
    [(0, 40, True), (-0.5, 20, True), (-5, 20, False), (30, 20, False), (90, 20, False)],
)
def test_a_run_lies_within_the_record_or_has_nothing(
    at: float, duration_s: float, inside: bool
) -> None:
    found = during(document(gpu()), run(at, duration_s))
    assert bool(found.fields) == inside
    assert ("is not within 2026-02-14 09:14:30 to 2026-02-14 09:15:10" in found.said) != inside


def test_some_tools_date_a_result_when_it_is_written() -> None:
    work: dict[str, Value] = gpu(power_w=lambda t: 400.0 if t < 20 else 100.0)
    late = run(at=20, duration_s=15)
    assert during(document(work), late).fields["power_w"] < 130
    assert during(document(work), replace(late, tool="llmperf")).fields["power_w"] > 380
    assert {reader.TOOL for reader in READERS} > DATED_AT_THE_END


def test_local_time_is_the_recording_hosts_or_not_known() -> None:
    local = run(at=3600 + 10, zone_known=False)
    found = during(document(gpu()), local)
    assert found.fields["power_w"] == 300
    assert "local time taken for that of the recording host" in found.said
    unknown = during(document(gpu(), header={"utc_offset_s": None}), local)
    assert unknown == During({}, "the time zone of the run is not known")


@pytest.mark.parametrize("missing", [{"started_at": None}, {"duration_s": None}])
def test_a_run_without_its_time_has_nothing(missing: dict[str, None]) -> None:
    assert during(document(gpu()), run(**missing)).said == "the run states no time or no duration"


def test_a_duration_that_no_clock_can_tell() -> None:
    assert during(document(gpu()), run(duration_s=1e-9)).fields == {}


@pytest.mark.parametrize("odd", [-1, 1e300, "x", True, None, [], {}])
def test_values_that_cannot_be_are_not_read(odd: Any) -> None:
    found = during(document(gpu(power_w=lambda t: odd if t == 17 else 300.0)), run())
    assert found.fields["power_w"] == 300


# bundles


def result(name: str, *runs: Run) -> Reading:
    return Reading(name, f"sha of {name}", "guidellm", "1", "", runs, {}, (), None)


def joined(*readings: Reading) -> tuple[dict[str, Run], dict[str, list[str]]]:
    found = bundles.join(readings).bundles
    runs = {r.run_id: r for b in found for r in b.reading.runs}
    said = ("gpus_not_taken", "taken_from_beside")
    flags: dict[str, list[str]] = {}
    for flag in (f for b in found for f in b.reading.flags if f.code in said):
        flags.setdefault(str(flag.run_id), []).append(flag.message)
    return runs, flags


def test_several_runs_in_one_record_have_each_its_own() -> None:
    record = read("gpu.jsonl", document(gpu(power_w=lambda t: 100 + 10 * t)))
    runs, flags = joined(
        record,
        result("g.json", run(0, 10, run_id="a"), run(20, 10, run_id="b"), run(60, 5, run_id="c")),
    )
    assert (runs["a"].power_w, runs["b"].power_w) == (pytest.approx(150), pytest.approx(350))
    assert [getattr(runs["c"], f) for f in FIELDS] == [None, None, None]
    assert flags["a"] == [
        "gpu_mem_gib, power_w, energy_j from gpu.jsonl (1 GPU at work; energy by counter)"
    ]
    assert flags["c"][0].startswith(
        "no memory, power or energy from gpu.jsonl: the run, 2026-02-14 09:15:30"
    )


def test_of_several_records_the_one_that_covers_a_run() -> None:
    early = read("off.jsonl", document(gpu()))
    shifted = document(gpu(power_w=lambda _: 500.0), times=[float(t) for t in range(100, 141)])
    later = read("on.jsonl", shifted)
    a, b, c = run(10, run_id="a"), run(110, run_id="b"), run(300, run_id="c")
    runs, flags = joined(early, later, result("g.json", a, b, c))
    assert (runs["a"].power_w, runs["b"].power_w, runs["c"].power_w) == (300, 500, None)
    assert flags["c"][0].startswith("no memory, power or energy from off.jsonl and 1 more: ")


def test_of_two_that_cover_a_run_none_is_taken() -> None:
    both = [read(n, document(gpu())) for n in ("a.jsonl", "b.jsonl")]
    runs, flags = joined(*both, result("g.json", run()))
    assert runs["r"].power_w is None
    assert flags["r"] == [
        "no memory, power or energy from a.jsonl and 1 more: more than one record covers the run"
    ]


def test_the_clients_host_does_not_hide_the_servers() -> None:
    client = read("client.jsonl", document(gpu(util=lambda _: 0.0)))
    runs, _ = joined(client, read("server.jsonl", document(gpu())), result("g.json", run()))
    assert runs["r"].power_w == 300


def test_it_speaks_of_its_folder_and_those_below() -> None:
    record = read("off/gpu.jsonl", document(gpu()))
    inner, other = run(run_id="inner"), run(run_id="other")
    runs, flags = joined(record, result("off/1/g.json", inner), result("on/g.json", other))
    assert (runs["inner"].power_w, runs["other"].power_w) == (300, None)
    assert "other" not in flags


def test_what_a_run_states_itself_stands() -> None:
    stated = run(power_w=111.0)
    record = read("gpu.jsonl", document(gpu()))
    runs, flags = joined(record, result("g.json", stated))
    assert (runs["r"].power_w, runs["r"].energy_j) == (111, 6000)
    assert flags["r"][0].startswith("gpu_mem_gib, energy_j from gpu.jsonl")
    full = run(power_w=1.0, energy_j=1.0, gpu_mem_gib=1.0)
    assert joined(record, result("g.json", full)) == ({"r": full}, {})


# import


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.duckdb")
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    made.mkdir()
    shutil.copy(OFF, made)
    return made


def imported(store: Store, *paths: Path) -> ImportReport:
    return import_paths(store, paths, "mine")


def only(store: Store) -> Run:
    (found,) = store.study("mine").runs
    return found


def test_a_vllm_result_and_the_record_of_it(store: Store, folder: Path) -> None:
    shutil.copy(RECORD, folder / "gpu.jsonl")
    report = imported(store, folder)
    assert report.imported == 1
    found = only(store)
    # The file is dated 10:15:00, an hour ahead of UTC, and lasted 20 s: seconds 10 to 30.
    assert (found.gpu_mem_gib, found.power_w, found.energy_j) == (61.5, 500, 10_000)
    names = sorted(source.name for source in store.sources("mine"))
    assert names == ["gpu.jsonl", "off-c8.json"]
    text = next(f.message for f in store.flags("mine") if f.code == "taken_from_beside")
    assert text == (
        "gpu_mem_gib, power_w, energy_j from gpu.jsonl (1 GPU of 2 at work; energy by counter; "
        "the run's local time taken for that of the recording host)"
    )


def test_a_record_that_comes_later_derives_the_run_anew(store: Store, folder: Path) -> None:
    imported(store, folder)
    assert only(store).power_w is None
    shutil.copy(RECORD, folder / "gpu.jsonl")
    late = imported(store, folder)
    assert late.imported == 0
    assert only(store).power_w == 500
    assert [f.flags for f in late.files if f.file == "gpu.jsonl"] == [("sidecar", "revised")]
    imported(store, folder)
    assert only(store).power_w == 500
    store.undo("mine", late.import_id)
    assert only(store).power_w is None


def test_a_record_that_comes_first_waits_for_nothing(store: Store, folder: Path) -> None:
    shutil.copy(RECORD, folder / "gpu.jsonl")
    alone = imported(store, folder / "gpu.jsonl")
    assert (alone.imported, store.studies()) == (0, ())
    assert "import it together with its results" in str(alone.files[0].messages)
    imported(store, folder)
    assert only(store).energy_j == 10_000


def test_a_run_that_it_does_not_cover_says_so(store: Store, folder: Path) -> None:
    shutil.copy(RECORD, folder / "gpu.jsonl")
    document = json.loads(ON.read_text()) | {"date": "20260214-113000"}
    (folder / "on.json").write_text(json.dumps(document))
    report = imported(store, folder)
    assert report.imported == 2
    powers = {r.tool_version and r.started_at: r.power_w for r in store.study("mine").runs}
    assert sorted(powers.values(), key=str) == [500, None]
    (said,) = [f for f in store.flags("mine") if f.code == "gpus_not_taken"]
    assert "the run, 2026-02-14 10:29:44 to 2026-02-14 10:30:00 UTC, is not within" in said.message
