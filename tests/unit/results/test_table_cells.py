"""Rows of another width than the header, marks of numbers, and TPOT that follows from means."""

import json

import pytest

from lib.errors import UnreadableFile
from lib.results.reading import Reading, read


def table(text: str) -> Reading:
    return read("t.csv", text.encode())


def codes(reading: Reading) -> dict[str, str]:
    return {f.code: f.message for f in reading.flags}


HEADER = "arm,concurrency,output_tps,ttft_ms"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEADER}\noff,1,1,5,20\n", "line 2 has 5 cells, the header allows 4; put a cell that "),
        (f"{HEADER}\noff,1,15,20\nmtp:2,1,2,5,20\n", "line 3 has 5 cells"),
        (f"{HEADER},\noff,1,15,20,\nmtp:2,1,1,234,20,1\n", "line 3 has 6 cells, the header"),
        ("arm;concurrency;tok/s\noff;1;10\noff;2;a;b\n", "line 3 has 4 cells, the header allows 3"),
    ],
)
def test_rows_wider_than_the_header_are_refused(text: str, says: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        table(text)
    assert str(caught.value).startswith("t.csv: line ")
    assert says in str(caught.value)
    assert "in quotes" in str(caught.value)


def test_empty_cells_at_the_end_are_fine() -> None:
    found = table(f"{HEADER}\noff,1,15,20,,\nmtp:2,1,25,20, ,\n")
    assert [r.output_tps for r in found.runs] == [15, 25]
    assert found.flags == ()


def test_a_remark_below_the_table_is_no_shifted_row() -> None:
    found = table(f"{HEADER}\noff,1,15,20\n# by hand, one GPU, no warm-up, twice, a note\n")
    assert [r.output_tps for r in found.runs] == [15]
    assert "1 without a load" in codes(found)["rows_left_out"]


def test_a_quoted_decimal_comma_is_one_cell() -> None:
    (run,) = table(f'{HEADER}\noff,1,"1,5",20\n').runs
    assert (run.output_tps, run.ttft_ms_mean) == (1.5, 20.0)


def test_rows_that_end_early_are_named() -> None:
    found = table(f"{HEADER},note\noff,1,15\nmtp:2,1,25,20\n")
    assert codes(found)["short_rows"].startswith("1 row shorter than the header (line 2 has 3 of 5")
    assert "short_rows" not in codes(table(f"{HEADER},note\noff,1,15,20\n")), "no note is fine"


@pytest.mark.parametrize(
    ("header", "cell", "value"),
    [
        ("tok/s", "2x", None),
        ("tok/s", "50%", None),
        ("tok/s", "$5", None),
        ("ttft_ms_mean", "2x", None),
        ("speedup", "2x", 2.0),
        ("speedup", "2 ×", 2.0),
        ("speedup", "$2", None),
        ("usd_per_hour", "$2.50", 2.5),
        ("usd_per_hour", "2.5%", None),
        ("acceptance rate", "2x", None),
    ],
)
def test_marks_of_another_kind_are_no_numbers(header: str, cell: str, value: float | None) -> None:
    headers = ["concurrency", "tpot_ms", header]
    if header == "speedup":
        headers.remove("tpot_ms")  # it follows from rates and latencies
    cells = {"concurrency": "8", "tpot_ms": "9", header: cell}
    text = f"{','.join(headers)}\n{','.join(cells[h] for h in headers)}\n"
    other = text.splitlines()[1].replace(cell, "1")
    found = table(text + other + "\n")
    names = {"tok/s": "output_tps", "speedup": "multiplier", "acceptance rate": "accept_rate"}
    held = [getattr(r, names.get(header, header)) for r in found.runs]
    assert held == ([value, 1.0] if value or header != "speedup" else [1.0])
    assert ("unreadable_cells" in codes(found)) == (value is None)


@pytest.mark.parametrize(
    ("text", "values", "code"),
    [
        ("concurrency;tok/s\n1;1,500\n2;2,750\n", [1.5, 2.75], "decimal_comma_assumed"),
        ("concurrency;tok/s\n1;1.500\n2;2.750\n", [1.5, 2.75], "decimal_point_assumed"),
        ("concurrency\ttok/s\n1\t1,500\n2\t2,750\n", [1500, 2750], "thousands_assumed"),
        ("concurrency;tok/s\n1;1,500\n2;12,75\n", [1.5, 12.75], ""),
        ("concurrency;tok/s;ttft_ms\n1;1,500;12,5\n", [1.5], ""),
        ("concurrency;tok/s;ttft_ms\n1;1,500;12.5\n", [1500], ""),
        ("concurrency;tok/s\n1;0,500\n2;0,750\n", [0.5, 0.75], ""),
        ("concurrency;tok/s\n1;1,500,000\n", [1.5e6], ""),
        ("concurrency,tok/s\n1,1.500\n", [1.5], ""),
        ('concurrency,tok/s\n1,"1,500"\n', [1500], ""),
    ],
)
def test_a_mark_that_may_be_either_is_said(text: str, values: list[float], code: str) -> None:
    found = table(text)
    assert [r.output_tps for r in found.runs] == values
    assert [c for c in codes(found) if c.endswith("_assumed")] == ([code] if code else [])


def test_the_doubt_names_column_and_both_readings() -> None:
    message = codes(table("concurrency;tok/s\n1;1,500\n"))["decimal_comma_assumed"]
    assert message == (
        "column 'tok/s': 1,500 is read as 1.5, its comma as a decimal mark; if 1500 is meant, "
        "write it so"
    )


@pytest.mark.parametrize(
    ("headers", "cells"),
    [
        ("output_len", "101"),
        ("output_tokens,completed", "2020,20"),
        ("output_tokens,num_prompts,failed", "2020,20,0"),
    ],
)
def test_tpot_follows_from_the_means(headers: str, cells: str) -> None:
    """C06: (end-to-end - TTFT) / (n - 1), never the inter-token latency."""
    found = table(f"concurrency,tok/s,e2e_s,ttft_ms,itl_ms,{headers}\n8,900,1.1,100,25,{cells}\n")
    (run,) = found.runs
    assert run.tpot_ms_mean == pytest.approx(10.0)
    assert "TPOT of 1 run derived as" in codes(found)["tpot_derived"]
    alone = table(f"concurrency,arm,e2e_s,ttft_ms,{headers}\n8,off,1.1,100,{cells}\n")
    assert [r.tpot_ms_mean for r in alone.runs] == [pytest.approx(10.0)]


@pytest.mark.parametrize(
    ("headers", "cells"),
    [
        ("output_len,tpot_ms", "101,9"),
        ("output_len,p50_tpot_ms", "101,9"),
        ("output_len", "1"),
        ("output_tokens,num_prompts", "2020,20"),
        ("output_tokens,num_prompts,failed", "2020,20,1"),
        ("output_tokens", "2020"),
        ("input_len", "101"),
    ],
)
def test_tpot_that_does_not_follow_or_is_stated(headers: str, cells: str) -> None:
    found = table(f"concurrency,tok/s,e2e_s,ttft_ms,{headers}\n8,900,1.1,100,{cells}\n")
    assert found.runs[0].tpot_ms_mean == (
        9.0 if "9" in cells and headers[-7:] == "tpot_ms" and "p50" not in headers else None
    )
    assert "tpot_derived" not in codes(found)


def test_tpot_is_of_each_arm_and_leaves_a_speedup_alone() -> None:
    text = "concurrency,off_e2e_ms,off_ttft_ms,mtp2_e2e_ms,mtp2_ttft_ms,output_len"
    found = table(f"{text},off_tok_s,mtp2_tok_s\n8,1100,100,600,100,101,90,160\n")
    assert [(r.arm, r.tpot_ms_mean) for r in found.runs] == [("off", 10.0), ("mtp:2", 5.0)]
    found = table("concurrency,arm,speedup,e2e_ms,ttft_ms,output_len\n8,mtp:2,1.5,1100,100,101\n")
    assert [(r.multiplier, r.tpot_ms_mean) for r in found.runs] == [(1.5, 10.0)]


def test_tpot_of_a_mapped_document() -> None:
    document = {
        "load": 8,
        "rate": 900.5,
        "times": {"whole_ms": {"mean": 1100}, "first_ms": {"mean": 100}},
        "tokens": {"out": 2020},
        "requests": {"sent": 20, "lost": 0},
    }
    mapping = {
        "load": "concurrency",
        "rate": "output_tps",
        "times.whole_ms.mean": "e2e_ms_mean",
        "times.first_ms.mean": "ttft_ms_mean",
        "tokens.out": "output_tokens",
        "requests.sent": "num_prompts",
        "requests.lost": "failed",
    }
    found = read("a.json", json.dumps(document).encode(), mapping)
    assert [r.tpot_ms_mean for r in found.runs] == [10.0]
    assert "tpot_derived" in codes(found)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2026-03-01 12:30:00", False),
        ("2026-03-01T12:30:00Z", True),
        ("2026-03-01T14:30:00+02:00", True),
    ],
)
def test_a_time_with_a_zone_is_known_to_be_in_one(text: str, known: bool) -> None:
    (run,) = table(f"concurrency,tok/s,started_at\n1,10,{text}\n").runs
    assert run.started_at is not None
    assert run.started_at.astimezone().timestamp() == 1772368200
    assert run.zone_known is known
