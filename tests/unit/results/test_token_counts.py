from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.results.token_counts import with_server_tokens
from lib.run import Run

RUN = Run(
    run_id="r",
    token_count="client",
    completed=40,
    duration_s=4.0,
    output_tokens=5160,
    output_len=129.0,
    output_tps=1290.0,
    tpot_ms_mean=6.0,
    tpot_ms_p99=7.0,
    itl_ms_mean=13.0,
    ttft_ms_mean=30.0,
    e2e_ms_mean=798.0,
    request_rps=10.0,
)


def test_the_servers_count_takes_the_place_of_the_clients() -> None:
    run = with_server_tokens(RUN, 2560)
    assert (run.token_count, run.output_tokens, run.retokenized_tokens) == ("server", 2560, 5160)
    assert run.output_len == 64.0
    assert run.output_tps == pytest.approx(640.0)
    assert run.tpot_ms_mean == pytest.approx(6.0 * 128 / 63)
    assert run.tpot_ms_p99 == pytest.approx(7.0 * 128 / 63)
    clock = ("itl_ms_mean", "ttft_ms_mean", "e2e_ms_mean", "request_rps", "duration_s", "completed")
    assert all(getattr(run, name) == getattr(RUN, name) for name in clock)


def test_a_sum_is_not_needed_where_the_mean_is_stated() -> None:
    run = with_server_tokens(replace(RUN, output_tokens=None), 2560)
    assert (run.output_tokens, run.retokenized_tokens) == (2560, 5160)
    assert run.output_tps == pytest.approx(640.0)


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, completed=None),
        replace(RUN, completed=0),
        replace(RUN, output_tokens=None, output_len=None),
        replace(RUN, output_tokens=0, output_len=0.0),
    ],
)
def test_a_run_that_cannot_be_corrected_is_left(run: Run) -> None:
    assert with_server_tokens(run, 2560) is run


@pytest.mark.parametrize("tokens", [0, -1, 2**53 + 1])
def test_no_count_is_no_correction(tokens: int) -> None:
    assert with_server_tokens(RUN, tokens) is RUN


def test_a_count_of_the_server_is_kept() -> None:
    counted = with_server_tokens(RUN, 2560)
    assert with_server_tokens(counted, 3000) is counted


def test_one_token_a_request_has_no_time_per_token() -> None:
    assert with_server_tokens(RUN, 40).tpot_ms_mean is None


def test_a_value_beyond_what_a_run_holds_is_left_empty() -> None:
    run = replace(RUN, output_tokens=1, output_len=None, completed=1, output_tps=1e15)
    assert with_server_tokens(run, 2**50).output_tps is None


counts = st.integers(2, 100_000)


@given(completed=st.integers(1, 10_000), client=counts, server=counts, tps=st.floats(0.1, 1e6))
def test_the_clock_does_not_change(completed: int, client: int, server: int, tps: float) -> None:
    """Tokens over throughput, and the decode time of a request, are the same before and after."""
    run = replace(
        RUN,
        completed=completed,
        output_len=float(client),
        output_tokens=client * completed,
        output_tps=tps,
        tpot_ms_mean=5.0,
    )
    after = with_server_tokens(run, server * completed)
    assert after.output_tps is not None
    assert after.output_tokens is not None
    assert after.tpot_ms_mean is not None
    assert after.output_len is not None
    assert after.output_tokens / after.output_tps == pytest.approx(client * completed / tps)
    assert after.tpot_ms_mean * (after.output_len - 1) == pytest.approx(5.0 * (client - 1))
    assert after.output_len * completed == pytest.approx(server * completed)


@given(client=counts, server=counts)
def test_correcting_twice_is_correcting_once(client: int, server: int) -> None:
    run = replace(RUN, output_len=client / 40, output_tokens=client)
    once = with_server_tokens(run, server)
    assert with_server_tokens(once, server) == once
    assert once.retokenized_tokens == client


@given(counts, counts, st.floats(1.01, 5.0))
def test_ratios_of_arms_are_unharmed(client: int, server: int, gain: float) -> None:
    off = replace(RUN, output_len=client / 40, output_tokens=client)
    on = replace(off, output_tps=1290.0 * gain)
    tps = [with_server_tokens(r, server).output_tps for r in (on, off)]
    assert tps[0] is not None
    assert tps[1] is not None
    assert tps[0] / tps[1] == pytest.approx(gain)
