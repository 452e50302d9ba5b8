import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.results.naming import ArmName, arm_named, notation, parse_arm, repeat_of, spell
from lib.run import Run, SpecState

OFF, ON = SpecState.OFF, SpecState.ON


@pytest.mark.parametrize(
    ("text", "state", "method", "k"),
    [
        ("base-c1-r1", OFF, None, None),
        ("baseline", OFF, None, None),
        ("none", OFF, None, None),
        ("nospec", OFF, None, None),
        ("no-spec", OFF, None, None),
        ("No speculation", OFF, None, None),
        ("no MTP, no overlap", OFF, None, None),
        ("spec-off-c8", OFF, None, None),
        ("sglang-w4a16-off", OFF, None, None),
        ("k4-c8-r2", ON, None, 4),
        ("k=4", ON, None, 4),
        ("num_speculative_tokens=3", ON, None, 3),
        ("sglang-w4a16-eagle3", ON, "eagle3", None),
        ("EAGLE-3 (K=4)", ON, "eagle3", 4),
        ("mtp2", ON, "mtp", 2),
        ("MTP 3-token, no overlap", ON, "mtp", 3),
        ("n-gram", ON, "ngram", None),
        ("spec_on", ON, None, None),
        ("eagle3:4", ON, "eagle3", 4),
        ("draft_model:4", ON, "draft_model", 4),
        ("draft model", ON, "draft_model", None),
        ("speculation:4", ON, None, 4),
        ("k: 4", ON, None, 4),
        ("dsd_k0", ON, None, 0),
    ],
)
def test_names_that_say_it(text: str, state: SpecState, method: str | None, k: int | None) -> None:
    arm = spell(text)
    assert arm is not None
    assert (arm.state, arm.method, arm.k) == (state, method, k)


@pytest.mark.parametrize(
    "text",
    [
        "c4",
        "run=1",
        "Qwen3-8B-Base",
        "prefix-cache-off",
        "spec-bench",
        "eagle3-off",
        "k2-k4",
        "",
        "draft0p5b",
        "run:3",
        "2026-03-01 12:30",
    ],
)
def test_names_that_do_not(text: str) -> None:
    assert spell(text) is None


def test_adaptive_is_a_schedule() -> None:
    arm = spell("adaptive")
    assert arm is not None
    assert arm.fields == {"spec_state": ON, "schedule": "adaptive"}


@pytest.mark.parametrize(
    ("text", "repeat"),
    [
        ("k4-c8-r2", 2),
        ("run=1", 1),
        ("rep3", 3),
        ("trial-2", 2),
        ("deepseek-r1-c8", None),
        ("c4", None),
    ],
)
def test_repeats(text: str, repeat: int | None) -> None:
    assert repeat_of(text) == repeat


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("off", (OFF, None, None)),
        ("none", (OFF, None, None)),
        ("eagle3", (ON, "eagle3", None)),
        (" eagle3 : 4 ", (ON, "eagle3", 4)),
        ("sim:0", (ON, "sim", 0)),
        ("speculation:4", (ON, None, 4)),
    ],
)
def test_arm_of_a_person(text: str, expected: tuple[object, ...]) -> None:
    assert tuple(parse_arm(text).values()) == expected


@pytest.mark.parametrize(
    "text", ["", ":4", "eagle3:", "eagle3:x", "eagle3:-1", "off:3", "OFF:3", "a\nb", "x:9999"]
)
def test_arm_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="off, METHOD or METHOD:K"):
        parse_arm(text)


@given(st.text(max_size=60))
def test_any_text_is_spelt_or_not(text: str) -> None:
    arm = spell(text)
    assert arm is None or arm.state in (ON, OFF)
    assert repeat_of(text) is None or repeat_of(text) >= 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "arm"),
    [
        ("off", ArmName(OFF)),
        (" Off ", ArmName(OFF)),
        ("sim:2", ArmName(ON, "sim", 2)),
        ("ngram:5", ArmName(ON, "ngram", 5)),
        ("mtp:0", ArmName(ON, "mtp", 0)),
        ("EAGLE-3: 4", ArmName(ON, "EAGLE-3", 4)),
        ("eagle3:schedule", ArmName(ON, "eagle3", schedule="adaptive")),
        ("speculation:schedule", ArmName(ON, schedule="adaptive")),
        ("off:3", None),
        ("off:schedule", None),
        ("k:4", None),
        ("num_speculative_tokens: 4", None),
        ("sim:9999", None),
        ("a:b:4", None),
        (":4", None),
        ("eagle3", None),
    ],
)
def test_arms_as_runs_write_them(text: str, arm: ArmName | None) -> None:
    assert notation(text) == arm


@given(
    st.from_regex(r"[a-z][a-z0-9_.+-]{0,20}", fullmatch=True),
    st.integers(0, 1024),
)
def test_every_written_arm_reads_back(method: str, k: int) -> None:
    if notation(f"{method}:{k}") is None:
        words = re.findall(r"[a-z0-9]+", method)
        assert method == "off" or words[-1].endswith(("k", "gamma", "nst", "token", "tokens"))
        return
    arm = arm_named(f"{method}:{k}")
    assert arm is not None
    assert Run(run_id="r", **arm.fields).arm == f"{method}:{k}"  # type: ignore[arg-type]
    assert parse_arm(f"{method}:{k}").items() >= arm.fields.items()


@pytest.mark.parametrize(
    "text",
    [
        "spec_disabled",
        "disable_spec",
        "spec=false",
        "spec=0",
        "speculative_false",
        "wo_spec",
        "w-o-spec",
        "w/o spec",
        "speculation disabled",
        "speculative decoding disabled",
        "spec_decode=false",
        "enable_spec=false",
        "not speculative",
        "spec: no",
        "noSpecDec",
        "speculative_model=null",
        "spec-disabled-c8-r1",
    ],
)
def test_speculation_that_is_called_on_nowhere(text: str) -> None:
    arm = spell(text)
    assert arm is not None
    assert arm.state is OFF


@pytest.mark.parametrize(
    "text", ["eagle_disabled", "eagle3=0", "mtp=false", "disable_spec=false", "mtp_disabled_c8"]
)
def test_a_method_that_is_denied_says_nothing(text: str) -> None:
    assert spell(text) is None


@pytest.mark.parametrize(
    "text", ["main-on-h100", "run-on-gpu", "kick-off", "sign-off", "turn-on", "off-by-one"]
)
def test_words_of_english_are_no_switch(text: str) -> None:
    assert spell(text) is None


@pytest.mark.parametrize(
    "text",
    ["speculation enabled", "spec on", "spec-on-c8", "on-c8", "on", "speculation on h100", "yes"],
)
def test_a_switch_that_is_on(text: str) -> None:
    arm = spell(text)
    assert arm is not None
    assert arm.state is ON


_SUBJECTS = st.sampled_from(["spec", "speculation", "speculative", "speculative_decoding"])
_DENIALS = st.sampled_from(["{}_disabled", "{}=false", "{}-off", "no-{}", "disable_{}", "w-o-{}"])


@given(_SUBJECTS, _DENIALS, st.sampled_from(["", "-c8", "_r2", "-on-h100"]))
def test_a_denial_is_never_on(subject: str, denial: str, more: str) -> None:
    arm = spell(denial.format(subject) + more)
    assert arm is None or arm.state is OFF
