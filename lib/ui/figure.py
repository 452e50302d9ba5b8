"""A plotly figure that is updated in place.

`st.plotly_chart` builds a new chart for every new specification (Streamlit 1.67): it goes blank
for a moment, costs several times as much and forgets its zoom. While a slider is dragged that is a
flicker, so figures are drawn by plotly.js itself, the copy that the plotly package brings.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import plotly
import plotly.graph_objects as go
import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

from lib.report.format import csv_text
from lib.report.style import Mode

Columns = Mapping[str, Sequence[object]]
Fields = Mapping[str, Any]

HERE = Path(__file__).parent
LIBRARY = f"assets/plotly-{plotly.__version__}.min.js"


async def _library(_request: Request) -> FileResponse:
    path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return FileResponse(
        path,
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


ROUTE = Route(f"/{LIBRARY}", _library)


@cache
def _component() -> Any:
    return st.components.v2.component(
        "figure",
        html='<h3 class="figure-title"></h3><div class="figure"></div>',
        js=(HERE / "figure.js").read_text(),
        isolate_styles=False,
    )


def mode() -> Mode:
    """The colour mode that the visitor sees."""
    return "dark" if st.context.theme.type == "dark" else "light"


def chart(
    key: str, title: str, figure: go.Figure | Fields, alt: str, columns: Callable[[], Columns]
) -> None:
    """A titled figure with its data as CSV; `columns` are asked for on the click."""
    csv_button(key, columns, f"csv-over-{key}")
    draw(figure, f"plot-{key}", alt, title)


def csv_button(name: str, columns: Callable[[], Columns], key: str = "") -> None:
    """Download columns as `<name>.csv`; they are asked for on the click."""
    st.download_button(
        "CSV",
        lambda: csv_text(columns()),
        f"{name}.csv",
        "text/csv",
        key=key or f"csv-{name}",
        on_click="ignore",
        type="tertiary",
    )


def draw(figure: go.Figure | Fields, key: str, alt: str, title: str = "") -> None:
    """Draw a figure at the height its layout names, with `alt` as its text for screen readers.

    The title is plain text. A mapping with `data` and `layout` is sent as it is; a go.Figure was
    validated when it was built.
    """
    if isinstance(figure, go.Figure):
        figure.layout.template = None
        spec, height = figure.to_json(validate=False), figure.layout.height
    else:
        spec, height = orjson.dumps(figure).decode(), figure["layout"].get("height")
    if not alt or not height:
        raise ValueError(f"figure {key}: give it a text and a height")
    _component()(
        key=key,
        data={"spec": spec, "height": height, "alt": alt, "title": title, "library": LIBRARY},
    )
