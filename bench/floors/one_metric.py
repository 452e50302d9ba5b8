"""The floor of a drag: the same slider driving one number."""

import streamlit as st

from lib.ui import inputs
from lib.ui.live_slider import live_slider

st.set_page_config(layout="wide")
inputs.begin()


@st.fragment
def body() -> None:
    st.metric("Value", f"{inputs.value('alpha'):.3f}")
    live_slider("alpha")


body()
