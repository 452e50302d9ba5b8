"""A live server over time: one line a server, the plan's band behind it; acceptance by position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go

from lib.report.format import plain_plotly, shortened, significant
from lib.report.monitor_text import USD, Quantity
from lib.report.style import HUES, MUTED, SHADE, Mode, layout, rgba
from lib.run import Slo
from lib.serving.good_requests import goodput
from lib.serving.plan import Plan
from lib.serving.windows import Window

HEIGHT = 230
PLAN_PX = 36  # beside the plot, for the plan's label
ROW_PX = 16
A_ROW, MOST_NAMES = 3, 8  # names of servers above a plot
DAY_S = 86_400.0

Tracks = Mapping[str, Sequence[Window]]


@dataclass(frozen=True)
class Times:
    """From when to when a figure reaches, Unix time in seconds."""

    start_s: float
    end_s: float

    @property
    def axis(self) -> dict[str, Any]:
        """The axis of time."""
        return {
            "type": "date",
            "range": [_clock(self.start_s), _clock(self.end_s)],
            "showgrid": False,
            "nticks": 5,
            "tickformat": "%H:%M" if self.end_s - self.start_s <= DAY_S else "%b %d",
            "title": {"text": "time, UTC"},
        }


def quantity_figure(
    tracks: Tracks, quantity: Quantity, plan: Plan | None, times: Times, mode: Mode
) -> go.Figure:
    """A quantity over time, a line a server; the plan's value dashed, its interval a band."""
    promised = None if plan is None else quantity.planned(plan)
    tops = [0.0]
    traces: list[Any] = []
    for (name, windows), color in zip(tracks.items(), _colors(tracks, mode), strict=True):
        xs, ys = _line(windows, quantity)
        tops += [y for y in ys if y is not None]
        traces.append(_trace(name, xs, ys, color, quantity.unit))
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    if promised is not None:
        low, high = promised.low, promised.high
        tops += [promised.value] if high is None else [high]
        if low is not None and high is not None:
            shapes.append(_across(low, high) | {"type": "rect", "fillcolor": SHADE[mode]})
        line = {"color": MUTED[mode], "width": 1.5, "dash": "dash"}
        shapes.append(_across(promised.value, promised.value) | {"type": "line", "line": line})
        notes.append(_note("plan", 1, promised.value, MUTED[mode], "left", "middle"))
    top = 1.12 * max(tops) or 1.0
    axis = {"range": [0, top], "title": {"text": quantity.unit}, "nticks": 5}
    if quantity.key == USD:
        axis |= {"tickprefix": "$", "title": {"text": ""}}
    fields: dict[str, Any] = {"xaxis": times.axis, "yaxis": axis, "shapes": shapes}
    found = layout(mode, HEIGHT, **fields)
    if notes:
        found.margin.r = PLAN_PX
    return go.Figure(traces, _with_names(found, tracks, mode, notes))


def goodput_figure(tracks: Tracks, slo: Slo, times: Times, mode: Mode) -> go.Figure:
    """Good requests a second over time, between what is certain and what is possible."""
    traces: list[Any] = []
    top = 0.0
    for (name, windows), color in zip(tracks.items(), _colors(tracks, mode), strict=True):
        rows = goodput_rows(windows, slo)
        xs = [_clock(at_s) for at_s, _ in rows]
        lows, highs = [pair[0] for _, pair in rows], [pair[1] for _, pair in rows]
        top = max(top, *highs, 0.0) if highs else top
        label = plain_plotly(name)
        hover = f"{label}: %{{y:.3g}} req/s at most<extra></extra>"
        edge = {"color": rgba(color, 0.5), "width": 1}
        traces.append(_scatter(xs, highs, edge, hover))
        hover = f"{label}: %{{y:.3g}} req/s at least<extra></extra>"
        fill = {"fill": "tonexty", "fillcolor": rgba(color, 0.16)}
        traces.append(_scatter(xs, lows, {"color": color, "width": 2}, hover, **fill))
    fields: dict[str, Any] = {
        "xaxis": times.axis,
        "yaxis": {"range": [0, 1.12 * top or 1.0], "title": {"text": "req/s"}, "nticks": 5},
    }
    return go.Figure(traces, _with_names(layout(mode, HEIGHT, **fields), tracks, mode, []))


def goodput_rows(windows: Sequence[Window], slo: Slo) -> list[tuple[float, tuple[float, float]]]:
    """When each window ended, and its good requests a second: at least, and at most."""
    found = ((w, goodput(w, slo)) for w in windows)
    return [(_end_s(w), good.rps) for w, good in found if good is not None]


def position_figure(tracks: Tracks, mode: Mode) -> go.Figure:
    """The share of drafts accepted up to each position, over the whole time shown."""
    traces: list[Any] = []
    furthest = 1
    for (name, windows), color in zip(tracks.items(), _colors(tracks, mode), strict=True):
        shares = position_shares(windows)
        furthest = max(furthest, len(shares))
        label = plain_plotly(name)
        traces.append(
            go.Scatter(
                x=list(range(1, len(shares) + 1)),
                y=shares,
                mode="lines+markers",
                line={"color": color, "width": 2},
                marker={"size": 8},
                hovertemplate=f"{label}: position %{{x}}, %{{y:.1%}} accepted<extra></extra>",
            )
        )
    fields: dict[str, Any] = {
        "xaxis": {
            "title": {"text": "position in the draft"},
            "dtick": 1,
            "range": [0.5, furthest + 0.5],
            "showgrid": False,
        },
        "yaxis": {"range": [0, 1.05], "tickformat": ".0%", "nticks": 5},
    }
    return go.Figure(traces, _with_names(layout(mode, HEIGHT, **fields), tracks, mode, []))


def position_shares(windows: Sequence[Window]) -> list[float]:
    """Accepted at each position over drafts; empty where no position was counted."""
    counted = [w for w in windows if w.counters.accepted_per_position and w.counters.drafts]
    if not counted:
        return []
    drafts = sum(w.counters.drafts or 0 for w in counted)
    longest = max(len(w.counters.accepted_per_position or ()) for w in counted)
    sums = [0] * longest
    for window in counted:
        for at, accepted in enumerate(window.counters.accepted_per_position or ()):
            sums[at] += accepted
    return [accepted / drafts for accepted in sums]


def lengths_vary(windows: Sequence[Window]) -> bool:
    """Whether some drafts were shorter than the longest, so that not all reached each position."""
    counted = [w.counters for w in windows if w.counters.accepted_per_position]
    longest = max((len(c.accepted_per_position or ()) for c in counted), default=0)
    return any((c.draft_tokens or 0) < longest * (c.drafts or 0) for c in counted)


def columns(tracks: Tracks, shown: Sequence[Quantity]) -> dict[str, list[object]]:
    """Every window shown, one row each, for CSV."""
    rows = [(name, w) for name, windows in tracks.items() for w in windows]
    found: dict[str, list[object]] = {
        "server": [name for name, _ in rows],
        "began, UTC": [_clock(w.began_at_s) for _, w in rows],
        "seconds": [round(w.seconds, 3) for _, w in rows],
    }
    for quantity in shown:
        found[quantity.key] = [quantity.of(w) for _, w in rows]
    found["speculation"] = [w.speculation for _, w in rows]
    found["restarts"] = [w.restarts for _, w in rows]
    return found


def goodput_columns(tracks: Tracks, slo: Slo) -> dict[str, list[object]]:
    """The bounds of goodput, one row a window, for CSV."""
    rows = [(name, *row) for name, windows in tracks.items() for row in goodput_rows(windows, slo)]
    return {
        "server": [name for name, *_ in rows],
        "ended, UTC": [_clock(at_s) for _, at_s, _ in rows],
        "goodput req/s, at least": [pair[0] for *_, pair in rows],
        "goodput req/s, at most": [pair[1] for *_, pair in rows],
    }


def position_columns(tracks: Tracks) -> dict[str, list[object]]:
    """Acceptance by position, one row a server and position, for CSV."""
    rows = [
        (name, at, share)
        for name, windows in tracks.items()
        for at, share in enumerate(position_shares(windows), 1)
    ]
    return {
        "server": [name for name, *_ in rows],
        "position": [at for _, at, _ in rows],
        "accepted share": [share for *_, share in rows],
    }


def quantity_alt(tracks: Tracks, quantity: Quantity, plan: Plan | None) -> str:
    """The figure in words: the last value of each server, and the plan's."""
    last = []
    for name, windows in tracks.items():
        known = [y for y in map(quantity.of, windows) if y is not None]
        last.append(f"{name} {significant(known[-1]) if known else 'no value'}")
    promised = quantity.plan_text(plan)
    planned = f" The plan has {promised}." if promised else ""
    return f"{quantity.title} over time, now {', '.join(last)}.{planned}"


def _line(windows: Sequence[Window], quantity: Quantity) -> tuple[list[str], list[float | None]]:
    """Points at the ends of windows; a step without data breaks the line."""
    xs: list[str] = []
    ys: list[float | None] = []
    ended_s: float | None = None
    for window in windows:
        if ended_s is not None and window.began_at_s > ended_s + window.seconds / 2:
            xs.append(_clock(window.began_at_s))
            ys.append(None)
        xs.append(_clock(_end_s(window)))
        ys.append(quantity.of(window))
        ended_s = _end_s(window)
    return xs, ys


def _trace(
    name: str, xs: Sequence[str], ys: Sequence[float | None], color: str, unit: str
) -> go.Scatter:
    hover = f"{plain_plotly(name)}: %{{y:.4~g}} {unit}<extra></extra>"
    # A lone point between two breaks has no line: it needs its mark.
    mode = "lines+markers" if len(ys) < 40 else "lines"
    return _scatter(xs, ys, {"color": color, "width": 2}, hover, mode=mode, marker={"size": 5})


def _scatter(
    xs: Sequence[str],
    ys: Sequence[float | None],
    line: Mapping[str, Any],
    hover: str,
    **more: Any,
) -> go.Scatter:
    return go.Scatter(x=xs, y=ys, line=line, hovertemplate=hover, **{"mode": "lines", **more})


def _across(low: float, high: float) -> dict[str, Any]:
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": low, "y1": high}
    return {**place, "layer": "below", "line": {"width": 0}}


def _note(text: str, x: float, y: float, color: str, xanchor: str, yanchor: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "xanchor": xanchor,
        "yanchor": yanchor,
        "showarrow": False,
        "font": {"color": color, "size": 12},
    }


def _with_names(
    fields: go.Layout, tracks: Tracks, mode: Mode, notes: Sequence[dict[str, Any]]
) -> go.Layout:
    """The servers' names above the plot in their colours, where there are several."""
    if len(tracks) > 1:
        drawn = shortened([plain_plotly(name) for name in tracks])
        names = [
            f"<b><span style='color:{color}'>{name}</span></b>"
            for name, color in zip(drawn.values(), _colors(tracks, mode), strict=True)
        ]
        if len(names) > MOST_NAMES:
            names = [*names[:MOST_NAMES], f"and {len(names) - MOST_NAMES} more"]
        rows = [" · ".join(names[at : at + A_ROW]) for at in range(0, len(names), A_ROW)]
        above = _note("<br>".join(rows), 0, 1, MUTED[mode], "left", "bottom")
        fields.margin.t = 10 + ROW_PX * len(rows)
        notes = [*notes, above | {"yref": "paper", "align": "left"}]
    fields.annotations = tuple(notes)
    return fields


def _colors(tracks: Tracks, mode: Mode) -> list[str]:
    hues = HUES[mode]
    return [hues[at % len(hues)] for at in range(len(tracks))]


def _end_s(window: Window) -> float:
    return window.began_at_s + window.seconds


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
