"""Serves the constant page with the project's own headers."""

import gc
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from lib.ui import figure
from lib.ui.security import SecurityHeaders

app = st.App(
    Path(__file__).with_name("constant.py"),
    routes=[figure.ROUTE],
    middleware=[Middleware(SecurityHeaders)],
)

gc.collect()
gc.freeze()  # as app.py does: the floor has every advantage that ours has
