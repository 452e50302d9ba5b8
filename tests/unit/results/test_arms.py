import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lib.errors import InputError
from lib.results.arms import assign, parse_rule, parse_set, suggest
from lib.results.reading import Reading, read
from lib.run import EDITABLE, LoadKind, Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "vllm"


def reading(name: str, fixture: str = "off-c8", **changes: Any) -> Reading:
    record = json.loads((FIXTURES / f"{fixture}.json").read_text()) | changes
    return read(name, json.dumps(record).encode())


def codes(reading: Reading) -> list[str]:
    return [f.code for f in reading.flags if f.code.startswith("arm")]


@pytest.mark.parametrize(
    ("name", "arm", "repeat"),
    [
        ("base-c1-r1.json", "off", 1),
        ("k4-c8-r2.json", "speculation:4", 2),
        ("sglang-w4a16-eagle3/c4.json", "eagle3", None),
        ("sglang-w4a16-off/c4.json", "off", None),
        ("none/run=3.json", "off", 3),
        ("no-spec/c1.json", "off", None),
        ("eagle3/k4-c8.json", "eagle3:4", None),
        ("eagle3-study/base-c1.json", "off", None),
        ("a\\mtp2\\c8.json", "mtp:2", None),
        ("spec-results/c8.json", None, None),
        ("speculative/c8.json", None, None),
        ("Qwen3-8B-Base/c8.json", None, None),
        ("c8.json", None, None),
    ],
)
def test_names_suggest_arm_and_repeat(name: str, arm: str | None, repeat: int | None) -> None:
    found = suggest(reading(name))
    (run,) = found.runs
    assert (run.arm, run.repeat) == (arm, repeat)
    assert codes(found) == ["arm_unknown" if arm is None else "arm_suggested"]


def test_a_suggestion_says_where_it_came_from() -> None:
    found = suggest(reading("eagle3/k4-c8.json"))
    (flag,) = [f for f in found.flags if f.code == "arm_suggested"]
    assert (
        flag.message
        == "arm eagle3:4 read from the file name 'k4-c8.json' and the folder name 'eagle3'"
    )
    assert flag.run_id == found.runs[0].run_id


def test_the_label_comes_first() -> None:
    assert suggest(reading("k4-c8.json", label="baseline")).runs[0].arm == "off"


def test_rows_that_name_their_arm_are_not_renamed_by_the_file() -> None:
    rows = b"concurrency,arm,tok/s\n1,A,10\n1,B,20\n"
    assert [r.arm for r in suggest(read("eagle3.csv", rows)).runs] == [None, None]
    bare = b"concurrency,tok/s\n1,10\n8,20\n"
    assert [r.arm for r in suggest(read("k4.csv", bare)).runs] == ["speculation:4"] * 2


def test_a_suggestion_never_overrides_what_the_file_states() -> None:
    counted = suggest(reading("base-c8.json", "eagle3-c8"))
    assert counted.runs[0].arm == "speculation:4"
    named = suggest(reading("eagle3-k2/c8.json", "eagle3-c8"))
    assert named.runs[0].arm == "eagle3:4", "the name adds the method, the counters keep their K"
    swept = suggest(reading("k4.json", run_number=2, speculative_config=None))
    assert (swept.runs[0].arm, swept.runs[0].repeat) == ("off", 2)


def test_rules_match_path_then_name_then_label() -> None:
    rules = [parse_rule(r) for r in ("runs/a-*=off", "k4-*=eagle3:4", "nightly=mtp")]
    for name, changes, arm in (
        ("runs/a-1.json", {}, "off"),
        ("deep/er/k4-c8.json", {}, "eagle3:4"),
        ("x.json", {"label": "nightly"}, "mtp"),
        ("other/a-1.json", {}, None),
    ):
        found = assign(reading(name, **changes), rules)
        assert found.runs[0].arm == arm
        assert codes(found) == (["arm_unknown"] if arm is None else [])


def test_the_first_rule_that_matches_wins() -> None:
    rules = [parse_rule("*-c8.json=eagle3:2"), parse_rule("*=off")]
    assert assign(reading("k4-c8.json"), rules).runs[0].arm == "eagle3:2"
    assert assign(reading("k4-c1.json"), rules).runs[0].arm == "off"


def test_a_rule_without_k_leaves_the_k_of_the_file() -> None:
    found = assign(reading("x.json", "eagle3-c8"), [parse_rule("*=eagle3")])
    assert found.runs[0].arm == "eagle3:4"


def test_a_rule_that_contradicts_the_counters_is_flagged() -> None:
    found = assign(reading("x.json", "eagle3-c8"), [parse_rule("*=off")])
    assert found.runs[0].arm == "off"
    assert codes(found) == ["arm_contradicted"]


def test_a_contradiction_is_said_once_and_taken_back() -> None:
    called_off = assign(reading("x.json", "eagle3-c8"), [parse_rule("*=off")])
    assert codes(suggest(called_off)) == ["arm_contradicted"]
    assert codes(assign(called_off, [parse_rule("*=eagle3")])) == []


def test_a_label_may_be_written_as_an_arm() -> None:
    assert suggest(reading("x.json", label="eagle3:4")).runs[0].arm == "eagle3:4"


def test_no_rule_needed_where_the_file_states_the_arm() -> None:
    assert codes(assign(reading("x.json", "eagle3-c8"), [])) == []
    assert codes(assign(reading("x.json"), [])) == ["arm_unknown"]


def test_unknown_is_flagged_once_and_taken_back() -> None:
    unknown = assign(assign(reading("k4.json"), []), [])
    assert codes(unknown) == ["arm_unknown"]
    assert codes(suggest(unknown)) == ["arm_suggested"]


def test_every_run_of_a_file_gets_the_arm() -> None:
    one = reading("x.json")
    two = replace(one, runs=(one.runs[0], replace(one.runs[0], run_id="other")))
    assert [r.arm for r in assign(two, [parse_rule("*=off")]).runs] == ["off", "off"]


@pytest.mark.parametrize("text", ["off", "=off", "*=", "*=eagle3:x"])
def test_rules_that_are_none(text: str) -> None:
    with pytest.raises(InputError):
        parse_rule(text)


def test_a_glob_may_hold_an_equals_sign() -> None:
    assert parse_rule("run=1*=mtp:2")[0] == "run=1*"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu=H100", ("gpu", "H100")),
        ("tp=8", ("tensor_parallel", 8)),
        ("usd_per_hour=2.5", ("usd_per_hour", 2.5)),
        ("$/h=2.5", ("usd_per_hour", 2.5)),
        ("spec_state=off", ("spec_state", SpecState.OFF)),
        ("load_kind=batch", ("load_kind", LoadKind.BATCH)),
        ("prefix_caching=no", ("prefix_caching", False)),
        ("label=a=b", ("label", "a=b")),
    ],
)
def test_fields_that_a_person_states(text: str, expected: tuple[str, object]) -> None:
    assert parse_set(text) == expected


@pytest.mark.parametrize("text", ["gpu", "output_tps=5", "nonsense=1", "arm=off", "=x", ""])
def test_fields_that_nobody_may_state(text: str) -> None:
    with pytest.raises(InputError, match="usd_per_hour"):
        parse_set(text)


def test_a_value_that_does_not_fit_is_named() -> None:
    with pytest.raises(InputError, match="tensor_parallel = 'two'"):
        parse_set("tp=two")
    assert "usd_per_hour" in EDITABLE


def test_what_a_name_suggested_is_no_news_once_another_arm_is_stated() -> None:
    run = Run(run_id="a", label="k4")
    suggested = suggest(Reading("x.json", "s", "t", "1", "", (run,), {}, (), None))
    assert "arm_suggested" in [f.code for f in suggested.flags]
    stated = assign(suggested, [parse_rule("*=eagle3:2")])
    assert "arm_suggested" not in [f.code for f in stated.flags]
    same = assign(suggested, [parse_rule("other*=eagle3:2")])
    assert "arm_suggested" in [f.code for f in same.flags]
