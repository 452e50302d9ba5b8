"""Goodput without a ratio, in words: a pass against a fail, and no good request."""

import pytest

from lib.evidence.findings import Findings, at_slo, find
from lib.report.goodput_text import gap_table, legend
from lib.report.load_figures import multiplier_figure
from lib.report.sentences import compare_answer, crossing_lines
from lib.report.tables import multiplier_table
from lib.run import Slo
from tests.unit.evidence.builders import off, on, study

SLO = Slo(tpot_ms=40)


def judged(by_load: dict[float, tuple[float, float]]) -> Findings:
    """p99 TPOT of off and of K = 4 by load."""
    runs = [
        make(load, tpot_ms_p99=p99)
        for load, pair in by_load.items()
        for make, p99 in zip((off, on), pair, strict=True)
    ]
    return at_slo(find(study(*runs), "goodput_rps"), SLO, {})


def counted(by_load: dict[float, tuple[float, float]]) -> Findings:
    """Good requests per second of off and of K = 4 by load, two runs each."""
    counts = {}
    for load, pair in by_load.items():
        for make, rate in zip((off, on), pair, strict=True):
            for factor in (0.99, 1.01):
                counts[make(load)] = factor * rate
    found = find(study(*counts), "goodput_rps")
    return at_slo(found, SLO, {run.run_id: rate for run, rate in counts.items()})


def test_a_pass_against_a_fail_is_said_in_words() -> None:
    found = judged({8: (30, 20), 16: (35, 25), 32: (50, 38), 64: (90, 70)})
    sentence, estimate = compare_answer(found, None)
    assert estimate is None
    assert sentence == (
        "No multiplier on goodput. eagle3:4: at 8 to 16 both meet the SLO; at 32 off misses the "
        "SLO, eagle3:4 meets it; at 64 both miss the SLO. A pass or a fail is no ratio; requests "
        "kept one by one would be counted."
    )
    assert gap_table(found)["holds the SLO"] == ["✓ both", "✓ both", "▲ only the arm", "✕ neither"]
    assert "off, req/s" not in gap_table(found)


def test_loads_without_a_good_request_stand_beside_those_with_a_ratio() -> None:
    found = counted({8: (10, 15), 16: (20, 22), 32: (0, 9), 64: (0, 0)})
    sentence, estimate = compare_answer(found, 32)
    assert estimate is not None
    assert estimate.value == pytest.approx(1.5)
    assert sentence.endswith(
        "Without a ratio: at 32 off has no good request, eagle3:4 has good requests; at 64 both "
        "have no good request."
    )
    first, second = crossing_lines(found)
    assert "no crossing among the loads that have a ratio" in first
    assert second.startswith("eagle3:4 without a ratio: at 32 off has no good request")
    assert "leave it off" not in sentence
    assert legend(found).endswith("by who holds the SLO: ▲ only the arm, ✕ neither.")
    foot = [a.text for a in multiplier_figure(found, "light").layout.annotations]
    assert {"▲", "✕"} <= set(foot)
    table = multiplier_table(found, SLO)
    assert table["load"] == [8, 16, 32, 64]
    assert table["M"][2:] == [None, None]
    assert table["arm, req/s"][2:] == [9, 0]


def test_a_crossing_over_a_gap_has_a_bracket_only() -> None:
    found = counted({8: (10, 15), 16: (0, 9), 32: (36, 18)})
    (line, _) = crossing_lines(found)
    assert line.startswith("eagle3:4: stops paying between 8 and 32; a load between them has no")
