"""A mapping made once by hand reads every file of that shape."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError, UnknownFormat
from lib.results.mapping import SavedMapping, columns_at, match, signature
from lib.results.reading import Reading, read


def result(load: int, kind: str, rate: float, **more: Any) -> bytes:
    """A result of a harness of one's own: nested, with a list of details in it."""
    document = {
        "setup": {"clients": load, "drafter": kind, "card": "L4", "note": "x"},
        "seen": {"generated_per_second": rate, "wait": {"median": 0.05}, "accept": 61.5},
        "details": [{"answer": "private words", "ok": True, "score": n} for n in range(3)],
        **more,
    }
    return json.dumps(document).encode()


CHOSEN = {
    "setup.clients": "concurrency",
    "setup.drafter": "arm",
    "setup.card": "gpu",
    "seen.generated_per_second": "output_tps",
    "seen.accept": "accept_rate",
}


def offered(data: bytes, name: str = "a.json") -> list[str]:
    with pytest.raises(UnknownFormat) as caught:
        read(name, data)
    return [c.header for c in caught.value.columns]


def remembered(data: bytes) -> SavedMapping:
    leaves = tuple(offered(data))
    return SavedMapping(signature(leaves), leaves, CHOSEN, "a.json")


def found(reading: Reading) -> list[tuple[str | None, float | None, float | None]]:
    return [(r.arm, r.offered_load, r.output_tps) for r in reading.runs]


def test_every_leaf_is_offered_with_samples_and_texts_are_not() -> None:
    with pytest.raises(UnknownFormat) as caught:
        read("a.json", result(8, "none", 90.5))
    columns = {c.header: c for c in caught.value.columns}
    assert columns["seen.wait.median"].samples == ("0.05",)
    assert columns["details[].score"].samples == ("0", "1", "2")
    assert columns["setup.card"].suggestion == ""
    assert "private words" not in str(columns)


def test_the_next_file_of_that_shape_is_read_as_mapped() -> None:
    saved = remembered(result(8, "none", 90.5))
    reading = read("b.json", result(8, "mtp3", 150.0), saved=[saved])
    assert found(reading) == [("mtp:3", 8, 150.0)]
    assert reading.runs[0].accept_rate == pytest.approx(0.615)
    assert "read as a.json was mapped by hand" in [f.message for f in reading.flags]
    assert {k.field: k.path for k in reading.keys}["gpu"] == ("setup.card",)


def test_a_file_of_nearly_that_shape_too() -> None:
    saved = remembered(result(8, "none", 90.5))
    more = result(16, "none", 91.0, extra=1)
    assert found(read("b.json", more, saved=[saved])) == [("off", 16, 91.0)]


def test_another_shape_is_offered_for_mapping() -> None:
    saved = remembered(result(8, "none", 90.5))
    other = json.loads(result(8, "none", 90.5))
    other["seen"] = {"per_second": 90.5, "wait": {"median": 0.05}, "accept": 61.5}
    with pytest.raises(UnknownFormat):
        read("b.json", json.dumps(other).encode(), saved=[saved])


def test_rows_of_one_list_and_not_of_two() -> None:
    document = {
        "card": "L4",
        "points": [{"n": 1, "rate": 10.0}, {"n": 2, "rate": 19.0}],
        "others": [{"n": 1}],
    }
    data = json.dumps(document).encode()
    mapping = {"points[].n": "concurrency", "points[].rate": "output_tps", "card": "gpu"}
    reading = read("a.json", data, mapping)
    assert [(r.offered_load, r.output_tps, r.gpu) for r in reading.runs] == [
        (1, 10.0, "L4"),
        (2, 19.0, "L4"),
    ]
    with pytest.raises(InputError, match="columns of two lists"):
        read("a.json", data, {**mapping, "others[].n": "repeat"})


@given(st.lists(st.text(max_size=8), max_size=12), st.randoms())
def test_a_signature_does_not_depend_on_order(leaves: list[str], random: Any) -> None:
    shuffled = [*leaves, *leaves[:2]]
    random.shuffle(shuffled)
    assert signature(shuffled) == signature(leaves)


def test_the_exact_shape_is_taken_before_one_alike() -> None:
    alike = SavedMapping("x", ("a", "b", "c", "d", "e"), {"a": "concurrency"}, "alike")
    exact = SavedMapping(signature(["a", "b", "c", "d"]), ("a", "b", "c", "d"), {}, "exact")
    assert match(["d", "c", "b", "a"], [alike, exact]) == exact
    assert match(["a", "b", "c", "d", "f"], [alike]) is None
    assert match(["b", "c", "d", "e"], [alike]) is None
    assert match([], [alike]) is None


def test_the_arm_of_one_file_is_not_the_next_ones() -> None:
    own = {"a": "concurrency", "b": "output_tps@off", "c": "ttft_ms_mean@off"}
    saved = SavedMapping(signature("abc"), tuple("abc"), own, "off.json")
    again = match("abc", [saved])
    assert again is not None
    assert again.mapping == {"a": "concurrency", "b": "output_tps", "c": "ttft_ms_mean"}
    wide = {**own, "c": "output_tps@mtp:2"}
    again = match("abc", [SavedMapping(signature("abc"), tuple("abc"), wide, "wide.json")])
    assert again is not None
    assert again.mapping == wide


def test_at_most_a_thousand_columns_are_offered_of_any_number() -> None:
    """Without a timer: a search for each column among all before it does not end in a minute."""
    names = [f"ttft_ms_mean {n}" for n in range(200_000)]
    columns = columns_at([["", *names], ["", *(["1"] * len(names))]], range(len(names) + 1))
    assert [c.header for c in columns] == names[:1000]
    assert {c.samples for c in columns} == {("1",)}
    assert [c.header for c in columns_at([["a", "b", "c"], ["1"]], [2, 0])] == ["c", "a"]
