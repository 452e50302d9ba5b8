"""Which probe speaks of a study, and what makes it due for re-measurement."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lib.evidence.probe_match import match, on_cpu, pick, same_model
from lib.run import Run, SpecState
from tests.probes import CPU, SETUP
from tests.probes import GPU as PROBE


def runs(**changed: Any) -> list[Run]:
    fields: dict[str, Any] = {
        "target": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "H100",
        "engine": "vllm",
        "engine_version": "0.11",
        "target_quantization": "BF16",
        "draft_method": "eagle3",
        "draft_model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        **changed,
    }
    off = {k: v for k, v in fields.items() if not k.startswith("draft")}
    return [
        Run(run_id="a", spec_state=SpecState.OFF, **off),
        Run(run_id="b", spec_state=SpecState.ON, **fields),
    ]


def test_the_same_setup_under_other_names_holds() -> None:
    found = match(PROBE, runs())
    assert found.alike == ("target", "drafter", "GPU", "precision")
    assert found.holds


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target": "Llama-3.3-70B-Instruct"}, "target llama-3.1-8b, not Llama-3.3-70B-Instruct"),
        ({"gpu": "L4"}, "GPU NVIDIA H100 80GB HBM3, not L4"),
        ({"gpu": "H100 NVL"}, "GPU NVIDIA H100 80GB HBM3, not H100 NVL"),
        ({"draft_model": "Llama-3.2-1B"}, "drafter eagle3-llama-3.1-8b, not Llama-3.2-1B"),
        (
            {"draft_model": None, "draft_method": "draft_model"},
            "draft method eagle3-llama-3.1-8b, not draft_model",
        ),
        ({"target_quantization": "FP8"}, "precision bfloat16, not FP8"),
        (
            {"target": "Llama-3.1-8B-FP8", "target_quantization": None},
            "precision bfloat16, not FP8",
        ),
    ],
)
def test_what_makes_it_due_again(changed: dict, said: str) -> None:
    found = match(PROBE, runs(**changed))
    assert found.differs == (said,)
    assert not found.holds


def test_another_engine_version_and_a_slice() -> None:
    served = replace(PROBE, setup=replace(SETUP, versions={"target": "vllm 0.10"}))
    assert match(served, runs()).holds  # timed here, in no engine
    served = replace(served, method="servers")
    assert match(served, runs()).differs == ("engine vllm 0.10, not vllm 0.11",)
    assert match(served, runs(engine_version="0.10")).holds
    assert match(served, runs(engine_version=None)).holds
    nameless = replace(served, setup=replace(SETUP, versions={"target": "0.10"}))
    assert match(nameless, runs()).holds
    assert match(served, runs(engine="sglang")).differs == ("engine vllm 0.10, not sglang 0.11",)
    sliced = replace(PROBE, setup=replace(SETUP, mig=True))
    assert match(sliced, runs()).differs[0].startswith("GPU a MIG slice of NVIDIA H100")
    assert match(sliced, runs(gpu="H100 MIG")).holds


def test_what_is_not_recorded_says_nothing_but_the_target_must_be_known() -> None:
    nothing = {"gpu": None, "draft_model": None, "draft_method": None, "target_quantization": None}
    assert match(PROBE, runs(**nothing)).holds
    assert not match(PROBE, runs(target=None)).holds


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("qwen3-8b", "Qwen/Qwen3-8B-FP8", True),
        ("llama-3.3-70b", "hugging-quants/Llama-3.3-70B-Instruct-AWQ-INT4", True),
        ("/models/Qwen3-8B/", "qwen3-8b", True),
        ("qwen3-30b-a3b", "Qwen3-30B-A3B-Instruct", True),
        ("qwen3-8b", "qwen3-32b", False),
        ("llama-3.1-8b", "llama-3-8b", False),
        ("gpt-oss-20b", "openai/gpt-oss-120b", False),
        ("", "", False),
    ],
)
def test_models_alike(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same
    assert same_model(other, one) is same


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        ("NVIDIA L40S", "L4", False),
        ("NVIDIA L4", "L4", True),
        ("NVIDIA A100-SXM4-80GB", "A100", True),
        ("NVIDIA A100-SXM4-40GB", "A100 80GB", False),
        ("NVIDIA GeForce RTX 4090", "RTX 4090", True),
        ("NVIDIA H200", "NVIDIA H100", False),
    ],
)
def test_gpus_alike(mine: str, theirs: str, same: bool) -> None:
    probe = replace(PROBE, setup=replace(SETUP, gpu=mine))
    assert match(probe, runs(gpu=theirs)).holds is same


def test_the_newest_that_holds_is_picked_before_a_newer_one_that_is_due() -> None:
    newer = replace(PROBE, taken_at=PROBE.taken_at + timedelta(1))
    elsewhere = replace(newer, setup=replace(SETUP, gpu="NVIDIA L4"))
    assert pick([newer, PROBE], runs(), 4) == (newer, match(newer, runs()))
    picked = pick([elsewhere, PROBE], runs(), 4)
    assert picked is not None
    assert picked[0] is PROBE
    due = pick([elsewhere], runs(), 4)
    assert due is not None
    assert not due[1].holds


def test_what_is_never_picked() -> None:
    assert on_cpu(CPU)
    wide = replace(PROBE, setup=replace(SETUP, batch=8))
    other = replace(SETUP, gpu="NVIDIA L4", target="qwen3-8b", draft="qwen3-0.6b", dtype="float32")
    assert pick([CPU, wide, replace(PROBE, setup=other)], runs(), 4) is None
    assert pick([], runs(), 4) is None
