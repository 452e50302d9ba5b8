"""A slider that tells Python its value while it is dragged, with an exact entry beside it.

Streamlit's own slider reruns on release only. The browser part lives in live_slider.js and .css;
it sends at most one value in 60 ms, and the next one only when the last was drawn.
"""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from lib.ui import inputs

HERE = Path(__file__).parent
WHOLE = "live whole page"
DRAGGED = "live dragged"
HTML = """
<div class="live">
  <div class="head">
    <label class="name" for="range"></label>
    <button class="why" type="button" aria-expanded="false" aria-controls="help">?</button>
    <span class="entry">
      <input id="exact" type="text" inputmode="decimal" autocomplete="off" spellcheck="false">
      <button class="clear" type="button" hidden>×</button>
    </span>
    <span class="unit"></span>
  </div>
  <p id="help" class="help" hidden></p>
  <input id="range" type="range" step="any" aria-describedby="say">
  <div class="foot">
    <span class="min"></span>
    <span id="say" class="say" role="status"></span>
    <span class="max"></span>
  </div>
</div>
"""


@cache
def _component() -> Any:
    return st.components.v2.component(
        "live_slider",
        html=HTML,
        css=(HERE / "live_slider.css").read_text(),
        js=(HERE / "live_slider.js").read_text(),
    )


def live_slider(key: str) -> inputs.Value:
    """Draw the input of that key and give its value; None while it is empty.

    Call it inside the fragment that shows what the value changes, after the figures: drawing the
    slider last is what acknowledges a value, so a drag never outruns the figures.
    """
    row = inputs.table()[key]
    mounted = f"live-{key}"

    def taken() -> None:
        sent = st.session_state[mounted].get("sent") or {}
        st.session_state[DRAGGED] = not sent.get("final")
        if inputs.take(key, sent.get("value")) and sent.get("final"):
            inputs.write_url()

    sent = (st.session_state.get(mounted) or {}).get("sent") or {}
    _component()(
        key=mounted,
        data={
            "key": key,
            "label": row.label,
            "unit": row.unit,
            "min": row.min,
            "max": row.max,
            "step": row.step,
            "kind": row.kind,
            "curve": row.curve,
            "scale": row.shown_scale,
            "start": row.start,
            "allowed": row.range_text,
            "empty": row.empty,
            "help": row.help,
            "value": inputs.value(key),
            "revision": inputs.revision(key),
            "sequence": sent.get("sequence", 0),
        },
        on_sent_change=taken,
    )
    return inputs.value(key)


def begin_page() -> None:
    """First thing of a page whose fragment calls `whole_page_unless_dragged`."""
    st.session_state[WHOLE] = True
    st.session_state[DRAGGED] = False


def whole_page_unless_dragged() -> None:
    """First thing of a fragment that other parts of the page rest on: they follow every change,
    and a drag when it ends; while a slider is dragged the fragment alone is drawn."""
    whole = st.session_state.pop(WHOLE, False)
    dragged = st.session_state.pop(DRAGGED, False)
    if not (whole or dragged):
        st.rerun()
