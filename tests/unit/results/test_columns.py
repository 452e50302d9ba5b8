"""Values of a run from text and from a person; requests as one table."""

from dataclasses import fields
from datetime import datetime

import pyarrow as pa
import pytest

from lib.errors import InputError
from lib.results.columns import (
    ARROW_TYPES,
    KINDS,
    REQUEST_COLUMNS,
    checked,
    from_text,
    requests_to_table,
    runs_to_table,
)
from lib.run import LoadKind, Run, SpecState


def test_every_field_of_a_run_has_a_kind_that_can_be_stored() -> None:
    assert list(KINDS) == [f.name for f in fields(Run)]
    assert set(KINDS.values()) <= ARROW_TYPES.keys()
    assert KINDS["started_at"] is datetime
    assert KINDS["accepted_per_position"] is tuple
    assert KINDS["zone_known"] is bool


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("gpu", "B300", "B300"),
        ("gpu", "", None),
        ("gpu_count", "8", 8),
        ("gpu_count", "", None),
        ("output_tps", "74.7", 74.7),
        ("offered_load", "inf", float("inf")),
        ("prefix_caching", "false", False),
        ("spec_state", "on", SpecState.ON),
        ("spec_state", "", SpecState.UNKNOWN),
        ("load_kind", "batch", LoadKind.BATCH),
    ],
)
def test_a_cell_of_text_becomes_the_fields_type(name: str, text: str, value: object) -> None:
    found = from_text(name, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu_count", "8.5"),
        ("gpu_count", "eight"),
        ("output_tps", "74,7"),
        ("prefix_caching", "yes"),
        ("spec_state", "On"),
        ("histogram", "1 2 3"),
        ("started_at", "2026-01-01"),
    ],
)
def test_a_cell_that_is_none_of_it_names_the_field(name: str, text: str) -> None:
    with pytest.raises(InputError, match=f"{name} = '{text}'"):
        from_text(name, text)


def test_checked_takes_numbers_of_any_library_but_no_booleans() -> None:
    scalar = pa.scalar(3).as_py()
    assert checked("gpu_count", scalar) == 3
    assert type(checked("usd_per_hour", 3)) is float
    with pytest.raises(InputError, match="usd_per_hour"):
        checked("usd_per_hour", True)


def test_requests_keep_run_order_and_miss_what_the_file_lacks() -> None:
    first = pa.table({"ok": [True, False], "output_tokens": pa.array([3, 4], pa.int32())})
    second = pa.table({"ttft_ms": [1.5], "something else": ["x"]})
    requests = {"b": second, "a": first, "not taken": first}
    table = requests_to_table(requests, {"a": 7, "b": 8})
    assert table.column_names == ["request_key", *REQUEST_COLUMNS]
    assert table.column("request_key").to_pylist() == [7, 7, 8]
    assert table.column("output_tokens").to_pylist() == [3, 4, None]
    assert table.column("ttft_ms").to_pylist() == [None, None, 1.5]
    assert requests_to_table({}, {}).num_rows == 0


def test_a_table_of_no_runs_has_all_columns() -> None:
    assert runs_to_table([]).column_names == list(KINDS)
