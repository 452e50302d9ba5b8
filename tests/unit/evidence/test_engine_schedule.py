"""The checker against the engine's rules, and the flag against a POSIX shell."""

import json
import shlex
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.evidence.engine_schedule import KEY, check, config, vllm_flag
from lib.evidence.engine_support import engine_warnings


def says(lines: tuple[str, ...], *words: str) -> bool:
    return any(all(w in line for w in words) for line in lines)


def test_gap_and_tail_inherit() -> None:
    found = check([[1, 16, 3], [32, 128, 2]], 3, 256)
    assert found.valid
    assert found.effective == ((1, 31, 3), (32, 256, 2))
    assert says(found.warnings, "17 to 31", "inherit K = 3")
    assert says(found.warnings, "129 to 256", "keep its K = 2")


def test_order_is_free() -> None:
    assert check([[33, 64, 0], [1, 32, 4]], 4, 64) == check([[1, 32, 4], [33, 64, 0]], 4, 64)


def test_k_is_clamped_with_a_warning() -> None:
    found = check([[1, 16, 5], [17, 32, 4], [33, 64, 3], [65, 128, 1]], 3, 128)
    assert found.effective == ((1, 64, 3), (65, 128, 1))
    assert says(found.warnings, "[1, 16, 5]", "clamped to num_speculative_tokens = 3")
    assert says(found.warnings, "[17, 32, 4]", "clamped")
    assert not says(found.warnings, "[33, 64, 3]")


def test_ranges_beyond_max_num_seqs_are_dead() -> None:
    found = check([[1, 64, 3], [65, 300, 1], [301, 512, 0]], 3, 256)
    assert found.valid
    assert found.effective == ((1, 64, 3), (65, 256, 1))
    assert says(found.warnings, "[301, 512, 0]", "never used")


def test_the_map_form_is_converted_and_judged_on() -> None:
    found = check({"1-16": 3, "64-128": 2, "256-4096": 0}, 3, 512)
    assert found.valid
    assert found.effective == ((1, 63, 3), (64, 255, 2), (256, 512, 0))
    assert says(found.warnings, "map form", "converted to [[1, 16, 3], [64, 128, 2]")
    text = json.dumps({"1-16": 3, "64-128": 2, "256-4096": 0})
    assert check(text, 3, 512) == found
    assert says(check({"2-16": 3}, 3, 64).errors, "starts at 2")
    assert says(check({"1-16": 3, "x": 1}, 3, 64).errors, "'x'", "FIRST-LAST")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], ("empty",)),
        ({}, ("empty",)),
        (None, ("list", "NoneType")),
        (3, ("list", "int")),
        (((1, 16, 3),), ("list", "tuple")),
        ([[1, 16]], ("entry 1", "2 items", "exactly 3")),
        ([[1, 16, 0, 4096, 3]], ("5 items", "in no release")),
        ([[1, 16, 3], [17, 32, 0, 4096, 2]], ("entry 2", "5 items")),
        ([[1, 16, 3], {"17-32": 2}], ("entry 2", "list [first, last, K]")),
        ([[1, 16, 3], "17-32"], ("entry 2", "list [first, last, K]")),
        ([[0, 16, 3]], ("start at 1",)),
        ([[-4, -1, 3]], ("start at 1",)),
        ([[16, 1, 3]], ("above the last",)),
        ([[1, 16, -1]], ("K of at least 0",)),
        ([[2, 16, 3]], ("starts at 2", "must start at 1")),
        ([[1, 16, 3], [16, 32, 2]], ("[1, 16, 3] and [16, 32, 2] overlap",)),
        ([[1, 32, 3], [8, 16, 2]], ("overlap",)),
        ([[1, "many", 3]], ("three whole numbers",)),
        ([[1, None, 3]], ("three whole numbers",)),
        ([[1, float("inf"), 3]], ("three whole numbers",)),
        ([[1, float("nan"), 3]], ("three whole numbers",)),
        ("[[1,16,3]", ("not JSON",)),
        ("", ("not JSON",)),
        ("[" * 100_000, ("not JSON",)),
        ("3", ("list", "int")),
        ({"method": "eagle3", "num_speculative_tokens": 3}, (KEY, "fixed K")),
    ],
)
def test_refused(entries: object, words: tuple[str, ...]) -> None:
    found = check(entries, 3, 64)
    assert not found.valid
    assert found.effective == ()
    assert says(found.errors, *words)


def test_every_bad_entry_is_named() -> None:
    found = check([[0, 16, 3], [17, 32, -1], [40, 33, 2]], 3, 64)
    assert len(found.errors) == 3


@pytest.mark.parametrize(
    ("name", "pair"), [("tokens", (0, 64)), ("seqs", (3, 0)), ("seqs", (3, 2**31))]
)
def test_limits(name: str, pair: tuple[int, int]) -> None:
    found = check([[1, 16, 3]], *pair)
    assert not found.valid
    assert says(found.errors, name, "1 to 2147483647")


def test_items_pass_through_int() -> None:
    found = check([["1", 16.0, True]], 3, 16)
    assert found.effective == ((1, 16, 1),)
    assert says(found.warnings, "read as [1, 16, 1]")
    found = check([[1, 16.9, 2]], 2, 16)
    assert found.effective == ((1, 16, 2),)
    assert says(found.warnings, "read as [1, 16, 2]")


def test_a_whole_config_counts_with_its_own_maximum() -> None:
    whole = config("eagle3", None, 2, ((1, 8, 4), (9, 64, 0)))
    found = check(whole, 4, 64)
    assert found.effective == ((1, 8, 2), (9, 64, 0))
    assert says(found.warnings, "num_speculative_tokens = 2 is used")
    assert check(json.dumps(whole), 4, 64) == found
    assert says(check({**whole, "num_speculative_tokens": "two"}, 4, 64).errors, "'two'")


def test_one_k_throughout_is_said() -> None:
    assert says(check([[1, 64, 0]], 3, 64).warnings, "without --speculative-config")
    assert says(check([[1, 64, 2]], 2, 64).warnings, "fixed K")
    assert says(check([[1, 8, 2], [9, 64, 0]], 5, 64).warnings, "largest K used, 2", "reserved")
    assert check([[1, 8, 2], [9, 64, 0]], 2, 64).warnings == ()


def dense_lookup(entries: list[list[int]], maximum: int, max_num_seqs: int) -> list[int]:
    """K for batch 1 to max_num_seqs: written entry by entry, then filled forward."""
    table: list[int | None] = [None] * max_num_seqs
    for first, last, k in entries:
        for batch in range(first, min(last, max_num_seqs) + 1):
            table[batch - 1] = min(maximum, k)
    for i in range(1, max_num_seqs):
        if table[i] is None:
            table[i] = table[i - 1]
    return [k for k in table if k is not None]


@st.composite
def schedules(draw: st.DrawFn) -> list[list[int]]:
    """Ranges from 1 upward with gaps, in any order."""
    entries, first = [], 1
    for _ in range(draw(st.integers(1, 6))):
        last = first + draw(st.integers(0, 12))
        entries.append([first, last, draw(st.integers(0, 6))])
        first = last + 1 + draw(st.sampled_from([0, 0, 3]))
    return draw(st.permutations(entries))


@given(schedules(), st.integers(1, 6), st.integers(1, 90))
def test_effective_is_the_dense_lookup(
    entries: list[list[int]], maximum: int, max_num_seqs: int
) -> None:
    found = check(entries, maximum, max_num_seqs)
    assert found.valid
    listed = [k for first, last, k in found.effective for _ in range(first, last + 1)]
    assert listed == dense_lookup(entries, maximum, max_num_seqs)
    ks = [k for _, _, k in found.effective]
    assert all(a != b for a, b in pairwise(ks))


@given(st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9), st.integers(-1, 3)), max_size=4))
def test_valid_exactly_where_the_engine_takes_it(entries: list[tuple[int, int, int]]) -> None:
    batches = [b for first, last, _ in entries for b in range(first, last + 1)]
    taken = (
        bool(entries)
        and all(0 < first <= last and k >= 0 for first, last, k in entries)
        and len(set(batches)) == len(batches)
        and min(batches) == 1
    )
    assert check(list(entries), 3, 16).valid == taken


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from([KEY, "num_speculative_tokens", "1-4"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.text() | st.binary(), JSON, JSON)
@example([[1, 10**6000, 3]], 3, 64)
@example([[10**6000, 1, 3]], 3, 64)
@example([[1, 4, 10**6000]], 3, 64)
@example({"1-4": 10**6000}, 3, 64)
@example([[1, 4, 3]], 10**6000, 10**6000)
@example([[1, 4, 3], [5, 10**6000, 3]], 3, 64)
def test_nothing_raises(entries: object, maximum: object, max_num_seqs: object) -> None:
    found = check(entries, maximum, max_num_seqs)  # type: ignore[arg-type]
    assert found.valid == (not found.errors)


@given(st.text(max_size=20), st.text(max_size=20))
def test_the_flag_survives_a_shell(method: str, model: str) -> None:
    rendered = config(method, model, 4, ((1, 8, 4), (9, 64, 0)))
    flag, text = shlex.split(vllm_flag(rendered))
    assert flag == "--speculative-config"
    assert json.loads(text) == rendered


def test_flags() -> None:
    assert vllm_flag(config("mtp", None, 2)) == (
        """--speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'"""
    )
    assert vllm_flag(config("mtp", None, 0)) == ""
    listed = config("eagle3", "a/b", 3, ((1, 16, 3), (17, 64, 0)))
    assert listed[KEY] == [[1, 16, 3], [17, 64, 0]]


def test_engine_warnings_by_method() -> None:
    assert says(engine_warnings("ngram", "vllm", "0.30", True), "V1 model runner only")
    assert says(engine_warnings("ngram", "vllm", "0.30", True), "eagle, eagle3 and dflash only")
    assert says(engine_warnings(None, "vllm", "0.30", True), "not recorded")
    assert says(engine_warnings("eagle", "sglang", "0.5", True), "Measured on sglang")
    flawless = engine_warnings("dflash", "vLLM", "0.30", True)
    assert len(flawless) == 1
    assert says(flawless, "VLLM_USE_V2_MODEL_RUNNER=1")
    assert says(engine_warnings("deepseek_mtp", "vllm", "0.25", True), "48494")
    assert says(engine_warnings("deepseek_mtp", "vllm", "0.25", True), "49548", "K = 0")
    assert not says(engine_warnings("deepseek_mtp", "vllm", "0.25", False), "49548")
    assert says(engine_warnings("eagle3", "vllm", None, False), "version is not recorded")
