import asyncio
import base64
import hashlib
from typing import Any

from lib.ui.security import (
    SecurityHeaders,
    content_security_policy,
    entry_page,
    inline_script_hashes,
)


def test_hash_of_an_inline_script() -> None:
    digest = base64.b64encode(hashlib.sha256(b"\n go() \n").digest()).decode()
    html = (
        "<script src='x.js'></script><script type=module src=y></script><script>\n go() \n</script>"
    )
    assert inline_script_hashes(html) == (f"'sha256-{digest}'",)


def test_the_installed_front_end_needs_no_unsafe_script() -> None:
    policy = content_security_policy(entry_page())
    scripts = next(p for p in policy.split("; ") if p.startswith("script-src"))
    assert scripts.startswith("script-src 'self' blob: 'sha256-")
    assert "unsafe" not in scripts


def test_headers_on_http_and_silence_on_websockets() -> None:
    sent: list[dict[str, Any]] = []
    seen: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.accept"})

    async def send(message: Any) -> None:
        sent.append(message)

    app = SecurityHeaders(inner)
    asyncio.run(app({"type": "http"}, None, send))
    asyncio.run(app({"type": "websocket"}, None, send))
    assert seen == ["http", "websocket"]
    names = {name.decode() for name, _ in sent[0]["headers"]}
    assert {"content-security-policy", "x-content-type-options", "x-frame-options"} <= names
    assert sent[-1] == {"type": "websocket.accept"}
