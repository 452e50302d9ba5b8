"""A scenario has one canonical form: its hash changes exactly where a value does."""

import json
import math
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.assumptions import Input, table
from lib.errors import InputError
from lib.money.scenario import _CHOICES, CHOICES, HASH_LENGTH, Scenario, differences
from lib.numbers import number
from lib.run import Slo

GIVEN = {
    "study": "main job",
    "load": "16",
    "usd_per_gpu_hour": "2.50",
    "gpu_count": "4",
    "utilization": "0.6",
    "slo_ttft_ms": "500",
    "override": ["gpu", "engine"],
    "random_ok": "true",
}


def a_value(row: Input) -> st.SearchStrategy[float]:
    if row.kind == "integer":
        return st.integers(int(row.min), int(row.max)).map(float)
    return st.floats(row.min, row.max).map(lambda x: float(number(x)))


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=20)
inputs = st.fixed_dictionaries({}, optional={k: a_value(row) for k, row in table().items()})
choices = st.fixed_dictionaries(
    {"study": texts},
    optional={
        "load": st.sampled_from(["1", "8", "0.5", "no limit"]),
        "override": st.lists(texts, max_size=4),
        "stated": st.lists(texts, max_size=4),
        "random_ok": st.sampled_from(["true", "false"]),
        "slo_percentile": st.sampled_from(["p50", "p99"]),
        "max_num_seqs": st.integers(1, 4096),
        "demand": texts,
    },
)
parameters = st.builds(lambda a, b: {**a, **b}, inputs, choices)


def test_the_canonical_form() -> None:
    found = Scenario.of(GIVEN)
    assert found.json == (
        '{"gpu_count":4,"load":16,"override":["engine","gpu"],"random_ok":true,'
        '"slo_ttft_ms":500,"study":"main job","usd_per_gpu_hour":2.5,"utilization":0.6}'
    )
    assert len(found.hash) == HASH_LENGTH == 12
    assert set(found.hash) <= set("0123456789abcdef")
    assert parse_qs(found.query)["override"] == ["engine", "gpu"]


def test_what_it_stands_for() -> None:
    found = Scenario.of(GIVEN)
    assert (found.study, found.load, found.accept_random) == ("main job", 16.0, True)
    assert found.slo == Slo(ttft_ms=500)
    assert found.overrides == {"gpu", "engine"}
    paid = found.rate
    assert (paid.usd_per_gpu_hour, paid.gpu_count, paid.utilization) == (2.5, 4, 0.6)
    assert paid.extra_usd_per_hour == 0
    empty = Scenario.of({})
    assert (empty.load, empty.slo, empty.study) == (None, None, "")
    assert empty.number("alpha") == table()["alpha"].start
    assert Scenario.of({"load": math.inf}).load == math.inf
    assert Scenario.of({"load": "no limit"}) == Scenario.of({"load": math.inf})


@pytest.mark.parametrize(
    "same",
    [
        {**GIVEN, "usd_per_gpu_hour": "2.5"},
        {**GIVEN, "usd_per_gpu_hour": 2.5},
        {**GIVEN, "usd_per_gpu_hour": "25e-1"},
        {**GIVEN, "load": 16.0},
        {**GIVEN, "override": ("engine", "gpu", "engine")},
        {**GIVEN, "alpha": "0.75", "extra_usd_per_hour": "", "slo_percentile": "p99"},
        {**GIVEN, "utm_source": "mail", "metric": "tpot_ms", "random_ok": True},
        dict(reversed(GIVEN.items())),
        {**GIVEN, "max_num_seqs": None, "stated": []},
    ],
)
def test_spelling_and_order_and_what_is_at_its_start_change_nothing(
    same: dict[str, object],
) -> None:
    assert Scenario.of(same) == Scenario.of(GIVEN)
    assert Scenario.of(same).hash == Scenario.of(GIVEN).hash


@given(parameters, st.randoms())
def test_it_survives_its_link_and_its_json_in_any_order(given: dict[str, object], random) -> None:
    found = Scenario.of(given)
    assert Scenario.of(found.parameters) == found
    assert Scenario.from_link(found.query) == found
    assert Scenario.from_link(f"?{found.query}") == found
    assert Scenario.from_json(found.json) == found
    assert Scenario.from_json(json.dumps(json.loads(found.json), indent=1)) == found
    items = list(given.items())
    random.shuffle(items)
    assert Scenario.of(dict(items)).hash == found.hash


@given(parameters, st.data())
def test_the_hash_changes_exactly_where_a_value_does(given: dict[str, object], data) -> None:
    found = Scenario.of(given)
    row = data.draw(st.sampled_from(list(table().values())))
    value = data.draw(a_value(row))
    other = Scenario.of({**given, row.key: value})
    same = found.number(row.key) == value
    assert (other.hash == found.hash) is same
    assert [d.key for d in differences(found, other)] == ([] if same else [row.key])


@given(parameters, parameters)
def test_two_differ_where_their_differences_say(a: dict[str, object], b: dict[str, object]) -> None:
    one, other = Scenario.of(a), Scenario.of(b)
    found = {d.key for d in differences(one, other)}
    assert bool(found) is (one.hash != other.hash)
    assert found == {d.key for d in differences(other, one)}
    kept = {k: v for k, v in one.parameters.items() if k not in found}
    assert kept == {k: v for k, v in other.parameters.items() if k not in found}


def test_differences_are_said_with_their_labels_and_units() -> None:
    b = {**GIVEN, "usd_per_gpu_hour": 2, "utilization": 0.75, "tokens_per_day": 1e7, "gamma": 3}
    b |= {"override": None, "random_ok": None, "load": math.inf, "slo_percentile": "p95"}
    assert [d.text for d in differences(Scenario.of(GIVEN), Scenario.of(b))] == [
        "Operating load: 16 → no limit",
        "Percentile of the requests: p99 → p95",
        "Compared in spite of a difference in: engine, gpu → not set",
        "Random tokens accepted: yes → not set",
        "Draft length γ: 7 tokens → 3 tokens",
        "Price: 2.5 $ per GPU-hour → 2 $ per GPU-hour",
        "Utilisation: 60 % → 75 %",
        "Output tokens a day: not set → 10 million",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"utilization": "60"}, "utilization = 60: allowed is 1 to 100 %"),
        ({"usd_per_gpu_hour": "two"}, "usd_per_gpu_hour = two: a number is needed"),
        ({"gpu_count": "1.5"}, "gpu_count"),
        ({"load": "many"}, "load = many: a number of 0.000001"),
        ({"load": "-1"}, "load = -1"),
        ({"max_num_seqs": "1.5"}, "a whole number of 1"),
        ({"study": "two\nlines"}, "study: up to 2,000 printable"),
        ({"stated": ["x" * 2001]}, "stated"),
    ],
)
def test_what_no_input_allows_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Scenario.of({**GIVEN, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "3"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="save it anew"):
        Scenario.from_json(text)


def test_no_choice_is_listed_twice() -> None:
    assert len(_CHOICES) == len(CHOICES)


def test_no_choice_is_an_input_too() -> None:
    assert not CHOICES.keys() & table().keys()
