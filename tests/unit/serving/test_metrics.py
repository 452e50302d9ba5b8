"""Exposition text of every engine to one typed snapshot."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import DraftworthError, FileTooLarge, UnreadableFile
from lib.serving import metrics
from lib.serving.metrics import Replica, Snapshot, snapshot
from lib.serving.windows import Window, window
from tests.unit.serving.metrics_standin import histogram, line, vllm

SGLANG = (
    line("sglang:num_running_reqs", 6, model_name="m", tp_rank="0")
    + line("sglang:num_running_reqs", 6, model_name="m", tp_rank="1")
    + line("sglang:num_queue_reqs", 2, model_name="m", tp_rank="0")
    + line("sglang:token_usage", 0.4, model_name="m", tp_rank="0")
    + line("sglang:gen_throughput", 200, model_name="m", tp_rank="0")
    + line("sglang:spec_accept_length", 2.5, model_name="m", tp_rank="0")
    + line("sglang:generation_tokens_total", 1000, model_name="m")
    + line("sglang:num_requests_total", 10, model_name="m")
)
TRTLLM = (
    line("trtllm_spec_decode_drafted_tokens_total", 100, token_position="0")
    + line("trtllm_spec_decode_drafted_tokens_total", 100, token_position="1")
    + line("trtllm_spec_decode_accepted_tokens_total", 80, token_position="0")
    + line("trtllm_spec_decode_accepted_tokens_total", 60, token_position="1")
    + line("trtllm_generation_tokens_total", 240)
    + line("trtllm_kv_cache_utilization", 0.25)
    + line("trtllm_num_requests_running", 3)
)
LLAMA = (
    line("llamacpp:spec_decode_num_drafts_total", 100)
    + line("llamacpp:spec_decode_num_draft_tokens_total", 280)
    + line("llamacpp:spec_decode_num_accepted_tokens_total", 150)
    + line("llamacpp:tokens_predicted_total", 250)
    + line("llamacpp:tokens_predicted_seconds_total", 5)
    + line("llamacpp:requests_processing", 1)
    + line("llamacpp:requests_deferred", 0)
)
LMDEPLOY = line("lmdeploy:spec_decode_num_drafts_total", 10, model_name="m") + line(
    "lmdeploy:spec_decode_num_accepted_tokens_total", 12, model_name="m"
)
ZERO = vllm()


def read(text: str, at_s: float = 0.0) -> Snapshot:
    return snapshot("metrics", text, at_s)


def one(text: str) -> Replica:
    (replica,) = read(text).replicas.values()
    return replica


def between(before: str, after: str, seconds: float = 10.0) -> Window:
    return window("metrics", read(before), read(after, seconds))


@pytest.mark.parametrize(
    ("text", "engine", "drafts"),
    [
        (vllm(10, 40, 20, 30), "vLLM", 10),
        (SGLANG + line("sglang:spec_verify_calls_total", 400, model_name="m"), "SGLang", 400),
        (TRTLLM, "TensorRT-LLM", 100),
        (LLAMA, "llama.cpp", 100),
        (LMDEPLOY, "LMDeploy", 10),
    ],
)
def test_each_engine_is_told_by_its_names(text: str, engine: str, drafts: int) -> None:
    replica = one(text)
    assert (replica.engine, replica.counters.drafts) == (engine, drafts)
    shuffled = text.splitlines(keepends=True)
    random.Random(1).shuffle(shuffled)
    assert one("".join(shuffled)) == replica


def test_label_order_is_irrelevant() -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    first = f'{name}{{engine="0",model_name="m",position="0"}} 5\n'
    last = f'{name}{{position="0",model_name="m",engine="0"}} 5\n'
    assert one(first) == one(last)
    assert one(first).counters.accepted_per_position == (5,)


def test_a_created_series_is_no_count() -> None:
    name = "vllm:spec_decode_num_drafts"
    more = line(f"{name}_created", 1.7769e9, engine="0", model_name="acme/target")
    after = vllm(6_491_797, 6_491_797, 4_000_000, 11_000_000) + more
    found = between(ZERO + more, after)
    assert (found.counters.drafts, found.counters.draft_tokens) == (6_491_797, 6_491_797)


def test_a_position_is_no_part_of_the_aggregate() -> None:
    found = one(vllm(10, 20, 12, 22, positions=(8, 4))).counters
    assert (found.accepted_tokens, found.accepted_per_position) == (12, (8, 4))


def test_v0_gauges_are_recognised_and_count_no_drafts() -> None:
    old = (
        line("vllm:spec_decode_draft_acceptance_rate", 0.6)
        + line("vllm:spec_decode_efficiency", 0.5)
        + line("vllm:spec_decode_num_emitted_tokens_total", 500)
        + line("vllm:spec_decode_num_draft_tokens_total", 800)
        + line("vllm:spec_decode_num_accepted_tokens_total", 480)
    )
    found = one(old)
    assert (found.engine, found.counters.drafts) == ("vLLM", None)
    assert found.counters.accepted_tokens is None, "counted past a rejection in V0"


@pytest.mark.parametrize(
    "text", ["", "<html>not metrics</html>", 'node_cpu_seconds_total{cpu="0"} 5\n', "vllm:broken\n"]
)
def test_no_known_engine_is_one_line_with_the_prefixes(text: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(text)
    said = str(caught.value)
    assert "\n" not in said
    assert "broken" in said or all(p in said for p in metrics.PREFIXES)


def test_renamed_series_are_read_by_both_names() -> None:
    old = line("vllm:gpu_cache_usage_perc", 0.5) + histogram(
        "vllm:time_per_output_token_seconds", {0.025: 4}, 4, 0.08
    )
    new = line("vllm:kv_cache_usage_perc", 0.5) + histogram(
        "vllm:inter_token_latency_seconds", {0.025: 4}, 4, 0.08
    )
    assert one(old) == one(new)
    assert one(old).counters.tpot is None, "vLLM's is per step by either name"
    assert one(old).gauges.kv_use == 0.5


def test_waiting_by_reason_is_added_up_and_ranks_are_not() -> None:
    name = "vllm:num_requests_waiting_by_reason"
    assert (
        one(line(name, 2, reason="capacity") + line(name, 3, reason="deferred")).gauges.waiting == 5
    )
    ranks = read(SGLANG)
    assert [r.gauges.running for r in ranks.replicas.values()] == [6]


def test_a_throughput_gauge_of_an_idle_server_is_stale() -> None:
    text = line("sglang:gen_throughput", 200) + line("sglang:num_running_reqs", 0)
    gauges = one(text).gauges
    assert gauges.idle
    assert (gauges.stated_tps, gauges.output_tps) == (200, 0)
    assert one(SGLANG).gauges.output_tps == 200


def test_llama_cpp_has_a_mean_and_no_buckets() -> None:
    tpot = one(LLAMA).counters.tpot
    assert tpot is not None
    assert (tpot.mean_ms, tpot.edges_s) == (pytest.approx(20.0), ())


def test_two_engines_of_one_server_stand_apart() -> None:
    text = vllm(1, 2, 1, 3, engine="0", model_name="m") + vllm(
        5, 9, 6, 11, engine="1", model_name="m"
    )
    found = [(r.label, r.counters.drafts) for r in read(text).replicas.values()]
    assert found == [("model_name m, engine 0", 1), ("model_name m, engine 1", 5)]


def test_series_with_fewer_labels_belong_to_the_one_engine_they_fit() -> None:
    text = vllm(10, 20, 12, 22) + line("vllm:num_preemptions_total", 3, model_name="acme/target")
    assert one(text).counters.preemptions == 3


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-5", "1e300"])
def test_values_that_count_nothing_are_left_out(value: str) -> None:
    text = vllm(10, 20, 12, 22)
    name = 'vllm:spec_decode_num_drafts_total{engine="0",model_name="acme/target"} '
    assert one(text.replace(f"{name}10", f"{name}{value}")).counters.drafts is None


def test_more_lines_than_any_server_has_are_refused() -> None:
    with pytest.raises(FileTooLarge, match="200,000 lines"):
        read('vllm:a{x="1"} 1\n' * 10_000_000)


def test_more_engines_than_any_fleet_has_are_refused() -> None:
    text = "".join(line("vllm:num_requests_running", 1, engine=f"{n}") for n in range(2000))
    with pytest.raises(FileTooLarge, match="2,000 engines"):
        read(text)


def test_other_programs_series_are_passed_over() -> None:
    foreign = "".join(line("python_gc_objects", n, generation=str(n)) for n in range(1000))
    assert read(foreign + vllm(1, 2, 1, 2)) == read(vllm(1, 2, 1, 2))


@given(st.text(max_size=200), st.sampled_from([str, "vllm:x{{{}}} 1".format, "vllm:x {}".format]))
def test_hostile_text_is_read_or_refused_in_one_line(text: str, wrap: Callable[[str], str]) -> None:
    said = ""
    try:
        read(wrap(text))
    except DraftworthError as error:
        said = str(error)
    assert "\n" not in said
