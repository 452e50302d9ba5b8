"""The results page as a person works with it: drop, name, type, map, add."""

import html
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from streamlit.testing.v1 import AppTest

from lib.results.store import EXPORTS, Store
from lib.ui import staging, study

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
OFF = (FIXTURES / "vllm" / "off-c8.json").read_bytes()
SERVER_A = (FIXTURES / "job" / "server-a.json").read_bytes()
SERVER_B = (FIXTURES / "job" / "server-b.json").read_bytes()
HOSTILE = (
    ":red[x] ![i](http://192.0.2.9/p.png) [l](javascript:alert(1)) $x$ "
    "<a href=//e.example>z</a> <img src=x onerror=alert(1)>"
)
HOSTILE_FILE = HOSTILE.replace("/", "_") + ".json"


def store() -> Store:
    opened = study.store()
    assert opened is not None
    return opened


def rows() -> dict[str, int]:
    return {t: pq.read_table(BytesIO(store().export(t))).num_rows for t in EXPORTS}


def drop(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    for name, data in files:
        page.file_uploader[0].upload(name, data)
    return page.run()


def errors(page: AppTest) -> list[str]:
    """What the page refuses, or cannot read by itself; one line each."""
    assert not page.exception
    return [e.value for e in (*page.error, *page.warning)]


def plain(text: str) -> str:
    """Markdown that stands for itself, as a person reads it."""
    return html.unescape(text).replace("\u2060", "")


def table(page: AppTest, prefix: str) -> Any:
    return next(t for t in page.data_editor if str(t.key).startswith(prefix))


def type_cells(page: AppTest, prefix: str, cells: dict[int, dict[str, object]]) -> AppTest:
    key = table(page, prefix).key
    page.session_state[key] = {"edited_rows": cells, "added_rows": [], "deleted_rows": []}
    return page.run()


def add(page: AppTest, name: str) -> AppTest:
    page.text_input(key=f"name-{current(page).round}").set_value(name)
    return page.button(key="add-files").click().run()


def current(page: AppTest) -> staging.Staging:
    found: staging.Staging = page.session_state["staging"]
    return found


def rule(page: AppTest, glob: str, arm: str) -> AppTest:
    page.text_input(key="rule-glob").set_value(glob)
    page.text_input(key="rule-arm").set_value(arm)
    return page.button(key="rule-apply").click().run()


def setting(page: AppTest, field: str, value: str) -> AppTest:
    page.selectbox(key="set-field").set_value(field)
    page.text_input(key="set-value").set_value(value)
    return page.button(key="set-apply").click().run()


def added(page: AppTest, name: str = "mine") -> AppTest:
    drop(page, ("server-a.json", SERVER_A), ("server-b.json", SERVER_B))
    rule(page, "server-a*", "off")
    rule(page, "server-b*", "eagle3:4")
    return add(page, name)


def choose(page: AppTest, fields: dict[str, str]) -> AppTest:
    """Send keys to fields in the mapper's table."""
    shown = list(table(page, "map-").value["key"])
    return type_cells(page, "map-", {shown.index(k): {"field": f} for k, f in fields.items()})


def read_as_mapped(page: AppTest) -> AppTest:
    (button,) = (b for b in page.button if b.label == "Read with this mapping")
    return button.click().run()


def in_hand(page: AppTest, name: str) -> AppTest:
    page.session_state["study"] = name
    return page.run()


def hostile(data: bytes) -> bytes:
    records = [json.loads(line) for line in data.splitlines()]
    for record in records:
        record |= {"model_id": HOSTILE, "label": HOSTILE}
    return "\n".join(json.dumps(r) for r in records).encode()


def markdown_of(page: AppTest) -> list[str]:
    """Every text that the browser reads as Markdown."""
    kinds = ("markdown", "caption", "error", "warning", "info", "success", "subheader", "title")
    texts = [str(e.value) for kind in kinds for e in page.get(kind) if hasattr(e, "value")]
    labelled = ("selectbox", "radio", "text_input", "button", "expander", "toggle", "multiselect")
    texts += [str(e.proto.popover.label) for e in page.get("popover")]
    named: list[Any] = [e for kind in labelled for e in page.get(kind)]
    return texts + [str(e.label) for e in named]
