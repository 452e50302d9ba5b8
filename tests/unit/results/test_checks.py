import math
from dataclasses import replace
from typing import Any

import pytest

from lib.results.checks import (
    blocks_latency,
    blocks_pairing,
    blocks_pricing,
    inspect,
    open_loop,
    saturated,
)
from lib.run import LoadKind, Run, SpecState


def codes(**fields: Any) -> dict[str, str]:
    return {f.code: f.severity for f in inspect(Run(run_id="r", **fields))}


def test_a_clean_run_has_no_flag() -> None:
    assert not codes(
        completed=64, failed=0, output_tps=819.2, output_tokens=16384, duration_s=20.0,
        ttft_ms_mean=30.0, e2e_ms_mean=2500.0, tpot_ms_mean=9.5, itl_ms_mean=9.5, output_len=256.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("completed", "failed", "severity"),
    [(599, 1, "warns"), (248, 8, "blocks pricing"), (99, 1, "warns"), (0, 4, "blocks pricing")],
)
def test_failed_requests(completed: int, failed: int, severity: str) -> None:
    assert codes(completed=completed, failed=failed) == {"failed_requests": severity}


def test_failed_requests_says_the_share() -> None:
    (flag,) = inspect(Run(run_id="r", completed=599, failed=1))
    assert flag.message == "1 of 600 requests failed (0.2%)"
    assert flag.run_id == "r"


def test_throughput_is_recomputed() -> None:
    stated = {"output_tokens": 1_260_603, "duration_s": 6751.398}
    assert not codes(output_tps=186.717, **stated)
    run = Run(run_id="r", output_tps=189.0, **stated)  # type: ignore[arg-type]
    (loose,), (exact,) = inspect(run), inspect(replace(run, tool="vllm-bench-serve"))
    assert (loose.code, loose.severity) == ("throughput_mismatch", "warns")
    assert exact.severity == "blocks pricing"
    assert "186.717 (1.2% apart)" in exact.message


def test_inter_token_latency_is_per_chunk() -> None:
    assert codes(itl_ms_mean=24.56, tpot_ms_mean=11.88) == {"chunked_itl": "warns"}
    assert codes(itl_ms_mean=24.56) == {"only_itl": "warns"}
    assert not codes(itl_ms_mean=24.56, spec_state=SpecState.OFF)
    (flag,) = inspect(Run(run_id="r", itl_ms_mean=24.56, tpot_ms_mean=11.88))
    assert "2.07 tokens" in flag.message


def test_time_to_first_visible_token() -> None:
    assert codes(ttft_ms_mean=34_690.0, e2e_ms_mean=35_940.0) == {"late_first_token": "warns"}
    assert not codes(ttft_ms_mean=28_640.0, e2e_ms_mean=35_940.0)


def test_random_tokens() -> None:
    assert codes(dataset="random-ids") == {"random_tokens": "warns"}
    assert not codes(dataset="sharegpt")


def test_more_accepted_than_drafted() -> None:
    impossible = {"drafts": 10, "draft_tokens": 40, "accepted_tokens": 41}
    assert codes(**impossible) == {"impossible_acceptance": "blocks pairing"}
    assert codes(accepted_tokens=41, draft_tokens=40) == {"impossible_acceptance": "blocks pairing"}
    assert not codes(accepted_tokens=40, draft_tokens=40)
    assert not codes(drafts=10, accepted_tokens=41)


def test_off_with_counted_drafts() -> None:
    off = {"spec_state": SpecState.OFF}
    assert codes(**off, drafts=3) == {"arm_contradicted": "blocks pairing"}
    assert not codes(**off, drafts=0)
    assert not codes(spec_state=SpecState.ON, drafts=3)


@pytest.mark.parametrize(
    ("fields", "pricing", "pairing"),
    [
        ({"completed": 99, "failed": 1}, "", ""),
        ({"completed": 98, "failed": 2}, "2 of 100 requests failed", ""),
        ({"tool": "vllm-bench-serve", "output_tps": 102.0}, "states 102 output tok/s", ""),
        ({"tool": "vllm-bench-serve", "output_tps": 100.9}, "", ""),
        ({"tool": "guidellm", "output_tps": 102.0}, "", ""),
        ({"spec_state": SpecState.OFF, "drafts": 3}, "", "called off"),
        ({"draft_tokens": 4, "accepted_tokens": 5}, "", "5 accepted of 4 drafted"),
        ({"dataset": "random"}, "", ""),
    ],
)
def test_what_blocks_is_what_is_flagged(fields: dict[str, Any], pricing: str, pairing: str) -> None:
    run = Run(run_id="r", **({"output_tokens": 1000, "duration_s": 10.0} | fields))
    for said, expected, severity in (
        (blocks_pricing(run), pricing, "blocks pricing"),
        (blocks_pairing(run), pairing, "blocks pairing"),
    ):
        assert bool(said) == bool(expected)
        assert said.startswith(expected)
        assert [f.message for f in inspect(run) if f.severity == severity] == [said] * bool(said)


RATE: dict[str, Any] = {"load_kind": LoadKind.REQUEST_RATE}
STREAMS: dict[str, Any] = {"load_kind": LoadKind.CONCURRENCY}


def only(code: str, **fields: Any) -> str:
    """The message of the one flag of that code."""
    (found,) = [f for f in inspect(Run(run_id="r", **fields)) if f.code == code]
    assert found.run_id == "r"
    return found.message


def test_c67_one_of_600_missing_where_no_failed_count_is_written() -> None:
    assert codes(completed=599, num_prompts=600) == {"failed_requests": "warns"}
    said = only("failed_requests", completed=599, num_prompts=600)
    assert said == "1 of 600 requests failed or never ran (0.2%)"
    assert codes(completed=248, num_prompts=256) == {"failed_requests": "blocks pricing"}
    assert not codes(completed=600, num_prompts=600)
    # With a written count, fewer requests than asked mean a smaller data set.
    assert not codes(completed=599, num_prompts=1000, failed=0)


def test_requests_cut_off_at_a_time_limit_did_not_fail() -> None:
    cut = {"completed": 90, "num_prompts": 100}
    assert not codes(**cut, extra='{"incomplete":10}')
    assert only("failed_requests", **cut, extra='{"incomplete":6}').startswith("4 of 94 requests")
    for odd in ("incomplete", '["incomplete"]', '{"incomplete":"6"}', '{"incomplete":-1}'):
        assert codes(**cut, extra=odd) == {"failed_requests": "blocks pricing"}


def test_a_total_rate_is_no_output_rate() -> None:
    """C33's run: input and output tokens over duration are 19.7 times the output rate."""
    stated = {"output_tokens": 1_260_603, "input_tokens": 23_531_562, "duration_s": 6751.398}
    run = Run(run_id="r", output_tps=3672.2, **stated)  # type: ignore[arg-type]
    assert blocks_pricing(run).endswith("it counts the input tokens in")


def test_c06_chunks_against_the_counters() -> None:
    """292.29 tok/s in one stream, TPOT 11.88 and 2.38 ms: 2.55, 2.07 and 3.46 tokens a chunk."""
    alone = STREAMS | {"offered_load": 1.0, "output_tps": 292.29, "itl_ms_p50": 8.72}
    assert "2.55 tokens" in only("only_itl", **alone)
    assert "2.55" not in only("only_itl", **alone | {"offered_load": 2.0})
    assert "2.07 tokens" in only("chunked_itl", itl_ms_mean=24.56, tpot_ms_mean=11.88)
    said = only(
        "chunked_itl",
        **{"itl_ms_mean": 8.23, "tpot_ms_mean": 2.38, "accept_rate": 0.3116},
        num_speculative_tokens=8,
    )
    assert "3.46 tokens on average" in said
    assert "counters say 3.49 tokens a round" in said


def test_a_mean_is_not_set_against_a_median() -> None:
    assert not codes(itl_ms_mean=24.56, tpot_ms_p50=11.88)
    assert codes(itl_ms_p50=24.56, tpot_ms_p50=11.88) == {"chunked_itl": "warns"}


def test_c71_late_first_token_blocks_latency() -> None:
    """TTFT 34.69 of 35.94 s: the decode window is 3.5 % of the time."""
    run = Run(run_id="r", ttft_ms_mean=34_690.0, e2e_ms_mean=35_940.0, tpot_ms_mean=5.0)
    assert only("late_first_token", ttft_ms_mean=34_690.0, e2e_ms_mean=35_940.0) == (
        blocks_latency(run)
    )
    assert blocks_latency(run).startswith("decoding is 3.5%")
    assert not blocks_latency(replace(run, ttft_ms_mean=28_640.0))
    assert not blocks_pricing(run)
    assert not blocks_pairing(run)


def test_c62_queue_bound() -> None:
    """TTFT 5,899,711 ms; 337 running and 633 waiting."""
    row = STREAMS | {"offered_load": 4096.0, "ttft_ms_p50": 5_899_711.0, "e2e_ms_p50": 5_950_000.0}
    assert codes(**row) == {"saturated": "warns"}
    assert only("saturated", **row) == (
        "queue-bound: median TTFT is 99% of the median end-to-end latency"
    )
    waits = {"running_mean": 337.0, "waiting_mean": 633.0}
    assert "633 requests waited while 337 ran" in only("saturated", **waits)
    assert not codes(running_mean=633.0, waiting_mean=337.0)
    assert not codes(waiting_mean=633.0)


def test_no_queue_where_there_can_be_none() -> None:
    half = {"ttft_ms_p50": 510.0, "e2e_ms_p50": 1000.0}
    assert saturated(Run(run_id="r", **half))  # type: ignore[arg-type]
    assert not saturated(Run(run_id="r", **half | {"ttft_ms_p50": 500.0}))  # type: ignore[arg-type]
    assert not codes(**STREAMS, **half, offered_load=1.0)
    assert not codes(**half, output_len=1.0)
    assert not codes(**half, running_mean=0.4)
    assert codes(**half, running_mean=1.0) == {"saturated": "warns"}


@pytest.mark.parametrize(
    ("asked", "got", "expected"),
    [
        (100.0, 98.0, "open_loop_unsaturated"),
        (100.0, 104.0, "open_loop_unsaturated"),
        (100.0, 97.9, "saturated"),
        (122.59, 106.494, "saturated"),
        (math.inf, 106.494, ""),
    ],
)
def test_a_rate_is_reached_or_not(asked: float, got: float, expected: str) -> None:
    found = codes(**RATE, offered_load=asked, achieved_load=got)
    assert list(found) == ([expected] if expected else [])
    stream = codes(**STREAMS, offered_load=asked, achieved_load=got)
    assert not stream


def test_open_loop_is_not_priced_but_paired() -> None:
    run = Run(run_id="r", **RATE, offered_load=31.4, achieved_load=31.16)
    assert codes(**RATE, offered_load=31.4, achieved_load=31.16) == {
        "open_loop_unsaturated": "blocks pricing"
    }
    assert blocks_pricing(run).startswith("kept up with the asked 31.4 requests/s (31.16)")
    assert "time per output token" in blocks_pricing(run)
    assert not blocks_pairing(run)
    assert not blocks_latency(run)
    assert not blocks_pricing(replace(run, achieved_load=26.0))
    assert "asked for 31.4 requests/s, got 26 (83%)" in blocks_latency(
        replace(run, achieved_load=26.0)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"request_rps": 9.9},
        {"completed": 990, "duration_s": 100.0},
        {"output_tps": 990.0, "output_len": 100.0},
        {"achieved_load": math.inf, "request_rps": 9.9},
    ],
)
def test_the_achieved_rate_is_worked_out_where_it_is_not_written(fields: dict[str, Any]) -> None:
    assert open_loop(Run(run_id="r", **RATE, offered_load=10.0, **fields))


def test_the_last_answers_of_a_short_run_are_no_queue() -> None:
    """60 requests at 1/s whose last takes 4 s end after 64 s: 0.94/s, and nothing waited."""
    short = RATE | {"offered_load": 1.0, "achieved_load": 0.94, "completed": 60}
    tail = {"ttft_ms_p50": 30.0, "e2e_ms_p50": 4030.0}
    assert open_loop(Run(run_id="r", **short, **tail))
    assert saturated(Run(run_id="r", **short))
    assert saturated(Run(run_id="r", **short | {"achieved_load": 0.85}, **tail))
    # 7,355 requests at 122.59/s: 1.2 s of decoding do not explain 106.5/s.
    long = RATE | {"offered_load": 122.59, "achieved_load": 106.494, "completed": 7355}
    assert saturated(Run(run_id="r", **long, ttft_ms_p50=3036.0, e2e_ms_p50=4268.0))


def test_a_client_that_sends_too_little_makes_no_queue() -> None:
    """2 requests in 5 s where 2 a second were asked for, 0.008 in flight: the server was idle."""
    idle = RATE | {"offered_load": 2.0, "achieved_load": 0.398, "completed": 2}
    assert codes(**idle, running_mean=0.0079) == {"open_loop_unsaturated": "blocks pricing"}
    assert only("open_loop_unsaturated", **idle, running_mean=0.0079).startswith(
        "got only 0.398 of the asked 2 requests/s"
    )
    assert codes(**idle, running_mean=9.0) == {"saturated": "warns"}


def test_c17_an_unlimited_or_unknown_rate_says_nothing() -> None:
    """request_rate 2.4, "inf" and null: only the first can be reached or missed."""
    got = {"completed": 100, "duration_s": 50.0}
    assert list(codes(**RATE, offered_load=2.4, **got)) == ["saturated"]
    assert not codes(**RATE, offered_load=math.inf, **got)
    assert not codes(**got)


def test_short_runs() -> None:
    assert codes(**STREAMS, offered_load=32.0, completed=127) == {"short_run": "warns"}
    assert not codes(**STREAMS, offered_load=32.0, completed=128)
    assert not codes(load_kind=LoadKind.BATCH, offered_load=32.0, completed=32)
    assert not codes(**STREAMS, offered_load=math.inf, completed=32)
    assert only("short_run", **STREAMS, offered_load=64.0, completed=192).startswith(
        "192 requests at 64 in flight are 3 waves"
    )


def test_c61_the_graph_limit_flags_only_the_loads_above_it() -> None:
    """cuda_graph_max_bs 2 and concurrency 1, 2, 20: the flag is on 20 only."""
    found = [codes(**STREAMS, graph_max_batch=2, offered_load=x) for x in (1.0, 2.0, 20.0)]
    assert found == [{}, {}, {"graph_limit": "warns"}]
    said = only("graph_limit", **STREAMS, graph_max_batch=2, offered_load=20.0)
    assert said.startswith("load 20 is above the graph capture limit 2")
    # At a request rate the requests that ran together count, not the rate.
    assert not codes(**RATE, graph_max_batch=2, offered_load=20.0)
    assert "graph_limit" in codes(**RATE, graph_max_batch=2, offered_load=1.0, running_mean=9.0)


@pytest.mark.parametrize(
    ("output", "other", "flagged"),
    [(6400, 32, True), (512_000, 231_736, True), (195_775, 195_747, False), (129, 64, True)],
)
def test_c68_generated_against_retokenized(output: int, other: int, flagged: bool) -> None:
    fields: dict[str, Any] = {"output_tokens": output, "retokenized_tokens": other}
    assert codes(**fields) == ({"retokenized_mismatch": "warns"} if flagged else {})
    turned = {"output_tokens": other, "retokenized_tokens": output, "token_count": "client"}
    assert codes(**turned) == ({"retokenized_mismatch": "warns"} if flagged else {})


def test_retokenized_says_whose_count_is_used_and_the_factor() -> None:
    """AIPerf's client counted 129 tokens an answer where the server made 64."""
    fields = {"output_tokens": 64, "retokenized_tokens": 129, "token_count": "server"}
    assert only("retokenized_mismatch", **fields) == (
        "the client counted 129 output tokens, the server 64 (2.02 times): the server's count is "
        "used"
    )
    said = only("retokenized_mismatch", output_tokens=6400, retokenized_tokens=32)
    assert "6400 (200 times)" in said
    assert said.endswith("stream timings (TTFT, inter-token latency) are unreliable")
    client = {"output_tokens": 129, "retokenized_tokens": 64, "token_count": "client"}
    assert only("retokenized_mismatch", **client).endswith("the client's count is used")


def test_percentiles_only_rise() -> None:
    assert codes(ttft_ms_p50=90.0, ttft_ms_p99=80.0) == {"percentiles_decrease": "warns"}
    assert "TTFT p99 80 ms is below p50 90 ms" in only(
        "percentiles_decrease", ttft_ms_p50=90.0, ttft_ms_p99=80.0
    )
    assert not codes(ttft_ms_p50=90.0, ttft_ms_p90=90.0, ttft_ms_p99=91.0)


def test_waiting_and_rate_say_nothing_of_price() -> None:
    for reason in ({"running_mean": 1.0, "waiting_mean": 2.0},):
        run = Run(run_id="r", **reason)  # type: ignore[arg-type]
        assert not blocks_pricing(run)
        assert not blocks_pairing(run)
