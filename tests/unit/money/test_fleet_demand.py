"""Demand by hour: shapes at their level, its spelling in a link, and files with bad rows."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError, UnreadableFile
from lib.estimate import Basis
from lib.money import demand_files
from lib.money.demand import (
    SHAPES,
    UNITS,
    Hours,
    Level,
    Unit,
    edited,
    in_tokens,
    read_spelled,
    shaped,
    spelled,
)

VALUES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 5200.0, 34000.0, 1e9]) | st.integers(1, 10**6).map(float),
        st.none() | st.sampled_from([1.0, 4.0, 0.25]),
    ),
    min_size=1,
    max_size=60,
).filter(lambda rows: any(v for v, _ in rows))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", ["average", "peak"])
def test_a_shape_has_the_level_that_was_named(shape: str, level: Level) -> None:
    hours = shaped(shape, 1234.5, level)
    assert len(hours.values) == 24
    found = in_tokens(hours, shape)
    level_tps = found.mean_tps if level == "average" else found.peak_tps
    assert level_tps == pytest.approx(1234.5)
    assert found.basis is Basis.ASSUMED


def test_flat_is_flat_and_a_batch_runs_at_night() -> None:
    assert set(shaped("flat", 7).values) == {7.0}
    night = shaped("night batch", 10, "peak").values
    assert night[2] == 10.0
    assert night[12] == 1.0


@given(VALUES)
def test_a_link_reads_back_as_it_was(rows: list[tuple[float, float | None]]) -> None:
    loads = tuple(load for _, load in rows)
    hours = Hours(tuple(v for v, _ in rows), loads=loads if any(loads) else ())
    assert read_spelled(spelled(hours)) == hours


def test_a_series_keeps_the_hour_that_it_begins_at() -> None:
    hours = Hours((5.0, 6.0), first_hour=22)
    assert spelled(hours) == "22h:5,6"
    assert read_spelled("22h:5,6") == hours
    with pytest.raises(InputError, match="entry 1"):
        read_spelled("25h:5,6")


def test_equal_hours_are_written_once() -> None:
    text = "5200@4x8,34000@32x8,84000@128x8"
    hours = read_spelled(text)
    assert len(hours.values) == 24
    assert hours.loads[8] == 32
    assert spelled(hours) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5,x", "entry 2"),
        ("5,,6", "entry 2"),
        ("nanx3", "entry 1"),
        ("5x9999", "entry 1"),
        ("1x8000,1x8000", "8,760"),
        ("0x24", "every hour is 0"),
        ("-5", "hour 0"),
        ("5@0", "load a replica in hour 0"),
        ("5@-1", "load a replica in hour 0"),
        ("1e400", "hour 0"),
    ],
)
def test_a_bad_link_names_the_entry(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_spelled(text)


def test_requests_become_tokens_by_the_length_of_an_answer() -> None:
    hours = Hours((2.0, 4.0), "requests/s")
    assert in_tokens(hours, "typed", 250).output_tps.tolist() == [500.0, 1000.0]
    with pytest.raises(InputError, match="output tokens a request"):
        in_tokens(hours, "typed")


def test_running_requests_become_tokens_by_littles_law() -> None:
    """40 requests at 20 ms a token make 40 / 0.02 = 2,000 tok/s."""
    hours = Hours((40.0,), "running requests")
    assert in_tokens(hours, "typed", tpot_ms=20).output_tps.tolist() == [2000.0]
    with pytest.raises(InputError, match="TPOT"):
        in_tokens(hours, "typed")


def test_an_edited_table_names_its_empty_hour() -> None:
    assert edited([1, 2.5], [None, float("nan")], UNITS[0]) == Hours((1.0, 2.5))
    with pytest.raises(InputError, match="hour 1"):
        edited([1, None], [None, None], UNITS[0])


CSV = "hour,output tok/s,load\n0,5200,4\n1,34000,\n2,84000,128\n"


def test_a_csv_of_hours() -> None:
    hours = demand_files.read("d.csv", CSV.encode())
    assert hours == Hours((5200.0, 34000.0, 84000.0), loads=(4.0, None, 128.0))


def test_iso_times_are_averaged_inside_an_hour() -> None:
    text = (
        "time;requests/s\n2026-03-01T22:10:00Z;1,5\n2026-03-01T22:40:00Z;2,5\n"
        "2026-03-01T23:00:00+00:00;4\n2026-03-02T00:30:00Z;5\n"
    )
    hours = demand_files.read("d.csv", text.encode())
    assert hours.values == (2.0, 4.0, 5.0)
    assert hours.unit == "requests/s"
    assert hours.first_hour == 22


def test_a_column_without_a_unit_takes_the_chosen_one() -> None:
    text = b"hour,demand\n0,3\n1,4\n"
    assert demand_files.read("d.csv", text, "requests/s").unit == "requests/s"
    with pytest.raises(UnreadableFile, match="needed"):
        demand_files.read("d.csv", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hour,output tok/s\n0,5\n1,many\n", "row 3"),
        ("hour,output tok/s\n0,-5\n", "row 2"),
        ("hour,output tok/s\n0,\n", "row 2"),
        ("hour,output tok/s\n0.5,5\n", "row 2"),
        ("hour,output tok/s\n9000,5\n", "row 2"),
        ("hour,output tok/s\n0,5\n1\n", "row 3"),
        ("time,output tok/s\n2026-03-01,5\nyesterday,6\n", "row 3"),
        ("hour,output tok/s,load\n0,5,0\n", "row 2"),
        ("hour,output tok/s\n0,5\n3,5\n", "no value for hour 1, 2"),
        ("time,output tok/s\n2026-03-01T00:00,5\n2029-03-01T00:00,5\n", "8,760"),
        ("hour,output tok/s\n", "no row"),
        ("a,b\n1,2\n", "columns a, b"),
        ("hour,output tok/s\n0,0\n", "every hour is 0"),
        ("hour,output tok/s\n0,5\n1,1e13\n", "row 3"),
        ("hour,output tok/s\n0,5\n1_0,5\n", "row 3"),
        (
            "time,output tok/s\n2026-03-01T00:00,5\n2026-03-01T01:00+01:00,6\n",
            "a UTC offset and others none",
        ),
    ],
)
def test_a_bad_row_is_one_line_that_names_it(text: str, said: str) -> None:
    with pytest.raises((UnreadableFile, InputError), match=said) as caught:
        demand_files.read("d.csv", text.encode())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "title",
    [
        *("requests/h", "requests per hour", "requests", "rpm", "req/min", "requests_per_minute"),
        *("tokens", "tokens/day", "output tokens per minute", "tpm", "ktok/s", "million tokens/s"),
        *("total tok/s", "demand per minute"),
    ],
)
@pytest.mark.parametrize("unit", ["output tok/s", "requests/s"])
def test_a_column_that_is_not_per_second_is_refused(title: str, unit: Unit) -> None:
    with pytest.raises(UnreadableFile, match="per second"):
        demand_files.read("d.csv", f"hour,{title}\n0,3600\n".encode(), unit)


@pytest.mark.parametrize("title", ["input tok/s", "prompt_tokens_per_second", "cached tokens/s"])
def test_tokens_that_are_read_are_no_demand(title: str) -> None:
    with pytest.raises(UnreadableFile, match="tokens that are read"):
        demand_files.read("d.csv", f"hour,{title}\n0,3600\n".encode())
    with pytest.raises(UnreadableFile, match="tokens that are read"):
        demand_files.read("r.json", prometheus(("vllm:prompt_tokens:rate5m", [(0, "1")])))


@pytest.mark.parametrize(
    ("title", "unit"),
    [
        *(("requests/s", UNITS[1]), ("req/sec (1 min mean)", UNITS[1]), ("rps", UNITS[1])),
        *(("tok/s", UNITS[0]), ("output_tok_s", UNITS[0]), ("tokens per second", UNITS[0])),
        *(("running requests", UNITS[2]), ("concurrency", UNITS[2])),
    ],
)
def test_a_column_names_its_unit(title: str, unit: str) -> None:
    assert demand_files.read("d.csv", f"hour,{title}\n0,36\n".encode()).unit == unit


def prometheus(*series: tuple[str, list[tuple[float, str]]]) -> bytes:
    result = [{"metric": {"__name__": name}, "values": values} for name, values in series]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(answer).encode()


def test_series_of_prometheus_are_averaged_by_hour_and_added_up() -> None:
    first = [(0, "10"), (1800, "20"), (3600, "40")]
    second = [(0, "1"), (3600, "3")]
    data = prometheus(("vllm:num_requests_running", first), ("vllm:num_requests_running", second))
    hours = demand_files.read("range.json", data)
    assert hours.values == (16.0, 43.0)
    assert hours.unit == "running requests"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (prometheus(("vllm:generation_tokens_total", [(0, "1")])), "is a counter"),
        (prometheus(("up", [(0, "1")])), "unit is not named"),
        (prometheus(("rps", [(0, "NaN")])), "series 1, value 1"),
        (prometheus(("rps", [])), "no values"),
        (b'{"status":"success","data":{"resultType":"vector","result":[{}]}}', "query_range"),
        (b"[1, 2]", "query_range"),
        (b'{"data":{"result":[{"metric":{"__name__":"rps"},"values":[[1]]}]}}', "value 1"),
    ],
)
def test_what_is_no_range_answer_says_why(data: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        demand_files.read("range.json", data)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with contextlib.suppress(UnreadableFile, InputError):
        demand_files.read("d", data)
