"""Security headers on every response, with a strict content security policy."""

import base64
import hashlib
import re
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc\s*=)[^>]*>(.*?)</script>", re.DOTALL)
FORBIDDEN_FEATURES = ("camera", "geolocation", "microphone", "payment", "usb", "serial", "midi")


def inline_script_hashes(html: str) -> tuple[str, ...]:
    """CSP sources `'sha256-…'` of the inline scripts of an HTML page, in order."""
    digests = (hashlib.sha256(s.encode()).digest() for s in INLINE_SCRIPT.findall(html))
    return tuple(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)


def content_security_policy(html: str) -> str:
    """The policy for a front end whose entry page is `html`.

    `blob:` among the scripts is for the live slider: Streamlit imports an inline component's
    module from a blob URL. Styles are inline because its front end writes them at run time.
    """
    scripts = " ".join(("'self'", "blob:", *inline_script_hashes(html)))
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src {scripts}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "frame-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "object-src 'none'",
        )
    )


def entry_page() -> str:
    """The HTML that the installed Streamlit serves."""
    return (Path(streamlit.__file__).parent / "static" / "index.html").read_text()


class SecurityHeaders:
    """ASGI middleware that adds the headers to every HTTP response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.headers = {
            "Content-Security-Policy": content_security_policy(entry_page()),
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Permissions-Policy": ", ".join(f"{name}=()" for name in FORBIDDEN_FEATURES),
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, send_with_headers)
