"""Decode time of an answer on the screen: figure, table and what they leave out."""

import csv
from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import pytest

from lib.report import decode_time
from lib.report.decode_figures import decode_alt, decode_over_answer, over_answer
from lib.report.decode_time import Decode
from lib.report.screening import Screening
from lib.theory.rounds import RoundLaw, Rounds

ROOT = Path(__file__).resolve().parents[3]
EMPTY = Screening(0.7, 4, 0.1)
TYPED = Screening(0.7, 4, 0.1, step_ms=30.0, answer_tokens=1000)
DEAR = Screening(0.7, 4, 0.1, step_ms=30.0, answer_tokens=1000, verify_cost=2.0)
ROUND_MS = 30.0 * 1.4


def rows(s: Screening) -> list[list[str]]:
    lines = decode_time.table(Decode(s)).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_with_and_without() -> None:
    head, _, fast, plain = rows(TYPED)
    assert head == ["1,000 tokens", "mean", "p50", "p95", "p99"]
    rounds = Rounds(RoundLaw.of_alpha(0.7, 4), 1000)
    assert fast[0] == "With speculation"
    assert fast[1:] == ["15.2 s", "15.2 s", "15.9 s", "16.2 s"]
    assert float(fast[3].split()[0]) == pytest.approx(
        rounds.quantile(0.95) * ROUND_MS / 1000, abs=0.05
    )
    assert plain == ["Without", *["30.0 s"] * 4]


def test_the_table_with_a_verify_cost_of_ones_own() -> None:
    fast = rows(DEAR)[2]
    assert fast[:2] == ["With speculation, v = 2", "26.0 s"]
    assert any("not Theorem 3.8" in line for line in decode_time.notes(Decode(DEAR)))


def test_nothing_is_assumed_of_an_answer() -> None:
    head, _, fast, plain = rows(EMPTY)
    assert head[0] == "N tokens, in plain steps"
    assert set(fast[1:]) == set(plain[1:]) == {"–"}
    assert decode_time.notes(Decode(EMPTY)) == [
        "Type an answer length N to see its mean, p50, p95 and p99."
    ]
    steps = rows(Screening(0.7, 4, 0.1, answer_tokens=1000))
    assert steps[3][1:] == ["1,000"] * 4


def test_the_notes_say_what_is_cut_and_that_requests_differ() -> None:
    cut, spread, theorem = decode_time.notes(Decode(TYPED))
    assert "361.1 rounds on average" in cut
    assert "1.32 tokens past the end" in cut
    assert "2.77 tokens a round count, not τ = 2.77" in cut
    assert "sd 3.0 % of the mean" in spread
    assert "13 % to 29 %" in spread
    assert "0.68 to 1.29" in theorem


def test_how_much_requests_differ_is_what_was_published() -> None:
    path = ROOT / ".." / "shared" / "published" / "specdecodebench_acceptance_llama31_8b.csv"
    if not path.exists():
        pytest.skip("the published tables are not at hand")
    with path.open() as file:
        found = [
            float(r["sd_between_requests_tau"]) / float(r["tau_measured"])
            for r in csv.DictReader(file)
            if r["gamma"] == "7" and "eagle" in r["drafter"]
        ]
    assert len(found) == 4
    assert (min(found), max(found)) == pytest.approx(decode_time.REQUESTS_DIFFER, abs=5e-3)


def test_columns_are_in_ms_or_in_plain_steps() -> None:
    assert list(over_answer(TYPED)) == ["answer_tokens", "without_ms", "p50_ms", "p95_ms"]
    columns = over_answer(EMPTY)
    assert list(columns)[1:] == ["without_plain_steps", "p50_plain_steps", "p95_plain_steps"]
    assert columns["answer_tokens"][-1] == 512
    assert columns["without_plain_steps"] == columns["answer_tokens"]
    for n, p95 in zip(columns["answer_tokens"], columns["p95_plain_steps"], strict=True):
        exact = Rounds(RoundLaw.of_alpha(0.7, 4), n).quantile(0.95) * 1.4
        assert p95 == pytest.approx(exact, abs=1.4)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(
    "s",
    [
        EMPTY,
        TYPED,
        DEAR,
        Screening(0.0, 1, 0.0, 0.5, 1),
        Screening(1.0, 16, 1.0, 200.0, 4096, 10.0),
        Screening(0.3, 8, 0.25, None, 4000),
    ],
)
def test_the_figure_at_its_edges(s: Screening, mode: str) -> None:
    figure = go.Figure(decode_over_answer(s, mode))  # type: ignore[arg-type]
    top = figure.layout.yaxis.range[1]
    assert max(max(t.y) for t in figure.data) < top
    lines = [t for t in figure.data if t.mode == "lines"]
    assert [line.x[0] for line in lines] == [0, 0, 0]
    names = [a for a in figure.layout.annotations if a.xref != "paper"]
    assert {a.text for a in names} == {"without", "p50", "p95"}
    heights = sorted(a.y for a in names)
    assert min(b - a for a, b in pairwise(heights)) > 0.06 * top
    assert all(a.y < top for a in names)


def test_your_answer_is_marked_with_the_exact_percentiles() -> None:
    figure = go.Figure(decode_over_answer(TYPED, "light"))
    (point,) = (t for t in figure.data if t.mode == "markers")
    rounds = Rounds(RoundLaw.of_alpha(0.7, 4), 1000)
    assert list(point.x) == [1000, 1000]
    assert list(point.y) == pytest.approx(
        [rounds.quantile(q) * ROUND_MS / 1000 for q in (0.5, 0.95)]
    )
    own = next(a for a in figure.layout.annotations if a.xref == "paper")
    assert own.text == "<b>N = 1,000: p50 15.2 s<br>p95 15.9 s</b>"
    assert figure.layout.yaxis.title.text == "decode time (s)"
    assert "30.0 s without, p50 15.2 s, p95 15.9 s" in decode_alt(TYPED)


def test_the_axis_stays_still_while_n_moves() -> None:
    tops = [Decode(Screening(0.7, 4, 0.1, None, n)).top for n in (1, 64, 65, 500, 4096)]
    assert tops == [64, 64, 128, 512, 4096]


def test_c02_both_speeds_and_why_they_differ() -> None:
    s = Screening(0.82, 7, 0.199, verify_cost=2.27)
    assert s.measured_speedup == pytest.approx(s.tau / (7 * 0.199 + 2.27))
    assert "Not Theorem 3.8" in s.verify_line
    assert "out of range" in s.verify_line
    near = Screening(0.82, 1, 0.275, verify_cost=1.09)
    assert "out of range" not in near.verify_line
    assert EMPTY.verify_line == ""


def test_c19_cannot_pay_at_this_verify_cost() -> None:
    s = Screening(0.9, 1, 0.0, verify_cost=2.2)
    assert s.measured_speedup == pytest.approx(0.864, abs=5e-4)
    assert "cannot pay at this verify cost: at most 0.91×" in s.verify_line
