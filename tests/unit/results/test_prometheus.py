import math
import random
from pathlib import Path

import pytest

from lib.errors import UnreadableFile
from lib.results import exposition
from lib.results.acceptance_checks import counted_tau
from lib.results.engine_metrics import ENGINES
from lib.results.findings import Findings, Scrape
from lib.results.reading import read
from lib.results.tools import prometheus
from lib.run import Run, SpecState

SWEEP = Path(__file__).resolve().parents[4] / "shared" / "sweeps" / "metrics"
needs_sweep = pytest.mark.skipif(not SWEEP.is_dir(), reason="no shared sweeps beside the project")

# The simulated engine's scrape after a sweep with K = 4 and alpha = 0.7.
K4 = """\
# HELP vllm:num_requests_running num_requests_running
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="sim/target-8b"} 0.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="sim/target-8b"} 113883.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="sim/target-8b"} 82368.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="sim/target-8b"} 1287.0
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="sim/target-8b"} 29857.0
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="sim/target-8b"} 119428.0
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="sim/target-8b"} 52978.0
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="sim/target-8b",position="0"} 20902
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="sim/target-8b",position="1"} 14651
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="sim/target-8b",position="2"} 10238
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="3",model_name="sim/target-8b"} 7187
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.25",model_name="sim/target-8b"} 1287.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="sim/target-8b"} 1287.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="sim/target-8b"} 100.2161971690025
vllm:time_to_first_token_seconds_count{engine="0",model_name="sim/target-8b"} 1287.0
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_sum{engine="0",model_name="sim/target-8b"} 1583.660147530994
vllm:inter_token_latency_seconds_count{engine="0",model_name="sim/target-8b"} 29857.0
# TYPE vllm:request_time_per_output_token_seconds histogram
vllm:request_time_per_output_token_seconds_sum{model_name="sim/target-8b"} 25.137462659222095
vllm:request_time_per_output_token_seconds_count{model_name="sim/target-8b"} 1287.0
"""


def codes(found: Findings) -> set[str]:
    return {flag.code for flag in found.flags}


def find(text: str) -> Findings:
    assert prometheus.recognise_text(text)
    return prometheus.find_text("metrics.txt", text, "digest")


def one(text: str) -> Run:
    (run,) = find(text).runs
    return run


def scrape(text: str) -> Scrape:
    found = find(text).scrape
    assert found is not None
    return found


def test_one_scrape_counts_since_the_start() -> None:
    found = find(K4)
    (run,) = found.runs
    assert codes(found) == {"since_start", "chunked_itl"}
    assert (run.engine, run.target, run.token_count) == ("vLLM", "sim/target-8b", "server")
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (29857, 119428, 52978)
    assert run.accepted_per_position == (20902, 14651, 10238, 7187)
    assert (run.spec_state, run.num_speculative_tokens) == (SpecState.ON, 4)
    assert (run.input_tokens, run.output_tokens, run.completed) == (113883, 82368, 1287)
    assert run.ttft_ms_mean == pytest.approx(77.868, abs=1e-3)
    assert run.tpot_ms_mean == pytest.approx(19.532, abs=1e-3), "per request"
    assert run.itl_ms_mean == pytest.approx(53.04, abs=1e-2), "per engine step"
    assert (run.output_tps, run.offered_load, run.duration_s) == (None, None, None)
    assert "vllm:spec_decode_num_drafts_total" in {k.path[0] for k in found.keys}
    assert {k.field for k in found.keys} >= {"accepted_per_position", "ttft_ms_mean"}


@needs_sweep
@pytest.mark.parametrize(("name", "tau"), [("metrics-k4", 2.7744), ("metrics-k2", 2.1881)])
def test_the_sweeps_give_tau_and_alpha(name: str, tau: float) -> None:
    (run,) = read(f"{name}.txt", (SWEEP / f"{name}.txt").read_bytes()).runs
    assert counted_tau(run) == pytest.approx(tau, abs=5e-4)
    assert run.accepted_per_position is not None
    assert run.drafts is not None
    accepted, ended = sum(run.accepted_per_position), run.drafts - run.accepted_per_position[-1]
    alpha = accepted / (accepted + ended)
    half_width = 1.96 * math.sqrt(alpha * (1 - alpha) / (accepted + ended))
    assert abs(alpha - 0.7) < half_width
    assert run.accepted_per_position[0] / run.drafts == pytest.approx(0.7, abs=0.005)


@needs_sweep
def test_the_base_of_the_sweep_shows_no_speculation() -> None:
    found = read("m", (SWEEP / "metrics-base.txt").read_bytes())
    (run,) = found.runs
    assert "no_speculation" in {f.code for f in found.flags}
    assert run.spec_state is SpecState.UNKNOWN
    assert (run.drafts, run.accepted_per_position, run.num_speculative_tokens) == (None,) * 3
    assert run.output_tokens == 82368


def test_c12_created_gauges_are_no_counters() -> None:
    text = """\
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 6.491797e+06
# TYPE vllm:spec_decode_num_drafts_created gauge
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7769e+09
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 6.491797e+06
# TYPE vllm:spec_decode_num_draft_tokens_created gauge
vllm:spec_decode_num_draft_tokens_created{engine="0",model_name="m"} 1.7769e+09
"""
    run = one(text)
    assert (run.drafts, run.draft_tokens) == (6_491_797, 6_491_797)
    assert run.num_speculative_tokens == 1
    only_created = "\n".join(line for line in text.splitlines() if "created" in line)
    assert one(only_created).drafts is None


def test_c87_steps_without_drafts() -> None:
    text = """\
vllm:spec_decode_num_drafts_total{engine="0"} 1000
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 1500
vllm:generation_tokens_total{engine="0"} 10000
"""
    (flag,) = (f for f in find(text).flags if f.code == "partly_speculated")
    assert "25%" in flag.message
    assert "1.176" in flag.message
    assert "2.5" in flag.message


def test_c88_gauges_are_point_samples() -> None:
    text = """\
# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{model_name="m",tp_rank="0"} 200.0
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 0.0
# TYPE sglang:spec_accept_length gauge
sglang:spec_accept_length{model_name="m",tp_rank="0"} 2.57
"""
    found = find(text)
    assert codes(found) >= {"point_sample", "stale_gauge"}
    (run,) = found.runs
    assert (run.engine, run.accept_length) == ("SGLang", 2.57)
    assert run.output_tps is None, "a gauge's last value is no throughput"
    assert run.accept_rate is None, "its base differs between versions"
    assert run.spec_state is SpecState.ON


def test_a_gauge_that_two_ranks_state_differently_is_left_out() -> None:
    text = """\
sglang:spec_accept_length{model_name="m",tp_rank="0"} 2.5
sglang:spec_accept_length{model_name="m",tp_rank="1"} 3.5
"""
    assert one(text).accept_length is None


@pytest.mark.parametrize("prefix", ["vllm:", "llamacpp:", "lmdeploy:"])
def test_c89_names_per_engine_in_any_order(prefix: str) -> None:
    labels = ['engine="0"', 'model_name="m"', 'position="{p}"']
    lines = [
        f'{prefix}spec_decode_num_drafts_total{{engine="0",model_name="m"}} 2',
        f'{prefix}spec_decode_num_draft_tokens_total{{model_name="m",engine="0"}} 6',
        f'{prefix}spec_decode_num_accepted_tokens_total{{engine="0",model_name="m"}} 3',
    ]
    for position, accepted in enumerate((2, 1, 0)):
        random.Random(position).shuffle(labels)
        written = ",".join(labels).format(p=position)
        lines.append(
            f"{prefix}spec_decode_num_accepted_tokens_per_pos_total{{{written}}} {accepted}"
        )
    run = one("\n".join(lines))
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (2, 6, 3)
    assert run.accepted_per_position == (2, 1, 0)
    assert run.num_speculative_tokens == 3
    shuffled = lines[::-1]
    assert one("\n".join(shuffled)).accepted_per_position == (2, 1, 0)


def test_c89_no_known_engine() -> None:
    found = find("# TYPE node_load1 gauge\nnode_load1 0.5\n")
    assert found.runs == ()
    (flag,) = found.flags
    assert flag.code == "not_a_run"
    assert "no speculation metrics found" in flag.message
    assert all(engine.prefix in flag.message for engine in ENGINES)


def test_tensorrt_llm_counts_drafts_by_their_first_position() -> None:
    text = """\
trtllm_generation_tokens_total{model_name="m"} 1000
trtllm_spec_decode_num_draft_tokens_total{model_name="m"} 900
trtllm_spec_decode_num_accepted_tokens_total{model_name="m"} 500
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="0"} 300
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="1"} 300
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="2"} 300
trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="0"} 250
trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="1"} 150
trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="2"} 100
trtllm_time_per_output_token_seconds_sum{model_name="m"} 2.0
trtllm_time_per_output_token_seconds_count{model_name="m"} 100
"""
    run = one(text)
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (300, 900, 500)
    assert run.accepted_per_position == (250, 150, 100)
    assert (run.engine, run.tpot_ms_mean, run.num_speculative_tokens) == ("TensorRT-LLM", 20.0, 3)


def test_sglang_accepted_tokens_follow_from_verify_calls() -> None:
    text = """\
sglang:generation_tokens_total{model_name="m"} 2600
sglang:num_requests_total{model_name="m"} 100
sglang:spec_verify_calls_total{model_name="m"} 1000
sglang:spec_accept_length{model_name="m"} 2.9
sglang:inter_token_latency_seconds_sum{model_name="m"} 5.0
sglang:inter_token_latency_seconds_count{model_name="m"} 2500
"""
    found = find(text)
    (run,) = found.runs
    assert (run.drafts, run.accepted_tokens) == (1000, 1500), "2600 less 100 and 1000"
    assert run.accept_length is None, "the counts decide; the gauge is of other batches"
    assert run.tpot_ms_mean == 2.0, "divided by the tokens of a step"
    assert run.itl_ms_mean is None
    assert "accepted_inferred" in codes(found)


def test_llama_cpp_time_a_token() -> None:
    text = """\
llamacpp:tokens_predicted_total 665
llamacpp:tokens_predicted_seconds_total 20.629
llamacpp:prompt_tokens_total 4
"""
    run = one(text)
    assert run.tpot_ms_mean == pytest.approx(31.02, abs=0.01)
    assert (run.output_tokens, run.input_tokens) == (665, 4)


def test_c01_v0_counts_matches_past_the_rejection() -> None:
    text = """\
vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 8547
vllm:spec_decode_num_draft_tokens_total{model_name="m"} 13311
vllm:spec_decode_num_emitted_tokens_total{model_name="m"} 10616
vllm:spec_decode_draft_acceptance_rate{model_name="m"} 0.642
vllm:spec_decode_efficiency{model_name="m"} 0.598
"""
    found = find(text)
    (run,) = found.runs
    assert (run.num_speculative_tokens, run.drafts) == (3, 4437)
    assert counted_tau(run) == pytest.approx(2.393, abs=5e-4)
    assert run.accept_rate is None
    assert "v0_counts" in codes(found)
    unknown = one(text.replace("0.598", "0.9"))
    assert (unknown.drafts, unknown.accepted_tokens) == (None, None)


def test_replicas_are_summed_and_models_kept_apart() -> None:
    lines = [
        f'vllm:generation_tokens_total{{engine="{engine}",model_name="{model}"}} {tokens}'
        for engine, model, tokens in ((0, "a", 10), (1, "a", 5), (0, "b", 7))
    ]
    runs = {r.target: r.output_tokens for r in find("\n".join(lines)).runs}
    assert runs == {"a": 15, "b": 7}


def test_aborted_and_failed_requests_are_not_completed() -> None:
    text = """\
vllm:request_success_total{finished_reason="stop"} 8
vllm:request_success_total{finished_reason="length"} 2
vllm:request_success_total{finished_reason="abort"} 3
vllm:request_success_total{finished_reason="error"} 1
"""
    run = one(text)
    assert (run.completed, run.failed) == (10, 1)


def test_names_with_underscores_and_without_total() -> None:
    text = (
        'vllm_spec_decode_num_drafts{model_name="m"} 5\nvllm_generation_tokens{model_name="m"} 9\n'
    )
    scrapes = exposition.scrapes_of(exposition.parse("m", text)[0])
    names = {name for name, _ in scrapes[0].values}
    assert names == {"vllm:spec_decode_num_drafts_total", "vllm:generation_tokens_total"}


def after(text: str, **changed: float) -> str:
    """The scrape with the values of some series added to."""
    lines = []
    for line in text.splitlines():
        name = line.partition("{")[0].removeprefix("vllm:")
        if name in changed and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            line = f"{series} {float(value) + changed[name]}"
        lines.append(line)
    return "\n".join(lines)


def test_window() -> None:
    later = after(
        K4,
        spec_decode_num_drafts_total=100,
        spec_decode_num_draft_tokens_total=400,
        spec_decode_num_accepted_tokens_total=180,
        spec_decode_num_accepted_tokens_per_pos_total=45,
        generation_tokens_total=284,
        prompt_tokens_total=64,
        request_success_total=4,
        time_to_first_token_seconds_sum=0.2,
        time_to_first_token_seconds_count=4,
    )
    found = prometheus.window(scrape(K4), scrape(later), "pair", "digests")
    (run,) = found.runs
    assert found.scrape is None
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (100, 400, 180)
    assert run.accepted_per_position == (45, 45, 45, 45)
    assert (run.output_tokens, run.input_tokens, run.completed) == (284, 64, 4)
    assert run.ttft_ms_mean == pytest.approx(50.0)
    assert run.tpot_ms_mean is None, "no request of the window has one"
    assert "since_start" not in codes(found)
    again = prometheus.window(scrape(K4), scrape(later), "pair", "digests")
    assert again.runs[0].run_id == run.run_id


def test_a_window_without_drafts() -> None:
    later = after(K4, generation_tokens_total=284)
    found = prometheus.window(scrape(K4), scrape(later), "pair", "digests")
    (run,) = found.runs
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (None, None, None)
    assert (run.accepted_per_position, run.spec_state) == (None, SpecState.UNKNOWN)
    (flag,) = (f for f in found.flags if f.code == "no_speculation")
    assert "no speculation in this window" in flag.message


def test_a_counter_that_falls_is_a_restart() -> None:
    later = after(K4, generation_tokens_total=284)
    with pytest.raises(UnreadableFile, match=r"went from 82652 to 82368.*restarted"):
        prometheus.window(scrape(later), scrape(K4), "pair", "digests")
    gone = "\n".join(line for line in K4.splitlines() if "generation_tokens" not in line)
    with pytest.raises(UnreadableFile, match="is gone"):
        prometheus.window(scrape(K4), scrape(gone), "pair", "digests")
    restarted = K4 + "process_start_time_seconds 1.78e9\n"
    with pytest.raises(UnreadableFile, match="process_start_time_seconds"):
        prometheus.window(
            scrape(restarted), scrape(restarted.replace("1.78e9", "1.79e9")), "pair", "digests"
        )


def test_windows_of_two_engines_are_none() -> None:
    other = scrape("sglang:generation_tokens_total 5\n")
    with pytest.raises(UnreadableFile, match="SGLang"):
        prometheus.window(scrape(K4), other, "pair", "digests")


def test_series_that_begin_within_the_window_count_from_zero() -> None:
    """llama.cpp shows positions only after the first speculative request."""
    before = "llamacpp:spec_decode_num_drafts_total 0\nllamacpp:tokens_predicted_total 5\n"
    later = (
        "llamacpp:spec_decode_num_drafts_total 10\nllamacpp:tokens_predicted_total 35\n"
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 8\n'
    )
    (run,) = prometheus.window(scrape(before), scrape(later), "pair", "d").runs
    assert (run.drafts, run.accepted_per_position, run.output_tokens) == (10, (8,), 30)


def test_several_scrapes_in_one_file_are_a_window() -> None:
    found = find(K4 + after(K4, generation_tokens_total=100))
    assert found.runs[0].output_tokens == 100
    assert found.scrape is None
    assert "several_scrapes" in codes(found)


def test_a_broken_line_is_named() -> None:
    broken = K4.replace('position="1"} 14651', 'position="1} 14651')
    with pytest.raises(UnreadableFile, match="line 17 is not Prometheus text"):
        find(broken)
    with pytest.raises(UnreadableFile, match="line 31 is not Prometheus text"):
        find(K4 + "<html>gateway timeout</html>")


def test_one_series_twice_is_refused() -> None:
    twice = K4 + 'vllm:generation_tokens_total{engine="0",model_name="sim/target-8b"} 1.0\n'
    with pytest.raises(UnreadableFile, match="stands twice"):
        find(twice)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "concurrency: 8\nmodel: x\n",
        "# a comment\nconcurrency 8\n",
        "name,value\na,1\n",
        "| model | size |\n",
        "plain words\n",
        "# TYPE of the run\nx: 1\n",
        'title = "x"\n',
    ],
)
def test_other_texts_are_not_claimed(text: str) -> None:
    assert not prometheus.recognise_text(text)


def test_values_that_are_no_numbers_are_left_out() -> None:
    text = K4.replace("82368.0", "NaN").replace("113883.0", "+Inf")
    run = one(text)
    assert (run.output_tokens, run.input_tokens) == (None, None)
    assert run.drafts == 29857


def test_levels_are_what_is_read() -> None:
    assert set(prometheus.LEVELS) == {engine.name for engine in ENGINES}
    for name, keys in prometheus.LEVELS.items():
        assert all(key.path[0] for key in keys), name
