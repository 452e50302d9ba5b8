"""Which servers the pages may ask, and what else only a person at this machine may have it do."""

from urllib.parse import urlsplit

import streamlit as st

from lib.addresses import LOCALHOST, Allowed, is_loopback_ip, listed

FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


def app_allowed() -> Allowed:
    """The list of the settings, and this machine's own ports where only this machine can ask."""
    return listed(loopback=is_local())


def is_local() -> bool:
    """Whether the app listens to this machine alone, and the visitor is on it.

    An ASGI server need not listen where the configuration says, so both are looked at. A proxy on
    this machine passes on visitors from elsewhere: it says so, or their browser's Origin does.
    """
    configured = _is_this_machine(st.get_option("server.address") or "")
    return configured and st.context.ip_address is None and not _passed_on()


def _passed_on() -> bool:
    headers = st.context.headers
    origin = headers.get("Origin")
    if any(name in headers for name in FORWARDED):
        return True
    if origin is None:
        return False
    try:
        return not _is_this_machine(urlsplit(origin).hostname or "")
    except ValueError:
        return True


def _is_this_machine(host: str) -> bool:
    return host == LOCALHOST or is_loopback_ip(host)
