"""What a million tokens costs over load."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from lib.money.pricing import Priced, PricedPair
from lib.report.format import money, plain_plotly
from lib.report.load_figures import band, end_labels, load_layout
from lib.report.style import Mode, arm_colors


def price_figure(
    priced: Mapping[str, Sequence[PricedPair]], off: Mapping[str, str], mode: Mode, title: str
) -> go.Figure:
    """$ per 1M output tokens over load: off and each arm, with the interval of its own repeats.

    `priced` maps an arm's label to its pairs, `off` to the label of its off runs (`off_labels`); a
    load without a price has no point.
    """
    colors = arm_colors([*off.values(), *priced], mode)
    series: dict[str, dict[float, Priced]] = {label: {} for label in off.values()}
    for arm, pairs in priced.items():
        series[off[arm]] |= {p.off.load: p.off for p in pairs}
        series[arm] = {p.on.load: p.on for p in pairs}
    traces: list[Any] = []
    labels: list[tuple[float, float, str, str]] = []
    loads: set[float] = set()
    tops: list[float] = []
    for arm, cells in series.items():
        points = [(x, c.price) for x, c in sorted(cells.items()) if c.price and math.isfinite(x)]
        if not points:
            continue
        color, name = colors[arm], plain_plotly(arm)
        bands = [(x, e.low, e.high) for x, e in points if e.low is not None and e.high is not None]
        traces += band(bands, color)
        traces.append(
            go.Scatter(
                x=[x for x, _ in points],
                y=[e.value for _, e in points],
                mode="lines+markers",
                line={"color": color, "width": 2.5},
                marker={"size": 8, "color": color},
                name=name,
                hovertemplate=f"{name} at %{{x:g}}: $%{{y:,.3f}} per 1M<extra></extra>",
            )
        )
        loads |= {x for x, _ in points}
        tops += [e.value for _, e in points] + [b[2] for b in bands]
        labels.append((points[-1][0], points[-1][1].value, name, color))
    # $ per token falls by orders of magnitude with load: a log axis keeps every load readable.
    y_range = [math.log10(min(tops, default=1.0) / 1.3), math.log10(max(tops, default=10.0) * 1.2)]
    ticks = _nice_ticks(10 ** y_range[0], 10 ** y_range[1])
    figure = go.Figure(
        traces,
        load_layout(
            mode,
            sorted(loads),
            title,
            {
                "title": {"text": "$ per 1M output tokens"},
                "type": "log",
                "range": y_range,
                "tickvals": ticks,
                "ticktext": [money(t) for t in ticks],
            },
        ),
    )
    end_labels(figure, labels, y_range, log=True)
    return figure


def _nice_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten in the range; every whole digit where these are too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 2, 3, 4, 5, 6, 8), tuple(x / 10 for x in range(10, 100, 2))):
        found = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
        if len(found) >= 3:
            break
    return found
