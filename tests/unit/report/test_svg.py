"""A figure as static SVG shows what plotly would."""

import math
import re
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from lib.evidence.findings import find
from lib.report import svg
from lib.report.load_figures import load_title, multiplier_figure, off_labels
from lib.report.price_figures import price_figure
from lib.results import published
from tests.unit.evidence import builders
from tests.unit.report.dossiers import simulated

SVG = "{http://www.w3.org/2000/svg}"


def parsed(figure: go.Figure, name: str = "f") -> ElementTree.Element:
    return ElementTree.fromstring(svg.of(figure, "A figure.", name))


def texts(root: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in root.iter(f"{SVG}text")]


def test_markers_stand_where_the_data_say() -> None:
    found = simulated()
    figure = price_figure(found.priced, off_labels(found.found), "light", "concurrent requests")
    root = parsed(figure)
    circles = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in root.iter(f"{SVG}circle")]
    points = [
        (x, y)
        for trace in figure.data
        if "markers" in trace.mode
        for x, y in zip(trace.x, trace.y, strict=True)
    ]
    assert len(circles) == len(points) == 21
    # Both axes are logarithmic: pixels are a line in log x and in log y.
    for axis in (0, 1):
        logs = [math.log10(p[axis]) for p in points]
        pixels = [c[axis] for c in circles]
        low, high = logs.index(min(logs)), logs.index(max(logs))
        slope = (pixels[high] - pixels[low]) / (logs[high] - logs[low])
        for at, pixel in zip(logs, pixels, strict=True):
            assert pixel == pytest.approx(pixels[low] + slope * (at - logs[low]), abs=0.11)


def test_labels_ticks_and_crossings_are_drawn() -> None:
    found = find(published.study("guidellm-0.8.1-simulated"))
    root = parsed(multiplier_figure(found, "light"))
    said = texts(root)
    for wanted in ("sim:2", "sim:4", "crosses at 31.45", "not measured", "multiplier M", "64"):
        assert wanted in said
    assert load_title(found) in said
    ticks = [t for t in said if t.endswith("×")]
    assert len(ticks) >= 3
    dashed = [e for e in root.iter(f"{SVG}line") if e.get("stroke-dasharray")]
    assert len(dashed) == 1


def test_hollow_points_stay_hollow() -> None:
    runs = [builders.off(x, 40.0 * x) for x in (1, 2, 4)] + [
        builders.on(x, 60.0 * x) for x in (1, 4)
    ]
    root = parsed(multiplier_figure(find(builders.study(*runs)), "light"))
    hollow = [c for c in root.iter(f"{SVG}circle") if c.get("fill") == "#ffffff"]
    assert len(hollow) == 1


def test_names_are_text() -> None:
    name = "<b>a & b</b> $x$ </text>"
    runs = [builders.off(x, 40.0) for x in (1, 2)]
    runs += [builders.on(x, 60.0, draft_method=name) for x in (1, 2)]
    root = parsed(multiplier_figure(find(builders.study(*runs)), "light"))
    assert f"{name}:4" in texts(root)


def test_two_figures_share_no_id() -> None:
    figure = multiplier_figure(find(published.study("guidellm-0.8.1-simulated")), "light")
    ids = [re.findall(r' id="(.*?)"', svg.of(figure, "x", name)) for name in ("a", "b")]
    assert not set(ids[0]) & set(ids[1])
