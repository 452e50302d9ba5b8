"""What TensorRT-LLM and SGLang can say of a schedule, and what vLLM's support depends on."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evidence.engine_support import engine_warnings, version_of
from lib.evidence.sglang_schedule import adaptive_config, fixed_flags
from lib.evidence.trtllm_schedule import (
    FIRST,
    LAST,
    MEANINGS,
    check,
    meaning_of,
    schedule_of,
    yaml_config,
)
from tests.unit.evidence.test_engine_schedule import says

RANGES = ((1, 4, 4), (5, 8, 2), (9, 32, 1), (33, 64, 0))


def test_both_meanings_of_one_schedule() -> None:
    assert schedule_of(RANGES, LAST) == {4: 4, 8: 2, 32: 1}
    assert schedule_of(RANGES, FIRST) == {1: 4, 5: 2, 9: 1, 33: 0}
    assert schedule_of(((1, 8, 3), (9, 64, 1)), LAST) == {8: 3, 64: 1}
    with pytest.raises(InputError, match="meaning 'middle'"):
        schedule_of(RANGES, "middle")


@pytest.mark.parametrize(
    ("version", "meaning"),
    [("1.2.1", FIRST), ("v1.2", FIRST), ("1.3.0rc4", LAST), ("1.4.0", LAST), ("2.0", LAST)],
)
def test_the_version_decides(version: str, meaning: str) -> None:
    assert meaning_of(version) == meaning


def test_no_version_no_meaning() -> None:
    assert meaning_of(None) is meaning_of("") is meaning_of("latest") is None
    assert version_of("0.25.1+cu129") == (0, 25)


def test_the_largest_length_must_come_first() -> None:
    with pytest.raises(InputError, match="largest draft length in the first range: K = 4"):
        schedule_of(((1, 8, 2), (9, 64, 4)), LAST)


def test_yaml_by_method() -> None:
    found = yaml.safe_load(yaml_config("deepseek_mtp", None, RANGES, LAST))["speculative_config"]
    assert found == {
        "decoding_type": "MTP",
        "max_draft_len": 4,
        "draft_len_schedule": {4: 4, 8: 2, 32: 1},
    }
    assert "speculative_model: org/head" in yaml_config("eagle3", "org/head", RANGES, LAST)
    with pytest.raises(InputError, match="method suffix"):
        yaml_config("suffix", None, RANGES, LAST)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([1], ("map", "list")),
        ({}, ("empty",)),
        ({"x": 1}, ("'x'", "batch size")),
        ({0: 4}, ("key 0", "at least 1")),
        ({4: -1}, ("at least 0",)),
        ({4: 4, 8: 5}, ("above max_draft_len = 4",)),
        ({4: 3, 8: 2}, ("smallest key 4", "must be max_draft_len = 4")),
        ({True: 4}, ("key True",)),
    ],
)
def test_refused(entries: object, words: tuple[str, ...]) -> None:
    assert says(check(entries, 4, 64, LAST).errors, *words)


def test_the_older_validator_demands_key_1() -> None:
    assert says(check({4: 4}, 4, 64, FIRST).errors, "key 1 must be there")
    assert check({4: 4}, 4, 64, LAST).effective == ((1, 4, 4), (5, 64, 0))


def test_what_it_does_silently() -> None:
    assert says(check({1: 4, 128: 2}, 4, 64, FIRST).warnings, "128: 2 lies beyond")
    assert says(check({1: 4}, 4, 64, FIRST).warnings, "keep draft length 4")
    assert check({"64": 4.0}, 4, 64, LAST).effective == ((1, 64, 4),)
    assert says(check([], "4", 0, LAST).errors, "max_draft_len = '4'")


@st.composite
def falling(draw: st.DrawFn) -> tuple[tuple[int, int, int], ...]:
    """Contiguous ranges from 1, the largest K first, neighbours apart."""
    ranges, first, k = [], 1, draw(st.integers(1, 8))
    largest = k
    for _ in range(draw(st.integers(1, 5))):
        last = first + draw(st.integers(0, 20))
        ranges.append((first, last, k))
        first, k = last + 1, draw(st.integers(0, largest).filter(lambda x, k=k: x != k))
    return tuple(ranges)


@given(falling(), st.sampled_from(MEANINGS))
def test_what_is_written_is_what_is_run(ranges: tuple, meaning: str) -> None:
    found = check(schedule_of(ranges, meaning), ranges[0][2], ranges[-1][1], meaning)
    assert found.errors == ()
    assert found.effective == ranges


def test_sglang_counts_the_root() -> None:
    assert fixed_flags("eagle3", "org/head", 3) == (
        '--speculative-algorithm EAGLE3 --speculative-draft-model-path "org/head" '
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    )
    assert fixed_flags("eagle3", None, 0) == ""
    assert "NEXTN" in fixed_flags("mtp", None, 1)
    assert "num-steps" not in fixed_flags("ngram", None, 4)
    with pytest.raises(InputError, match="method suffix"):
        fixed_flags("suffix", None, 3)


def test_sglang_adapts_between_the_lengths_that_draft() -> None:
    assert adaptive_config("eagle3", RANGES) == {"candidate_steps": [1, 2, 4]}
    with pytest.raises(InputError, match="one K only"):
        adaptive_config("eagle3", ((1, 8, 3), (9, 64, 0)))
    with pytest.raises(InputError, match="EAGLE and EAGLE3 only"):
        adaptive_config("mtp", RANGES)


def test_vllm_support_by_version_runner_and_parallelism() -> None:
    """C86."""
    assert says(engine_warnings("eagle3", "vllm", "0.24.0", False), "0.24.0", "from 0.25 on")
    assert not says(engine_warnings("eagle3", "vllm", "0.25.1", False), "from 0.25 on")
    assert says(engine_warnings("suffix", "vllm", "0.30", False), "does not follow a schedule")
    assert says(engine_warnings("ngram", "vllm", "0.30", False), "asynchronous scheduling off")
    two = engine_warnings("eagle3", "vllm", "0.30", False, pipeline_parallel=2)
    assert says(two, "pipeline parallel 2", "V1 model runner only")
    v1 = engine_warnings("eagle3", "vllm", "0.30", False, runner="V1")
    assert says(v1, "without full CUDA graphs")
    assert not says(v1, "51510")
    v2 = engine_warnings("eagle3", "vllm", "0.30", False, runner="V2", drafted=[4, 2, 4, 1])
    assert says(v2, "3 different K")
