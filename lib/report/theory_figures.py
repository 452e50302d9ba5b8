"""Figures of the screen page: S over γ, S over c and the α-γ plane.

Each figure is drawn from the columns that its CSV holds. Builders give what `go.Figure` takes,
as plain dicts: validating costs 10 ms a figure, too much for every step of a drag. The tests
build the figures from them, so nothing invalid passes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lib.report.format import multiplier, number
from lib.report.screening import LARGEST_GAMMA, PAPER_MISS, Screening
from lib.report.style import INK, MUTED, PAPER, Mode, layout_fields, rgba
from lib.theory import walltime

ACCENT: dict[Mode, str] = {"light": "#4a4fc4", "dark": "#a3a8ff"}
HEIGHT = 290
LEVELS = (1.0, 1.5, 2.0, 3.0)
TOPS = (1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22)
GAMMAS = np.arange(1, LARGEST_GAMMA + 1)
# Finer where S falls fast.
COSTS = np.linspace(0.0, 1.0, 61) ** 2
ALPHAS = np.linspace(0.0, 1.0, 201)

Columns = dict[str, list[Any]]
Fields = dict[str, Any]


def over_gamma(screening: Screening) -> Columns:
    """S and its span over the draft length."""
    s = walltime.speedup(screening.alpha, GAMMAS, screening.c)
    return {"gamma": GAMMAS.tolist(), **_with_span(s)}


def over_c(screening: Screening) -> Columns:
    """S and its span over the draft cost."""
    s = walltime.speedup(screening.alpha, screening.gamma, COSTS)
    return {"c": COSTS.tolist(), **_with_span(s)}


def over_plane(screening: Screening) -> Columns:
    """For every γ the α at which S reaches each of LEVELS; NaN where none up to 1 does."""
    s = walltime.speedup(ALPHAS[None, :], GAMMAS[:, None], screening.c)
    reach: Columns = {"gamma": GAMMAS.tolist()}
    for level in LEVELS:
        found = (np.interp(level, row, ALPHAS, left=np.nan, right=np.nan) for row in s)
        reach[_at(level)] = [float(alpha) for alpha in found]
    return reach


def _with_span(s: np.ndarray) -> Columns:
    low, high = PAPER_MISS
    return {
        "speedup": s.tolist(),
        "speedup_low": (s * low).tolist(),
        "speedup_high": (s * high).tolist(),
    }


def _at(level: float) -> str:
    return f"alpha_at_{level:g}x"


def speedup_over_gamma(screening: Screening, mode: Mode) -> Fields:
    """S over γ with its span, the best γ and the chosen one."""
    columns = over_gamma(screening)
    gamma, s = screening.gamma, screening.speedup
    best, largest = screening.best_gamma, screening.best_speedup
    axis = _speedup_axis(columns)
    if best == gamma:
        label = f"yours, and best: γ = {best}"
        notes = [own_note(best, largest, label, mode, side=_side(best))]
    else:
        low = s < 0.2 * axis["range"][1]
        notes = [
            note_beside(
                best, largest, f"best γ = {best}: {multiplier(largest)}", mode, _side(best)
            ),
            own_note(gamma, s, f"γ = {gamma}: {multiplier(s)}", mode, _side(gamma), above=low),
        ]
    ring = {"size": 11, "color": PAPER[mode], "line": {"width": 2, "color": INK[mode]}}
    data = [
        _span(columns, "gamma", mode),
        _curve(columns, "gamma", "γ", mode, mode="lines+markers"),
        scatter([best], [largest], mode="markers", hoverinfo="skip", marker=ring),
        _you(gamma, s, mode),
    ]
    return figure_fields(
        data,
        mode,
        xaxis=axis_fields("draft length γ (tokens)", 0.4, LARGEST_GAMMA + 0.6, dtick=3, tick0=1),
        yaxis=axis,
        annotations=[_unity_note(mode), *notes],
        shapes=[_unity(mode)],
    )


def speedup_over_c(screening: Screening, mode: Mode) -> Fields:
    """S over c with its span and the c at which it breaks even."""
    columns = over_c(screening)
    c, s, even = screening.c, screening.speedup, screening.break_even_c
    notes, shapes = [_unity_note(mode)], [_unity(mode)]
    if 0 < even <= 1:
        line = {"color": MUTED[mode], "width": 1, "dash": "dot"}
        shapes.append({"type": "line", "x0": even, "x1": even, "y0": 0, "y1": 1, "line": line})
        side = "right" if even > 0.5 else "left"
        notes.append(note_beside(even, 0, f"S = 1 at {even:.3f}", mode, side))
    side = "left" if c < 0.5 else "right"
    notes.append(own_note(c, s, f"c = {number(c)}: {multiplier(s)}", mode, side))
    data = [
        _span(columns, "c", mode),
        _curve(columns, "c", "c", mode, mode="lines"),
        _you(c, s, mode),
    ]
    return figure_fields(
        data,
        mode,
        xaxis=axis_fields("draft cost c (target steps)", -0.02, 1.02, dtick=0.2),
        yaxis=_speedup_axis(columns),
        annotations=notes,
        shapes=shapes,
    )


def alpha_gamma_plane(screening: Screening, mode: Mode) -> Fields:
    """Where S > 1 at this c: α across, γ up, lines of equal S, you as a point."""
    columns = over_plane(screening)
    gamma = columns["gamma"]
    edge = [1.0 if np.isnan(alpha) else alpha for alpha in columns[_at(1.0)]]
    region = scatter(
        [*edge, 1.0, 1.0],
        [*gamma, gamma[-1], gamma[0]],
        fill="toself",
        mode="none",
        fillcolor=rgba(ACCENT[mode], 0.10),
        hoverinfo="skip",
    )
    above = screening.gamma < LARGEST_GAMMA
    label = multiplier(screening.speedup)
    notes = [own_note(screening.alpha, screening.gamma, label, mode, above=above)]
    for level in LEVELS:
        top = columns[_at(level)][-1]
        if top < 0.995:
            name = "S = 1" if level == 1 else f"{level:g}×"
            notes.append({**note_beside(top, gamma[-1], name, mode), "yshift": 9})
    return figure_fields(
        [region, *(_level(columns, v, mode) for v in LEVELS), _you(*_point(screening), mode)],
        mode,
        xaxis=axis_fields("acceptance α", -0.01, 1.01, dtick=0.2, showgrid=True),
        yaxis=axis_fields("draft length γ (tokens)", 0.4, 17.8, dtick=3, tick0=1, showgrid=True),
        annotations=notes,
    )


def alt_texts(screening: Screening) -> dict[str, str]:
    """What each figure shows, in words."""
    s = multiplier(screening.speedup)
    even = screening.break_even_alpha
    at = "at no α" if even is None else f"from α = {even:.3f}"
    return {
        "gamma": (
            f"Speedup S over draft length γ from 1 to {LARGEST_GAMMA}. {s} at γ = "
            f"{screening.gamma}; largest at γ = {screening.best_gamma}, "
            f"{multiplier(screening.best_speedup)}."
        ),
        "c": (
            f"Speedup S over draft cost c from 0 to 1. {s} at c = {number(screening.c)}; S falls "
            f"to 1 at c = {screening.break_even_c:.3f}."
        ),
        "plane": (
            f"Acceptance α against draft length γ at c = {number(screening.c)}. S is above 1 "
            f"{at} at γ = {screening.gamma}; your point is α = {number(screening.alpha)}."
        ),
    }


def _point(screening: Screening) -> tuple[float, float]:
    return screening.alpha, screening.gamma


def figure_fields(data: list[Fields], mode: Mode, **layout: Any) -> Fields:
    """A figure of the page's height, with fixed margins: measuring labels draws it twice."""
    margin = {"l": 46, "r": 8, "t": 12, "b": 44, "pad": 0}
    return {"data": data, "layout": layout_fields(mode, HEIGHT, margin=margin, **layout)}


def axis_fields(title: str, low: float, high: float, **fields: Any) -> Fields:
    """An axis with a fixed range."""
    return {
        "title": {"text": title, "standoff": 8},
        "range": [low, high],
        "automargin": False,
        "showgrid": False,
        **fields,
    }


def _speedup_axis(columns: Columns) -> Fields:
    """From 0 to the next of a few fixed tops, so that the axis stays still while dragging."""
    largest = max(columns["speedup_high"]) * 1.02
    top = next((t for t in TOPS if t >= largest), largest)
    return axis_fields("speedup S (×)", 0, top, showgrid=True)


def scatter(x: Sequence[float], y: Sequence[float], **fields: Any) -> Fields:
    """A trace."""
    return {"type": "scatter", "x": x, "y": y, **fields}


def _curve(columns: Columns, x: str, symbol: str, colors: Mode, mode: str) -> Fields:
    return scatter(
        columns[x],
        columns["speedup"],
        mode=mode,
        line={"color": INK[colors], "width": 2},
        marker={"size": 5, "color": INK[colors]},
        hovertemplate=f"{symbol} = %{{x:.3~g}}<br>S = %{{y:.2f}}×<extra></extra>",
    )


def _span(columns: Columns, x: str, mode: Mode) -> Fields:
    xs = columns[x]
    return scatter(
        [*xs, *reversed(xs)],
        [*columns["speedup_high"], *reversed(columns["speedup_low"])],
        fill="toself",
        mode="none",
        fillcolor=rgba(INK[mode], 0.07),
        hoverinfo="skip",
    )


def _level(columns: Columns, level: float, mode: Mode) -> Fields:
    strong = level == 1
    line = {"color": ACCENT[mode] if strong else MUTED[mode], "width": 2.5 if strong else 1}
    return scatter(
        columns[_at(level)],
        columns["gamma"],
        mode="lines",
        line=line,
        hovertemplate=f"S = {level:g} at γ = %{{y}}: α = %{{x:.3f}}<extra></extra>",
    )


def _you(x: float, y: float, mode: Mode) -> Fields:
    line = {"width": 2, "color": PAPER[mode]}
    marker = {"size": 12, "color": ACCENT[mode], "line": line}
    return scatter([x], [y], mode="markers", hoverinfo="skip", marker=marker)


def _unity(mode: Mode) -> Fields:
    line = {"color": MUTED[mode], "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": line}


def _unity_note(mode: Mode) -> Fields:
    return {
        **note_beside(1, 1, "S = 1", mode, "right"),
        "xref": "paper",
        "xshift": 0,
        "yshift": -9,
    }


def note_beside(
    x: float, y: float, text: str, mode: Mode, side: str = "", *, above: bool = True
) -> Fields:
    """A label beside a point; `side` is the edge of the text that stays at the point."""
    return {
        "x": x,
        "y": y,
        "text": text,
        "showarrow": False,
        "yshift": 17 if above else -18,
        "xanchor": side or "center",
        "xshift": {"left": 9, "right": -9}.get(side, 0),
        "font": {"size": 12, "color": MUTED[mode]},
    }


def own_note(
    x: float, y: float, text: str, mode: Mode, side: str = "", *, above: bool = True
) -> Fields:
    """The label of the visitor's own point."""
    font = {"size": 13, "color": ACCENT[mode]}
    return {**note_beside(x, y, f"<b>{text}</b>", mode, side, above=above), "font": font}


def _side(gamma: int) -> str:
    """Which edge of a label stays at its point, so that it ends inside the figure."""
    return "left" if gamma <= 3 else "right" if gamma >= LARGEST_GAMMA - 2 else ""
