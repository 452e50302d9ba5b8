"""Replicas by hour, and the demand that they serve."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from lib.money.demand import DAY, Demand, Floats
from lib.money.fleet import Plan
from lib.money.fleet_day import Day
from lib.report.format import plain_plotly
from lib.report.style import MUTED, Mode, arm_colors, layout, rgba
from lib.run import OFF

HEIGHT, LOW = 360, 190
MOST_STEPS = 14 * DAY  # a longer demand is drawn by the busiest hour of each day
LABEL_PX = 8


def replicas_figure(day: Day, mode: Mode) -> go.Figure:
    """A step line a fleet: off, the best fixed arm, the schedule; names at the right."""
    colors = arm_colors([OFF, *(p.arm for p in day.plans)], mode)
    x, by_day = _edges(day.demand), _by_day(day.demand)
    traces: list[Any] = []
    ends: list[tuple[float, str, str]] = []
    top = 1.0
    for i, p in enumerate(day.shown):
        values = _steps(p.replicas)
        name, color = plain_plotly(p.arm), colors[p.arm]
        # Fleets may be equal for hours: the later line is thinner and broken, so both show.
        line = {"color": color, "width": 4 - i, "shape": "hv", "dash": ("solid", "solid", "dot")[i]}
        traces.append(
            go.Scatter(
                x=x,
                y=values,
                mode="lines",
                line=line,
                name=name,
                hovertemplate=f"{name}: %{{y:,.0f}} replicas<extra></extra>",
            )
        )
        ends.append((values[-1], name, color))
        top = max(top, *values)
    figure = go.Figure(
        traces,
        layout(
            mode,
            HEIGHT,
            xaxis=_hour_axis(day.demand),
            yaxis={
                "title": {"text": f"replicas{by_day}"},
                "range": [0, 1.12 * top],
                "tickformat": ",d",
            },
        ),
    )
    _label(figure, ends, x[-1], top)
    return figure


def demand_figure(demand: Demand, mode: Mode) -> go.Figure:
    """Output tokens per second by hour."""
    values = _steps(demand.output_tps)
    trace = go.Scatter(
        x=_edges(demand),
        y=values,
        mode="lines",
        line={"color": MUTED[mode], "width": 2, "shape": "hv"},
        fill="tozeroy",
        fillcolor=rgba(MUTED[mode], 0.16),
        hovertemplate="%{y:,.4g} tok/s<extra></extra>",
    )
    return go.Figure(
        trace,
        layout(
            mode,
            LOW,
            xaxis=_hour_axis(demand),
            yaxis={
                "title": {"text": f"tok/s{_by_day(demand)}"},
                "range": [0, 1.1 * demand.peak_tps],
            },
        ),
    )


def _by_day(demand: Demand) -> str:
    return ", day's most" if demand.hours > MOST_STEPS else ""


def _steps(values: Floats) -> list[float]:
    """One value an hour, or the most of each day; the last once more, for its own width."""
    if len(values) > MOST_STEPS:
        values = np.maximum.reduceat(values, np.arange(0, len(values), DAY))
    return [*values.tolist(), float(values[-1])]


def _edges(demand: Demand) -> list[int]:
    step = DAY if demand.hours > MOST_STEPS else 1
    return [*range(0, demand.hours, step), demand.hours]


def _hour_axis(demand: Demand) -> dict[str, Any]:
    """Hours of the day up to two days, else days."""
    count = demand.hours
    if count <= 2 * DAY:
        ticks = list(range(0, count + 1, 3 if count <= DAY else 6))
        texts = [f"{(demand.first_hour + t) % DAY:02d}:00" for t in ticks]
        title = "hour"
    else:
        step = DAY * next((d for d in (1, 2, 7, 14, 30) if count <= 8 * d * DAY), 60)
        ticks = list(range(0, count + 1, step))
        texts, title = [str(t // DAY) for t in ticks], "day"
    return {
        "title": {"text": title},
        "tickvals": ticks,
        "ticktext": texts,
        "range": [0, count],
        "showgrid": False,
    }


def _label(figure: go.Figure, ends: list[tuple[float, str, str]], x: float, top: float) -> None:
    """The names beside the last hour, a line each: those of close fleets move apart."""
    gap, places = 0.075 * 1.12 * top, list[float]()
    ends = sorted(ends, key=lambda end: end[0])
    for y, _, _ in ends:
        places.append(max(y, places[-1] + gap) if places else y)
    over = max(0.0, places[-1] - 1.12 * top) if places else 0.0
    for place, (_, name, color) in zip(places, ends, strict=True):
        figure.add_annotation(
            x=x,
            y=place - over,
            text=f"<b>{name}</b>",
            showarrow=False,
            xanchor="left",
            xshift=8,
            font={"size": 13, "color": color},
        )
    figure.layout.margin.r = 24 + LABEL_PX * max((len(name) for _, name, _ in ends), default=0)


def alt_text(day: Day, sentence: str) -> str:
    """The figure in words."""
    peaks = ", ".join(_peak(p) for p in day.shown)
    return f"Replicas by hour: {peaks}. {sentence}"


def _peak(plan: Plan) -> str:
    return f"{plan.arm} {plan.replicas.min():,.0f} to {plan.replicas.max():,.0f}"
