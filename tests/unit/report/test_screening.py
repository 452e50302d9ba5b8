import pytest

from lib.errors import InputError
from lib.estimate import Basis
from lib.report import screening as report
from lib.report.screening import Screening


def test_the_paper_rows_and_how_far_the_theorem_missed() -> None:
    rows = report.presets()
    assert len(rows) == 12
    misses = [r.measured_speedup / Screening(r.alpha, r.gamma, r.c).speedup for r in rows]
    low, high = report.PAPER_MISS
    assert min(misses) == pytest.approx(low, abs=0.005)
    assert max(misses) == pytest.approx(high, abs=0.005)
    assert f"−{1 - low:.0%} to +{high - 1:.0%}".replace("%", "", 1).replace("%", " %") == (
        report.PAPER_MISS_TEXT
    )


def test_a_published_row_is_recognised_and_cited() -> None:
    s = Screening(0.75, 7, 0.02)
    assert s.preset == report.presets()[0]
    assert {e.basis for e in s.inputs.values()} == {Basis.PUBLISHED}
    assert "2211.17192" in s.inputs["α"].source
    assert "Measured for these inputs: 3.4×" in s.note


def test_a_dragged_value_is_assumed() -> None:
    s = Screening(0.76, 7, 0.02)
    assert s.preset is None
    assert {e.basis for e in s.inputs.values()} == {Basis.ASSUMED}
    assert "Measured" not in s.note


def test_headline_is_a_theorem_with_its_interval() -> None:
    found = Screening(0.75, 7, 0.02).estimate
    assert found.basis is Basis.THEOREM
    assert found.value == pytest.approx(3.1575, abs=5e-5)
    assert found.low == pytest.approx(0.68 * found.value)
    assert found.high == pytest.approx(1.29 * found.value)
    assert "0.75^8" in found.how


@pytest.mark.parametrize(
    ("screening", "sentence"),
    [
        (
            Screening(0.75, 7, 0.02),
            "S = 3.16× at low batch if α holds: a candidate for a load test.",
        ),
        (Screening(0.5, 3, 0.2), "S = 1.17× at low batch if α holds: too close to call."),
        (Screening(0.3, 8, 0.25), "S = 0.48× at low batch if α holds: not worth a load test."),
        (Screening(0.1, 5, 0.1), "S = 0.74× at low batch: no draft length pays while α ≤ c."),
    ],
)
def test_sentence(screening: Screening, sentence: str) -> None:
    assert screening.sentence == sentence


def test_decode_time_of_a_token() -> None:
    s = Screening(0.75, 4, 0.1, step_ms=30.0)
    assert s.ms_per_token == pytest.approx(30.0 * (4 * 0.1 + 1) / s.tau)
    assert Screening(0.75, 4, 0.1).ms_per_token is None


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, 0.667), (1.0, 3.571)])
def test_edges(alpha: float, expected: float) -> None:
    s = Screening(alpha, 5 if alpha == 0 else 4, 0.1)
    assert s.speedup == pytest.approx(expected, abs=5e-4)
    assert s.break_even_alpha is not None
    assert s.sentence


def test_nothing_breaks_even_above_a_cost_of_one() -> None:
    assert Screening(0.9, 4, 1.5).break_even_alpha is None


def test_outside_the_range_names_the_argument() -> None:
    with pytest.raises(InputError, match="alpha"):
        Screening(80, 4, 0.1)


def test_cost_from_speeds() -> None:
    assert report.cost_from_speeds(50.0, 1000.0) == 0.05


def test_cross_check_names_inputs_and_distance() -> None:
    s = Screening(0.7, 4, 0.1)
    line = report.cross_check_text(s, s.speedup + 0.002, 0.001)
    assert "α = 0.7, γ = 4, c = 0.1" in line
    assert "2.0 standard errors" in line
    assert report.cross_check_text(Screening(1.0, 4, 0.1), 1.0 / 0.28, 0.0)


def test_c20_v_from_a_batch_benchmark() -> None:
    """C20: below a draft of 3 no acceptance makes this target pay."""
    speeds = {2: 111.52, 3: 145.78, 4: 174.78, 6: 221.85, 8: 266.06}
    found = {n: report.verify_from_batch(n, tps, 169.98) for n, tps in speeds.items()}
    costs = [round(v.cost, 2) for v in found.values()]
    assert costs == [3.05, 3.50, 3.89, 4.60, 5.11]
    assert [v.gamma for v in found.values()] == [1, 2, 3, 5, 7]
    assert "at most **0.66×**: no acceptance makes it pay" in found[2].text
    assert "at most **1.03×**." in found[4].text
