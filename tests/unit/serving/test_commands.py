"""The commands to copy: words, quoting, options, and what the import reads back of them."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.engine_schedule import check
from lib.evidence.findings import find
from lib.evidence.next_measurement import NextMeasurement, Why, next_measurements
from lib.results import naming, server_args
from lib.results.reading import read
from lib.results.shell import commands as shell_commands
from lib.run import LoadKind, Run, SpecState, Study
from lib.serving import clients, commands, tools
from lib.serving.setup import ArmSetup, arm_setup, on_a_command_line, recorded_length, safe_name

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
FLAGS = json.loads((FIXTURES / "commands" / "flags.json").read_text())
C, RATE, BATCH = LoadKind.CONCURRENCY, LoadKind.REQUEST_RATE, LoadKind.BATCH
FULL: dict[str, Any] = {
    "target": "meta-llama/Llama-3.1-8B-Instruct",
    "target_revision": "0e9e39f",
    "dataset": "random",
    "input_len": 512.0,
    "output_len": 128.0,
    "temperature": 0.0,
    "top_p": 1.0,
    "engine": "vLLM",
    "max_num_seqs": 256,
    "prefix_caching": False,
    "graph_max_batch": 512,
    "gpu": "H100",
    "gpu_count": 2,
    "tensor_parallel": 2,
    "tool": "vllm-bench-serve",
    "load_kind": C,
}


def a_study(**fields: Any) -> Study:
    """Off, eagle3:4 and a schedule at 8, of one server."""
    shared = {**FULL, **fields}
    arms: tuple[dict[str, Any], ...] = (
        {"spec_state": SpecState.OFF},
        {"draft_method": "eagle3", "draft_model": "yuhui/EAGLE3", "num_speculative_tokens": 4},
        {
            "draft_method": "eagle3",
            "draft_model": "yuhui/EAGLE3",
            "schedule": "[[1,16,4],[17,256,0]]",
        },
    )
    runs = []
    for i, own in enumerate(arms):
        state = {"spec_state": SpecState.ON} | own
        runs.append(
            Run(run_id=f"c{i}", offered_load=8.0, output_tps=100.0 + i, **{**shared, **state})
        )
    return Study("s", tuple(runs))


def value(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def options(words: list[str]) -> set[str]:
    return {w for w in words if w.startswith("-") and w != "-m"}


def cell(load: float = 8.0, kind: LoadKind = C, runs: int | None = 3) -> NextMeasurement:
    return NextMeasurement(("off", "eagle3:4"), "eagle3:4", load, kind, Why.BEYOND, runs)


def test_vllm_serve_of_every_arm() -> None:
    study = a_study()
    configs = {}
    for name in ("off", "eagle3:4", "eagle3:0", "eagle3:schedule"):
        made = commands.serve(study, arm_setup(study, name))
        words = shlex.split(made.text)
        assert words[:3] == ["vllm", "serve", FULL["target"]]
        assert value(words, "--max-num-seqs") == "256"
        assert value(words, "--tensor-parallel-size") == "2"
        assert "--no-enable-prefix-caching" in words
        assert made.placeholders == ()
        text = value(words, "--speculative-config") if "--speculative-config" in words else "{}"
        configs[name] = json.loads(text)
    model = {"method": "eagle3", "model": "yuhui/EAGLE3", "num_speculative_tokens": 4}
    key = "num_speculative_tokens_per_batch_size"
    assert configs["off"] == {}
    assert configs["eagle3:4"] == model
    assert configs["eagle3:0"] == {**model, key: [[1, 256, 0]]}
    assert configs["eagle3:schedule"] == {**model, key: [[1, 16, 4], [17, 256, 0]]}
    for name in ("eagle3:0", "eagle3:schedule"):
        judged = check(configs[name], 4, 256)
        assert judged.valid
    assert check(configs["eagle3:0"], 4, 256).effective == ((1, 256, 0),)


@pytest.mark.parametrize("name", ["off", "eagle3:4", "eagle3:0", "eagle3:schedule"])
def test_the_server_command_reads_back_as_it_was_recorded(name: str) -> None:
    study = a_study()
    stated = server_args.fields_of(shlex.split(commands.serve(study, arm_setup(study, name)).text))
    for field in ("target", "target_revision", "max_num_seqs", "tensor_parallel", "prefix_caching"):
        assert stated[field] == FULL[field], field
    assert stated["spec_state"] is (SpecState.OFF if name == "off" else SpecState.ON)
    if name == "eagle3:4":
        assert stated["num_speculative_tokens"] == 4
        assert stated["draft_model"] == "yuhui/EAGLE3"


def test_the_sglang_server_reads_back_too() -> None:
    study = a_study(engine="SGLang")
    words = shlex.split(clients.sglang_serve(study, arm_setup(study, "eagle3:4")).text)
    assert value(words, "--speculative-num-steps") == "4"
    assert value(words, "--speculative-eagle-topk") == "1"
    assert value(words, "--speculative-num-draft-tokens") == "5"
    stated = server_args.fields_of(words)
    assert (stated["draft_method"], stated["num_speculative_tokens"]) == ("eagle3", 4)
    for name in ("eagle3:0", "eagle3:schedule"):
        with pytest.raises(InputError, match="no K by batch size"):
            clients.sglang_serve(study, arm_setup(study, name))


def test_vllm_bench_of_one_cell() -> None:
    study = a_study()
    made = commands.bench(study, arm_setup(study, "eagle3:4"), 32, C)
    words = shlex.split(made.text)
    assert words[:3] == ["vllm", "bench", "serve"]
    assert value(words, "--dataset-name") == "random"
    assert (value(words, "--input-len"), value(words, "--output-len")) == ("512", "128")
    assert value(words, "--max-concurrency") == "32"
    assert value(words, "--num-prompts") == "256"
    assert value(words, "--temperature") == "0"
    assert value(words, "--percentile-metrics") == "ttft,tpot,itl,e2el"
    assert value(words, "--result-filename") == "eagle3-k4-c32-r1.json"
    assert {"--save-result", "--ignore-eos"} <= options(words)
    assert {"arm=eagle3:4", "num_speculative_tokens=4", "gpu=H100"} <= set(words)
    assert commands.RANDOM_NOTE in made.notes


@pytest.mark.parametrize("name", ["off", "eagle3:4", "eagle3:0"])
def test_a_result_made_by_the_command_reads_back_as_that_arm(name: str) -> None:
    study = a_study()
    words = shlex.split(commands.bench(study, arm_setup(study, name), 8, C).text)
    at = words.index("--metadata") + 1
    metadata = dict(w.split("=", 1) for w in words[at : words.index("--result-filename")])
    document = json.loads((FIXTURES / "vllm" / "off-c8.json").read_text())
    for key in ("arm", "gpu", "spec", *metadata):
        document.pop(key, None)
    (run,) = read("off.json", orjson.dumps({**document, **metadata})).runs
    assert run.arm == name
    assert (run.gpu, run.gpu_count, run.tensor_parallel) == ("H100", 2, 2)
    assert (run.max_num_seqs, run.temperature, run.dataset) == (256, 0.0, "random")
    assert run.draft_model == (None if name == "off" else "yuhui/EAGLE3")


def test_file_names_say_the_arm() -> None:
    for name in ("off", "eagle3:4", "ngram:5", "eagle3:schedule"):
        slug = ArmSetup(name).slug
        said = naming.spell(f"{slug}-c8-r2")
        assert said is not None
        if name == "eagle3:4":
            assert (said.method, said.k) == ("eagle3", 4)
        assert naming.repeat_of(f"{slug}-c8-r2") == 2


def test_repeats_are_numbered_from_those_that_are_there() -> None:
    study = a_study()
    text = commands.bench(study, arm_setup(study, "off"), 8, C, runs=3, first=2).text
    assert text.startswith("for run in $(seq 2 4); do vllm bench serve ")
    assert text.endswith('--result-filename off-c8-r"$run".json; done')
    (first, *_) = tools.steps(study, cell(), "vLLM bench serve")[1:2]
    assert "seq 2 4" in first.text


def test_what_is_not_recorded_is_a_placeholder_and_listed() -> None:
    bare = Run(run_id="x", spec_state=SpecState.ON, load_kind=C, offered_load=1.0)
    study = Study("s", (bare,))
    made = commands.serve(study, arm_setup(study, "speculation:3"))
    words = shlex.split(made.text)
    assert words[2] == "MODEL"
    assert json.loads(value(words, "--speculative-config")) == {
        "method": "METHOD",
        "model": "DRAFT_MODEL",
        "num_speculative_tokens": 3,
    }
    assert [p.split(":")[0] for p in made.placeholders] == ["MODEL", "METHOD", "DRAFT_MODEL"]
    bench = commands.bench(study, arm_setup(study, "off"), 4, C)
    assert [p.split(":")[0] for p in bench.placeholders] == ["MODEL", "DATASET_FILE", "TEMPERATURE"]
    assert "--input-len" not in bench.text
    assert "gpu=" not in bench.text
    assert any("does not record its prompts" in n for n in bench.notes)


def test_arms_that_disagree_leave_a_placeholder() -> None:
    one, two, *_ = a_study().runs
    other = Run(**{**{f: getattr(two, f) for f in two.__dataclass_fields__}, "target": "other"})
    study = Study("s", (one, other))
    assert "MODEL" in commands.serve(study, arm_setup(study, "eagle3:0")).text.split()[2]
    assert commands.serve(study, arm_setup(study, "off")).placeholders == ()


def test_methods_without_weights_need_no_model() -> None:
    run = Run(run_id="n", spec_state=SpecState.ON, draft_method="ngram", num_speculative_tokens=5)
    study = Study("s", (run,))
    config = value(
        shlex.split(commands.serve(study, arm_setup(study, "ngram:5")).text), "--speculative-config"
    )
    assert json.loads(config) == {"method": "ngram", "num_speculative_tokens": 5}


def test_the_sweep_is_built_for_the_wanted_arms_and_loads() -> None:
    study = a_study()
    made = commands.sweep(study, ("off", "eagle3:4", "eagle3:0"), (1, 8, 64), C, 5)
    words = shlex.split(made.command.text)
    assert words[:4] == ["vllm", "bench", "sweep", "serve"]
    assert value(words, "--num-runs") == "5"
    assert value(words, "--serve-params") == commands.SERVE_PARAMS
    served = shlex.split(value(words, "--serve-cmd"))
    assert served[:3] == ["vllm", "serve", FULL["target"]]
    assert "--speculative-config" not in served
    client = shlex.split(value(words, "--bench-cmd"))
    assert "gpu=H100" in client
    assert "--max-concurrency" not in client
    rows = json.loads(made.serve_params)
    assert [r["_benchmark_name"] for r in rows] == ["off", "eagle3:4", "eagle3:0"]
    assert "speculative_config" not in rows[0]
    assert rows[1]["speculative_config"]["num_speculative_tokens"] == 4
    assert json.loads(made.bench_params) == [
        {"max_concurrency": 1, "num_prompts": 40},
        {"max_concurrency": 8, "num_prompts": 64},
        {"max_concurrency": 64, "num_prompts": 512},
    ]
    with pytest.raises(InputError, match="at least one arm"):
        commands.sweep(study, (), (1,), C)
    with pytest.raises(InputError, match="above 0"):
        commands.sweep(study, ("off",), (0,), C)


def test_servers_that_differ_go_into_the_sweeps_file() -> None:
    one, two, _ = a_study().runs
    fast = {f: getattr(two, f) for f in two.__dataclass_fields__} | {"tensor_parallel": 4}
    study = Study("s", (one, Run(**fast)))
    made = commands.sweep(study, ("off", "eagle3:4"), (8,), C)
    rows = json.loads(made.serve_params)
    assert [r["tensor_parallel_size"] for r in rows] == [2, 4]
    assert rows[0]["enable_prefix_caching"] is False
    assert shlex.split(value(shlex.split(made.command.text), "--serve-cmd")) == [
        "vllm",
        "serve",
        FULL["target"],
    ]


def test_rates_and_no_limit() -> None:
    study = a_study(load_kind=RATE)
    words = shlex.split(commands.bench(study, arm_setup(study, "off"), 2.5, RATE).text)
    assert value(words, "--request-rate") == "2.5"
    assert value(words, "--num-prompts") == "150"
    words = shlex.split(commands.bench(study, arm_setup(study, "off"), math.inf, RATE).text)
    assert value(words, "--request-rate") == "inf"
    rows = json.loads(commands.sweep(study, ("off",), (math.inf,), RATE).bench_params)
    assert rows == [{"request_rate": "inf", "num_prompts": 1000}]
    batch = commands.bench(study, arm_setup(study, "off"), 8, BATCH)
    assert any("static batch" in n for n in batch.notes)


def test_prompts_are_as_recorded_at_that_load() -> None:
    study = a_study(num_prompts=96)
    assert commands.prompts_for(study, 8, C) == 96
    assert commands.prompts_for(study, 64, C) == 512


@pytest.mark.parametrize("label", list(tools.TOOLS))
@pytest.mark.parametrize("dataset", ["random", "MT-Bench", None])
@pytest.mark.parametrize(("load", "kind"), [(8.0, C), (2.5, RATE), (16.0, BATCH), (math.inf, RATE)])
def test_every_option_is_one_of_the_tool(
    label: str, dataset: str | None, load: float, kind: LoadKind
) -> None:
    study = a_study(dataset=dataset)
    for step in tools.steps(study, cell(load, kind, 1), label):
        words = shlex.split(step.text)
        name = next(n for n in FLAGS if words[: len(n.split())] == n.split())
        assert options(words) <= set(FLAGS[name]["flags"]), name
        assert FLAGS[name]["source"]


def test_every_option_of_the_sweep_is_one_of_the_tool() -> None:
    for dataset in ("random", "sharegpt", None):
        made = commands.sweep(a_study(dataset=dataset), ("off", "eagle3:4"), (8,), C)
        words = shlex.split(made.command.text)
        for name, inner in (
            ("vllm bench sweep serve", words),
            ("vllm serve", shlex.split(value(words, "--serve-cmd"))),
            ("vllm bench serve", shlex.split(value(words, "--bench-cmd"))),
        ):
            assert options(inner) <= set(FLAGS[name]["flags"])


def test_other_clients_state_load_lengths_and_arm() -> None:
    study = a_study()
    arm = arm_setup(study, "eagle3:4")
    words = shlex.split(clients.guidellm(study, arm, 32, C).text)
    assert json.loads(value(words, "--profile")) == {"kind": "concurrent", "streams": 32}
    assert json.loads(value(words, "--data")) == {
        "kind": "synthetic_text",
        "prompt_tokens": 512,
        "output_tokens": 128,
    }
    assert json.loads(value(words, "--constraint")) == {"kind": "max_requests", "count": 256}
    assert {"arm=eagle3:4", "gpu=H100"} <= set(words)
    words = shlex.split(clients.aiperf(study, arm, 32, C).text)
    assert value(words, "--concurrency") == "32"
    assert value(words, "--output-artifact-dir") == "results/eagle3-k4-c32-r1"
    words = shlex.split(clients.sglang_bench(study, arm, 32, C).text)
    assert value(words, "--output-file") == "eagle3-k4-c32-r1.jsonl"
    assert json.loads(value(words, "--extra-request-body")) == {"temperature": 0}


def test_the_usual_tool_is_the_one_of_the_study() -> None:
    assert tools.usual(a_study()) == tools.SWEEP
    assert tools.usual(a_study(tool="guidellm")) == "GuideLLM"
    assert tools.usual(a_study(tool="aiperf")) == "AIPerf"
    assert tools.usual(a_study(tool=None, engine="SGLang")) == "SGLang bench_serving"
    assert tools.mismatch(a_study(), tools.SWEEP) == ""
    assert "guidellm" in tools.mismatch(a_study(tool="guidellm"), "AIPerf")
    assert tools.mismatch(a_study(tool=None), "AIPerf") == ""
    other = tools.mismatch(a_study(engine="TensorRT-LLM"), tools.SWEEP)
    assert other.startswith("The study's server was TensorRT-LLM, this one is vLLM")
    assert "SGLang" in tools.mismatch(a_study(), "SGLang bench_serving")
    with pytest.raises(InputError, match="one of"):
        tools.steps(a_study(), cell(), "ab")


def test_the_best_cell_of_a_study_has_commands() -> None:
    study = Study("s", a_study().runs[:2])
    (one, *_) = next_measurements(find(study))
    for label in tools.TOOLS:
        made = tools.steps(study, one, label)
        assert len(made) == 2 * len(one.arms)
    assert json.loads(tools.sweep_for(study, one).serve_params)


def test_lengths_that_vary_are_not_recorded() -> None:
    study = a_study()
    assert recorded_length(study, "input_len") == 512
    assert recorded_length(a_study(input_len=None), "input_len") is None


# A name from a file stays one word, whatever it holds.
names = st.text(min_size=1, max_size=40) | st.sampled_from(
    (
        "m'; rm -rf / #",
        '$(touch /tmp/x)"`id`',
        "a\nb; reboot",
        "--speculative-config={}",
        "-x",
        "ünï 'quoted' \\ back",
        "!history",
        'x" --trust-remote-code "',
    )
)


@settings(deadline=None, max_examples=150)
@given(names, names, names)
def test_names_never_leave_their_quotes(target: str, drafter: str, gpu: str) -> None:
    study = a_study(target=target, gpu=gpu)
    runs = [
        Run(**{**{f: getattr(r, f) for f in r.__dataclass_fields__}, "draft_model": drafter})
        if r.spec_state is SpecState.ON
        else r
        for r in study.runs
    ]
    study = Study("s", tuple(runs))
    expected = target if on_a_command_line(target) else "MODEL"
    for label in tools.TOOLS:
        for step in tools.steps(study, cell(runs=1), label):
            words = shlex.split(step.text)
            name = next(n for n in FLAGS if words[: len(n.split())] == n.split())
            if name != "python -m sglang.bench_serving":  # it asks the server
                assert expected in words or any(expected in _models(w) for w in words)
            assert options(words) <= set(FLAGS[name]["flags"])
            assert "\n" not in step.text
            if name == "vllm serve" and "--speculative-config" in words:
                config = json.loads(value(words, "--speculative-config"))
                known = on_a_command_line(drafter)
                assert config["model"] == (drafter if known else "DRAFT_MODEL")
    made = commands.sweep(study, ("off", "eagle3:4"), (8,), C)
    served = shlex.split(value(shlex.split(made.command.text), "--serve-cmd"))
    assert served[2] == expected
    assert json.loads(made.serve_params)[1]["speculative_config"]["method"] == "eagle3"


def _models(word: str) -> list[str]:
    try:
        found = json.loads(word)
    except ValueError:
        return []
    return [found["model"]] if isinstance(found, dict) and "model" in found else []


@settings(deadline=None)
@given(st.text(max_size=80))
def test_file_names_are_plain(text: str) -> None:
    name = safe_name(text)
    assert name
    assert not name.startswith(("-", "."))
    assert shlex.quote(name) == name
    assert "/" not in name


def test_our_own_reader_of_scripts_sees_the_same_words() -> None:
    study = a_study()
    text = commands.serve(study, arm_setup(study, "eagle3:4")).text
    assert shell_commands(text) == [shlex.split(text)]
