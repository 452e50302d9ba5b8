import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.results import shell
from lib.results.server_args import engine_name, fields_of, option_files, tensorrt_options
from lib.run import SpecState

VLLM = "vllm serve example/target-8b"
SGLANG = "python3 -m sglang.launch_server --model-path example/target-8b"
LLAMA = "llama-server -m /models/target.gguf"


def of(command: str, engine: str | None = None) -> dict[str, Any]:
    return fields_of(shlex.split(command), engine)


def speculation(command: str) -> dict[str, Any]:
    return {k: v for k, v in of(command).items() if k not in ("engine", "target")}


@pytest.mark.parametrize(
    ("command", "engine", "target"),
    [
        (VLLM, "vLLM", "example/target-8b"),
        (f"env A=1 /usr/bin/numactl -N 0 {VLLM}", "vLLM", "example/target-8b"),
        ("python -m vllm.entrypoints.openai.api_server --model x/y", "vLLM", "x/y"),
        ("python3 -m dynamo.vllm --model x/y", "vLLM", "x/y"),
        (SGLANG, "SGLang", "example/target-8b"),
        ("sglang serve --model-path x/y", "SGLang", "x/y"),
        ("mpirun -n 2 trtllm-llmapi-launch trtllm-serve x/y --tp_size 2", "TensorRT-LLM", "x/y"),
        ("trtllm-serve serve x/y", "TensorRT-LLM", "x/y"),
        (LLAMA, "llama.cpp", "/models/target.gguf"),
        ("./build/bin/llama-server -hf org/repo:Q4", "llama.cpp", "org/repo:Q4"),
    ],
)
def test_servers(command: str, engine: str, target: str) -> None:
    fields = of(command)
    assert (fields["engine"], fields["target"]) == (engine, target)
    assert fields["spec_state"] is SpecState.OFF, "the whole command, without such an option"


@pytest.mark.parametrize(
    "command",
    [
        "vllm bench serve --model x --max-concurrency 4",
        "python -m sglang.bench_serving --backend vllm",
        "trtllm-bench --model x throughput",
        "nginx -g daemon off",
        "sleep infinity",
        "",
    ],
)
def test_what_starts_no_server(command: str) -> None:
    assert of(command) == {}


def test_options_of_vllm() -> None:
    fields = of(
        f"{VLLM} --max_num_seqs=256 -tp 8 --pipeline-parallel-size 2 -dp 4 --quantization fp8 "
        "--revision abc --no-enable-prefix-caching --max-cudagraph-capture-size 512"
    )
    assert (fields["max_num_seqs"], fields["target_revision"]) == (256, "abc")
    assert fields["target_quantization"] == "fp8"
    parallel = ("tensor_parallel", "pipeline_parallel", "data_parallel")
    assert [fields[name] for name in parallel] == [8, 2, 4]
    assert (fields["prefix_caching"], fields["graph_max_batch"]) == (False, 512)
    assert of(f"{VLLM} --enforce-eager")["graph_max_batch"] == 0
    sizes = f"{VLLM} --compilation-config '{{\"cudagraph_capture_sizes\": [1, 2, 64]}}'"
    assert of(sizes)["graph_max_batch"] == 64


CONFIG = '{"method": "eagle3", "model": "x/d", "num_speculative_tokens": 4}'
EAGLE3 = {
    "spec_state": SpecState.ON,
    "draft_method": "eagle3",
    "draft_model": "x/d",
    "num_speculative_tokens": 4,
}


@pytest.mark.parametrize(
    "options",
    [
        f"--speculative-config '{CONFIG}'",
        f"--speculative_config='{CONFIG}'",
        f"--speculative-config {CONFIG}",  # the shell has taken the quotes
        "--speculative-config.method eagle3 --speculative-config.model=x/d "
        "--speculative-config.num_speculative_tokens 4",
        "--spec-method eagle3 --spec-model x/d --spec-tokens 4",
    ],
)
def test_speculation_of_vllm(options: str) -> None:
    assert speculation(f"{VLLM} {options}") == EAGLE3


def test_the_schedule_of_vllm() -> None:
    config = (
        '{"method": "eagle3", "num_speculative_tokens": 4, "draft_tensor_parallel_size": 1,'
        ' "num_speculative_tokens_per_batch_size": [[1, 64, 4], [65, 128, 0]]}'
    )
    fields = of(f"{VLLM} --speculative-config '{config}'")
    assert fields["schedule"] == "[[1,64,4],[65,128,0]]"
    assert (fields["draft_tensor_parallel"], fields["num_speculative_tokens"]) == (1, 4)


def test_ngram_and_old_flags_of_vllm() -> None:
    old = of(f"{VLLM} --speculative-model [ngram] --num-speculative-tokens 5")
    assert (old["draft_method"], old["num_speculative_tokens"]) == ("ngram", 5)
    assert "draft_model" not in old


@pytest.mark.parametrize(
    "options",
    [
        "--config /etc/server.yaml",
        "$EXTRA_ARGS",
        "--enable-auto-tool-choice ${MORE}",
        '"$@"',
        "--speculative-config $SPEC",
        "--speculative-config '{{ .Values.spec }}'",
    ],
)
def test_what_hides_options_leaves_speculation_open(options: str) -> None:
    assert "spec_state" not in of(f"{VLLM} {options}")


def test_a_variable_as_a_value_hides_nothing() -> None:
    fields = of(f"{VLLM} --port $PORT --max-num-seqs $SEQS")
    assert fields["spec_state"] is SpecState.OFF
    assert "max_num_seqs" not in fields


def test_speculation_of_sglang() -> None:
    """SGLang counts the root among its draft tokens: three steps are K = 3."""
    command = (
        f"{SGLANG} --speculative-algorithm EAGLE3 --speculative-draft-model-path x/d "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    )
    expected = EAGLE3 | {"num_speculative_tokens": 3, "draft_topk": 1}
    assert speculation(command) == expected
    assert speculation(command.replace("--speculative-num-steps 3", "")) == expected
    tree = command.replace("topk 1", "topk 4").replace("tokens 4", "tokens 16")
    assert speculation(tree) == expected | {"draft_topk": 4}


def test_other_speculation_of_sglang() -> None:
    ngram = of(f"{SGLANG} --speculative-algorithm NGRAM --speculative-num-draft-tokens 16")
    assert (ngram["draft_method"], ngram.get("num_speculative_tokens")) == ("ngram", None)
    assert of(f"{SGLANG} --speculative-algorithm STANDALONE")["draft_method"] == "draft_model"
    adaptive = of(f"{SGLANG} --speculative-algorithm EAGLE --speculative-adaptive")
    assert adaptive["schedule"] == "adaptive"


def test_options_of_sglang() -> None:
    fields = of(f"{SGLANG} --tp 4 --dp-size 2 --max-running-requests 64 --disable-radix-cache")
    assert (fields["tensor_parallel"], fields["data_parallel"]) == (4, 2)
    assert (fields["max_num_seqs"], fields["prefix_caching"]) == (64, False)
    assert of(f"{SGLANG} --cuda-graph-bs 1 2 32")["graph_max_batch"] == 32


def test_tensorrt_llm() -> None:
    command = "trtllm-serve x/y --tp_size 2 --max_batch_size 64 --extra_llm_api_options /c/o.yaml"
    fields = of(command)
    assert (fields["tensor_parallel"], fields["max_num_seqs"]) == (2, 64)
    assert "spec_state" not in fields
    assert option_files(shlex.split(command)) == ("/c/o.yaml",)
    mtp = {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3}}
    assert tensorrt_options(mtp)["num_speculative_tokens"] == 3
    assert tensorrt_options({"max_batch_size": 8})["spec_state"] is SpecState.OFF
    assert tensorrt_options("nonsense") == {}
    assert "spec_state" not in of("trtllm-serve /engine --backend tensorrt")


def test_llama_cpp() -> None:
    fields = speculation(f"{LLAMA} -np 8 -md /models/draft.gguf --draft-max 16")
    assert fields == {
        "max_num_seqs": 8,
        "spec_state": SpecState.ON,
        "draft_method": "draft_model",
        "draft_model": "/models/draft.gguf",
        "num_speculative_tokens": 16,
    }
    mtp = of(f"{LLAMA} --spec-type draft-mtp --spec-draft-n-max 3")
    assert (mtp["draft_method"], mtp["num_speculative_tokens"]) == ("mtp", 3)


def test_options_alone_need_an_engine() -> None:
    assert of("--model x/y --max-num-seqs 8") == {}
    assert of("--model x/y --max-num-seqs 8", "vLLM")["max_num_seqs"] == 8


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm", "vLLM"),
        ("VLLM", "vLLM"),
        ("SGLang", "SGLang"),
        ("trt-llm", "TensorRT-LLM"),
        ("tensorrtllm", "TensorRT-LLM"),
        ("llama.cpp", "llama.cpp"),
        ("tgi", None),
        (None, None),
    ],
)
def test_names_of_engines(text: str | None, name: str | None) -> None:
    assert engine_name(text) == name


def test_commands_of_a_script() -> None:
    script = """#!/bin/bash
# vllm serve commented/out --max-num-seqs 1
set -e
export MODEL=x/y; N=${N:-4}
nvidia-smi && CUDA_VISIBLE_DEVICES=0 exec vllm serve "$MODEL" \\
    --max-num-seqs $N --served-model-name "a b" 2>&1 > /tmp/log &
"""
    commands = shell.commands(script)
    assert commands[:2] == [["set", "-e"], ["nvidia-smi"]]
    assert commands[2] == [
        *("vllm", "serve", "x/y", "--max-num-seqs", "4", "--served-model-name", "a b"),
    ]


def test_a_script_that_cannot_be_read_has_no_commands() -> None:
    assert shell.commands("vllm serve 'x") == []


def test_variables() -> None:
    assert shell.expand("$(A)/${B:-b}/$C/$D", {"A": "a", "C": "c"}) == "a/b/c/$D"


def test_values_do_not_multiply() -> None:
    script = "A=xxxxxxxx\n" + "A=$A$A\n" * 60 + "vllm serve $A"
    (command,) = shell.commands(script)
    assert len(command[-1]) < 2**20


SPEC_ARGS = '--speculative-config {"method":"eagle3","num_speculative_tokens":3}'
QUOTED_ARGS = '--speculative-config \'{"method": "eagle3", "num_speculative_tokens": 3}\''


def states(script: str, variables: dict[str, str] | None = None) -> list[object]:
    """What each server of a script says of speculation: its state and K; None where open."""
    found = [fields_of(argv) for argv in shell.commands(script, variables)]
    return [(f.get("spec_state"), f.get("num_speculative_tokens")) for f in found if f]


@pytest.mark.parametrize(
    "written", ["$SPEC_ARGS", "${SPEC_ARGS}", "$(SPEC_ARGS)", "${SPEC_ARGS:-}"]
)
@pytest.mark.parametrize("value", [SPEC_ARGS, QUOTED_ARGS])
def test_an_unquoted_variable_is_as_many_words_as_its_value_has(written: str, value: str) -> None:
    on = [(SpecState.ON, 3)]
    assert states(f"vllm serve m {written} --port 80", {"SPEC_ARGS": value}) == on
    assert fields_of(["vllm", "serve", "m", value])["spec_state"] is SpecState.ON


@pytest.mark.parametrize(
    "assignment",
    [
        f"SPEC={shlex.quote(QUOTED_ARGS)}",
        f"SPEC='{SPEC_ARGS}'",
        f"export SPEC='{SPEC_ARGS}'",
        f"SPEC='--port 1'; SPEC=\"$SPEC \"'{SPEC_ARGS}'",
        f"SPEC='--port 1'; SPEC+=' {SPEC_ARGS}'",
    ],
)
def test_a_variable_of_the_script_is_split_too(assignment: str) -> None:
    (said,) = states(f"{assignment}\nvllm serve m $SPEC")
    assert said == (SpecState.ON, 3)  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve m $SPEC_ARGS",
        "vllm serve m ${SPEC_ARGS:-}",
        "vllm serve m --port $PORT_AND_SPEC",
        "vllm serve m --enforce-eager $MORE",
        "vllm serve m --my-speculation x",
        "vllm serve m $(cat options)",
        "vllm serve m `cat options`",
        'A=(--speculative-config x); vllm serve m "${A[@]}"',
        "if x; then S='--speculative-config x'; else S=''; fi; vllm serve m $S",
        'vllm serve m "$@"',
    ],
)
def test_what_may_speculate_is_never_off(script: str) -> None:
    assert states(script) == [(None, None)]


@pytest.mark.parametrize(
    "script",
    [
        f"vllm serve m # {QUOTED_ARGS}",
        f"vllm serve m # it's\n# {QUOTED_ARGS}",
        f"vllm serve m --port 80; echo {QUOTED_ARGS}",
        "vllm serve m $NOTHING",
        "vllm serve m --port $PORT 2>&1 | tee /tmp/speculation.log",
        "(vllm serve m &> speculation.log)",
    ],
)
def test_a_comment_and_other_commands_say_nothing_of_the_server(script: str) -> None:
    assert states(script, {"NOTHING": ""}) == [(SpecState.OFF, None)]


def test_quotes_hold_what_a_variable_gives_together() -> None:
    known = {"A": "x y"}
    assert shell.commands('a "$A" $A \'$A\' b"$A"c "\\$A" \\$A', known) == [
        ["a", "x y", "x", "y", "$A", "bx yc", "$A", "$A"]
    ]
    assert shell.commands("a '' \"\" $A#b # c", {"A": "1"}) == [["a", "", "", "1#b"]]


@given(st.text("ab =#'\"\\$(){}`;&|<>\n\t1", max_size=80))
def test_any_script_is_read(script: str) -> None:
    for command in shell.commands(script, {"a": "b c", "b": "'"}):
        fields_of(command)
        fields_of(command, "vLLM")


def test_long_scripts_are_read_in_one_pass() -> None:
    """Without a timer: what would take the square of this length does not end within a minute."""
    for unit in ("a ", "$a", "'a' ", '"$a"', "(", "`a`", "# a\n", "a=b;", "\\\n", "$(a) ", "--a "):
        shell.commands(unit * (shell.LONGEST_SCRIPT // len(unit)), {"a": "b"})
    assert fields_of(["vllm", "serve", "m", "--a " * 100_000 + "b"])["engine"] == "vLLM"
