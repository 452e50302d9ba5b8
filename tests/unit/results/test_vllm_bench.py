import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lib.errors import DraftworthError, UnknownFormat
from lib.results import checks
from lib.results.reading import Reading, read
from lib.results.tools import vllm_bench
from lib.run import LoadKind, Run, SpecState
from tests.unit.results.shaken import shaken

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "vllm"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "vllm"


def record(name: str = "off-c8", **changes: Any) -> dict[str, Any]:
    return json.loads((FIXTURES / f"{name}.json").read_text()) | changes


def without(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {k: v for k, v in record.items() if k not in keys}


def reading(*records: object) -> Reading:
    return read("f.json", "\n".join(json.dumps(r) for r in records).encode())


def run_of(record: dict[str, Any]) -> Run:
    (run,) = reading(record).runs
    return run


def codes(reading: Reading) -> set[str]:
    return {f.code for f in reading.flags}


def test_a_plain_result() -> None:
    found = reading(record())
    (run,) = found.runs
    assert (found.tool, found.tool_version) == ("vllm-bench-serve", "v3 keys")
    assert "model_id" in found.why
    assert not found.flags
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 8.0)
    assert (run.output_tps, run.request_rps, run.duration_s) == (819.2, 3.2, 20.0)
    assert (run.completed, run.failed, run.num_prompts) == (64, 0, 64)
    assert (run.input_len, run.output_len) == (1024.0, 256.0)
    assert (run.tpot_ms_mean, run.tpot_ms_p50, run.tpot_ms_p90) == (9.5, 9.25, 10.0)
    assert (run.tpot_ms_p95, run.tpot_ms_p99) == (10.5, 11.0)
    assert (run.e2e_ms_mean, run.e2e_ms_p99, run.e2e_ms_p95) == (2454.0, 2800.0, None)
    assert run.running_mean == pytest.approx(64 * 2.454 / 20)
    assert run.target == "acme/target-8b"
    assert run.engine is None
    assert run.spec_state is SpecState.UNKNOWN
    assert run.started_at is not None
    assert run.started_at.strftime("%Y%m%d-%H%M%S") == "20260214-101500"
    assert not run.zone_known


def test_what_is_not_understood_is_kept() -> None:
    extra = json.loads(run_of(record()).extra or "")
    assert extra["backend"] == "vllm"
    assert extra["p99.9_e2el_ms"] == 2900.0
    assert extra["std_ttft_ms"] == 4.0
    assert "duration" not in extra


def test_counters_say_that_it_speculates() -> None:
    run = run_of(record("eagle3-c8"))
    assert run.spec_state is SpecState.ON
    assert run.num_speculative_tokens == 4
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (5850, 23400, 10530)
    assert run.accepted_per_position == (4680, 2925, 1755, 1170)
    assert sum(run.accepted_per_position) == run.accepted_tokens
    assert run.draft_method is None


def test_metadata_keys_state_the_set_up() -> None:
    run = run_of(record("eagle3-c8", arm="mtp", k="2"))
    assert (run.gpu, run.tensor_parallel, run.engine_version) == ("H100", 2, "0.15.0")
    assert run.dataset == "sharegpt"
    assert run.draft_method == "mtp"
    assert run.num_speculative_tokens == 4, "counters beat metadata"
    assert json.loads(run.extra or "")["team"] == "inference"


@pytest.mark.parametrize(("drafted", "k"), [(23_400, 4), (23_500, 4), (20_475, None)])
def test_k_only_where_the_draft_length_is_fixed(drafted: int, k: int | None) -> None:
    run = run_of(record("eagle3-c8", spec_decode_draft_tokens=drafted))
    assert run.num_speculative_tokens == k


def test_no_drafts_say_nothing() -> None:
    run = run_of(record("eagle3-c8", spec_decode_num_drafts=0))
    assert run.spec_state is SpecState.UNKNOWN
    assert run.drafts is None


@pytest.mark.parametrize(("length", "says"), [(1.8, "without the bonus token"), (3.5, "2.8")])
def test_stated_length_against_counters(length: float, says: str) -> None:
    found = reading(record("eagle3-c8", spec_decode_acceptance_length=length))
    (flag,) = [f for f in found.flags if f.code == "acceptance_mismatch"]
    assert says in flag.message


@pytest.mark.parametrize(
    ("rate", "concurrency", "kind", "load"),
    [
        ("inf", 8, LoadKind.CONCURRENCY, 8.0),
        (math.inf, 8, LoadKind.CONCURRENCY, 8.0),
        (None, 8, LoadKind.CONCURRENCY, 8.0),
        (2.4, None, LoadKind.REQUEST_RATE, 2.4),
        ("2.4", 64, LoadKind.REQUEST_RATE, 2.4),
        ("inf", None, LoadKind.REQUEST_RATE, math.inf),
        (math.inf, None, LoadKind.REQUEST_RATE, math.inf),
        (None, None, None, None),
    ],
)
def test_load(
    rate: object, concurrency: int | None, kind: LoadKind | None, load: float | None
) -> None:
    run = run_of(record(request_rate=rate, max_concurrency=concurrency))
    assert (run.load_kind, run.offered_load) == (kind, load)


def test_a_rate_has_an_achieved_rate_and_keeps_its_limit_aside() -> None:
    run = run_of(record(request_rate=4.0, max_concurrency=64))
    assert run.achieved_load == 3.2
    assert json.loads(run.extra or "")["max_concurrency"] == 64


V3 = ("failed", "rtfx")
V2 = (*V3, "label", "endpoint_type", "max_output_tokens_per_s", "max_concurrent_requests")
V1 = (*V2, "burstiness", "max_concurrency", "request_goodput")


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        (record(mean_client_queue_time_ms=0.1), "v4 keys"),
        (record(), "v3 keys"),
        (without(record(), *V3), "v2 keys"),
        (without(record(), *V2), "v1 keys"),
        (without(record(), *V1) | {"best_of": 1, "use_beam_search": False}, "v0 keys"),
    ],
)
def test_levels(changed: dict[str, Any], level: str) -> None:
    found = reading(changed)
    assert found.tool_version == level
    assert found.runs[0].tool_version == level
    assert found.runs[0].output_tps == 819.2


def test_the_level_does_not_depend_on_the_arm_or_on_detail() -> None:
    levels = {reading(record(n)).tool_version for n in ("off-c8", "eagle3-c8", "detailed")}
    assert levels == {"v3 keys"}


def test_failures_before_they_were_counted() -> None:
    run = run_of(without(record(completed=62), "failed"))
    assert run.failed == 2
    assert run_of(without(record(num_prompts=-1), "failed")).failed is None


def test_appended_objects_are_so_many_runs() -> None:
    found = reading(
        record(), record("eagle3-c8"), record(date="20260214-110000", max_concurrency=16)
    )
    assert len(found.runs) == 3
    assert len({r.run_id for r in found.runs}) == 3
    pretty = "\n".join(json.dumps(r, indent=2) for r in (record(), record("eagle3-c8")))
    assert len(read("f", pretty.encode()).runs) == 2


def test_a_sweep_s_summary() -> None:
    summary = [
        record(run_number=-1, date="20260214-100000"),
        record(run_number=0, **{"speculative-config": None}),
        record(
            "eagle3-c8",
            run_number=1,
            speculative_config={
                "method": "eagle3",
                "model": "acme/head",
                "num_speculative_tokens": 4,
            },
        ),
    ]
    found = reading(summary)
    off, on = found.runs
    assert (off.arm, off.repeat) == ("off", 0)
    assert (on.arm, on.draft_model, on.repeat) == ("eagle3:4", "acme/head", 1)
    assert "warm_up" in codes(found)
    assert reading(summary[1]).runs[0].run_id == off.run_id


@pytest.mark.parametrize(
    "override",
    [
        {"speculative_config": '{"method": "mtp", "num_speculative_tokens": 2}'},
        {"speculative-config": "{'method': 'mtp', 'num_speculative_tokens': 2, 'model': None}"},
        {"speculative_config.method": "mtp", "speculative_config.num-speculative-tokens": 2},
    ],
)
def test_spellings_of_the_override(override: dict[str, Any]) -> None:
    assert run_of(record(**override)).arm == "mtp:2"


def test_a_schedule_in_the_override() -> None:
    config = {
        "method": "eagle3",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 8, 4]],
    }
    run = run_of(record(speculative_config=config))
    assert (run.arm, run.schedule) == ("eagle3:schedule", "[[1,8,4]]")


def test_a_summary_csv_gives_the_same_runs() -> None:
    off = record(run_number=1, speculative_config="{'method': 'mtp', 'num_speculative_tokens': 2}")
    headers = ["", *off]
    cells = ["0", *("" if v is None else str(v) for v in off.values())]
    quoted = ['"' + c.replace('"', '""') + '"' for c in cells]
    (run,) = read("summary.csv", f"{','.join(headers)}\n{','.join(quoted)}\n".encode()).runs
    expected = run_of(off)
    assert (run.run_id, run.arm, run.tpot_ms_p99) == (expected.run_id, "mtp:2", 11.0)
    assert (run.offered_load, run.started_at) == (8.0, expected.started_at)


def test_only_warm_ups_are_recognised_and_give_no_run() -> None:
    found = reading(record(run_number=-1))
    assert found.runs == ()
    assert codes(found) == {"warm_up"}
    assert found.flags[0].message.startswith("1 warm-up run left out")


def test_the_same_run_twice_in_a_file() -> None:
    found = reading(record(), record())
    assert len(found.runs) == 1
    assert "repeated_in_file" in codes(found)


METRICS = {"benchmark": {"name": "vLLM"}, "model": {"name": "m"}, "metric": {"name": "tps"}}
FAILURE = {"error_type": "RuntimeError", "error": "server died\nhere --api-key abc123"}


@pytest.mark.parametrize(
    ("value", "code", "says"),
    [
        ([METRICS, METRICS], "sidecar", "import the result file beside it"),
        (FAILURE | {"max_concurrency": 8}, "failed_run", "RuntimeError: server died here"),
    ],
)
def test_what_lies_beside_results_is_recognised_without_runs(
    value: object, code: str, says: str
) -> None:
    found = reading(value)
    assert (found.tool, found.runs) == ("vllm-bench-serve", ())
    (flag,) = found.flags
    assert (flag.code, flag.severity, flag.run_id) == (code, "warns", None)
    assert says in flag.message
    assert "abc123" not in flag.message


def test_a_sidecar_that_is_not_one_whole_is_refused() -> None:
    with pytest.raises(UnknownFormat, match="no reader knows"):
        reading([METRICS, {"x": 1}])


@pytest.mark.parametrize("key", ["request_goodput", "request_goodput:"])
def test_goodput_under_its_first_spelling(key: str) -> None:
    run = run_of(without(record(), "request_goodput") | {key: 2.5})
    assert run.goodput_rps == 2.5
    assert key not in (run.extra or "")


def test_other_tools_with_like_keys_are_not_this_one() -> None:
    for changed in (
        record(accept_length=2.5),
        record(total_output_tokens_retokenized=1),
        {k.removesuffix("_ms"): v for k, v in record().items()},
    ):
        assert not vllm_bench.recognise([changed])


def test_flags_of_a_suspicious_run() -> None:
    assert {"chunked_itl", "peak_below_mean"} <= codes(reading(record("eagle3-c8")))
    mismatched = reading(record(output_throughput=900.0))
    assert codes(mismatched) == {"throughput_mismatch"}
    assert checks.blocks_pricing(mismatched.runs[0]) == mismatched.flags[0].message
    assert "random_tokens" in codes(reading(record(dataset_name="random")))
    assert "failed_requests" in codes(reading(record(completed=63, failed=1)))


def test_nonfinite_values_are_missing_and_counted() -> None:
    found = reading(record(mean_ttft_ms=math.nan, p99_ttft_ms=math.inf))
    (flag,) = [f for f in found.flags if f.code == "nonfinite_values"]
    assert flag.message.startswith("2 values")
    assert found.runs[0].ttft_ms_mean is None
    assert found.runs[0].ttft_ms_p99 is None
    (flag,) = reading(record(mean_ttft_ms=math.nan)).flags
    assert flag.message.startswith("1 value is NaN or infinite")


def test_impossible_numbers_are_left_empty_and_said() -> None:
    found = reading(record(mean_ttft_ms=-5.0, completed=10**30, max_concurrency=0))
    (flag,) = [f for f in found.flags if f.code == "impossible_value"]
    assert "ttft_ms_mean = -5" in flag.message
    assert (found.runs[0].ttft_ms_mean, found.runs[0].completed, found.runs[0].offered_load) == (
        None,
    ) * 3


def test_per_request_lists() -> None:
    found = reading(record("detailed"))
    (run,) = found.runs
    table = found.requests[run.run_id]
    assert table["ok"].to_pylist() == [True, True, True, False]
    assert table["arrival_s"].to_pylist() == [0.0, 0.5, 1.0, 1.25]
    assert table["output_tokens"].to_pylist() == [5, 4, 3, 0]
    assert table["ttft_ms"].to_pylist() == [20.0, 30.0, 40.0, None]
    assert np.allclose(table["e2e_ms"].to_pylist()[:3], [60.0, 60.0, 60.0])
    assert np.allclose(table["tpot_ms"].to_pylist()[:3], [10.0, 10.0, 10.0])
    assert table["e2e_ms"].to_pylist()[3] is None


def test_stated_latencies_of_requests_beat_the_sum_of_gaps() -> None:
    found = reading(record("detailed", latencies=[0.1, 0.1, 0.1, 0.0]))
    table = found.requests[found.runs[0].run_id]
    assert table["e2e_ms"].to_pylist()[:3] == [100.0, 100.0, 100.0]


@pytest.mark.parametrize("broken", [{"ttfts": [0.1]}, {"output_lens": ["a", 1, 2, 3]}])
def test_lists_that_do_not_fit_are_left_out_and_said(broken: dict[str, Any]) -> None:
    found = reading(record("detailed", **broken))
    assert found.requests == {}
    assert "requests_unreadable" in codes(found)


def test_run_ids_are_stable_and_tell_runs_apart() -> None:
    assert run_of(record()).run_id == run_of(record()).run_id
    changed = [
        record(duration=20.5),
        record(label="x"),
        record(date="20260214-101501"),
        record("eagle3-c8"),
    ]
    assert len({run_of(r).run_id for r in [record(), *changed]}) == 5
    assert run_of(without(record(), "date")).run_id != run_of(record()).run_id


# --- cases --------------------------------------------------------------------------------------


def test_c06_gaps_between_chunks_are_never_the_time_per_token() -> None:
    found = reading(record("eagle3-c8", mean_tpot_ms=11.88, mean_itl_ms=24.56))
    (run,) = found.runs
    assert (run.tpot_ms_mean, run.itl_ms_mean) == (11.88, 24.56)
    assert "2.07 tokens" in next(f.message for f in found.flags if f.code == "chunked_itl")
    no_tpot = {k: v for k, v in record("eagle3-c8").items() if "tpot" not in k}
    found = reading(no_tpot)
    assert found.runs[0].tpot_ms_mean is None
    assert "only_itl" in codes(found)


@pytest.mark.parametrize(
    ("mean", "peak"), [(2541.0, 1757.0), (410.61, 113.0), (1451.37, 640.0), (371.88, 122.0)]
)
def test_c16_a_peak_below_the_mean_is_said_and_ignored(mean: float, peak: float) -> None:
    changed = record(output_throughput=mean, max_output_tokens_per_s=peak)
    changed["total_output_tokens"] = round(mean * changed["duration"])
    found = reading(changed)
    assert found.runs[0].output_tps == mean
    assert next(f.message for f in found.flags if f.code == "peak_below_mean").endswith("ignore it")


def test_c17_a_rate_of_inf_null_or_2_4() -> None:
    rates = [2.4, "inf", None]
    files = [
        record(request_rate=r, max_concurrency=None, date=f"20260214-10150{i}")
        for i, r in enumerate(rates)
    ]
    runs = reading(*files).runs
    assert [r.offered_load for r in runs] == [2.4, math.inf, None]
    assert [r.load_kind for r in runs] == [LoadKind.REQUEST_RATE, LoadKind.REQUEST_RATE, None]
    assert run_of(record(request_rate="inf", max_concurrency=8)).offered_load == 8.0


def test_c67_failures_are_said_and_the_throughput_is_recomputed() -> None:
    changed = without(record(), "failed") | {
        "completed": 599,
        "num_prompts": 600,
        "duration": 6751.398,
        "total_output_tokens": 1_260_603,
        "output_throughput": 186.717,
    }
    found = reading(changed)
    (flag,) = [f for f in found.flags if f.code == "failed_requests"]
    assert (flag.severity, found.runs[0].failed) == ("warns", 1)
    assert flag.message.startswith("1 of 600 requests failed (0.2%)")
    assert "throughput_mismatch" not in codes(found)
    del changed["output_throughput"]
    assert not vllm_bench.is_record(changed), "a record without it is none"
    changed |= {"output_throughput": None}
    assert run_of(changed).output_tps == pytest.approx(186.717, abs=0.0005)
    found = reading(without(record(completed=248, num_prompts=256), "failed"))
    assert checks.blocks_pricing(found.runs[0])


def test_c76_three_appended_objects_and_the_same_file_again() -> None:
    files = [record(date=f"20260214-10150{i}") for i in range(3)]
    first, again = reading(*files), reading(*files)
    assert len(first.runs) == 3
    assert [r.run_id for r in first.runs] == [r.run_id for r in again.runs]
    marked = b"\xef\xbb\xbf" + json.dumps(files[0]).encode()
    assert read("f.json", marked).runs[0].run_id == first.runs[0].run_id


# --- what a record says in other ways -----------------------------------------------------------


def test_failures_inferred_from_num_prompts_are_called_so() -> None:
    assert "failures_inferred" in codes(reading(without(record(num_prompts=1000), "failed")))
    assert "failures_inferred" not in codes(reading(without(record(), "failed")))
    assert "failures_inferred" not in codes(reading(record(num_prompts=1000, failed=1)))


def test_the_lists_of_a_detailed_file_tell_how_many_were_sent() -> None:
    found = reading(without(record("detailed", num_prompts=1000), "failed"))
    assert found.runs[0].failed == 1
    assert "failures_inferred" not in codes(found)


def test_a_stated_acceptance_counts_where_no_counts_are_written() -> None:
    counts = [k for k in record("eagle3-c8") if k.startswith("spec_decode_")]
    stated = {"spec_decode_acceptance_rate": 45.0, "spec_decode_acceptance_length": 2.8}
    found = reading(without(record("eagle3-c8"), *counts) | stated)
    (run,) = found.runs
    assert (run.accept_length, run.accept_rate, run.drafts) == (2.8, 0.45, None)
    assert run.spec_state is SpecState.ON
    assert {"accept_length", "accept_rate"} <= {k.field for k in found.keys}
    counted = run_of(record("eagle3-c8"))
    assert (counted.accept_length, counted.accept_rate) == (None, None), "the counts decide"
    none = run_of(record(spec_decode_acceptance_rate=0.0, spec_decode_acceptance_length=1.0))
    assert none.spec_state is SpecState.UNKNOWN


def test_nothing_completed_leaves_no_zeros() -> None:
    zeros = {k: 0.0 for k in record() if k.endswith("_ms")}
    totals = {"total_output_tokens": 0, "total_input_tokens": 0, "output_throughput": 0.0}
    found = reading(record(completed=0, failed=64, request_throughput=0.0, **totals, **zeros))
    (run,) = found.runs
    assert (run.completed, run.output_tps, run.ttft_ms_mean, run.input_len) == (0, None, None, None)
    assert "nothing_completed" in codes(found)


def test_a_median_and_a_fiftieth_percentile_are_one() -> None:
    both = run_of(record(p50_ttft_ms=99.0))
    assert both.ttft_ms_p50 == 30.25
    assert run_of(without(record(p50_ttft_ms=99.0), "median_ttft_ms")).ttft_ms_p50 == 99.0


def test_the_keys_used_are_of_the_level_s_table() -> None:
    found = reading(record("eagle3-c8"))
    assert len(found.keys) == len(set(found.keys))
    assert set(found.keys) <= set(vllm_bench.LEVELS["v3 keys"])
    loads = {k.path for k in found.keys if k.field == "offered_load"}
    assert loads == {("max_concurrency",)}
    old = reading(without(record(), *V1) | {"best_of": 1})
    assert set(old.keys) <= set(vllm_bench.LEVELS["v0 keys"])
    rate_driven = reading(record(request_rate=2.0, max_concurrency=None))
    loads = {k.path for k in rate_driven.keys if k.field == "offered_load"}
    assert loads == {("request_rate",)}


# --- sweeps -------------------------------------------------------------------------------------


def sweep() -> list[dict[str, Any]]:
    """Six runs of `vllm bench sweep serve`, as its run files hold them."""
    plain = {"label": None, "max_concurrency": 8, "duration": 20.000000000000004}
    config = {"method": "eagle3", "num_speculative_tokens": 4, "disable_padded": True, "x": None}
    others = [
        {"run_number": 0, **plain},
        {"run_number": 1, **plain, "label": "0012"},
        {"run_number": 2, **plain, "label": "true", "vllm_version": "0.10", "note": 'it\'s "x"'},
        {"run_number": 0, **plain, "speculative_config": config},
        {"run_number": 1, **plain, "enable_prefix_caching": True, "request_rate": math.inf},
        {"run_number": 2, **plain, "total_input_tokens": 65_537, "request_rate": 4.5},
    ]
    names = ["off-c8", "off-c8", "off-c8", "eagle3-c8", "off-c8", "off-c8"]
    return [
        record(name, date=f"20260214-10150{i}", **other)
        for i, (name, other) in enumerate(zip(names, others, strict=True))
    ]


def summary_csv(runs: list[dict[str, Any]]) -> bytes:
    """As the tool writes it: pandas, an unnamed index, the union of the columns."""
    return pd.DataFrame.from_records(runs).to_csv().encode()


def test_one_run_of_a_sweep_has_one_id_in_all_three_files() -> None:
    runs = sweep()
    alone = [read("run=0.json", json.dumps(r, indent=4).encode()).runs[0] for r in runs]
    summary = read("summary.json", json.dumps(runs, indent=4).encode()).runs
    table = read("summary.csv", summary_csv(runs)).runs
    ids = [r.run_id for r in alone]
    assert len(set(ids)) == 6
    assert [r.run_id for r in summary] == ids
    assert [r.run_id for r in table] == ids


def test_a_summary_csv_says_what_its_run_files_say() -> None:
    runs = sweep()
    by_csv = read("summary.csv", summary_csv(runs))
    for one, run in zip(by_csv.runs, runs, strict=True):
        other = run_of(run)
        for name in (
            *("label", "repeat", "engine_version", "prefix_caching", "arm", "drafts", "failed"),
            *("accepted_per_position", "load_kind", "offered_load", "tool_version", "tpot_ms_p99"),
            *("started_at", "output_tps", "num_speculative_tokens"),
        ):
            assert getattr(one, name) == getattr(other, name), name
    assert by_csv.runs[3].arm == "eagle3:4"
    assert by_csv.runs[0].spec_state is SpecState.UNKNOWN, "a blank cell is not a null override"
    assert by_csv.runs[2].engine_version == "0.10"
    assert by_csv.runs[1].label == "0012"


@pytest.mark.parametrize("name", ["off-c8", "eagle3-c8", "detailed"])
def test_records_gone_wrong_raise_nothing_of_their_own(name: str) -> None:
    random = Random(20260301)
    runs = [record(name), record(name, run_number=1, speculative_config={"method": "mtp"})]
    for _ in range(150):
        broken = json.loads(json.dumps(shaken(runs, random)))
        try:
            reading(broken)
            if vllm_bench.recognise([broken]):
                vllm_bench.find("f", [broken], "0" * 64)
        except DraftworthError:
            continue


def test_tables_gone_wrong_raise_nothing_of_their_own() -> None:
    random = Random(20260301)
    for _ in range(150):
        rows = [list(r) for r in (sweep()[3], *(x.values() for x in sweep()))]
        cells = [[str(c) for c in row[:40]] for row in rows]
        for _ in range(random.choice((1, 4, 20))):
            row = random.choice(cells)
            odd = ("", "nan", "-1", "[" * 300, "{'a': 1j}", "[1, nan, None]", "1e999", "{", "\x00")
            row[random.randrange(len(row))] = random.choice(odd)
        try:
            if vllm_bench.recognise_rows(cells):
                vllm_bench.find_rows("f", cells, "0" * 64)
        except DraftworthError:
            continue


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the project")
@pytest.mark.parametrize(
    ("load", "off", "on"),
    [
        (1, 194.8, 196.1),
        (4, 732.1, 711.9),
        (8, 1360.3, 1143.2),
        (16, 2324.9, 1698.9),
        (32, 3367.8, 2351.3),
    ],
)
def test_published_pair(load: int, off: float, on: float) -> None:
    for folder, expected in (("sglang-w4a16-off", off), ("sglang-w4a16-eagle3", on)):
        found = read(f"{folder}/c{load}.json", (CORPUS / folder / f"c{load}.json").read_bytes())
        (run,) = found.runs
        assert found.tool_version == "v2 keys"
        assert run.offered_load == load
        assert run.output_tps == pytest.approx(expected, abs=0.05)
        assert run.spec_state is SpecState.UNKNOWN
        assert run.engine is None, "the client's backend is not the server"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the project")
def test_published_pair_at_one_stream() -> None:
    off, on = (
        read("c1.json", (CORPUS / folder / "c1.json").read_bytes()).runs[0]
        for folder in ("sglang-w4a16-off", "sglang-w4a16-eagle3")
    )
    assert [off.tpot_ms_mean, on.tpot_ms_mean] == pytest.approx([4.74, 4.79], abs=0.005)
    assert [off.tpot_ms_p50, on.tpot_ms_p50] == pytest.approx([4.75, 4.14], abs=0.005)
