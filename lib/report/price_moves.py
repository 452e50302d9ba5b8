"""What moves a price, as figures: the bridge, the tornado and the spread of the draws."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from lib.money.bridge import Bridge
from lib.money.sensitivity import OUTCOMES, Bar, Draws, Outcome
from lib.report.format import money, number, percent, plain_plotly
from lib.report.style import BASELINE, INK, MUTED, Mode, arm_colors, layout, rgba
from lib.run import OFF

HEIGHT = 340
BINS = 60
ROW = 46


def bridge_figure(found: Bridge, arm: str, mode: Mode) -> go.Figure:
    """A waterfall from the price without to the price with, in the order that is stated."""
    names = ["without", *(s.name for s in found.steps), "with"]
    starts, ends, level = [0.0], [found.off_usd], found.off_usd
    for step in found.steps:
        starts.append(level)
        level += step.usd
        ends.append(level)
    starts.append(0.0)
    ends.append(found.on_usd)
    color = arm_colors([OFF, arm], mode)
    moved = [step_text(s.usd) for s in found.steps]
    texts = [money(found.off_usd), *moved, money(found.on_usd)]
    bars = go.Bar(
        orientation="h",
        y=names,
        x=[e - s for s, e in zip(starts, ends, strict=True)],
        base=starts,
        marker={"color": [color[OFF], *[rgba(MUTED[mode], 0.55)] * len(moved), color[arm]]},
        hovertext=["", *(plain_plotly(s.why) for s in found.steps), ""],
        hovertemplate="%{y} %{hovertext}<extra></extra>",
    )
    labels = go.Scatter(
        x=[max(s, e) for s, e in zip(starts, ends, strict=True)],
        y=names,
        mode="text",
        text=[f" {plain_plotly(t)}" for t in texts],
        textposition="middle right",
        cliponaxis=False,
        textfont={"color": INK[mode]},
        hoverinfo="skip",
    )
    links = go.Scatter(
        x=[x for e in ends[:-1] for x in (e, e, None)],
        y=[y for pair in pairwise(names) for y in (*pair, None)],
        mode="lines",
        line={"color": MUTED[mode], "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )
    return go.Figure(
        [links, bars, labels],
        layout(
            mode,
            HEIGHT,
            xaxis={
                "title": {"text": "$ per 1M output tokens"},
                "range": [0, 1.25 * max(*starts, *ends)],
                "tickprefix": "$",
            },
            yaxis={"categoryorder": "array", "categoryarray": names[::-1]},
            bargap=0.3,
        ),
    )


def step_text(usd: float) -> str:
    """`−$5.49`, `+$0.50`, or `$0`."""
    if abs(usd) < 1e-12:
        return "$0"
    return f"{'+' if usd > 0 else '−'}{money(abs(usd))}"


def bridge_table(found: Bridge) -> dict[str, list[Any]]:
    """The steps with their dollars and the price after each, in order."""
    rows: list[tuple[str, float | None, float, str]] = [("without", None, found.off_usd, "")]
    level = found.off_usd
    for step in found.steps:
        level += step.usd
        rows.append((step.name, step.usd, level, step.why))
    rows.append(("with", None, found.on_usd, ""))
    names = ("step", "$ per 1M output tokens", "price after it", "because")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def tornado_figure(bars: Sequence[Bar], base: float, outcome: Outcome, mode: Mode) -> go.Figure:
    """One bar an input, from the outcome at its low to that at its high; the widest on top."""
    shown = [b for b in bars if b.swing > 0][::-1]
    names = [plain_plotly(b.label) for b in shown]
    traces: list[Any] = []
    for end, pattern in (("low", ""), ("high", "/")):
        at = [b.at_low if end == "low" else b.at_high for b in shown]
        value = [b.low if end == "low" else b.high for b in shown]
        traces.append(
            go.Bar(
                orientation="h",
                y=names,
                x=[x - base for x in at],
                base=base,
                marker={
                    "color": rgba(MUTED[mode], 0.55),
                    "pattern": {"shape": pattern, "fgcolor": INK[mode], "solidity": 0.15},
                },
                text=[number(float(f"{v:.3g}")) for v in value],
                textposition="outside",
                cliponaxis=False,
                textfont={"color": INK[mode]},
                customdata=at,
                hovertemplate=(
                    f"%{{y}} at its {end} %{{text}}: $%{{customdata:,.4g}}<extra></extra>"
                ),
            )
        )
    ends = [x for b in shown for x in (b.at_low, b.at_high)]
    low, high = min([*ends, base]), max([*ends, base])
    pad = 0.18 * (high - low or abs(base) or 1.0)
    figure = go.Figure(
        traces,
        layout(
            mode,
            90 + ROW * max(2, len(shown)),
            xaxis={
                "title": {"text": OUTCOMES[outcome]},
                "range": [low - pad, high + pad],
                "tickprefix": "$",
            },
            barmode="overlay",
            bargap=0.4,
        ),
    )
    figure.add_vline(x=base, line={"color": BASELINE[mode], "width": 1.5})
    return figure


def tornado_table(bars: Sequence[Bar], outcome: Outcome) -> dict[str, list[Any]]:
    """The ends of each input, the outcome there, and on whose word."""
    return {
        "input": [b.label for b in bars],
        "low": [b.low for b in bars],
        "high": [b.high for b in bars],
        f"{OUTCOMES[outcome]}, at low": [b.at_low for b in bars],
        f"{OUTCOMES[outcome]}, at high": [b.at_high for b in bars],
        "range from": [b.source for b in bars],
    }


def draws_figure(found: Draws, arm: str, mode: Mode) -> go.Figure:
    """The draws of the saving, in percent; speculation is cheaper right of 0."""
    counts, edges = _binned(found)
    color = arm_colors([OFF, arm], mode)[arm]
    figure = go.Figure(
        [
            go.Bar(
                x=100 * (edges[:-1] + edges[1:]) / 2,
                y=counts,
                width=100 * np.diff(edges),
                marker={"color": rgba(color, 0.6), "line": {"width": 0}},
                hovertemplate="%{x:.1f} %: %{y:,} draws<extra></extra>",
            )
        ],
        layout(
            mode,
            HEIGHT - 80,
            xaxis={"title": {"text": "saving, % of the price without"}, "ticksuffix": " %"},
            yaxis={"title": {"text": "draws"}},
            bargap=0,
        ),
    )
    figure.add_vline(x=0, line={"color": BASELINE[mode], "width": 1.5, "dash": "dash"})
    return figure


def _binned(found: Draws) -> tuple[Any, Any]:
    """Counts over the middle 99 %: a few draws far out would hide the rest."""
    low, high = np.quantile(found.saving, (0.005, 0.995))
    return np.histogram(found.saving, BINS, (low, high))


def draws_table(found: Draws) -> dict[str, list[Any]]:
    """The histogram's bins."""
    counts, edges = _binned(found)
    return {"saving from": list(edges[:-1]), "to": list(edges[1:]), "draws": list(counts)}


def draws_sentence(found: Draws) -> str:
    """Median, middle 90 % and the share in which speculation is cheaper."""
    saving, usd = found.of("saving"), found.of("on_usd")
    share = found.cheaper_share
    shown = percent(share) if 0.005 < share < 0.995 else f"{number(round(100 * share, 2))} %"
    return (
        f"In {len(found.saving):,} draws the saving is {percent(saving.median)} in the median, "
        f"{percent(saving.low)} to {percent(saving.high)} in nine of ten, and speculation is "
        f"cheaper in {shown}. The price with it is {money(usd.median)} "
        f"({money(usd.low)} to {money(usd.high)}) per 1M output tokens."
    )
