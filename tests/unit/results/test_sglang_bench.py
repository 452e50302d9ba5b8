import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.reading import Reading, read
from lib.results.tools import sglang_bench, sglang_server_info
from lib.run import LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "sglang"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "generated"


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]


def off(**changes: Any) -> dict[str, Any]:
    return records("0.5.23.jsonl")[0] | changes


def on(**changes: Any) -> dict[str, Any]:
    return records("0.5.23.jsonl")[1] | changes


def with_args(**changes: Any) -> dict[str, Any]:
    record = on()
    info = record["server_info"]
    states = [info["internal_states"][0] | changes]
    return record | {"server_info": info | changes | {"internal_states": states}}


def reading(*values: object) -> Reading:
    return read("f.jsonl", "\n".join(json.dumps(v) for v in values).encode())


def run_of(record: dict[str, Any]) -> Run:
    (run,) = reading(record).runs
    return run


def codes(found: Reading) -> set[str]:
    return {f.code for f in found.flags}


def test_appended_lines_are_runs() -> None:
    """C76: three objects of a file are three runs, and the same file again gives the same ids."""
    lines = [*records("0.5.3.jsonl"), *records("0.4.1.jsonl")]
    found = reading(*lines)
    assert len(found.runs) == len({r.run_id for r in found.runs}) == 3
    assert [r.run_id for r in reading(*lines).runs] == [r.run_id for r in found.runs]
    alone = {reading(line).runs[0].run_id for line in lines}
    assert alone == {r.run_id for r in found.runs}, "by content, whatever file it lies in"


def test_the_same_line_twice_is_one_run() -> None:
    found = reading(on(), on())
    assert len(found.runs) == 1
    assert "repeated_in_file" in codes(found)


def test_a_line_of_the_middle_level() -> None:
    off_run, on_run = read("f", (FIXTURES / "0.5.3.jsonl").read_bytes()).runs
    assert on_run.tool == "sglang-bench-serving"
    assert on_run.tool_version == sglang_bench.MIDDLE
    assert (on_run.load_kind, on_run.offered_load) == (LoadKind.CONCURRENCY, 8.0)
    assert (on_run.output_tps, on_run.request_rps, on_run.duration_s) == (800.0, 4.0, 16.0)
    assert (on_run.completed, on_run.failed, on_run.num_prompts) == (64, None, None)
    assert (on_run.input_len, on_run.output_len, on_run.dataset) == (200.0, 200.0, "sharegpt")
    assert (on_run.output_tokens, on_run.token_count) == (12800, "server")
    assert on_run.retokenized_tokens == 12700
    assert (on_run.tpot_ms_mean, on_run.tpot_ms_p50, on_run.tpot_ms_p99) == (9.0, 8.55, 18.0)
    assert (on_run.itl_ms_p95, on_run.tpot_ms_p95, on_run.ttft_ms_p90) == (33.75, None, None)
    assert on_run.running_mean == 7.6
    assert (on_run.accept_length, on_run.spec_state) == (2.5, SpecState.ON)
    assert (on_run.target, on_run.engine, on_run.started_at) == (None, None, None)
    assert off_run.spec_state is SpecState.UNKNOWN, "no speculative key is not off"


def test_a_line_of_the_oldest_level_is_driven_by_its_rate() -> None:
    run = run_of(records("0.4.1.jsonl")[0])
    assert run.tool_version == sglang_bench.OLD
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 2.5)
    assert run.achieved_load is None
    assert (run.e2e_ms_mean, run.e2e_ms_p50, run.ttft_ms_p50) == (800.0, 760.0, 40.0)
    assert (run.ttft_ms_mean, run.tpot_ms_mean, run.accept_length) == (None, None, None)


def test_the_achieved_rate() -> None:
    run = run_of(on(request_rate=5.0, max_concurrency=32))
    assert (run.load_kind, run.offered_load) == (LoadKind.REQUEST_RATE, 5.0)
    assert run.achieved_load == 4.0
    assert json.loads(run.extra or "")["max_concurrency"] == 32


@pytest.mark.parametrize(
    ("rate", "limit", "kind", "load"),
    [
        (2.4, None, LoadKind.REQUEST_RATE, 2.4),
        ("inf", None, LoadKind.REQUEST_RATE, math.inf),
        (math.inf, None, LoadKind.REQUEST_RATE, math.inf),
        (math.inf, 16, LoadKind.CONCURRENCY, 16.0),
        (None, 16, LoadKind.CONCURRENCY, 16.0),
        (None, None, None, None),
        ("trace", 16, None, None),
    ],
)
def test_request_rates(rate: object, limit: object, kind: object, load: object) -> None:
    """C17: a number, no limit, or not known."""
    run = run_of(on(request_rate=rate, max_concurrency=limit))
    assert (run.load_kind, run.offered_load) == (kind, load)


def test_a_trace_sets_its_own_pace() -> None:
    run = run_of(on(request_rate="trace"))
    assert json.loads(run.extra or "")["request_rate"] == "trace"
    replayed = run_of(on(dataset_name="mooncake"))
    assert (replayed.load_kind, replayed.offered_load) == (None, None)


def test_server_info_is_the_protocol() -> None:
    run = run_of(on())
    assert run.tool_version == sglang_bench.NEW
    assert (run.target, run.target_quantization) == ("acme/target-8b", "fp8")
    assert (run.engine, run.engine_version) == ("SGLang", "0.5.23")
    assert (run.tensor_parallel, run.data_parallel, run.pipeline_parallel) == (2, 1, 1)
    assert (run.gpu_count, run.max_num_seqs, run.graph_max_batch) == (2, 64, 32)
    assert run.prefix_caching is False
    assert run.arm == "eagle3:3", "num_draft_tokens counts the root"
    assert (run.draft_model, run.draft_topk) == ("acme/drafter", 1)
    assert (run.label, run.gpu) == ("eagle3 c8", None)
    assert (run.goodput_rps, run.slo) == (3.5, "ttft_ms=300, e2e_ms=4000")
    assert (run.tpot_ms_p90, run.tpot_ms_p95) == (11.25, 13.5)
    kept = json.loads(run.extra or "")["server_info"]
    assert kept["speculative_num_draft_tokens"] == 4
    assert "random_seed" not in kept


def test_the_whole_set_of_arguments_without_an_algorithm_is_off() -> None:
    run = run_of(off())
    assert (run.spec_state, run.arm) == (SpecState.OFF, "off")
    assert (run.draft_model, run.draft_topk, run.num_speculative_tokens) == (None, None, None)
    part = {"model_path": "acme/target-8b", "disable_radix_cache": False}
    run = run_of(off(server_info=part))
    assert run.spec_state is SpecState.UNKNOWN
    assert (run.target, run.prefix_caching, run.gpu_count) == ("acme/target-8b", True, None)


@pytest.mark.parametrize(
    ("changes", "method", "k"),
    [
        ({"speculative_algorithm": "NEXTN"}, "nextn", 3),
        ({"speculative_algorithm": "STANDALONE"}, "draft_model", 3),
        ({"speculative_num_steps": None}, "eagle3", 3),
        ({"speculative_eagle_topk": 4, "speculative_num_draft_tokens": 16}, "eagle3", 3),
        (
            {
                "speculative_algorithm": "DFLASH",
                "speculative_num_steps": 1,
                "speculative_num_draft_tokens": 16,
            },
            "dflash",
            15,
        ),
        ({"speculative_algorithm": "NGRAM", "speculative_num_steps": None}, "ngram", None),
        ({"speculative_num_steps": 10**9, "speculative_num_draft_tokens": 0}, "eagle3", None),
    ],
)
def test_drafted_tokens_a_round(changes: dict[str, Any], method: str, k: int | None) -> None:
    run = run_of(with_args(**changes))
    assert (run.spec_state, run.draft_method) == (SpecState.ON, method)
    assert run.num_speculative_tokens == k


def test_adaptive_steps_are_a_schedule() -> None:
    run = run_of(with_args(speculative_adaptive=True))
    assert (run.schedule, run.num_speculative_tokens) == ("adaptive", None)
    assert run.arm == "eagle3:schedule"


def test_other_switches_of_the_server() -> None:
    assert run_of(with_args(disable_cuda_graph=True)).graph_max_batch == 0
    renamed = with_args(cuda_graph_max_bs=None, cuda_graph_max_bs_decode=64)
    assert run_of(renamed).graph_max_batch == 64
    assert run_of(with_args(dp_size=4)).gpu_count == 8
    assert run_of(with_args(dp_size=2, enable_dp_attention=True)).gpu_count == 2
    assert run_of(with_args(disaggregation_mode="decode")).gpu_count is None


def test_prefill_apart_and_ranks_in_a_list() -> None:
    info = on()["server_info"]
    apart = run_of(on(server_info={"prefill": [{"model_path": "x"}], "decode": [info]}))
    assert (apart.arm, apart.tensor_parallel, apart.gpu_count) == ("eagle3:3", 2, None)
    assert run_of(on(server_info=[info, info])).arm == "eagle3:3"
    nested = {"server_args": info, "version": "0.5.23"}
    assert run_of(on(server_info=nested)).arm == "eagle3:3"


@pytest.mark.parametrize(
    "info", [None, 7, "x", [], [7], {}, {"vllm_config": "x"}, {"internal_states": 5}, {"decode": 1}]
)
def test_another_servers_info_states_nothing(info: object) -> None:
    run = run_of(off(server_info=info, accept_length=None))
    assert (run.target, run.spec_state) == (None, SpecState.UNKNOWN)
    assert sglang_server_info.kept(info) is None


def test_acceptance_is_a_length_with_the_bonus() -> None:
    """C01: SGLang with 4 draft tokens, of which one is the root: τ 2.17 as stated, K = 3."""
    found = reading(on())
    (run,) = found.runs
    assert (run.accept_length, run.num_speculative_tokens) == (2.17, 3)
    assert (run.accept_rate, run.draft_tokens, run.accepted_tokens) == (None, None, None)
    assert round((2.17 - 1) / 3, 3) == 0.390
    assert "cumulative_acceptance" in codes(found)


def test_a_tree_of_drafts() -> None:
    """C56: length 2.4 with 2 steps, topk 4 and 4 draft tokens: K is the depth, no rate is taken."""
    tree = with_args(
        speculative_num_steps=2, speculative_eagle_topk=4, speculative_num_draft_tokens=4
    )
    found = reading(tree | {"accept_length": 2.4})
    (run,) = found.runs
    assert (run.accept_length, run.num_speculative_tokens, run.draft_topk) == (2.4, 2, 4)
    assert run.accept_rate is None
    assert "tree_draft" in codes(found)


@pytest.mark.parametrize("length", [None, -1, 0, "x", []])
def test_no_acceptance_length(length: object) -> None:
    found = reading(off(accept_length=length))
    assert found.runs[0].accept_length is None
    assert found.runs[0].spec_state is SpecState.OFF
    assert "cumulative_acceptance" not in codes(found)


def test_inter_token_latency_depends_on_backend_and_level() -> None:
    """C06: TPOT 11.88 and ITL 24.56 are kept apart; their ratio is the tokens a chunk."""
    middle = records("0.5.3.jsonl")[1] | {"mean_tpot_ms": 11.88, "mean_itl_ms": 24.56}
    found = reading(middle)
    assert (found.runs[0].tpot_ms_mean, found.runs[0].itl_ms_mean) == (11.88, 24.56)
    chunked = next(f.message for f in found.flags if f.code == "chunked_itl")
    assert "2.07 tokens" in chunked
    assert "itl_meaning" not in codes(found)
    native, again = reading(on()), reading(on(backend="sglang-oai-chat"))
    said = [next(f.message for f in r.flags if f.code == "itl_meaning") for r in (native, again)]
    assert "spread over its tokens" in said[0]
    assert "counted again" in said[1]
    assert "itl_meaning" not in codes(reading(off()))


@pytest.mark.parametrize(
    ("generated", "again", "flagged"),
    [(6400, 32, True), (512_000, 231_736, True), (195_775, 195_747, False)],
)
def test_generated_and_retokenised_counts(generated: int, again: int, flagged: bool) -> None:
    """C68: the server's count makes the throughput; a ratio below 0.98 is flagged."""
    record = off(
        total_output_tokens=generated,
        total_output_tokens_retokenized=again,
        output_throughput=generated / 20.0,
    )
    found = reading(record)
    (run,) = found.runs
    assert (run.output_tokens, run.retokenized_tokens) == (generated, again)
    assert run.output_tps == generated / 20.0
    assert ("retokenized_mismatch" in codes(found)) is flagged


def test_a_peak_of_chunks_below_the_mean() -> None:
    found = reading(on())
    assert "peak_below_mean" in codes(found)
    assert json.loads(found.runs[0].extra or "")["max_output_tokens_per_s"] == 500.0


def test_details_give_requests_and_failures() -> None:
    found = reading(records("0.5.23.jsonl")[2])
    (run,) = found.runs
    assert (run.completed, run.failed, run.num_prompts) == (2, 1, 3)
    rows = found.requests[run.run_id].to_pydict()
    assert rows["ok"] == [True, False, True]
    assert rows["output_tokens"] == [3, 0, 5]
    assert rows["ttft_ms"] == [50.0, None, pytest.approx(70.0)]
    assert rows["e2e_ms"] == [pytest.approx(80.0), None, pytest.approx(110.0)]
    assert rows["tpot_ms"] == [pytest.approx(15.0), None, pytest.approx(10.0)]
    assert "generated_texts" not in (run.extra or "")


def test_details_that_do_not_fit_together() -> None:
    found = reading(records("0.5.23.jsonl")[2] | {"ttfts": [0.1]})
    assert not found.requests
    assert "requests_unreadable" in codes(found)


def test_nothing_completed() -> None:
    """completed = 0: NaN end-to-end times and zeros are no measurements."""
    zeros = {f"{s}_{m}_ms": 0.0 for s in ("mean", "median") for m in ("ttft", "tpot", "itl")}
    record = off(
        completed=0,
        total_output_tokens=0,
        total_output_tokens_retokenized=0,
        output_throughput=0.0,
        mean_e2e_latency_ms=math.nan,
        median_e2e_latency_ms=math.nan,
        **zeros,
    )
    (run,) = reading(record).runs
    assert (run.completed, run.output_len, run.output_tps) == (0, None, 0.0)
    assert (run.e2e_ms_mean, run.ttft_ms_mean, run.tpot_ms_p50) == (None, None, None)


def test_values_of_another_kind_are_counted() -> None:
    found = reading(on(), {"a": 1}, 7)
    assert len(found.runs) == 1
    assert "2 values" in next(f.message for f in found.flags if f.code == "other_values")
    with pytest.raises(UnknownFormat):
        reading({"backend": "sglang", "output_throughput": 1.0})


def test_keys_are_those_of_the_level() -> None:
    found = reading(on())
    assert set(found.keys) <= set(sglang_bench.LEVELS[sglang_bench.NEW])
    assert len(found.keys) == len(set(found.keys))
    shown = {k.field for k in found.keys}
    assert {"output_tps", "offered_load", "slo", "prefix_caching", "draft_method"} <= shown


def test_a_static_batch() -> None:
    """Its output_throughput is of the decode phase; tok/s here are of the whole time."""
    found = read("f", (FIXTURES / "one_batch.jsonl").read_bytes())
    alone, many = found.runs
    assert (found.tool, alone.tool_version) == ("sglang-one-batch-server", "bench_one_batch_server")
    assert (many.load_kind, many.offered_load) == (LoadKind.BATCH, 16.0)
    assert many.output_tps == pytest.approx(16 * 101 / 2.02)
    assert json.loads(many.extra or "")["output_throughput"] == 997.53
    assert (many.output_tokens, many.input_tokens, many.completed) == (1616, 16000, 16)
    assert (many.e2e_ms_mean, many.duration_s) == (2020.0, 2.02)
    assert (many.accept_length, many.spec_state, many.label) == (2.4, SpecState.ON, "eagle3")
    assert (many.ttft_ms_mean, many.tpot_ms_mean) == (None, None), "of the last request alone"
    assert (alone.ttft_ms_mean, alone.label, alone.accept_length) == (100.0, None, None)
    assert alone.tpot_ms_mean == pytest.approx(10.0)
    assert alone.spec_state is SpecState.UNKNOWN, "-1 is also written where nothing is known"
    assert {"batch_latency", "cumulative_acceptance"} <= codes(found)


def test_a_batch_that_stopped_early() -> None:
    record = records("one_batch.jsonl")[1] | {"total_output_tokens": 800}
    run = run_of(record)
    assert (run.output_tokens, run.output_len) == (800, 50.0)
    assert run.output_tps == pytest.approx(800 / 2.02)


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 0, 1e308, True])
@pytest.mark.parametrize("name", ["0.5.23.jsonl", "one_batch.jsonl"])
def test_wrong_values_break_nothing(name: str, value: object) -> None:
    record = records(name)[-1]
    for key in record:
        reading(record | {key: value})
    with suppress(UnknownFormat):  # where nothing is left that was measured
        reading(dict.fromkeys(record, value))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no collected files here")
def test_collected_files() -> None:
    first, second = read("f", (CORPUS / "sglang-0.5.3-on.jsonl").read_bytes()).runs
    assert (first.offered_load, second.offered_load) == (1.0, 4.0)
    assert second.tpot_ms_mean == pytest.approx(3.07, abs=0.005)
    assert second.itl_ms_mean == pytest.approx(7.61, abs=0.005)
    assert second.accept_length == pytest.approx(2.57, abs=0.005)
    assert first.dataset == "random-ids"
    off_runs = read("f", (CORPUS / "sglang-0.5.3-off.jsonl").read_bytes()).runs
    assert [r.spec_state for r in off_runs] == [SpecState.UNKNOWN] * 2
    (failures,) = read("f", (CORPUS / "sglang-0.5.3-failures.jsonl").read_bytes()).runs
    assert (failures.completed, failures.failed) == (10, None)
