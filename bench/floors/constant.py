"""The floor of a rerun: the screen page's widgets and figures, with constant contents."""

import streamlit as st

from lib.ui import chips, figure, inputs
from lib.ui.live_slider import live_slider

FIGURE = {
    "data": [
        {
            "type": "scatter",
            "x": list(range(16)),
            "y": list(range(16)),
            "mode": "lines+markers",
        }
    ],
    "layout": {"height": 280},
}


def main() -> None:
    st.set_page_config(layout="wide")
    inputs.begin()
    with st.sidebar:
        st.selectbox("Study", ["one", "two"])
        st.caption("constant")
        st.selectbox("Load", [1, 2, 4], index=None)
        with st.expander("More"):
            for name in ("a", "b", "c"):
                st.number_input(name, value=None, key=name)
            st.selectbox("At", ["p50", "p99"])
        for _ in range(5):
            st.caption("link")
    chips.question("Constant?")
    body()
    for place in st.columns(3, border=True):
        with place:
            st.subheader("Constant", anchor=False)
            st.caption("constant")
    st.number_input("x", value=None)
    st.number_input("y", value=None)
    st.button("one")
    st.button("two")


@st.fragment
def body() -> None:
    st.markdown("constant")
    left, right = st.columns([1, 2], gap="large")
    with right:
        for i in range(6):
            st.metric(f"m{i}", "1.00")
        for i in range(4):
            figure.chart(f"c{i}", "constant", FIGURE, "constant", lambda: {"x": [1]})
    with left, st.container(border=True):
        st.selectbox("Example", ["one", "two"])
        for key in ("alpha", "gamma", "c", "step_ms", "answer_tokens", "verify_cost"):
            live_slider(key)


main()
