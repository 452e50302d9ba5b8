"""The one way anything here asks another host: where it may, pinned, bounded in bytes and time.

An address is judged as it is written before any name is looked up, a name is looked up once, and
the connection goes to what that one look-up gave. No proxy is taken from the environment.
"""

import io
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    IncompleteRead,
)
from typing import Any, Literal
from urllib.parse import urljoin

from lib.addresses import HOSTS, LOCALHOST, Address, Allowed, address_of, is_loopback_ip
from lib.errors import FetchError

MOST_BYTES = 8 * 2**20
SECONDS = 5.0
MOST_REDIRECTS = 3

Method = Literal["GET", "POST"]
Headers = Sequence[tuple[str, str]]
_Place = tuple[socket.AddressFamily, Any]

_HEAD_BYTES = 64 * 2**10
_MOST_ADDRESSES = 8
_CHUNK = 64 * 2**10
_REDIRECTS = (301, 302, 303, 307, 308)
_KEPT_ELSEWHERE = ("accept", "content-type")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class Response:
    """An answer: `headers` by name in lower case, `body` whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8; what is not becomes U+FFFD."""
        return self.body.decode("utf-8", "replace")


def bearer(token: str) -> Headers:
    """The header that carries a token; none for an empty one."""
    return (("Authorization", f"Bearer {token.strip()}"),) if token.strip() else ()


def fetch(
    url: str,
    allowed: Allowed,
    *,
    method: Method = "GET",
    body: bytes | None = None,
    headers: Headers = (),
    seconds: float = SECONDS,
    max_bytes: int = MOST_BYTES,
) -> Response:
    """What the address answers, redirects within `allowed` followed; any status is an answer.

    `seconds` bounds all of it, from the look-up of the name to the last byte. Headers of the
    caller's do not follow a redirect to another host or port. Raises FetchError in one line that
    names host and port, never a header or the path.
    """
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise FetchError(
                f"header {name[:40]!r}: only plain ASCII without line breaks is allowed"
            )
    deadline = time.monotonic() + seconds
    address = _permitted(address_of(url), allowed)
    for _ in range(MOST_REDIRECTS + 1):
        try:
            response = _ask(address, method, body, headers, deadline, max_bytes)
        except (OSError, HTTPException, ValueError) as error:
            raise FetchError(f"{address.shown}: {_reason(error, address, seconds)}") from None
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or location is None:
            return response
        there = _elsewhere(address, location, allowed)
        if response.status not in (307, 308):
            method, body = "GET", None
        if there.origin != address.origin:
            headers = [h for h in headers if h[0].lower() in _KEPT_ELSEWHERE]
        address = there
    raise FetchError(
        f"{address.shown}: redirects more than {MOST_REDIRECTS} times; give the address it ends at"
    )


def _permitted(address: Address, allowed: Allowed) -> Address:
    if not allowed.permits(address):
        also = " and this machine's own ports" if allowed.loopback else ""
        raise FetchError(
            f"{address.shown} may not be asked: allowed are the addresses of {HOSTS}{also}; "
            f"set {HOSTS}={address.shown} to add it"
        )
    return address


def _elsewhere(address: Address, location: str, allowed: Allowed) -> Address:
    """Where a redirect leads; its fragment is left out."""
    here = f"{address.scheme}://{address.shown}{address.target}"
    try:
        return _permitted(address_of(urljoin(here, location.partition("#")[0])), allowed)
    except (FetchError, ValueError) as error:
        why = error if isinstance(error, FetchError) else "that is no address"
        raise FetchError(f"{address.shown} redirects elsewhere: {why}") from None


def _ask(
    address: Address,
    method: Method,
    body: bytes | None,
    headers: Headers,
    deadline: float,
    max_bytes: int,
) -> Response:
    wire = _connect(address, deadline, 2 * max_bytes + _HEAD_BYTES)
    connection = HTTPConnection(address.host, address.port)
    connection.sock = wire
    with wire.sock:
        connection.putrequest(method, address.target, skip_host=True, skip_accept_encoding=True)
        own = [("Host", address.named), ("Accept-Encoding", "identity"), ("Connection", "close")]
        if body is not None:
            own.append(("Content-Length", str(len(body))))
        for name, value in (*own, *headers):
            connection.putheader(name, value)
        connection.endheaders(body)
        return _whole(address, connection.getresponse(), max_bytes)


def _whole(address: Address, response: HTTPResponse, max_bytes: int) -> Response:
    """The response with its body, refused where it is too large, compressed or broken off."""
    headers: dict[str, str] = {}
    for name, value in response.getheaders():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise FetchError(
            f"{address.shown}: answers compressed though that was not asked for; "
            "turn compression off there"
        )
    if response.status in _REDIRECTS and "location" in headers:
        return Response(response.status, headers, b"")
    found = bytearray()
    if (response.length or 0) <= max_bytes:
        while chunk := response.read(min(_CHUNK, max_bytes + 1 - len(found))):
            found += chunk
            if len(found) > max_bytes:
                break
    if len(found) > max_bytes or (response.length or 0) > max_bytes:
        raise FetchError(
            f"{address.shown}: answers with more than {_size(max_bytes)}, the most that is read; "
            "check that the address is the one you mean"
        )
    if response.length:
        raise FetchError(f"{address.shown}: broke off in the middle of its answer; try again")
    return Response(response.status, headers, bytes(found))


def _size(count: int) -> str:
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count:,} bytes"


class _Wire(io.RawIOBase):
    """A connected socket as http.client uses one, with a deadline and a limit of received bytes."""

    def __init__(self, sock: socket.socket, deadline: float, most: int) -> None:
        self.sock, self.deadline, self.left = sock, deadline, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.left <= 0:
            raise _TooMuch
        self.sock.settimeout(_remaining(self.deadline))
        got = self.sock.recv_into(memoryview(buffer)[: self.left])
        self.left -= got
        return got

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.sock.settimeout(_remaining(self.deadline))
            rest = rest[self.sock.send(rest[:_CHUNK]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, _CHUNK)

    def close(self) -> None:
        """Nothing: http.client lets go of a connection before it has read the answer."""


class _TooMuch(HTTPException):
    """More bytes than any allowed answer takes."""


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connect(address: Address, deadline: float, most: int) -> _Wire:
    """A connection to the first address of the name that takes one; the name is looked up once."""
    places = _places(address, deadline)
    for at, (family, place) in enumerate(places):
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.settimeout(_remaining(deadline) / (len(places) - at))
            sock.connect(place)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.scheme == "https":
                sock.settimeout(_remaining(deadline))
                context = ssl.create_default_context()
                sock = context.wrap_socket(sock, server_hostname=address.host)
            return _Wire(sock, deadline, most)
        except OSError as error:
            if sock is not None:
                sock.close()
            if at == len(places) - 1 or isinstance(error, ssl.SSLError):
                raise
    raise AssertionError("a name without addresses is refused before")


def _places(address: Address, deadline: float) -> list[_Place]:
    found: list[Any] = []

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    # A resolver has time limits of its own that nothing here can shorten.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_remaining(deadline))
    if not found:
        raise TimeoutError
    if isinstance(found[0], Exception):
        raise FetchError(
            f"{address.shown}: no such host is known here; check the name or write its IP address"
        )
    places = [(row[0], row[4]) for row in found[:_MOST_ADDRESSES]]
    if address.host == LOCALHOST and not all(is_loopback_ip(place[0]) for _, place in places):
        raise FetchError(f"{address.shown}: is not this machine here; write 127.0.0.1")
    return places


def _reason(error: Exception, address: Address, seconds: float) -> str:
    """What went wrong and the way out."""
    if isinstance(error, TimeoutError):
        return f"no whole answer within {seconds:g} s; check that the server is up and not stalled"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there; start the server or correct the port"
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message or "it does not match"
        return f"its certificate is not trusted ({why}); have this machine trust who issued it"
    if isinstance(error, ssl.SSLError):
        return "no TLS is spoken there; try http:// instead of https://"
    if isinstance(error, _TooMuch):
        return "answers with more than is read; check that the address is the one you mean"
    if isinstance(error, ConnectionError | IncompleteRead):
        return "closed the connection without a whole answer; look at its log, then try again"
    if isinstance(error, BadStatusLine):
        hint = "; try https://" if address.scheme == "http" else "; check the port"
        return f"what answers there is not HTTP{hint}"
    if isinstance(error, HTTPException | ValueError):
        return "its answer is not whole HTTP; check that the address is the one you mean"
    why = (error.strerror if isinstance(error, OSError) else None) or "not reachable"
    return f"{why}; check the address and the network between"
