"""What runs say about each other; nothing fires on sound sweeps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from lib.results import checks, published
from lib.results.study_checks import copies, inspect, repeats
from lib.run import LoadKind, Run, SpecState

_ids = count()
AT: dict[str, Any] = {"load_kind": LoadKind.CONCURRENCY, "target": "m-8b", "dataset": "chat"}


def off(load: float = 8.0, **fields: Any) -> Run:
    state = {"spec_state": SpecState.OFF, "offered_load": load}
    return Run(run_id=f"r{next(_ids)}", **{**AT, **state, **fields})


def on(load: float = 8.0, k: int = 4, **fields: Any) -> Run:
    named = {"draft_method": "eagle3", "num_speculative_tokens": k}
    state = {"spec_state": SpecState.ON, "offered_load": load, **named}
    return Run(run_id=f"r{next(_ids)}", **{**AT, **state, **fields})


def found(*runs: Run) -> list[tuple[str, str]]:
    return [(f.code, f.severity) for f in inspect(runs)]


def said(*runs: Run) -> str:
    (flag,) = inspect(runs)
    return flag.message


def test_nothing_to_say() -> None:
    assert inspect(()) == ()
    assert inspect((Run(run_id="r"),)) == ()
    assert inspect((off(output_tps=100.0, output_len=256.0), on(output_tps=180.0))) == ()


@pytest.mark.parametrize("name", published.studies())
def test_published_studies_carry_few_flags(name: str) -> None:
    runs = published.study(name).runs
    kinds = {f.code for r in runs for f in checks.inspect(r)} | {f.code for f in inspect(runs)}
    assert len(kinds) <= 1
    assert kinds <= {"short_run", "random_tokens", "within_noise", "limited_by_gamma"}


# C66: lengths


def test_c66_lengths_within_ten_percent_are_noted() -> None:
    """947 against 1000 tokens: S = 0.885 with a 5.3 % mismatch noted."""
    runs = (off(output_len=1000.0, output_tps=69.79), on(output_len=947.0, output_tps=61.79))
    assert found(*runs) == [("lengths_differ", "warns")]
    assert said(*runs) == "output_len differs by 5.3%: off 1000, eagle3:4 947 at 8: noted"
    assert inspect(runs)[0].run_id == runs[1].run_id


def test_c66_lengths_beyond_are_refused() -> None:
    runs = (off(output_len=300.0), on(output_len=1023.0))
    assert found(*runs) == [("lengths_differ", "blocks pairing")]
    assert "differs by 70.7%" in said(*runs)
    assert said(*runs).endswith("not paired")


def test_lengths_of_repeats_are_averaged_and_loads_are_merged() -> None:
    spread = [make(output_len=v) for v in (98.0, 100.0, 102.0) for make in (off, on)]
    assert not found(*spread)
    many = [r for x in (1.0, 2.0, 4.0) for r in (off(x, output_len=100.0), on(x, output_len=95.0))]
    assert said(*many).endswith("at 1, 2, 4: noted")


def test_several_lengths_in_both_arms_are_several_protocols() -> None:
    assert not found(*(make(input_len=v) for v in (128.0, 4096.0) for make in (off, on)))
    assert not found(off(input_len=128.0), off(input_len=4096.0), on(input_len=4096.0))
    lone = (off(input_len=128.0), on(input_len=128.0), on(input_len=4096.0))
    assert found(*lone) == [("lengths_differ", "blocks pairing")]


# the protocol


@pytest.mark.parametrize(
    ("field", "a", "b", "words"),
    [
        ("temperature", 0.0, 1.0, "temperature differs: off 0, eagle3:4 1 at 8: not paired"),
        ("prefix_caching", False, True, "prefix caching differs: off no, eagle3:4 yes"),
        ("build", "a1", "b2", "build differs: off a1, eagle3:4 b2"),
        ("target_quantization", "fp8", "bf16", "quantisation differs: off fp8, eagle3:4 bf16"),
    ],
)
def test_c53_what_must_agree(field: str, a: Any, b: Any, words: str) -> None:
    """T 0 against T 1 is refused by name, and so is another build, cache or quantisation."""
    runs = (off(**{field: a}), on(**{field: b}))
    assert found(*runs) == [("protocol_differs", "blocks pairing")]
    assert said(*runs).startswith(words)
    assert not found(off(**{field: a}), on(**{field: a}))
    assert not found(off(**{field: a}), on())  # not recorded: listed elsewhere
    both = [make(**{field: v}) for v in (a, b) for make in (off, on)]
    assert not found(*both)


def test_another_data_set_is_no_pair() -> None:
    assert not found(off(dataset="code", temperature=0.0), on(temperature=1.0))
    assert not found(off(4.0, temperature=0.0), on(8.0, temperature=1.0))


# S against tau


def test_speedup_above_tokens_per_round() -> None:
    counts = {"drafts": 1000, "draft_tokens": 4000, "accepted_tokens": 1200}
    runs = (off(output_tps=100.0), on(output_tps=260.0, **counts))
    assert found(*runs) == [("speedup_above_tau", "warns")]
    assert said(*runs).startswith(
        "eagle3:4 at 8: throughput is 2.60 times that of off, but a round makes 2.20 tokens"
    )
    assert not found(off(output_tps=100.0), on(output_tps=219.0, **counts))
    assert found(off(output_tps=100.0), on(output_tps=200.0, accept_length=1.8))
    assert not found(off(output_tps=100.0), on(output_tps=200.0, accept_length=2.4))
    assert not found(off(output_tps=100.0), on(output_tps=900.0))


@pytest.mark.parametrize(
    "fields", [{"gpu": "H100"}, {"output_len": 900.0}, {"engine": "sglang"}, {"gpu_count": 2}]
)
def test_speedup_of_unlike_runs_is_no_speedup(fields: dict[str, Any]) -> None:
    plain = {"gpu": "L4", "output_len": 100.0, "engine": "vllm", "gpu_count": 1}
    runs = (off(output_tps=100.0, **plain), on(output_tps=300.0, accept_length=2, **plain))
    assert "speedup_above_tau" in dict(found(*runs))
    assert "speedup_above_tau" not in dict(found(runs[0], replace(runs[1], **fields)))


# C26: acceptance by batch


def test_c26_acceptance_that_falls_with_the_batch() -> None:
    """0.585 at batch 4 and 0.275 at 16, both at 15: the drop in rate is 0.31."""
    runs = (on(4.0, 15, accept_rate=0.585), on(16.0, 15, accept_rate=0.275))
    assert found(*runs) == [("acceptance_by_batch", "warns")]
    assert said(*runs) == (
        "eagle3:15: acceptance falls from 0.585 at 4 to 0.275 at 16 at equal K; it should not "
        "depend on batch: check the engine"
    )
    # At n_max 1 the rate is 0.875: another K is another rate.
    assert not found(on(4.0, 15, accept_rate=0.585), on(16.0, 1, accept_rate=0.275))
    assert not found(on(4.0, 15, accept_rate=0.585), on(16.0, 15, accept_rate=0.395))
    assert not found(on(4.0, 15, accept_rate=0.275), on(16.0, 15, accept_rate=0.585))


def test_c26_only_like_runs_are_set_against_each_other() -> None:
    a, b = on(4.0, 15, accept_rate=0.585), on(16.0, 15, accept_rate=0.275)
    for other in ({"dataset": "code"}, {"temperature": 1.0}, {"input_len": 8000.0}):
        assert not found(replace(a, input_len=100.0), replace(b, **{"input_len": 100.0} | other))  # type: ignore[arg-type]
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    assert not found(replace(a, **rate), replace(b, **rate))  # type: ignore[arg-type]


def test_c26_rates_come_from_counts_first() -> None:
    counts = {"draft_tokens": 1500, "drafts": 100, "accepted_tokens": 412, "accept_rate": 0.585}
    runs = (on(4.0, 15, accept_rate=0.585), on(16.0, 15, **counts))
    assert found(*runs) == [("acceptance_by_batch", "warns")]


# copies and repeats

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def timed(run: Run, seconds: float = 0.0, **fields: Any) -> Run:
    counted = {"duration_s": 20.5, "output_tokens": 16_384, "input_tokens": 8192}
    return replace(run, started_at=START + timedelta(seconds=seconds), **{**counted, **fields})


def test_the_same_run_under_two_ids() -> None:
    a, b = timed(on()), timed(on())
    assert copies((a, b)) == {b.run_id: a.run_id}
    (flag,) = inspect((a, b))
    assert (flag.code, flag.severity, flag.run_id) == (
        "same_run_twice",
        "blocks pairing",
        b.run_id,
    )
    assert "16384 output tokens agree" in flag.message


@pytest.mark.parametrize(
    "other", [{"seconds": 30.0}, {"duration_s": 20.6}, {"output_tokens": 16_383}]
)
def test_repeats_are_no_copies(other: dict[str, Any]) -> None:
    runs = (timed(on()), timed(on(), **other), timed(on(), 60.0))
    assert not found(*runs)
    assert repeats(runs) == 3


def test_nothing_is_a_copy_without_a_start_and_counts() -> None:
    assert not copies((on(), on()))
    assert not copies((replace(timed(on()), started_at=None),) * 1)


def test_repeats_are_counted_per_arm_load_and_protocol() -> None:
    assert repeats(()) == 0
    assert repeats((on(), on(4.0), off())) == 1
    assert repeats((on(), on(temperature=1.0))) == 1
    assert repeats((timed(on()), timed(on()))) == 1
    assert repeats((Run(run_id="x"), Run(run_id="y"))) == 0


# C64: noise


def test_c64_two_percent_on_one_launch_each_is_within_noise() -> None:
    """3.33 % an arm from launch to launch: S = 1.02 says nothing, 3 launches do."""
    runs = (off(4.0, output_tps=100.0), on(4.0, output_tps=102.0))
    assert found(*runs) == [("within_noise", "warns")]
    assert said(*runs).startswith("eagle3:4 at 4: 1.02 times off on one run each is within noise")
    assert said(*runs).endswith("3 launches an arm decide")
    assert not found(off(4.0, output_tps=100.0), on(4.0, output_tps=106.0))
    again = timed(off(4.0, output_tps=100.5), 60.0)
    assert not found(timed(runs[0]), again, runs[1])
