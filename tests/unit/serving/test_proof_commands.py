"""The three arms that prove a schedule, as commands each tool accepts."""

import json
import shlex
from dataclasses import replace

import pytest

from lib.errors import InputError
from lib.evidence.engine_schedule import check
from lib.evidence.pairing import compare
from lib.evidence.schedule import Schedule, build
from lib.evidence.three_arms import Proof, proof_of
from lib.results import published
from lib.run import Study
from lib.serving import tools
from tests.unit.serving.test_commands import FLAGS, options, value

RANGES = [[1, 8, 4], [9, 38, 2], [39, 64, 0]]


def demo(max_num_seqs: int = 64) -> tuple[Study, Proof, Schedule]:
    study = published.study("guidellm-0.8.1-simulated")
    built = build(compare(study), max_num_seqs, tail="off")
    proof = proof_of(built)
    assert proof is not None
    return study, proof, built


def test_the_sweep_has_three_servers_and_every_load() -> None:
    study, proof, built = demo()
    made = tools.proof_sweep(study, proof, built)
    off, fixed, scheduled = json.loads(made.serve_params)
    assert off == {"_benchmark_name": "off"}
    assert fixed["_benchmark_name"] == "sim:2"
    assert fixed["speculative_config"]["num_speculative_tokens"] == 2
    assert scheduled["_benchmark_name"] == "sim:schedule"
    config = scheduled["speculative_config"]
    assert config["num_speculative_tokens_per_batch_size"] == RANGES
    assert check(config, 4, 64).valid
    rows = json.loads(made.bench_params)
    assert [r["max_concurrency"] for r in rows] == [1, 2, 4, 8, 9, 16, 32, 39, 64]
    assert all(r["num_prompts"] >= r["max_concurrency"] for r in rows)
    words = shlex.split(made.command.text)
    assert value(words, "--num-runs") == "3"
    for name, inner in (
        ("vllm bench sweep serve", words),
        ("vllm serve", shlex.split(value(words, "--serve-cmd"))),
        ("vllm bench serve", shlex.split(value(words, "--bench-cmd"))),
    ):
        assert inner[: len(name.split())] == name.split()
        assert options(inner) <= set(FLAGS[name]["flags"])


def test_the_servers_start_with_the_schedules_limit() -> None:
    """The table is for that max_num_seqs, whatever the runs were measured with."""
    study, proof, built = demo(48)
    recorded = Study("s", tuple(replace(r, max_num_seqs=256) for r in study.runs))
    for given in (study, recorded):
        words = shlex.split(tools.proof_sweep(given, proof, built).command.text)
        assert value(shlex.split(value(words, "--serve-cmd")), "--max-num-seqs") == "48"
        serve, _ = tools.proof_steps(given, proof, "off", tools.ONE_CELL, built)
        assert value(shlex.split(serve.text), "--max-num-seqs") == "48"


@pytest.mark.parametrize("label", ["vLLM bench serve", "GuideLLM", "AIPerf"])
def test_a_server_and_a_line_a_load_for_each_arm(label: str) -> None:
    study, proof, built = demo()
    for arm in proof.arms:
        serve, bench = tools.proof_steps(study, proof, arm.name, label, built)
        words = shlex.split(serve.text)
        assert ("--speculative-config" in words) is (arm.name != "off")
        if arm.name.endswith("schedule"):
            config = json.loads(value(words, "--speculative-config"))
            assert config["num_speculative_tokens_per_batch_size"] == RANGES
        lines = bench.text.splitlines()
        assert len(lines) == len(proof.loads)
        assert all(line.startswith("for run in $(seq ") for line in lines)
        assert f"{arm.name}: " not in bench.text


def test_sglang_measures_two_of_the_three() -> None:
    study, proof, built = demo()
    label = "SGLang bench_serving"
    named = replace(built, method="eagle3")
    for arm in ("off", "eagle3:2"):
        serve, _ = tools.proof_steps(study, proof, arm, label, named)
        assert serve.text.startswith("python -m sglang.launch_server")
    with pytest.raises(InputError, match="measure it with vLLM"):
        tools.proof_steps(study, proof, "eagle3:schedule", label, named)
    with pytest.raises(InputError, match="one of"):
        tools.proof_steps(study, proof, "off", "wrk", built)


def test_a_missing_drafter_is_a_placeholder_that_is_named() -> None:
    study, proof, built = demo()
    arms = [replace(a, name=a.name.replace("sim", "eagle3")) for a in proof.arms]
    made = tools.proof_sweep(study, replace(proof, arms=tuple(arms)), built)
    assert any(p.startswith("DRAFT_MODEL: ") for p in made.command.placeholders)
    assert '"DRAFT_MODEL"' in made.serve_params
