"""Decode time over answer length: without speculation, and p50 to p95 with it."""

from lib.report.decode_time import Columns, Decode
from lib.report.screening import Screening
from lib.report.style import BASELINE, INK, PAPER, Mode, rgba
from lib.report.theory_figures import (
    ACCENT,
    Fields,
    axis_fields,
    figure_fields,
    note_beside,
    own_note,
    scatter,
)

# Ends of the time axis, in units of 1, 10, 100, ...
STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
APART = 0.07  # of the axis: nearer than this two labels would overlap
ROOM = 1.22  # the axis goes on right of the last length, for the names of the lines
# Lines rise from the origin, so the upper left corner is free.
CORNER = {
    "xref": "paper",
    "yref": "paper",
    "x": 0.02,
    "y": 1.0,
    "xshift": 0,
    "yshift": 0,
    "yanchor": "top",
    "align": "left",
}


def over_answer(screening: Screening) -> Columns:
    """Decode time over the answer length, in ms or plain steps."""
    return Decode(screening).columns


def decode_over_answer(screening: Screening, mode: Mode) -> Fields:
    """Plain decode time, the band p50 to p95 with speculation, and the answer of N tokens."""
    decode = Decode(screening)
    tokens, plain, p50, p95 = decode.columns.values()
    scale, unit = _scale(decode, max(plain[-1], p95[-1]))
    plain, p50, p95 = ([t * scale for t in ts] for ts in (plain, p50, p95))
    top = _round_up(1.16 * max(plain[-1], p95[-1]))
    data = [
        scatter(
            [*tokens, *reversed(tokens)],
            [*p50, *reversed(p95)],
            fill="toself",
            mode="none",
            fillcolor=rgba(ACCENT[mode], 0.22),
            hoverinfo="skip",
        ),
        _line(tokens, plain, BASELINE[mode], "without", unit),
        _line(tokens, p50, INK[mode], "p50", unit),
        _line(tokens, p95, ACCENT[mode], "p95", unit, dash="dot"),
    ]
    notes = _line_notes(decode.top, plain[-1], p95[-1], p50[-1], top, mode)
    answer = decode.answer
    if answer is not None:
        n = answer.rounds.tokens
        times = [answer.percentile_ms(q) * scale for q in (0.5, 0.95)]
        ring = {"size": 10, "color": ACCENT[mode], "line": {"width": 2, "color": PAPER[mode]}}
        data.append(scatter([n, n], times, mode="markers", hoverinfo="skip", marker=ring))
        p50_text, p95_text = (decode.text(t / scale) for t in times)
        told = f"N = {n:,}: p50 {p50_text}<br>p95 {p95_text}"
        notes.append({**own_note(0, top, told, mode, "left"), **CORNER})
    return figure_fields(
        data,
        mode,
        xaxis=axis_fields(
            "answer length N (tokens)", 0, ROOM * decode.top, tickvals=_ticks(decode.top)
        ),
        yaxis=axis_fields(
            f"decode time ({unit})", 0, top, showgrid=True, nticks=6, tickformat=",~g"
        ),
        annotations=notes,
    )


def decode_alt(screening: Screening) -> str:
    """What the figure shows, in words."""
    decode = Decode(screening)
    text = f"Decode time over answer length up to {decode.top:,} tokens, without and with it."
    if answer := decode.answer:
        p50, p95 = (decode.text(answer.percentile_ms(q)) for q in (0.5, 0.95))
        plain = decode.text(answer.plain_ms)
        text += f" At {answer.rounds.tokens:,} tokens: {plain} without, p50 {p50}, p95 {p95} with."
    return text


def _scale(decode: Decode, largest: float) -> tuple[float, str]:
    """Factor and unit of the time axis."""
    if decode.screening.step_ms is None:
        return 1.0, "plain steps"
    return (1e-3, "s") if largest >= 2000 else (1.0, "ms")


def _round_up(value: float) -> float:
    """The next of a few round numbers, so that the axis stays still while dragging."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next((power * s for s in STEPS if power * s >= value), power * 10)


def _line(
    x: list[float], y: list[float], color: str, name: str, unit: str, dash: str = "solid"
) -> Fields:
    return scatter(
        [0, *x],
        [0, *y],
        mode="lines",
        line={"color": color, "width": 2, "dash": dash},
        hovertemplate=f"{name} at N = %{{x}}: %{{y:.3~s}} {unit}<extra></extra>",
    )


def _ticks(top: int) -> list[int]:
    return [top * part // 4 for part in range(5)]


def _line_notes(
    end: int, plain: float, p95: float, p50: float, top: float, mode: Mode
) -> list[Fields]:
    """The names right of the ends of the lines, pushed apart where they would overlap."""
    named = sorted(((plain, "without"), (p95, "p95"), (p50, "p50")))
    heights: list[float] = []
    for y, _ in named:
        heights.append(max(y, heights[-1] + APART * top) if heights else y)
    over = max(0.0, heights[-1] - (1 - APART / 2) * top)
    place = {"yshift": 0, "xshift": 6}
    return [
        {**note_beside(end, y - over, text, mode, "left"), **place}
        for (_, text), y in zip(named, heights, strict=True)
    ]
