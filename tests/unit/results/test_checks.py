from dataclasses import replace
from typing import Any

import pytest

from lib.results.checks import blocks_pairing, blocks_pricing, inspect
from lib.run import Run, SpecState


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
