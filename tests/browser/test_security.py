"""Headers, the content security policy in force, and names from files shown as typed."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import serve, until

pytestmark = pytest.mark.browser

NAMES = (
    ":red[x] ![i](http://192.0.2.9/p.png) [l](javascript:alert(1)) $x$ "
    "<a href=//e.example>z</a> <img src=x onerror=alert(1)>",
    ":smile: :material/home: :streamlit: :violet-badge[b] :+1:",
    "http://192.0.2.9/a?b=c&d=e www.e.example me@e.example HTTPS://E.EXAMPLE",
    "**bold** _i_ ~~s~~ `code` ``` $$y$$ \\alpha &lt;b&gt; &#60; <br> a|b|c",
    "# heading",
    "1. first",
    "- item",
    "+ item",
    "> quote",
    "=====",
    "[a]: http://192.0.2.9/",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "%{x} %{customdata[0]} {y} <b>bold</b>",
    "Qwen/Qwen2.5-7B-Instruct (fp8, k=4)",
    "'; DROP TABLE runs; --",
)
HARNESS = """
import json
import plotly.graph_objects as go
import streamlit as st
from lib.estimate import Basis, Estimate
from lib.report.format import plain_md, plain_plotly
from lib.ui import chips, figure

names = json.loads(NAMES)
for i, name in enumerate(names):
    shown = plain_md(name)
    with st.container(key=f"name-{i}"):
        st.markdown(shown)
        st.markdown(f"Study {shown} is in hand")
        st.metric(shown, "1")
        st.caption(shown)
        st.error(shown)
        st.subheader(shown, anchor=False)
        st.button(shown, key=f"b{i}")
        st.badge(shown)
chips.answer(plain_md(names[0]), Estimate(1.0, "", Basis.MEASURED, names[0], how=names[0]))
labels = [plain_plotly(n) for n in names]
figure.draw(
    go.Figure(
        go.Bar(y=labels, x=[1] * len(names), orientation="h", texttemplate=labels[0]),
        go.Layout(height=900, title=labels[0], yaxis={"automargin": True}),
    ),
    "labels",
    names[0],
)
"""
APP = """
import streamlit as st
from starlette.middleware import Middleware
from lib.ui import figure
from lib.ui.security import SecurityHeaders
app = st.App(SCRIPT, routes=[figure.ROUTE], middleware=[Middleware(SecurityHeaders)])
"""


@pytest.fixture(scope="module")
def harness(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("harness")
    script = place / "script.py"
    script.write_text(HARNESS.replace("NAMES", repr(json.dumps(NAMES)), 1))
    app = place / "app.py"
    app.write_text(APP.replace("SCRIPT", repr(str(script))))
    yield from serve(app, place / "store.duckdb", place / "log.txt")


def typed(text: str) -> str:
    return text.replace("\u2060", "")


def test_names_from_files_are_shown_as_typed(harness: str, watched: Any) -> None:
    page = watched.open(harness)
    until(page, f"document.querySelectorAll('.figure .ytick text').length === {len(NAMES)}")
    for i, name in enumerate(NAMES):
        place = page.locator(f".st-key-name-{i}")
        whole = typed(place.inner_text()).splitlines()
        assert whole.count(name) == 7, whole
        assert f"Study {name} is in hand" in whole
        assert typed(place.get_by_role("button").inner_text()) == name
        markup = "a, img, code, strong, em, del, ol, ul, blockquote, h1, .katex"
        found = place.locator(markup).evaluate_all("es => es.map(e => e.outerHTML)")
        assert [f for f in found if "stIcon" not in f] == []
    assert typed(page.inner_text(".st-key-answer-sentence")) == NAMES[0]
    page.get_by_role("button", name="how").click()
    derivation = page.get_by_test_id("stPopoverBody")
    derivation.locator("code").wait_for()
    assert typed(derivation.inner_text()).count(NAMES[0]) == 2
    ticks = page.locator(".figure .ytick text").evaluate_all("ts => ts.map(t => t.textContent)")
    assert set(ticks) == set(NAMES)
    assert page.locator(".figure .gtitle").first.evaluate("t => t.textContent") == NAMES[0]
    assert page.locator(".figure a, .figure image").count() == 0
    assert page.locator(".figure").get_attribute("aria-label") == NAMES[0]


def test_every_answer_carries_the_headers(server: str) -> None:
    for path in ("/", "/screen", "/ready", "/_stcore/health", "/nothing.js"):
        with urllib.request.urlopen(f"{server}{path}") as response:
            headers = response.headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "'unsafe-inline'" not in policy.split("style-src")[0]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "camera=()" in headers["permissions-policy"]


def test_the_policy_is_in_force(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/screen")
    assert watched.complaints == []
    page.evaluate(
        "const s = document.createElement('script'); s.text = 'window.ran = 1';"
        "document.body.append(s)"
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in c for c in watched.complaints)
    watched.complaints.clear()


def test_an_error_shows_one_line_and_no_traceback(
    chromium: Any, watched: Any, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text("raise RuntimeError('secret path /etc/passwd')\n")
    (tmp_path / "failing.py").write_text(
        "import streamlit as st\nfrom app import show_error\n"
        f"app = st.App({str(tmp_path / 'script.py')!r}, on_script_error=show_error)\n"
    )
    log = tmp_path / "log.txt"
    for address in serve(tmp_path / "failing.py", tmp_path / "store.duckdb", log):
        page = watched.open(address)
        page.get_by_text("This page failed").wait_for()
        assert "secret path" not in page.inner_text("body")
        assert "secret path" in log.read_text()
        page.close()
