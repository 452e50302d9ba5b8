"""Pages run under AppTest on the shell; their numbers are tested in the rooms that compute them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "lib" / "ui" / "shell.py"


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own for each test, and no cache from the test before."""
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def page(own_store: None, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The results page in an empty store, with a small upload limit."""
    monkeypatch.setenv("DRAFTWORTH_UPLOAD_MB", "1")
    at = AppTest.from_file(str(SHELL), default_timeout=60)
    at.run()
    return at.switch_page("../../pages/results.py").run()
