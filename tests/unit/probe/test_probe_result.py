"""A probe's JSON: what is written is read again, and anything else is one clear line."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.probe.result import (
    Conditions,
    Interval,
    Measured,
    Probe,
    VerifyCost,
    from_json,
    to_json,
)
from lib.probe.setup import Setup

PROBE = Probe(
    c=Interval(0.061, 0.059, 0.064),
    t_draft_ms=0.41,
    t_target_ms=6.72,
    setup=Measured(
        gpu="NVIDIA H100 80GB HBM3",
        target="llama-3.1-8b",
        draft="eagle3-llama-3.1-8b",
        dtype="bfloat16",
        batch=1,
        context=512,
        gamma=5,
        driver="580.95",
        graphs=True,
        versions={"torch": "2.13.0"},
    ),
    taken_at=datetime(2026, 11, 2, 12, 30, tzinfo=UTC),
    v=(VerifyCost(1, 1.0, 1.0, 1.0), VerifyCost(2, 1.01, 1.0, 1.02), VerifyCost(6, 1.04)),
    critical_tokens=96.0,
    critical_low=88.0,
    critical_high=110.0,
    samples_draft_ms=(0.41, 0.40),
    samples_target_ms=(6.7, 6.8),
    conditions=(Conditions("before", sm_clock_mhz=1980.0, throttle=("SW power cap",), others=0),),
    warnings=("one",),
    draft_bytes=0.84e9,
    target_bytes=15.0e9,
)


def test_what_is_written_is_read() -> None:
    assert from_json(to_json(PROBE)) == PROBE
    assert from_json(to_json(PROBE)).id == PROBE.id


def test_the_keys_that_others_read() -> None:
    document = json.loads(to_json(PROBE))
    assert document["schema"] == 1
    assert document["c"] == {"value": 0.061, "low": 0.059, "high": 0.064}
    assert document["t_draft_ms"] == 0.41
    assert document["v"][1] == {"tokens": 2, "value": 1.01, "low": 1.0, "high": 1.02}
    assert document["critical_tokens"] == 96.0
    assert document["unstable"] is False
    wanted = {"gpu", "driver", "dtype", "target", "draft", "batch", "context", "graphs", "versions"}
    assert wanted <= document["setup"].keys()


def test_what_follows_from_it() -> None:
    assert PROBE.byte_ratio == pytest.approx(0.056)
    assert PROBE.v_at(5) == VerifyCost(6, 1.04)
    assert PROBE.v_at(4) is None
    assert replace(PROBE, draft_bytes=None).byte_ratio is None


def broken(**changes: Any) -> str:
    return json.dumps({**json.loads(to_json(PROBE)), **changes})


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "schema"),
        (broken(schema=2), "schema 2"),
        (broken(c={"value": -1.0}), "at least 0"),
        (broken(c={"value": 1.0, "low": 0.5}), "both low and high"),
        (broken(c={"value": True}), "c.value"),
        (broken(c=None), "missing or has another type"),
        (broken(c={"value": 1.0, "more": 2.0}), "missing or has another type"),
        (broken(t_draft_ms=0), "t_draft_ms = 0"),
        (broken(t_draft_ms="1"), "t_draft_ms = 1"),
        (broken(taken_at="2026-11-02T12:30:00"), "its zone"),
        (broken(taken_at="then"), "missing or has another type"),
        (broken(v=[{"tokens": 2, "value": 1.0}, {"tokens": 2, "value": 1.0}]), "rise"),
        (broken(v=[{"tokens": 0, "value": 1.0}]), "at least 1"),
        (broken(setup={}), "missing or has another type"),
        (broken(setup={**json.loads(to_json(PROBE))["setup"], "gpu": 3}), "gpu"),
        (broken(warnings=[{}]), "warnings"),
        (broken(method="guess"), "method"),
        (broken(samples_draft_ms=[1.0] * 20_001), "at most"),
        (broken(extra=1), "missing or has another type"),
    ],
)
def test_anything_else_is_one_line(document: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        from_json(document)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(json.loads(to_json(PROBE)))), JSONS)
def test_any_value_of_any_key_is_read_or_refused(key: str, value: object) -> None:
    try:
        read = from_json(json.dumps({**json.loads(to_json(PROBE)), key: value}))
    except InputError:
        return
    assert from_json(to_json(read)) == read


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"target": " "}, "target"),
        ({"gamma": 0}, "gamma = 0: allowed is a whole number, 1 to 64"),
        ({"batch": True}, "batch"),
        ({"samples": 10}, "samples = 10"),
        ({"dtype": "int4"}, "dtype = int4"),
        ({"sampling": "beam"}, "sampling = beam"),
        ({"device": "tpu"}, "cpu, cuda or cuda:N"),
        ({"device": "cuda:"}, "cpu, cuda or cuda:N"),
        ({"device": "cpu:1"}, "cpu, cuda or cuda:N"),
    ],
)
def test_a_setup_says_what_is_allowed(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Setup(**{"target": "a", "draft": "b", **changes})
