"""Figures over load: the multiplier with its crossings, what was measured, and what it costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from lib.evidence.crossover import Crossing
from lib.evidence.findings import ArmFinding, Findings
from lib.report import goodput_text
from lib.report.format import load as load_text
from lib.report.format import plain_plotly, shortened
from lib.report.style import BASELINE, GRID, MUTED, PAPER, SHADE, Mode, arm_colors, layout, rgba
from lib.run import OFF, LoadKind, Run

HEIGHT = 380
LABEL_PX = 8  # width of a bold character of an arm's name, about
LOAD_TITLES = {
    LoadKind.CONCURRENCY: "concurrent requests",
    LoadKind.REQUEST_RATE: "requests per second offered",
    LoadKind.BATCH: "batch size",
}


@dataclass(frozen=True)
class Measured:
    """What a run may have recorded, for the figure of measured values over load."""

    attribute: str
    label: str
    unit: str


MEASURED = (
    Measured("output_tps", "Output throughput", "tok/s"),
    Measured("tpot_ms_mean", "Mean TPOT", "ms"),
    Measured("ttft_ms_p50", "Median TTFT", "ms"),
    Measured("goodput_rps", "Goodput", "req/s"),
    Measured("gpu_mem_gib", "GPU memory", "GiB"),
    Measured("power_w", "Power", "W"),
)


def off_labels(findings: Findings) -> dict[str, str]:
    """Label of the off runs that each arm (by its label) is compared with.

    `off` where all arms share them; arms under protocols that must not mix have their own.
    """
    groups: list[tuple[set[str], list[str]]] = []
    for arm in findings.arms:
        ids = {r.run_id for r in _off_runs(arm)}
        group = next((g for g in groups if ids <= g[0] or g[0] <= ids), None)
        if group is None:
            groups.append((ids, [arm.label]))
        else:
            group[0].update(ids)
            group[1].append(arm.label)
    if len(groups) < 2:
        return {label: OFF for _, labels in groups for label in labels}
    return {label: f"{OFF} for {labels[0]}" for _, labels in groups for label in labels}


def load_title(findings: Findings) -> str:
    """The load axis in words."""
    kinds = {a.pairs.load_kind for a in findings.arms}
    return LOAD_TITLES[kinds.pop()] if len(kinds) == 1 else "offered load"


def at_load(load: float, findings: Findings) -> str:
    """A load with its unit, for sentences: `8 concurrent`, `batch 8`, `4 requests/s`."""
    kinds = {a.pairs.load_kind for a in findings.arms}
    kind = kinds.pop() if len(kinds) == 1 else None
    if math.isinf(load):
        return "no request limit"
    if kind is LoadKind.CONCURRENCY:
        return f"{load_text(load)} concurrent"
    if kind is LoadKind.BATCH:
        return f"batch {load_text(load)}"
    return f"{load_text(load)} requests/s" if kind else f"load {load_text(load)}"


def multiplier_figure(findings: Findings, mode: Mode) -> go.Figure:
    """M over load: one line an arm with its interval, M = 1, brackets of the crossings."""
    loads = findings.finite_loads
    colors = arm_colors([OFF, *(a.label for a in findings.arms)], mode)
    traces: list[Any] = []
    labels: list[tuple[float, float, str, str]] = []
    for arm in findings.arms:
        color, name = colors[arm.label], plain_plotly(arm.label)
        points = [p for p in arm.points if math.isfinite(p.load)]
        if not points:
            continue
        for known, stretch in groupby(points, key=lambda p: p.interval() is not None):
            ends = [(p.load, *(p.interval() or (0.0, 0.0))) for p in stretch]
            traces += band(ends, color) if known else []
        traces.append(
            go.Scatter(
                x=[p.load for p in points],
                y=[p.multiplier for p in points],
                mode="lines+markers",
                line={"color": color, "width": 2.5},
                marker={"size": 8, "color": color},
                name=name,
                hovertemplate=f"{name} at %{{x:g}}: %{{y:.3f}}×<extra></extra>",
            )
        )
        if arm.derived:
            traces.append(
                go.Scatter(
                    x=[p.load for p in arm.derived],
                    y=[p.multiplier for p in arm.derived],
                    mode="markers",
                    marker={"size": 8, "color": color, "symbol": "circle-open", "line_width": 2},
                    hovertemplate=(
                        f"{name} at %{{x:g}}: %{{y:.3f}}×, derived: one arm was not measured here"
                        "<extra></extra>"
                    ),
                )
            )
        labels.append((points[-1].load, points[-1].multiplier, name, color))
    tops = [e for a in findings.arms for p in a.points for e in (p.multiplier, *(_ends(p)))]
    low, high = min([*tops, 1.0]), max([*tops, 1.0])
    pad = 0.08 * (high - low or 1.0)
    y_range = [max(0.0, low - pad), high + 1.5 * pad]
    figure = go.Figure(
        traces,
        load_layout(
            mode,
            loads,
            load_title(findings),
            {"title": {"text": "multiplier M"}, "range": y_range, "ticksuffix": "×"},
        ),
    )
    figure.add_hline(y=1, line={"color": BASELINE[mode], "width": 1.5, "dash": "dash"})
    # From the left: a label ends at its point, so the next one, lower, crosses no leader of it.
    marked = sorted(
        ((a, c) for a in findings.arms for c in a.crossover.crossings),
        key=lambda m: m[1].at or m[1].between[0],
    )
    for i, (arm, crossing) in enumerate(marked):
        _mark_crossing(figure, crossing, mode, y_range, colors[arm.label], i, min(loads))
    _mark_gaps(figure, findings, colors)
    hatch_unmeasured(figure, loads, y_range, mode)
    end_labels(figure, labels, y_range)
    return figure


def _mark_gaps(figure: go.Figure, findings: Findings, colors: Mapping[str, str]) -> None:
    """Loads without a ratio, at the foot: a row of marks an arm."""
    for row, arm in enumerate(a for a in findings.arms if a.without_ratio):
        for gap in arm.without_ratio:
            if math.isfinite(gap.load):
                figure.add_annotation(
                    x=math.log10(gap.load),
                    y=0.045 * row,
                    yref="paper",
                    yanchor="bottom",
                    text=goodput_text.MARKS[gap.side],
                    hovertext=plain_plotly(
                        f"{arm.label} at {load_text(gap.load)}: {goodput_text.MEANING[gap.side]}"
                    ),
                    showarrow=False,
                    font={"color": colors[arm.label], "size": 14},
                )


def measured_figure(
    findings: Findings, what: Measured, mode: Mode, values: Mapping[str, float] | None = None
) -> go.Figure:
    """One recorded quantity over load: a line an arm through the means, a dot a run.

    `values` replaces the runs' own field by run id (goodput counted at an SLO).
    """
    by_arm = runs_by_arm(findings)
    colors = arm_colors(by_arm, mode)
    traces: list[Any] = []
    labels: list[tuple[float, float, str, str]] = []
    highest = 0.0
    for arm, runs in by_arm.items():
        dots = [
            (float(r.offered_load or 0), v)
            for r in runs
            if (v := recorded(r, what, values)) is not None
            and r.offered_load is not None
            and math.isfinite(r.offered_load)
        ]
        if not dots:
            continue
        highest = max(highest, *(v for _, v in dots))
        loads = sorted({x for x, _ in dots})
        means = [_mean([v for x, v in dots if x == at]) for at in loads]
        name, color = plain_plotly(arm), colors[arm]
        if len(dots) > len(loads):
            traces.append(
                go.Scatter(
                    x=[x for x, _ in dots],
                    y=[v for _, v in dots],
                    mode="markers",
                    marker={"size": 5, "color": rgba(color, 0.45)},
                    hoverinfo="skip",
                )
            )
        traces.append(
            go.Scatter(
                x=loads,
                y=means,
                mode="lines+markers",
                line={"color": color, "width": 2.5},
                marker={"size": 7, "color": color},
                name=name,
                hovertemplate=f"{name} at %{{x:g}}: %{{y:,.4g}} {what.unit}<extra></extra>",
            )
        )
        labels.append((loads[-1], means[-1], name, color))
    y_range = [0.0, 1.08 * (highest or 1.0)]
    figure = go.Figure(
        traces,
        load_layout(
            mode,
            findings.finite_loads,
            load_title(findings),
            {"title": {"text": f"{what.label}, {what.unit}"}, "range": y_range},
        ),
    )
    end_labels(figure, labels, y_range)
    return figure


def runs_by_arm(findings: Findings) -> dict[str, list[Run]]:
    """Every run that pairs or could, by arm; off runs under their label, each once."""
    labels = off_labels(findings)
    off: dict[str, dict[str, Run]] = {labels[a.label]: {} for a in findings.arms}
    arms: dict[str, list[Run]] = {}
    for arm in findings.arms:
        off[labels[arm.label]] |= {r.run_id: r for r in _off_runs(arm)}
        arms[arm.label] = [*(r for c in arm.pairs.cells for r in c.on), *arm.pairs.on_only]
    return {name: list(runs.values()) for name, runs in off.items()} | arms


def _off_runs(arm: ArmFinding) -> list[Run]:
    return [*(r for c in arm.pairs.cells for r in c.off), *arm.pairs.off_only]


def recorded(run: Run, what: Measured, values: Mapping[str, float] | None = None) -> float | None:
    """The run's value of that quantity, or the one given for it."""
    if values is not None:
        return values.get(run.run_id)
    found: float | None = getattr(run, what.attribute)
    return found


def load_layout(mode: Mode, loads: Sequence[float], title: str, yaxis: dict[str, Any]) -> go.Layout:
    """The layout of a figure over load: a log2 axis whose ticks are the measured loads."""
    ticks = list(loads) or [1.0]
    return layout(
        mode,
        HEIGHT,
        xaxis={
            "type": "log",
            "tickvals": ticks,
            "ticktext": [load_text(t) for t in ticks],
            "title": {"text": title},
            "range": [math.log10(min(ticks) / 1.2), math.log10(max(ticks)) + _room(ticks)],
        },
        yaxis=yaxis,
    )


def _room(ticks: Sequence[float]) -> float:
    """Room right of the last load, in decades: the hatching, and where the arms' names start."""
    return 0.08 + 0.12 * math.log10(max(ticks) / min(ticks))


def _ends(point: Any) -> tuple[float, ...]:
    return point.interval() or ()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def band(points: Sequence[tuple[float, float, float]], color: str) -> list[Any]:
    """The interval as a band; a lone point as a bar."""
    if not points:
        return []
    if len(points) == 1:
        x, low, high = points[0]
        points = [(x / 1.02, low, high), (x * 1.02, low, high)]
    return [
        go.Scatter(
            x=[p[0] for p in points] + [p[0] for p in reversed(points)],
            y=[p[1] for p in points] + [p[2] for p in reversed(points)],
            fill="toself",
            fillcolor=rgba(color, 0.16),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
        )
    ]


def _mark_crossing(
    figure: go.Figure,
    crossing: Crossing,
    mode: Mode,
    y_range: Sequence[float],
    color: str,
    index: int,
    lowest: float,
) -> None:
    low, high = crossing.between
    figure.add_shape(
        type="rect",
        x0=low,
        x1=high,
        y0=y_range[0],
        y1=y_range[1],
        fillcolor=SHADE[mode],
        line={"width": 0},
        layer="below",
    )
    if crossing.at is not None:
        edge = 0.85 if crossing.direction == "up" else 0.2
        below = 1 - y_range[0] > edge * (y_range[1] - y_range[0])
        figure.add_annotation(
            x=math.log10(crossing.at),
            y=1,
            text=f"crosses at {crossing.at:.4g}",
            showarrow=True,
            arrowhead=0,
            arrowcolor=color,
            xanchor="left" if low == lowest else "right",
            ax=14 if low == lowest else -14,
            ay=(28 + 20 * (index % 4)) * (1 if below else -1),
            font={"color": color, "size": 12},
            bgcolor=rgba(PAPER[mode], 0.8),
            borderpad=1,
        )


def hatch_unmeasured(
    figure: go.Figure, loads: Sequence[float], y_range: Sequence[float], mode: Mode
) -> None:
    """Right of the highest load nothing was measured."""
    if not loads:
        return
    left = max(loads) * 10 ** (0.25 * _room(loads))
    right = max(loads) * 10 ** _room(loads)
    figure.add_trace(
        go.Scatter(
            x=[left, right, right, left],
            y=[y_range[0], y_range[0], y_range[1], y_range[1]],
            fill="toself",
            fillcolor="rgba(0,0,0,0)",
            fillpattern={"shape": "/", "fgcolor": GRID[mode], "size": 8, "solidity": 0.25},
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
        )
    )
    figure.add_annotation(
        x=(math.log10(left) + math.log10(right)) / 2,
        y=0.99,
        yref="paper",
        yanchor="top",
        text="not measured",
        showarrow=False,
        font={"color": MUTED[mode], "size": 11},
    )


def end_labels(
    figure: go.Figure,
    labels: Sequence[tuple[float, float, str, str]],
    y_range: Sequence[float],
    *,
    log: bool = False,
) -> None:
    """The arms' names beside their last points, pushed apart where they would overlap."""
    gap = 0.065 * (y_range[1] - y_range[0])
    short = shortened([name for *_, name, _ in labels])
    places = sorted((math.log10(y) if log else y, x, name, color) for x, y, name, color in labels)
    heights: list[float] = []
    for y, *_ in places:
        heights.append(max(y, heights[-1] + gap) if heights else y)
    over = max(0.0, heights[-1] - (y_range[1] - gap / 2)) if heights else 0.0
    for (_, x, name, color), y in zip(places, heights, strict=True):
        figure.add_annotation(
            x=math.log10(x),
            y=y - over,
            text=f"<b>{short[name]}</b>",
            showarrow=False,
            xanchor="left",
            xshift=12,
            font={"color": color, "size": 13},
        )
    figure.layout.margin.r = max(16, LABEL_PX * max(map(len, short.values()), default=0) - 28)
