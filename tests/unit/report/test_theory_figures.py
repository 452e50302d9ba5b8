import math
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest

from lib.report import theory_figures as figures
from lib.report.screening import Screening
from lib.report.style import Mode
from lib.theory import walltime

S = Screening(0.75, 7, 0.02)
EDGES = (
    Screening(0.0, 1, 0.0),
    Screening(0.0, 16, 1.0),
    Screening(1.0, 16, 0.0),
    Screening(1.0, 1, 1.0),
    Screening(0.05, 3, 0.5),
)
BUILDERS = (figures.speedup_over_gamma, figures.speedup_over_c, figures.alpha_gamma_plane)


def over_gamma(screening: Screening) -> go.Figure:
    return go.Figure(figures.speedup_over_gamma(screening, "light"))


def over_c(screening: Screening) -> go.Figure:
    return go.Figure(figures.speedup_over_c(screening, "light"))


def plane(screening: Screening) -> go.Figure:
    return go.Figure(figures.alpha_gamma_plane(screening, "light"))


def you(figure: go.Figure) -> tuple[float, float]:
    point = figure.data[-1]
    assert point.mode == "markers"
    return point.x[0], point.y[0]


def texts(figure: go.Figure) -> list[str]:
    return [a.text for a in figure.layout.annotations]


def test_columns_over_gamma_are_the_theorem() -> None:
    columns = figures.over_gamma(S)
    assert columns["gamma"] == list(range(1, 17))
    for gamma, s in zip(columns["gamma"], columns["speedup"], strict=True):
        assert s == pytest.approx(walltime.speedup(0.75, gamma, 0.02))


def test_columns_over_c_run_from_tau_down() -> None:
    columns = figures.over_c(S)
    assert columns["c"][0] == 0.0
    assert columns["c"][-1] == 1.0
    assert columns["speedup"][0] == pytest.approx(S.tau)
    assert np.all(np.diff(columns["speedup"]) < 0)


def test_plane_lines_have_their_speedup() -> None:
    columns = figures.over_plane(S)
    for name, level in (("alpha_at_1x", 1.0), ("alpha_at_1.5x", 1.5), ("alpha_at_3x", 3.0)):
        for gamma, alpha in zip(columns["gamma"], columns[name], strict=True):
            if math.isnan(alpha):
                assert walltime.speedup(1.0, gamma, 0.02) < level
            else:
                assert walltime.speedup(alpha, gamma, 0.02) == pytest.approx(level, abs=0.01)


def test_you_and_the_best_stand_where_they_are() -> None:
    assert you(over_gamma(S)) == (7, S.speedup)
    assert "best γ = 9: 3.20×" in texts(over_gamma(S))
    assert you(over_c(S)) == (0.02, S.speedup)
    assert f"S = 1 at {S.break_even_c:.3f}" in texts(over_c(S))
    assert you(plane(S)) == (0.75, 7)


def test_one_label_where_yours_is_the_best() -> None:
    labels = texts(over_gamma(Screening(0.75, 9, 0.02)))
    assert labels == ["S = 1", "<b>yours, and best: γ = 9</b>"]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("screening", [S, *EDGES])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_corner_draws(
    build: Callable[[Screening, Mode], dict], screening: Screening, mode: Mode
) -> None:
    figure = go.Figure(build(screening, mode))
    assert figure.layout.height == figures.HEIGHT
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert axis.title.text
        low, high = axis.range
        assert low < high
    for trace in figure.data:
        assert len(trace.x) == len(trace.y) <= 200
    top = figure.layout.yaxis.range[1]
    assert you(figure)[1] <= top


@pytest.mark.parametrize("screening", [S, *EDGES])
def test_every_figure_has_its_text(screening: Screening) -> None:
    found = figures.alt_texts(screening)
    assert set(found) == {"gamma", "c", "plane"}
    assert all(len(words) > 60 and "nan" not in words for words in found.values())
