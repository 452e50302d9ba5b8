"""The floor of a start: a bare page that imports the same packages."""

import duckdb  # noqa: F401
import numpy  # noqa: F401
import orjson  # noqa: F401
import pandas  # noqa: F401
import plotly.graph_objects as go
import pyarrow.parquet  # noqa: F401
import scipy.special  # noqa: F401
import streamlit as st

go.Figure()
st.write("bare")
