"""A schedule in every form that people paste, judged by its own engine's rules."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.evidence.engine_schedule import config, vllm_flag, vllm_python
from lib.evidence.pasted_schedule import SGLANG, TRTLLM, VLLM, judge, read
from lib.evidence.trtllm_schedule import FIRST, LAST, yaml_config
from tests.unit.evidence.test_engine_schedule import says, schedules

BROKEN = "[[1,16,5],[17,32,4],[33,64,3],[65,128,1]]"
RANGES = ((1, 8, 4), (9, 38, 2), (39, 64, 0))
CONFIG = config("eagle3", "org/it's", 4, RANGES)


def test_vllms_own_broken_example() -> None:
    found = judge(BROKEN, 3, 128)
    assert (found.engine, found.form) == (VLLM, "vLLM list, JSON")
    assert found.check is not None
    assert found.check.effective == ((1, 64, 3), (65, 128, 1))
    assert says(found.check.warnings, "[1, 16, 5]", "clamped", "raise that to 5")
    assert says(found.check.warnings, "[17, 32, 4]", "clamped", "raise that to 4")
    assert found.all_errors == ()


def test_the_map_form_of_an_early_draft() -> None:
    """C07."""
    found = judge('{"1-16":3,"64-128":2,"256-4096":0}', 3, 512)
    assert "map form" in found.form
    assert found.check is not None
    assert found.check.effective == ((1, 63, 3), (64, 255, 2), (256, 512, 0))
    assert says(found.check.warnings, "No release takes the map form")


def commands() -> list[str]:
    flag = vllm_flag(CONFIG)
    snake = flag.replace("speculative-config", "speculative_config")
    nested = json.dumps(CONFIG["num_speculative_tokens_per_batch_size"])
    return [
        f"vllm serve m --max-num-seqs 64 {flag}",
        f"vllm serve m \\\n  --max-num-seqs 64 \\\n  {flag} \\\n  --port 1",
        f"vllm serve m --max-num-seqs=64 {flag.replace('config ', 'config=', 1)}",
        f"vllm serve m --max_num_seqs 64 {snake}",
        f"vllm serve m --max-num-seqs 64 -sc {flag.partition(' ')[2]}",
        "vllm serve m --max-num-seqs 64 --speculative-config.method eagle3 "
        "--speculative-config.num_speculative_tokens 4 "
        f"--speculative-config.num_speculative_tokens_per_batch_size '{nested}'",
    ]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CONFIG),
        repr(CONFIG),
        f"speculative_config = {CONFIG!r}",
        json.dumps({"speculative_config": CONFIG, "max_num_seqs": 64}),
        f"max-num-seqs: 64\nspeculative-config: {json.dumps(CONFIG)}\n",
        vllm_python(CONFIG, "m", 64),
        *commands(),
    ],
)
def test_a_whole_config_in_every_wrapping(text: str) -> None:
    found = judge(text, None, 64)
    assert found.engine == VLLM
    assert found.needs == ()
    assert found.all_errors == ()
    assert found.check is not None
    assert found.check.effective == RANGES
    assert found.method == "eagle3"
    assert says(found.notes, "51510")


def test_what_a_command_states_counts_over_the_fields() -> None:
    found = judge(commands()[0], 3, 128)
    assert found.check is not None
    assert found.check.effective[-1] == (39, 64, 0)
    assert says(found.notes, "num_speculative_tokens = 4 is used, not 3")
    assert says(found.notes, "limit of 64 is used, not 128")


def test_the_runner_in_front_of_a_command() -> None:
    text = f"VLLM_USE_V2_MODEL_RUNNER=0 {commands()[0]}"
    assert read(text).runner == "V1"
    assert says(judge(text).notes, "V1 model runner runs the whole engine without")
    assert says(judge(text.replace("=0", "=1", 1)).notes, "V2 model runner keeps")


def test_data_parallel_falls_back_to_a_fixed_k() -> None:
    """C86."""
    for flag in ("-dp 2", "--data-parallel-size 2", "--data-parallel-size=2"):
        found = judge(f"{commands()[0]} {flag}")
        assert says(found.all_errors, "data parallel 2", "K = 4 at every batch")
        assert found.check is not None
        assert found.check.effective == ((1, 64, 4),)


def test_mtp_with_k_0_names_its_defects() -> None:
    """C86."""
    found = judge(json.dumps(config("mtp", None, 4, RANGES)), None, 64)
    assert says(found.notes, "48494")
    assert says(found.notes, "49548", "K = 0")


def test_numbers_that_are_missing_are_asked_for_after_the_form_is_judged() -> None:
    assert judge(BROKEN).needs == ("num_speculative_tokens", "max_num_seqs")
    assert judge(BROKEN, 3).needs == ("max_num_seqs",)
    assert says(judge("[[1,16,3],[10,64,0]]").all_errors, "overlap")


def test_tensorrt_llm_has_two_meanings() -> None:
    text = "{1: 4, 4: 2, 8: 0}"
    asked = judge(text, 4, 64)
    assert asked.engine == TRTLLM
    assert says(asked.needs, "version")
    old, new = judge(text, 4, 64, "1.2.1"), judge(text, 4, 64, "1.3.0rc4")
    assert old.check is not None
    assert new.check is not None
    assert old.check.effective == ((1, 3, 4), (4, 7, 2), (8, 64, 0))
    assert new.check.effective == ((1, 1, 4), (2, 4, 2), (5, 64, 0))


def test_a_dict_without_key_1_is_the_newer_meaning() -> None:
    found = judge("{4: 4, 8: 2, 32: 1}", 4, 64)
    assert found.check is not None
    assert found.check.effective == ((1, 4, 4), (5, 8, 2), (9, 32, 1), (33, 64, 0))
    assert says(found.check.warnings, "33 to 64", "nothing is drafted", "vLLM would keep")
    assert says(found.notes, "No key 1")


@pytest.mark.parametrize("meaning", [FIRST, LAST])
def test_what_is_written_for_tensorrt_llm_reads_back(meaning: str) -> None:
    text = yaml_config("eagle3", "org/head", RANGES, meaning)
    found = judge(text, None, 64, "1.2" if meaning == FIRST else "1.3")
    assert found.method == "eagle3"
    assert found.check is not None
    assert found.check.effective == RANGES


def test_sglang_is_told_that_it_has_no_such_table() -> None:
    for text in (
        '{"candidate_steps": [1, 3]}',
        "python -m sglang.launch_server --speculative-num-steps 3 --speculative-eagle-topk 1",
        "python -m sglang.launch_server --speculative-adaptive",
    ):
        found = judge(text)
        assert found.engine == SGLANG
        assert says(found.all_errors, "no table from batch size")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("empty", "paste")),
        ("{}", ("empty",)),
        ("hello", ("not readable", "[[1,16,3]")),
        ("[[1,16", ("not readable",)),
        ("x" * 100_001, ("at most 100,000",)),
        ('{"colour": 3}', ("'colour'", "not known")),
        ("vllm serve m --max-num-seqs 64", ("no --speculative-config",)),
        ("vllm serve m --speculative-config '{bad", ("quotation",)),
        ("vllm serve m --speculative-config bad", ("not JSON",)),
        ("vllm serve m --speculative-config 3", ("object", "int")),
        ('{"method": "eagle3", "num_speculative_tokens": 3}', ("fixed K",)),
        ("decoding_type: MTP\nmax_draft_len: 3", ("drafts 3 at every batch",)),
        ("((1,16,3),(17,64,0))", ("list", "tuple")),
        ("a: &x [1]\nb: *x", ("not readable",)),
    ],
)
def test_refused(text: str, words: tuple[str, ...]) -> None:
    found = judge(text, 3, 64)
    assert says(found.all_errors, *words), found
    assert all(len(e) < 400 for e in found.all_errors)


@given(schedules(), st.integers(1, 6), st.integers(1, 90))
def test_every_wrapping_of_one_schedule_is_judged_alike(
    entries: list[list[int]], maximum: int, seqs: int
) -> None:
    whole = config("dflash", None, maximum, [(a, b, k) for a, b, k in entries])
    expected = judge(json.dumps(entries), maximum, seqs).check
    for text in (json.dumps(whole), vllm_flag(whole), vllm_python(whole, None, seqs)):
        assert judge(text, None, seqs).check == expected


PIECES = "[[1,16,3]] { } --speculative-config ' \" speculative_config = : 4 draft_len_schedule -sc"
FRAGMENTS = st.sampled_from(
    [*PIECES.split(" "), "{4: 4}", "\n", " ", "vllm ", "\\", "llm(", ")", "&a", "*a", "1-4"]
)


@given(st.text(max_size=60) | st.lists(FRAGMENTS, max_size=8).map("".join), st.none() | st.just(3))
@example("[" * 50_000, 3)
@example("(" * 5000, 3)
@example("- " * 5000, 3)
@example("{4: " + "9" * 5000 + "}", 3)
@example("\x00", 3)
@example("x=1", 3)
@example('{"num_speculative_tokens_per_batch_size": {"1-4": 2}, "num_speculative_tokens": []}', 3)
def test_nothing_raises(text: str, number: int | None) -> None:
    found = judge(text, number, number, "1.3", None)
    assert found.check is not None or found.errors or found.needs
