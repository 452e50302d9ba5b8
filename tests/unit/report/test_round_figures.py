"""R beside S: drawn where tau is known, the cause of the loss in a sentence, reasons otherwise."""

from collections.abc import Mapping
from typing import Any

import pytest

from lib.evidence.findings import Findings, find
from lib.evidence.round_cost import round_costs
from lib.report.format import csv_text
from lib.report.round_figures import round_alt, round_columns, round_figure
from lib.report.round_text import missing_lines, round_lines
from lib.results import published
from tests.unit.evidence.builders import off, on, study

NGRAM = "vllm_h100_qwen25_7b_ngram_extractive"
Table = Mapping[float, tuple[float, float, float]]


def found(table: Table, k: int = 4, **fields: Any) -> Findings:
    pairs = [
        (off(load, plain), on(load, fast, k, accept_length=tau, **fields))
        for load, (plain, fast, tau) in table.items()
    ]
    return find(study(*(run for pair in pairs for run in pair)))


def lines(findings: Findings) -> list[str]:
    return round_lines(findings, round_costs(findings))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_figure_of_a_published_study(mode: str) -> None:
    findings = find(published.study(NGRAM))
    arms = round_costs(findings)
    figure = round_figure(findings, arms, mode)  # type: ignore[arg-type]
    tau, cost, speedup = (t for t in figure.data if t.fill is None)
    assert tau.line.dash == "dot"
    assert list(cost.y) == pytest.approx([1.66, 2.08, 2.32, 2.86, 4.08, 4.96], abs=5e-3)
    assert speedup.yaxis == "y2"
    assert list(cost.x) == [1, 4, 16, 32, 64, 128]
    texts = [a.text for a in figure.layout.annotations]
    assert "<b>ngram:5</b>" in texts
    assert {"tokens it brings, τ", "plain steps it costs, R", "not measured"} <= set(texts)
    assert figure.layout.yaxis.range[1] > 5.95
    assert "4.96 at 128" in round_alt(arms)


def test_columns_as_csv() -> None:
    arms = round_costs(find(published.study(NGRAM)))
    rows = csv_text(round_columns(arms)).splitlines()
    assert rows[0] == "arm,load,tau,S,R,R low,R high,limited by gamma,flag"
    assert len(rows) == 7
    assert rows[1].startswith("ngram:5,1.0,5.85,3.52")


def test_repeats_have_a_band() -> None:
    runs = [off(x, t * x) for x in (1, 2) for t in (100, 101, 99)]
    runs += [on(x, t * x, accept_length=2.4) for x in (1, 2) for t in (150, 152, 149)]
    findings = find(study(*runs))
    figure = round_figure(findings, round_costs(findings), "light")
    assert [t.fill for t in figure.data].count("toself") == 2


def test_the_gain_falls_by_cost() -> None:
    findings = find(published.study(NGRAM))
    first, second = lines(findings)
    assert "the gain falls (3.52× to 1.18× from 1 to 128 concurrent) because a round" in first
    assert "a round costs 4.96 plain steps there, 1.66 at the lowest load" in first
    assert "not because acceptance fell (τ 5.85 at both)" in first
    assert "limited by γ: τ = 5.95 of at most 6" in second


def test_the_gain_falls_by_acceptance_or_by_both() -> None:
    (alone,) = lines(found({1: (100, 200, 3.0), 8: (400, 560, 2.1)}))
    assert "because acceptance fell (τ 3.00, then 2.10), not because a round got dearer" in alone
    (both,) = lines(found({1: (100, 200, 3.0), 8: (400, 400, 2.0)}))
    assert "58 % of the loss is acceptance" in both


def test_a_gain_that_holds_or_grows() -> None:
    (same,) = lines(found({1: (100, 200, 3.0), 8: (400, 800, 3.0)}))
    assert "the gain is the same (2.00× and 2.00×)" in same
    (larger,) = lines(found({1: (100, 100, 3.0), 8: (400, 800, 3.0)}))
    assert "the gain is larger" in larger
    (single,) = lines(found({8: (400, 800, 3.0)}))
    assert "a round costs 1.50 plain steps at 8 concurrent and brings 3.00 tokens" in single


def test_a_fit_needs_three_lengths_to_be_judged() -> None:
    sweep = {2: (163.7, 2.36), 3: (172.9, 2.79), 4: (174.6, 3.08)}
    runs = [on(1, s, k, accept_length=t) for k, (s, t) in sweep.items()]
    said = lines(find(study(off(1, 100), *runs)))[-1]
    assert "K = 2, 3, 4: R = v + cK with v = 1.1" in said
    assert "misses by at most" in said
    said = lines(find(study(off(1, 100), *runs[:2])))[-1]
    assert "measure a third" in said


def test_reasons_share_a_line_and_names_stay() -> None:
    findings = find(study(off(8), on(8, k=2), on(8, k=4)))
    assert missing_lines(round_costs(findings)) == [
        "Round cost R is not drawn: τ is not known: no run states its counts, an accepted length "
        "or a rate with its K."
    ]
    findings = find(study(off(8), on(8, k=2), on(8, k=4, accept_length=2.4), on(8, k=6)))
    (line,) = missing_lines(round_costs(findings))
    assert line.startswith("Round cost R is not drawn for eagle3:2 and eagle3:6: τ")


def test_an_impossible_point_is_marked_and_said() -> None:
    findings = found({1: (100, 412, 2.22), 8: (400, 700, 2.22)})
    assert any("eagle3:4 at 1: S is above τ" in line for line in lines(findings))
    figure = round_figure(findings, round_costs(findings), "light")
    cost = next(t for t in figure.data if t.marker.symbol is not None)
    assert list(cost.marker.symbol) == ["x-thin", "circle"]
