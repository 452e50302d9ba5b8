"""Figures of a probe: the times of one step, and what verifying several tokens in a pass costs."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from lib.probe.result import Probe, VerifyCost
from lib.report.format import significant
from lib.report.load_figures import band, end_labels
from lib.report.style import BASELINE, HUES, MUTED, Mode, layout, rgba

Step = Literal["draft", "target"]
Columns = dict[str, list[Any]]

STEP_HEIGHT = 220
VERIFY_HEIGHT = 340
VERIFY_FREE = 1.1  # above it a pass is not free any more
MOST_BINS = 40
FAR = 5  # interquartile ranges from the median: further samples are counted, not drawn
HEADROOM = 1.25


def samples(probe: Probe, step: Step) -> Sequence[float]:
    """The times of one step, in ms, in the order taken."""
    return probe.samples_draft_ms if step == "draft" else probe.samples_target_ms


def sample_columns(probe: Probe) -> Columns:
    """Both steps' samples in the order taken, in ms; the shorter list ends in empty cells."""
    lists = {f"{s}_ms": list(samples(probe, s)) for s in ("draft", "target")}
    most = max(map(len, lists.values()))
    return {name: [*times, *[None] * (most - len(times))] for name, times in lists.items()}


def verify_columns(probe: Probe) -> Columns:
    """v by tokens of a pass, all requests together, with its interval; one token each is 1."""
    single = VerifyCost(1, 1.0, 1.0, 1.0)
    points = probe.v if probe.v_at(0) else (single, *probe.v)
    return {
        "tokens_a_pass": [p.tokens * probe.setup.batch for p in points],
        "tokens_a_request": [p.tokens for p in points],
        "v": [p.value for p in points],
        "v_low": [p.low for p in points],
        "v_high": [p.high for p in points],
    }


def step_figure(probe: Probe, step: Step, mode: Mode) -> go.Figure:
    """How the times of one step spread, with their median."""
    times = np.asarray(samples(probe, step))
    low, high, _ = _span(times)
    near = times[(times >= low) & (times <= high)]
    counts, edges = np.histogram(near, bins=_bins(near), range=(low, high))
    color = HUES[mode][0] if step == "draft" else BASELINE[mode]
    top = HEADROOM * float(counts.max())
    figure = go.Figure(
        go.Bar(
            x=((edges[:-1] + edges[1:]) / 2).tolist(),
            y=counts.tolist(),
            width=np.diff(edges).tolist(),
            marker={"color": rgba(color, 0.55), "line": {"color": color, "width": 1}},
            hovertemplate="%{x:.4~g} ms: %{y} samples<extra></extra>",
        ),
        layout(
            mode,
            STEP_HEIGHT,
            bargap=0,
            xaxis={"title": {"text": "ms a step, the whole batch"}, "range": [low, high]},
            yaxis={
                "title": {"text": "samples"},
                "gridcolor": "rgba(0,0,0,0)",
                "range": [0, top],
                "nticks": 4,
                "tickformat": "d",
            },
        ),
    )
    median = probe.t_draft_ms if step == "draft" else probe.t_target_ms
    line = {"color": color, "width": 2}
    figure.add_shape(type="line", x0=median, x1=median, y0=0, y1=top, line=line)
    left_half = median < (low + high) / 2
    figure.add_annotation(
        x=median,
        y=top,
        text=f"<b>median {significant(median)} ms</b>",
        showarrow=False,
        xanchor="left" if left_half else "right",
        yanchor="top",
        xshift=6 if left_half else -6,
        font={"color": color, "size": 13},
    )
    return figure


def step_alt(probe: Probe, step: Step) -> str:
    """What the figure shows, in words."""
    times = np.asarray(samples(probe, step))
    low, high, beyond = _span(times)
    median = probe.t_draft_ms if step == "draft" else probe.t_target_ms
    text = f"{len(times)} times of one {step} step: median {significant(median)} ms"
    text += f", {significant(low)} to {significant(high)} ms."
    if beyond:
        text += f" {beyond} lie further out and are not drawn."
    return text


def verify_figure(probe: Probe, mode: Mode) -> go.Figure:
    """v over the tokens of a pass with its interval, the lines 1 and 1.1, and where v leaves 1.

    The band is the interval of the critical tokens; right of it the sweep should be measured.
    """
    found = verify_columns(probe)
    xs, ys = found["tokens_a_pass"], found["v"]
    color = HUES[mode][0]
    ends = [
        (x, low, high)
        for x, low, high in zip(xs, found["v_low"], found["v_high"], strict=True)
        if low is not None
    ]
    tops = [*ys, *(high for *_, high in ends), VERIFY_FREE]
    bottoms = [*ys, *(low for _, low, _ in ends), 1.0]
    room = 0.15 * (max(tops) - min(bottoms))
    y_range = [max(0.0, min(bottoms) - room), max(tops) + 2 * room]
    x_range = [math.log10(min(xs) / 1.25), math.log10(max(xs) * 1.25)]
    ticks = _ticks(xs)
    figure = go.Figure(
        [
            *band(ends, color),
            go.Scatter(
                x=xs,
                y=ys,
                mode="lines+markers",
                line={"color": color, "width": 2.5},
                marker={"size": 8, "color": color},
                hovertemplate="%{x} tokens a pass: v = %{y:.3f} plain steps<extra></extra>",
            ),
        ],
        layout(
            mode,
            VERIFY_HEIGHT,
            xaxis={
                "type": "log",
                "tickvals": ticks,
                "ticktext": [f"{t:,}" for t in ticks],
                "title": {"text": "tokens verified in one pass, all requests together"},
                "range": x_range,
            },
            yaxis={"title": {"text": "v, plain steps a pass"}, "range": y_range},
        ),
    )
    for y, text in ((1.0, "free, v = 1"), (VERIFY_FREE, "10 % more")):
        dash = {"color": BASELINE[mode], "width": 1.5, "dash": "dash" if y == 1 else "dot"}
        figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, line=dash)
        figure.add_annotation(
            x=x_range[0],
            y=y,
            text=text,
            showarrow=False,
            xanchor="left",
            yanchor="bottom" if y > 1 else "top",
            font={"color": MUTED[mode], "size": 12},
        )
    end_labels(figure, [(xs[-1], ys[-1], "v", color)], y_range)
    _mark_critical(figure, probe, y_range, mode)
    return figure


def verify_alt(probe: Probe) -> str:
    """What the figure shows, in words."""
    points = ", ".join(f"{p.tokens * probe.setup.batch}: {p.value:.2f}" for p in probe.v)
    text = f"Verify cost v by tokens verified in one pass. {points}."
    if probe.critical_tokens is not None:
        text += f" v passes {VERIFY_FREE:g} at about {probe.critical_tokens:,.0f} tokens."
    return text


def _mark_critical(figure: go.Figure, probe: Probe, y_range: Sequence[float], mode: Mode) -> None:
    at, low, high = probe.critical_tokens, probe.critical_low, probe.critical_high
    if at is None:
        return
    color = HUES[mode][1]
    if low is not None and high is not None:
        figure.add_shape(
            type="rect",
            x0=low,
            x1=high,
            y0=y_range[0],
            y1=y_range[1],
            fillcolor=rgba(color, 0.14),
            line={"width": 0},
            layer="below",
        )
    line = {"color": color, "width": 2}
    figure.add_shape(type="line", x0=at, x1=at, y0=y_range[0], y1=y_range[1], line=line)
    figure.add_annotation(
        x=math.log10(at),
        y=y_range[1],
        text=f"<b>about {at:,.0f} token{'' if round(at) == 1 else 's'}</b>",
        showarrow=False,
        xanchor="right",
        yanchor="top",
        xshift=-6,
        font={"color": color, "size": 13},
    )


def _span(times: np.ndarray) -> tuple[float, float, int]:
    """Where the axis begins and ends, in ms, and how many samples lie beyond it."""
    quarter, median, three = np.quantile(times, [0.25, 0.5, 0.75])
    reach = FAR * max(three - quarter, 0.002 * median)
    low, high = max(times.min(), median - reach), min(times.max(), median + reach)
    if low == high:
        low, high = 0.99 * median, 1.01 * median
    beyond = int(np.count_nonzero((times < low) | (times > high)))
    return float(low), float(high), beyond


def _bins(times: np.ndarray) -> int:
    return int(min(MOST_BINS, max(8, round(2 * math.sqrt(len(times))))))


def _ticks(xs: Sequence[int]) -> list[int]:
    """Powers of two in range, so that neighbours do not overlap."""
    first, last = math.ceil(math.log2(min(xs))), math.floor(math.log2(max(xs)))
    return [2**n for n in range(first, last + 1)]
