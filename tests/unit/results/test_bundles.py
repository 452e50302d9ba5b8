"""What lies beside a result completes its runs: by the run's id, else by the nearest folder."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lib.results import bundles
from lib.results.findings import Beside, Flag
from lib.results.reading import Reading
from lib.run import LoadKind, Run, SpecState

LOAD: dict[str, Any] = {"load_kind": LoadKind.CONCURRENCY, "offered_load": 8.0}


def result(name: str, tool: str = "aiperf", **fields: Any) -> Reading:
    runs = tuple(
        Run(**{**LOAD, "run_id": i, "tool": tool, **fields}) for i in fields.pop("ids", (name,))
    )
    return Reading(name, f"sha of {name}", tool, "1", "", runs, {}, (), None)


def sidecar(name: str, tool: str = "manifests", **said: Any) -> Reading:
    flag = Flag("sidecar", "warns", "what lies beside")
    beside = Beside(**said)
    return Reading(name, f"sha of {name}", tool, "1", "", (), {}, (flag,), None, beside=beside)


def joined(*readings: Reading) -> dict[str, Run]:
    return {r.run_id: r for b in bundles.join(readings).bundles for r in b.reading.runs}


def test_a_file_beside_fills_what_a_run_does_not_state() -> None:
    said = sidecar("k4/m.yaml", fields={"gpu": "L4", "engine": "vllm", "seed": None})
    found = bundles.join([result("k4/c8.json", engine="sglang"), said])
    (bundle,) = found.bundles
    (run,) = bundle.reading.runs
    assert (run.gpu, run.engine) == ("L4", "sglang")
    assert bundle.beside == (said,)
    assert found.unclaimed == ()
    assert ("taken_from_beside", "gpu from k4/m.yaml") in [
        (f.code, f.message) for f in bundle.reading.flags
    ]


def test_the_nearest_folder_counts_and_no_folder_beside() -> None:
    top = sidecar("m.yaml", fields={"gpu": "top", "engine": "vllm"})
    inner = sidecar("k4/m.yaml", fields={"gpu": "inner"})
    found = joined(top, inner, result("k4/a/c8.json"), result("k2/c8.json"))
    assert (found["k4/a/c8.json"].gpu, found["k4/a/c8.json"].engine) == ("inner", None)
    assert (found["k2/c8.json"].gpu, found["k2/c8.json"].engine) == ("top", "vllm")
    assert joined(inner, result("k2/c8.json"))["k2/c8.json"].gpu is None


def test_of_two_in_one_folder_none_is_taken() -> None:
    two = [sidecar(f"k4/{n}.yaml", fields={"gpu": n}) for n in ("a", "b")]
    found = bundles.join([*two, result("k4/c8.json")])
    assert found.bundles[0].reading.runs[0].gpu is None
    assert found.unclaimed == tuple(two)


def test_a_file_that_names_its_runs_speaks_of_them_alone_wherever_they_lie() -> None:
    said = sidecar("elsewhere/s.json", run_ids=("k4/a.json",), fields={"drafts": 7})
    found = joined(said, result("k4/a.json"), result("elsewhere/b.json"))
    assert found["k4/a.json"].drafts == 7
    assert found["elsewhere/b.json"].drafts is None


def test_the_tools_own_name_of_a_measurement_tells_which_of_many_is_meant() -> None:
    said = [
        sidecar(f"{n}.json", "aiperf", tools=("aiperf",), benchmark_id=n, fields={"drafts": d})
        for n, d in (("b1", 1), ("b2", 2))
    ]
    own = [result(f"r{n}.json", ids=(n,), extra=f'{{"benchmark_id":"{n}"}}') for n in ("b1", "b2")]
    found = joined(*said, *own, result("k4/other.json", extra='{"benchmark_id":"b3"}'))
    assert (found["b1"].drafts, found["b2"].drafts) == (1, 2)
    assert found["k4/other.json"].drafts is None
    assert joined(said[0], result("csv.csv"))["csv.csv"].drafts == 1


def server(name: str, **said: Any) -> Reading:
    return sidecar(name, "aiperf", tools=("aiperf",), output_tokens=2560, **said)


def test_what_was_counted_during_one_run_is_not_said_of_two() -> None:
    first, second = counted(), replace(counted(), name="b.json", runs=counted(ids=("b",)).runs)
    for said in (server("s.json"), server("s.json", benchmark_id="b9")):
        found = joined(said, first, second)
        assert {r.token_count for r in found.values()} == {"client"}
    inner = replace(first, name="c1/a.json")
    assert joined(server("s.json"), inner)["a"].token_count == "client", "it lies a folder above"
    assert joined(server("c1/s.json"), inner, second)["a"].token_count == "server"
    named = replace(second, runs=(replace(second.runs[0], extra='{"benchmark_id":"b9"}'),))
    found = joined(server("s.json", benchmark_id="b9"), first, named)
    assert (found["a"].token_count, found["b"].token_count) == ("client", "server")


def test_a_servers_count_in_the_file_itself_stands_and_says_so() -> None:
    (bundle,) = bundles.join([counted(token_count="server"), server("s.json")]).bundles
    assert bundle.reading.runs[0].output_tokens == 5160
    codes = [f.code for f in bundle.reading.flags]
    assert "server_counts_differ" in codes


def test_a_set_up_of_the_other_arm_is_not_taken_by_a_file_that_says_off() -> None:
    on = {"spec_state": SpecState.ON, "draft_method": "eagle3", "gpu": "L4"}
    found = joined(sidecar("m.yaml", fields=on), result("off.json"), result("k4.json"))
    assert (found["off.json"].arm, found["off.json"].gpu) == (None, "L4")
    assert found["k4.json"].arm == "eagle3"


def test_the_same_set_up_in_two_folders_speaks_in_both() -> None:
    top = sidecar("m.yaml", fields={"gpu": "L4"})
    inner = replace(sidecar("a/m.yaml", fields={"gpu": "L4"}), sha256=top.sha256)
    found = joined(top, inner, result("a/x.json"), result("b/x.json"))
    assert {r.gpu for r in found.values()} == {"L4"}


def test_a_tools_own_file_speaks_of_its_runs_alone() -> None:
    said = sidecar("m.json", "genai-bench", tools=("genai-bench",), fields={"gpu": "L4"})
    found = joined(said, result("a.json", "genai-bench"), result("b.json", "sglang"))
    assert (found["a.json"].gpu, found["b.json"].gpu) == ("L4", None)


def test_a_run_called_off_gets_no_drafter_from_beside() -> None:
    said = sidecar("m.yaml", fields={"draft_method": "eagle3", "spec_state": SpecState.ON})
    found = joined(said, result("off.json", spec_state=SpecState.OFF), result("on.json"))
    assert found["off.json"].arm == "off"
    assert found["on.json"].arm == "eagle3"


def counted(**fields: Any) -> Reading:
    ids = fields.pop("ids", ("a",))
    numbers = {"completed": 40, "output_tokens": 5160, "output_len": 129.0, "duration_s": 2.2}
    times = {"output_tps": 5160 / 2.2, "tpot_ms_mean": 2.9257, "token_count": "client"}
    return result("a.json", ids=ids, **{**numbers, **times, **fields})


def test_the_servers_count_takes_the_place_of_the_clients() -> None:
    said = sidecar("s.json", run_ids=("a",), output_tokens=2560)
    records = pa.table({"ttft_ms": [1.0], "tpot_ms": [2.9], "output_tokens": [129]})
    first = replace(counted(), requests={"a": records})
    (bundle,) = bundles.join([first, said]).bundles
    (run,) = bundle.reading.runs
    assert run.output_tps == pytest.approx(2560 / 2.2)
    assert run.tpot_ms_mean == pytest.approx(2.9257 * 128 / 63)
    assert (run.token_count, run.retokenized_tokens) == ("server", 5160)
    kept = bundle.reading.requests["a"].to_pylist()
    assert kept == [{"ttft_ms": 1.0, "tpot_ms": None, "output_tokens": None}]


def test_joining_again_changes_nothing() -> None:
    besides = [
        sidecar("s.json", run_ids=("a",), output_tokens=2560),
        sidecar("m.yaml", fields={"gpu": "L4"}),
    ]
    once = bundles.join([counted(), *besides]).bundles[0]
    twice = bundles.join([once.reading, *besides]).bundles[0]
    assert twice.reading.runs == once.reading.runs
    assert twice.reading.flags == once.reading.flags


def test_records_beside_belong_to_a_run_alone_in_its_folder() -> None:
    records = pa.table({"ttft_ms": [1.0]})
    said = sidecar("p.jsonl", requests=records)
    (bundle,) = bundles.join([result("a.json"), said]).bundles
    assert bundle.reading.requests == {"a.json": records}
    (bundle,) = bundles.join([result("a.json", ids=("x", "y")), said]).bundles
    assert bundle.reading.requests == {}


@pytest.mark.parametrize(
    ("name", "folder"), [("a.json", ""), ("k4/c8/a.json", "k4/c8"), ("k4\\a.json", "k4")]
)
def test_folder(name: str, folder: str) -> None:
    assert bundles.folder_of(name) == folder
