"""ASGI entry: `streamlit run app.py` or `uvicorn app:app`, from the project's root."""

import gc
from pathlib import Path

# Before any session: plotly finds a half-imported pandas in sys.modules and fails on it.
import pandas  # noqa: F401
import plotly.graph_objects as go
import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lib.errors import DraftworthError
from lib.report.format import plain_md
from lib.ui import figure, inbox, inputs
from lib.ui.security import SecurityHeaders


async def ready(_request: Request) -> Response:
    """Whether pages can be served: the data that every page reads loads."""
    inputs.table()
    return PlainTextResponse("ready")


def show_error(error: Exception) -> bool:
    """One line for the visitor; the traceback is in the log."""
    if isinstance(error, DraftworthError):
        st.error(plain_md(str(error)))
    else:
        st.error("This page failed; the log has the reason. Reload, or go on with another page.")
    return True


app = st.App(
    Path(__file__).with_name("lib") / "ui" / "shell.py",
    routes=[Route("/ready", ready), figure.ROUTE],
    middleware=[Middleware(SecurityHeaders)],
    lifespan=inbox.lifespan,
    on_script_error=show_error,
)

# Streamlit collects garbage after every run; what is imported for good need not be walked again.
go.Figure()
gc.collect()
gc.freeze()
