"""Colour, marks and layout that every figure shares.

Colour carries identity only: the baseline is slate, each K keeps one Okabe-Ito hue on every page
(Okabe and Ito 2008, "Color Universal Design"), with a lighter or darker variant a mode where the
contrast needs it. Judgement is carried by words and marks.
"""

from collections.abc import Iterable
from typing import Any, Literal

import plotly.graph_objects as go

from lib.run import OFF

Mode = Literal["light", "dark"]

BASELINE = {"light": "#55606e", "dark": "#a9b4c2"}
# Order: the hue of K = 1, 2, 3, …; further arms take the next free one.
HUES: dict[Mode, tuple[str, ...]] = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#a8558a", "#b27d00", "#2f8fc4", "#8a7400"),
    "dark": ("#56b4e9", "#f0803c", "#2ec799", "#dd9cc4", "#e6ad2f", "#8fd0f5", "#f0e442"),
}
# The page behind a figure.
PAPER: dict[Mode, str] = {"light": "#ffffff", "dark": "#12161c"}
INK = {"light": "#1f2933", "dark": "#e6eaf0"}
MUTED = {"light": "#6b7683", "dark": "#98a3b3"}
GRID = {"light": "rgba(31,41,51,0.09)", "dark": "rgba(230,234,240,0.10)"}
SHADE = {"light": "rgba(31,41,51,0.06)", "dark": "rgba(230,234,240,0.07)"}

MARKS = {"wins": "▲", "too close to call": "≈", "loses": "▼"}


def arm_colors(arms: Iterable[str], mode: Mode) -> dict[str, str]:
    """Colour of each arm: slate for off, else the hue of its K, else the next hue unused."""
    hues = HUES[mode]
    colors: dict[str, str] = {}
    waiting = []
    for arm in dict.fromkeys(arms):
        k = arm.rpartition(":")[2]
        if arm == OFF or arm.startswith(f"{OFF} for "):
            colors[arm] = BASELINE[mode]
        elif k.isdigit() and int(k) >= 1 and hues[(int(k) - 1) % len(hues)] not in colors.values():
            colors[arm] = hues[(int(k) - 1) % len(hues)]
        else:
            waiting.append(arm)
    for arm in waiting:
        free = [h for h in hues if h not in colors.values()]
        colors[arm] = free[0] if free else MUTED[mode]
    return colors


def rgba(hex_color: str, alpha: float) -> str:
    """`#rrggbb` with an opacity, as plotly takes it."""
    r, g, b = (int(hex_color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{alpha})"


def layout(mode: Mode, height: int, **kwargs: Any) -> go.Layout:
    """The common layout: transparent, faint grid, height reserved, no legend."""
    return go.Layout(layout_fields(mode, height, **kwargs))


def layout_fields(mode: Mode, height: int, **kwargs: Any) -> dict[str, Any]:
    """The fields of the common layout, not validated: for figures redrawn while dragging."""
    axis: dict[str, Any] = {
        "gridcolor": GRID[mode],
        "zeroline": False,
        "linecolor": GRID[mode],
        "tickfont": {"color": MUTED[mode]},
        "title": {"font": {"color": MUTED[mode], "size": 13}},
        "automargin": True,
        "fixedrange": True,
    }
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 16, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK[mode], "size": 13},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
    }
    for name in ("xaxis", "yaxis"):
        own = kwargs.pop(name, {})
        title = {**axis["title"], **own.get("title", {})}
        base[name] = {**axis, **own, "title": title}
    base.update(kwargs)
    return base
