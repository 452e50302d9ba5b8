"""A page may ask this machine's own ports only where nobody else can ask the page."""

from types import SimpleNamespace

import pytest
import streamlit as st

from lib.addresses import HOSTS, Allowed
from lib.ui.allowed import app_allowed, is_local


@pytest.mark.parametrize(
    ("address", "visitor", "loopback"),
    [
        ("127.0.0.1", None, True),
        ("::1", None, True),
        ("localhost", None, True),
        ("127.0.0.1", "10.0.0.7", False),
        ("0.0.0.0", None, False),
        ("10.0.0.5", None, False),
        ("", None, False),
        (None, None, False),
    ],
)
def test_loopback(
    monkeypatch: pytest.MonkeyPatch, address: str | None, visitor: str | None, loopback: bool
) -> None:
    monkeypatch.setattr(st, "get_option", {"server.address": address}.__getitem__)
    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=visitor, headers={}))
    monkeypatch.delenv(HOSTS, raising=False)
    assert app_allowed() == Allowed(loopback=loopback)
    monkeypatch.setenv(HOSTS, "gpu:8000")
    assert app_allowed() == Allowed(frozenset({("gpu", 8000)}), loopback)


@pytest.mark.parametrize(
    ("headers", "local"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:8501"}, True),
        ({"Origin": "http://localhost:8501"}, True),
        ({"Origin": "http://[::1]:8501"}, True),
        ({"Origin": "https://draftworth.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://[:1"}, False),
        ({"Origin": "http://localhost.example"}, False),
        ({"Origin": "http://127.0.0.1:8501", "X-Forwarded-For": "10.0.0.7"}, False),
        ({"Forwarded": "for=10.0.0.7"}, False),
        ({"Via": "1.1 proxy"}, False),
    ],
)
def test_a_visitor_whom_a_proxy_of_this_machine_passes_on_is_not_local(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], local: bool
) -> None:
    monkeypatch.setattr(st, "get_option", {"server.address": "127.0.0.1"}.__getitem__)
    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=None, headers=headers))
    assert is_local() == local
