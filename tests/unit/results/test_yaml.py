"""YAML read in one pass gives what the YAML library gives, or one line that says why not."""

import math
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import UnknownFormat, UnreadableFile
from lib.results.parsing import looks_like_yaml, parse_yaml
from lib.results.reading import read

CASES = """
a: [1, 2.5, -3, 0, 1_000, 0x1F, 0b11, 017, 1:30, .5, 1.5e+3, 1e5, "1", '2', ~, null, yes, No, on]
b: {c: "x: y", d: 'it''s', "e f": [], g: {}}
c: |
  two
  lines
d: >-
  folded
  text
e: !!str 5
f: !!int "7"
g: !!float 3
h: !!bool "true"
i: !!null ""
j: 123456789012345678901234567890
2: number
true: boolean
n:
k: {<<: {x: 1, y: 2}, x: 3}
l: [{a: 1}, {a: 2}]
"""


def same(value: object) -> object:
    """The library's value as JSON could hold it."""
    if isinstance(value, dict):
        return {str(k): same(v) for k, v in value.items()}
    if isinstance(value, list):
        return [same(v) for v in value]
    large = isinstance(value, int) and not isinstance(value, bool) and value >= 2**64
    return float(value) if large else value  # type: ignore[arg-type]


def test_values_are_those_of_the_library() -> None:
    assert parse_yaml("a", CASES).values == (same(yaml.safe_load(CASES)),)


tree: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), tree, min_size=1), st.sampled_from([None, '"', "'"]))
def test_any_document_is_what_the_library_reads(document: dict[str, Any], style: str) -> None:
    text = yaml.safe_dump(document, default_style=style, allow_unicode=True)
    expected = same(yaml.safe_load(text))
    found = parse_yaml("a", text).values
    assert repr(found) == repr((_as_floats(expected),))


def _as_floats(value: Any) -> Any:
    """Whole numbers beyond 64 bits as JSON has them."""
    if isinstance(value, dict):
        return {k: _as_floats(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_floats(v) for v in value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and not -(2**63) <= value < 2**64 else value


def test_dates_stay_text_and_what_is_not_finite_is_counted() -> None:
    found = parse_yaml("a", "a: 2026-05-01\nb: .nan\nc: .inf\nd: [-.inf]\n---\ne: !!set {x, y}\n")
    assert found.values == (
        {"a": "2026-05-01", "b": None, "c": "Infinity", "d": ["-Infinity"]},
        {"e": ["x", "y"]},
    )
    assert found.nonfinite == 3
    assert not any(isinstance(v, float) and math.isnan(v) for v in found.values)


@pytest.mark.parametrize(
    "text",
    [
        'a: !!bool "x"',
        'a: !!int ""',
        'a: !!int "-"',
        'a: !!float "_"',
        'a: !!float ""',
        "a: !!python/object:os.system x",
        "a: !custom x",
        "a: !!map x",
        "a: !!int [1]",
        "a: !!omap {b: 1}\nc: !!str {a: 1}",
        "? [a]\n: b",
        "? {a: 1}\n: b",
        "a: &x 1\nb: *x",
        "a: {<<: 1}",
        "a: 'open",
        "a: [1",
        "a: " + "[" * 10_000,
        "a: " + "{b: " * 300,
        "a:\n\tb: 1",
        "",
        "# nothing",
        "a: \x07",
    ],
)
def test_what_cannot_be_read_is_one_line(text: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        parse_yaml("a", text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["int", "float", "bool", "null", "timestamp", "binary", "set"])
@given(st.text(max_size=10))
def test_any_text_under_any_tag_is_read_or_refused(kind: str, text: str) -> None:
    quoted = yaml.safe_dump(text, default_style='"', allow_unicode=True).strip()
    document = f"a: !!{kind} {quoted}\nb: 1"
    with suppress(UnreadableFile):
        assert len(parse_yaml("a", document).values) == 1


@pytest.mark.parametrize(
    "text",
    [
        "---\nx\n",
        "a: 1\nb: 2\n",
        "benchmarks:\n  - args: {a: 1}\n",
        "benchmarks:\n- a: 1\n  b: 2\n- a: 2\n",
        "apiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\n---\napiVersion: v1\nkind: C\n",
        "# a comment\n\napiVersion: v1\nkind: Pod\n",
        '"quoted": 1\n"other": 2\n',
        "a: |\n  text of any kind\n  more\nb: 1\n",
    ],
)
def test_documents(text: str) -> None:
    assert looks_like_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "INFO: x\nINFO: y\nINFO: z\n",
        "INFO: x\n" * 1000,
        "INFO: started\nWARN: slow\nDEBUG: y\n",
        "INFO:     127.0.0.1 - POST /v1 200 OK\n2026-05-01 more\n",
        "step: 1\nstep: 2\nstep: 3\nstep: 4\n",
        "GPU: H100\nconcurrency,tps\n1,2\n2,3\n",
        "run: id,arm,tps\nr1,off,34\nr2,k4,50\n",
        "GPU: H100\nengine: vllm\nconcurrency,output_tps\n1,40\n2,80\n4,160\n",
        "GPU: H100\n",
        "plain text\n",
        "",
    ],
)
def test_look_alikes(text: str) -> None:
    assert not looks_like_yaml(text)


def test_a_table_whose_header_looks_like_a_key_is_a_table() -> None:
    with pytest.raises(UnknownFormat, match="table"):
        read("a.csv", b"run: id,note\nr1,x\nr2,y\n")


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b"\xff\xfe", b"\xfe\xff", b"", b" \n\t"]
)
def test_a_byte_order_mark_alone_is_an_empty_file(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="empty"):
        read("a.csv", data)
