"""Round cost R beside S over load: what a verify round costs, against the tokens it brings."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from lib.evidence.findings import Findings
from lib.evidence.round_cost import ArmRounds
from lib.report.format import plain_plotly
from lib.report.load_figures import band, end_labels, hatch_unmeasured, load_layout, load_title
from lib.report.style import BASELINE, MUTED, Mode, arm_colors
from lib.run import OFF

HEIGHT = 430
UPPER, LOWER = [0.38, 1.0], [0.0, 0.28]

Columns = dict[str, list[Any]]


def round_columns(arms: Sequence[ArmRounds]) -> Columns:
    """One row an arm and load: τ, S, R with its interval, and what is odd about it."""
    names = ("arm", "load", "tau", "S", "R", "R low", "R high", "limited by gamma", "flag")
    rows = [
        (
            arm.label,
            p.load,
            p.tau,
            p.speedup,
            p.cost,
            p.low,
            p.high,
            "yes" if p.limited else "no",
            p.flag,
        )
        for arm in arms
        for p in arm.points
    ]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def round_figure(found: Findings, arms: Sequence[ArmRounds], mode: Mode) -> go.Figure:
    """R over load with its interval, τ dotted above it, and S below on the same loads.

    Speculation pays where τ is above R. Only arms with points are drawn, in their own colours.
    """
    shown = [a for a in arms if a.curve]
    loads = sorted({p.load for a in shown for p in a.curve})
    colors = arm_colors([OFF, *(a.label for a in found.arms)], mode)
    top = 1.2 * max(max(p.tau, p.high or p.cost) for a in shown for p in a.curve)
    best = 1.15 * max(p.speedup for a in shown for p in a.curve)
    traces: list[Any] = []
    labels: list[tuple[float, float, str, str]] = []
    for arm in shown:
        traces += _traces(arm, colors[arm.label])
        last = arm.curve[-1]
        labels.append((last.load, last.cost, plain_plotly(arm.label), colors[arm.label]))
    figure = go.Figure(
        traces,
        load_layout(
            mode,
            loads,
            load_title(found),
            {"title": {"text": "steps, tokens a round"}, "range": [0.0, top]},
        ),
    )
    axis = figure.layout.yaxis.to_plotly_json()
    figure.update_layout(
        height=HEIGHT,
        yaxis={"domain": UPPER},
        yaxis2={
            **axis,
            "domain": LOWER,
            "range": [0.0, best],
            "title": {**axis["title"], "text": "S"},
            "ticksuffix": "×",
            "nticks": 4,
        },
        xaxis={"anchor": "y2"},
    )
    line = {"color": BASELINE[mode], "width": 1.5, "dash": "dash"}
    figure.add_shape(type="line", xref="paper", x0=0, x1=1, yref="y2", y0=1, y1=1, line=line)
    hatch_unmeasured(figure, loads, [0.0, top], mode)
    end_labels(figure, labels, [0.0, top])
    _name_the_lines(figure, shown[0], mode)
    return figure


def round_alt(arms: Sequence[ArmRounds]) -> str:
    """What the figure shows, in words."""
    told = []
    for arm in arms:
        if curve := arm.curve:
            first, last = curve[0], curve[-1]
            told.append(
                f"{arm.label}: R {first.cost:.2f} plain steps at {first.load:g} and "
                f"{last.cost:.2f} at {last.load:g}, S {first.speedup:.2f}× and {last.speedup:.2f}×"
            )
    return f"Round cost R, tokens a round τ and speedup S over load. {'; '.join(told)}."


def _traces(arm: ArmRounds, color: str) -> list[Any]:
    xs = [p.load for p in arm.curve]
    name = plain_plotly(arm.label)
    ends = [(p.load, p.low, p.high) for p in arm.curve if p.low is not None and p.high is not None]
    line = {"color": color, "width": 2.5}
    hover = f"{name} at %{{x:g}}: "
    return [
        *band(ends, color),
        go.Scatter(
            x=xs,
            y=[p.tau for p in arm.curve],
            mode="lines",
            line={"color": color, "width": 2, "dash": "dot"},
            hovertemplate=f"{hover}τ = %{{y:.2f}} tokens a round<extra></extra>",
        ),
        go.Scatter(
            x=xs,
            y=[p.cost for p in arm.curve],
            mode="lines+markers",
            line=line,
            marker={
                "size": 8,
                "color": color,
                "symbol": ["x-thin" if p.flag else "circle" for p in arm.curve],
                "line": {"width": [2.5 if p.flag else 0 for p in arm.curve], "color": color},
            },
            name=name,
            hovertemplate=f"{hover}R = %{{y:.2f}} plain steps a round<extra></extra>",
        ),
        go.Scatter(
            x=xs,
            y=[p.speedup for p in arm.curve],
            yaxis="y2",
            mode="lines+markers",
            line=line,
            marker={"size": 6, "color": color},
            hovertemplate=f"{hover}S = %{{y:.2f}}×<extra></extra>",
        ),
    ]


def _name_the_lines(figure: go.Figure, arm: ArmRounds, mode: Mode) -> None:
    """Which line is which, where the first arm's begin."""
    first = arm.curve[0]
    near = abs(first.tau - first.cost) < 0.12 * figure.layout.yaxis.range[1]
    for y, text, above in (
        (first.tau, "tokens it brings, τ", first.tau >= first.cost or not near),
        (first.cost, "plain steps it costs, R", first.tau < first.cost),
    ):
        figure.add_annotation(
            x=math.log10(first.load),
            y=y,
            text=text,
            showarrow=False,
            xanchor="left",
            yshift=14 if above else -14,
            font={"color": MUTED[mode], "size": 12},
        )
