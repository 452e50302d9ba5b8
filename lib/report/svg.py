"""Our own figures over load as static SVG, for paper: what plotly would draw, without plotly.js.

It draws what `load_figures` and `price_figures` make of a figure: lines, markers and bands with
stated ranges, brackets, a level line, labels. Names in it are escaped.
"""

import math
from collections.abc import Iterator
from html import unescape
from typing import Any

import plotly.graph_objects as go

from lib.report.format import plain_html

WIDTH = 720
LEFT, TOP, BOTTOM = 64, 12, 44
TICKS_WANTED = 6
INK, MUTED, GRID = "#1f2933", "#6b7683", "#e3e7eb"


def of(figure: go.Figure, alt: str, name: str) -> str:
    """The figure as an `<svg>` element; `alt` is its text, `name` tells its parts from others'.

    Both axes must state their range, as every figure over load does.
    """
    return "".join(_Drawing(figure, alt, name).parts())


class _Axis:
    """One axis: from a value (or, in annotations, its logarithm) to pixels."""

    def __init__(self, axis: Any, start: float, end: float) -> None:
        self.log = axis.type == "log"
        self.low, self.high = (float(v) for v in axis.range)
        self.start, self.end = start, end
        self.title = str(axis.title.text or "")
        suffix = axis.ticksuffix or ""
        values = axis.tickvals
        if values is None:
            values = _round_ticks(self.low, self.high)
            texts = [f"{v:g}{suffix}" for v in values]
        else:
            texts = [str(t) for t in axis.ticktext]
        self.ticks = [(float(v), t) for v, t in zip(values, texts, strict=True)]

    def place(self, value: float) -> float:
        """Pixels of a value of the data."""
        return self.place_scaled(math.log10(value) if self.log else value)

    def place_scaled(self, scaled: float) -> float:
        """Pixels of a value as the axis counts it: its logarithm on a log axis."""
        share = (scaled - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def share(self, fraction: float) -> float:
        """Pixels of a fraction of the axis, as `paper` and `domain` references mean it."""
        return self.start + fraction * (self.end - self.start)


def _round_ticks(low: float, high: float) -> list[float]:
    """Steps of 1, 2 or 5 times a power of ten over the range."""
    rough = (high - low) / TICKS_WANTED
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(step * i, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


class _Drawing:
    def __init__(self, figure: go.Figure, alt: str, name: str) -> None:
        layout = figure.layout
        self.figure, self.alt, self.name = figure, alt, name
        self.height = int(layout.height)
        right = max(24, int(layout.margin.r or 0))
        self.x = _Axis(layout.xaxis, LEFT, WIDTH - right)
        self.y = _Axis(layout.yaxis, self.height - BOTTOM, TOP)

    def parts(self) -> Iterator[str]:
        yield (
            f'<svg class="figure" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-label="{plain_html(self.alt)}" xmlns="http://www.w3.org/2000/svg">'
            f"<title>{plain_html(self.alt)}</title>"
        )
        yield (
            f'<defs><clipPath id="{self.name}-plot"><rect x="{self.x.start}" y="{self.y.end}" '
            f'width="{self.x.end - self.x.start}" height="{self.y.start - self.y.end}"/></clipPath>'
            f'<pattern id="{self.name}-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="{GRID}" '
            'stroke-width="3"/></pattern></defs>'
        )
        yield from self._axes()
        yield f'<g clip-path="url(#{self.name}-plot)">'
        yield from (self._shape(s) for s in self.figure.layout.shapes)
        for trace in self.figure.data:
            yield from self._trace(trace)
        yield "</g>"
        for annotation in self.figure.layout.annotations:
            yield from self._annotation(annotation)
        yield "</svg>"

    def _axes(self) -> Iterator[str]:
        for value, text in self.y.ticks:
            y = self.y.place(value)
            yield _line(self.x.start, y, self.x.end, y, GRID, 1)
            yield _text(self.x.start - 8, y + 4, text, MUTED, "end")
        for value, text in self.x.ticks:
            x = self.x.place(value)
            yield _line(x, self.y.start, x, self.y.end, GRID, 1)
            yield _text(x, self.y.start + 18, text, MUTED, "middle")
        yield _text((self.x.start + self.x.end) / 2, self.height - 6, self.x.title, MUTED, "middle")
        middle = (self.y.start + self.y.end) / 2
        turned = f' transform="rotate(-90 14 {middle:.1f})"'
        yield _text(14, middle, self.y.title, MUTED, "middle", extra=turned)

    def _shape(self, shape: Any) -> str:
        if shape.type == "line":
            across = str(shape.xref or "").endswith("domain")
            ends = [self.x.share(v) if across else self.x.place(v) for v in (shape.x0, shape.x1)]
            dash = ' stroke-dasharray="6 5"' if shape.line.dash else ""
            tops = [self.y.place(v) for v in (shape.y0, shape.y1)]
            return _line(
                ends[0], tops[0], ends[1], tops[1], shape.line.color, shape.line.width or 1, dash
            )
        x0, x1 = (self.x.place(v) for v in (shape.x0, shape.x1))
        y0, y1 = (self.y.place_scaled(v) for v in (self.y.low, self.y.high))
        return (
            f'<rect x="{x0:.1f}" y="{y1:.1f}" width="{x1 - x0:.1f}" height="{y0 - y1:.1f}" '
            f'fill="{plain_html(str(shape.fillcolor))}"/>'
        )

    def _trace(self, trace: Any) -> Iterator[str]:
        hatched = trace.fillpattern is not None and bool(trace.fillpattern.shape)
        if hatched:
            x0, x1 = (self.x.place(v) for v in (min(trace.x), max(trace.x)))
            yield (
                f'<rect x="{x0:.1f}" y="{self.y.end:.1f}" width="{x1 - x0:.1f}" '
                f'height="{self.y.start - self.y.end:.1f}" fill="url(#{self.name}-hatch)"/>'
            )
            return
        places = [(self.x.place(x), self.y.place(y)) for x, y in zip(trace.x, trace.y, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        mode = str(trace.mode)
        if trace.fill == "toself":
            yield f'<polygon points="{path}" fill="{plain_html(str(trace.fillcolor))}"/>'
            return
        if "lines" in mode:
            yield (
                f'<polyline points="{path}" fill="none" stroke-width="{trace.line.width or 2}" '
                f'stroke="{plain_html(str(trace.line.color))}"/>'
            )
        if "markers" in mode:
            color = plain_html(str(trace.marker.color))
            hollow = str(trace.marker.symbol or "").endswith("-open")
            fill = (
                f'fill="#ffffff" stroke="{color}" stroke-width="2"' if hollow else f'fill="{color}"'
            )
            size = float(trace.marker.size or 8) / 2
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {fill}/>' for x, y in places)

    def _annotation(self, note: Any) -> Iterator[str]:
        x = self.x.place_scaled(float(note.x))
        place = self.y.share if note.yref == "paper" else self.y.place_scaled
        y = place(float(note.y))
        if note.showarrow:
            tail = (x + float(note.ax or 0), y + float(note.ay or 0))
            yield _line(x, y, *tail, note.arrowcolor or MUTED, 1)
            x, y = tail
        x += float(note.xshift or 0)
        y += {"top": 12.0, "bottom": -4.0}.get(str(note.yanchor), 4.0)
        text = str(note.text)
        anchor = {"left": "start", "right": "end"}.get(str(note.xanchor), "middle")
        bold = ' font-weight="bold"' if text.startswith("<b>") else ""
        # What plotly reads as markup was escaped when the figure was made: back to the plain name.
        plain = unescape(text.removeprefix("<b>").removesuffix("</b>"))
        yield _text(
            x, y, plain, note.font.color or MUTED, anchor, bold, float(note.font.size or 12)
        )


def _line(
    x0: float, y0: float, x1: float, y1: float, color: str, width: float, extra: str = ""
) -> str:
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
        f'stroke="{plain_html(str(color))}" stroke-width="{width}"{extra}/>'
    )


def _text(
    x: float, y: float, text: str, color: str, anchor: str, extra: str = "", size: float = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{plain_html(str(color))}" font-size="{size:g}" '
        f'text-anchor="{anchor}"{extra}>{plain_html(text)}</text>'
    )
