"""Pages run under AppTest on the shell; their numbers are tested in the rooms that compute them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "lib" / "ui" / "shell.py"


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own for each test, and no cache from the test before."""
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    yield
    st.cache_data.clear()
    st.cache_resource.clear()
