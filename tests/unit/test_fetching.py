"""What a hostile server can do to a fetch: nothing but one line."""

import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import fetching
from lib.addresses import Allowed, pairs
from lib.errors import FetchError
from lib.fetching import bearer, fetch

LOOPBACK = Allowed(loopback=True)
TOKEN = "sk-very-secret-1234"
Handler = Callable[[socket.socket, bytes], None]


class Listener:
    """A server on loopback that hands each connection and its request's head to `handler`."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None) -> None:
        self.requests: list[bytes] = []
        self._handler, self._tls = handler, tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                request = read_request(connection)
                self.requests.append(request)
                self._handler(connection, request)
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def read_request(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data.startswith((b"GET", b"POST")):
        return data
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def listening(handler: Handler | bytes, tls: ssl.SSLContext | None = None) -> Iterator[Listener]:
    act = handler if callable(handler) else lambda sock, _head: sock.sendall(handler)
    server = Listener(act, tls)
    try:
        yield server
    finally:
        server.close()


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refused(url: str, allowed: Allowed = LOOPBACK, **options: Any) -> str:
    with pytest.raises(FetchError) as error:
        fetch(url, allowed, **options)
    said = str(error.value)
    assert said.isprintable()
    assert "secret" not in said
    assert error.value.__cause__ is None
    return said


def test_an_answer() -> None:
    with listening(answer(b"up 1\n", "200 OK", "X-A: 1", "X-A: 2")) as server:
        found = fetch(server.url, LOOPBACK)
    assert (found.status, found.body, found.text) == (200, b"up 1\n", "up 1\n")
    assert found.headers["x-a"] == "1, 2"
    head = server.requests[0].decode()
    assert head.startswith("GET /metrics HTTP/1.1\r\n")
    assert f"\r\nHost: 127.0.0.1:{server.port}\r\n" in head
    assert "\r\nAccept-Encoding: identity\r\n" in head


def test_a_post_and_its_token() -> None:
    with listening(answer(b"no", "403 Forbidden")) as server:
        found = fetch(
            server.url, LOOPBACK, method="POST", body=b'{"a": 1}', headers=bearer(f" {TOKEN}\n")
        )
    assert found.status == 403
    head = server.requests[0].decode()
    assert head.startswith("POST ")
    assert f"\r\nAuthorization: Bearer {TOKEN}\r\n" in head
    assert head.endswith(
        "\r\nContent-Length: 8\r\nAuthorization: " + f"Bearer {TOKEN}\r\n\r\n" + '{"a": 1}'
    )
    assert TOKEN not in repr(found)


def test_no_packet_outside_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("asked")

    monkeypatch.setattr(socket, "socket", never)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    said = refused("http://169.254.169.254/latest/secret", headers=bearer(TOKEN))
    assert said.startswith("169.254.169.254:80 may not be asked")
    assert "DRAFTWORTH_MONITOR_HOSTS=169.254.169.254:80" in said
    assert refused("http://127.0.0.1:8000/", Allowed()).startswith("127.0.0.1:8000 may not")
    refused("http://evil.example:8000/", Allowed(pairs("gpu:8000"), True))


def chunks_without_end(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")


def text_without_end(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        sock.sendall(b"a" * 65536)


def headers_without_end(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        sock.sendall(b"X: " + b"a" * 60000 + b"\r\n")


def one_line_without_end(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        sock.sendall(b"a" * 65536)


def continues_without_end(sock: socket.socket, _head: bytes) -> None:
    while True:
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def a_gigabyte(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {2**30}\r\n\r\n".encode())
    while True:
        sock.sendall(b"a" * 65536)


def tiny_chunks(sock: socket.socket, _head: bytes) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"1\r\na\r\n" * 4096)


@pytest.mark.parametrize(
    "handler",
    [
        chunks_without_end,
        text_without_end,
        headers_without_end,
        one_line_without_end,
        continues_without_end,
        a_gigabyte,
        tiny_chunks,
    ],
    ids=lambda f: f.__name__,
)
def test_too_much(handler: Handler) -> None:
    with listening(handler) as server:
        said = refused(server.url, headers=bearer(TOKEN), max_bytes=2**20, seconds=60)
    assert said.startswith(f"127.0.0.1:{server.port}: ")
    assert "check that the address is the one you mean" in said


def test_the_limit_is_the_limit() -> None:
    with listening(answer(b"a" * 1000)) as server:
        assert len(fetch(server.url, LOOPBACK, max_bytes=1000).body) == 1000
        assert "more than 999 bytes" in refused(server.url, max_bytes=999)
    with listening(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 1000) as server:
        assert len(fetch(server.url, LOOPBACK, max_bytes=1000).body) == 1000
        assert "more than 999 bytes" in refused(server.url, max_bytes=999)


def dripping(start: bytes) -> Handler:
    def handle(sock: socket.socket, _head: bytes) -> None:
        sock.sendall(start)
        while True:
            sock.sendall(b"a")
            time.sleep(0.02)

    return handle


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
    ],
)
def test_a_drip_of_bytes_ends_at_the_deadline(start: bytes) -> None:
    with listening(dripping(start)) as server:
        assert "no whole answer within 0.3 s" in refused(server.url, seconds=0.3)


def test_silence_ends_at_the_deadline() -> None:
    with listening(lambda sock, _: time.sleep(30)) as server:
        assert "no whole answer within 0.2 s" in refused(server.url, seconds=0.2)
        tls = server.url.replace("http:", "https:")
        assert "no whole answer within 0.2 s" in refused(tls, seconds=0.2)


def test_a_resolver_that_hangs_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        over.wait(30)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    said = refused("http://gpu:8000", Allowed(pairs("gpu:8000")), seconds=0.2)
    over.set()
    assert said.startswith("gpu:8000: no whole answer")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nshort", "closed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "not HTTP; try https"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "not HTTP; try https"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 500 + b"\r\n", "not whole HTTP"),
        (answer(b"\x1f\x8b\x08", "200 OK", "Content-Encoding: gzip"), "compressed"),
        (answer(b"x", "200 OK", "Content-Encoding: br"), "compressed"),
    ],
)
def test_a_broken_answer(data: bytes, words: str) -> None:
    with listening(data) as server:
        said = refused(server.url, headers=bearer(TOKEN))
    assert said.startswith(f"127.0.0.1:{server.port}: ")
    assert words in said


@given(
    st.sampled_from(
        [
            b"",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: ",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 ",
            b"HTTP/9 0 ",
        ]
    ),
    st.binary(max_size=60),
    st.sampled_from([b"", b"\r\n\r\n"]),
)
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_an_answer_or_one_line(start: bytes, data: bytes, end: bytes) -> None:
    said = ""
    with listening(start + data + end) as server:
        try:
            found = fetch(server.url, Allowed(pairs(f"127.0.0.1:{server.port}")), seconds=20)
            assert found.status >= 0
        except FetchError as error:
            said = str(error)
    assert said == "" or said.isprintable()


@pytest.mark.parametrize("length", ["-5", "x", "1e3", ""])
def test_a_length_that_is_none_is_not_believed(length: str) -> None:
    with listening(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nbody".encode()) as server:
        assert fetch(server.url, LOOPBACK).body == b"body"


def test_more_than_the_length_is_left() -> None:
    with listening(answer(b"body") + b"HTTP/1.1 500 second answer") as server:
        assert fetch(server.url, LOOPBACK).body == b"body"


def test_invalid_text_is_replaced() -> None:
    with listening(answer(b"a\xff\xfeb\x80")) as server:
        assert fetch(server.url, LOOPBACK).text == "a\ufffd\ufffdb\ufffd"


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = refused(f"http://127.0.0.1:{port}/")
    assert said == f"127.0.0.1:{port}: nothing listens there; start the server or correct the port"


def test_a_reset() -> None:
    def reset(sock: socket.socket, _head: bytes) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with listening(reset) as server:
        assert "closed the connection" in refused(server.url)


def test_tls_to_a_plain_port() -> None:
    with listening(answer(b"x")) as server:
        assert "try http://" in refused(server.url.replace("http:", "https:"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_tls_is_checked_against_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    make += ["-nodes", "-subj", "/CN=gpu.rack", "-addext", "subjectAltName=DNS:gpu.rack"]
    subprocess.run([*make, "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def resolve(_host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with listening(answer(b"safe"), context) as server:
        names = Allowed(pairs(f"gpu.rack:{server.port}, other.rack:{server.port}"))
        url = f"https://gpu.rack:{server.port}/"
        assert "certificate is not trusted" in refused(url, names, headers=bearer(TOKEN))
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        assert fetch(url, names, headers=bearer(TOKEN)).body == b"safe"
        assert "certificate is not trusted" in refused(url.replace("gpu", "other"), names)
    assert len(server.requests) == 1


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", status, f"Location: {location}")


def test_a_redirect_off_the_list_is_refused() -> None:
    for location in (
        "http://169.254.169.254/secret",
        "//10.0.0.1/secret",
        "http://2130706433/secret",
        "http://user:secret@127.0.0.1/",
        "file:///etc/passwd",
        "http://[::ffff:127.0.0.1]/secret",
        "http://[/",
    ):
        with listening(redirect(location)) as server:
            said = refused(server.url, headers=bearer(TOKEN))
        assert said.startswith(f"127.0.0.1:{server.port} redirects elsewhere: "), said


def test_redirects_within_the_list_lose_the_token() -> None:
    headers = (*bearer(TOKEN), ("Content-Type", "application/json"))
    with listening(answer(b"here")) as end, listening(redirect(end.url + "?x#part")) as server:
        assert fetch(server.url, LOOPBACK, headers=headers).body == b"here"
        only = Allowed(pairs(f"127.0.0.1:{server.port}"))
        assert "may not be asked" in refused(server.url, only)
    assert TOKEN.encode() in server.requests[0]
    assert b"Authorization" not in end.requests[0]
    assert end.requests[0].startswith(b"GET /metrics?x HTTP")
    assert len(end.requests) == 1


def test_a_redirect_to_the_same_server_keeps_the_token_and_what_is_posted() -> None:
    def move(sock: socket.socket, head: bytes) -> None:
        there = answer(b"here") if b" /v1/x " in head else redirect("/v1/x", "308 Moved")
        sock.sendall(there)

    with listening(move) as server:
        found = fetch(server.url, LOOPBACK, method="POST", body=b"{}", headers=bearer(TOKEN))
    assert found.body == b"here"
    assert server.requests[1].startswith(b"POST /v1/x ")
    assert server.requests[1].endswith(TOKEN.encode() + b"\r\n\r\n{}")


def test_a_redirect_after_a_post_is_asked_for_without_body() -> None:
    def move(sock: socket.socket, head: bytes) -> None:
        sock.sendall(answer(b"") if head.startswith(b"GET /x ") else redirect("/x", "303 See"))

    with listening(move) as server:
        fetch(server.url, LOOPBACK, method="POST", body=b"{}")
    assert b"Content-Length" not in server.requests[1]


def test_redirects_in_a_circle_end() -> None:
    with listening(redirect("/metrics")) as server:
        assert "more than 3 times" in refused(server.url)
        assert len(server.requests) == 4


def test_a_name_is_looked_up_once_and_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        ip = "127.0.0.1" if len(asked) == 1 else "10.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with listening(answer(b"x")) as server:
        allowed = Allowed(pairs(f"gpu.rack:{server.port}"))
        assert fetch(f"http://gpu.rack:{server.port}/", allowed).body == b"x"
    assert asked == ["gpu.rack"]
    assert f"\r\nHost: gpu.rack:{server.port}\r\n".encode() in server.requests[0]


def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(answer(b"x")) as server:
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed = free.getsockname()[1]
        rows = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            for port in (closed, server.port)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
        assert fetch(f"http://localhost:{server.port}/", LOOPBACK).body == b"x"


@pytest.mark.parametrize("allowed", [LOOPBACK, Allowed(pairs("localhost:8000"))])
def test_localhost_must_be_this_machine(monkeypatch: pytest.MonkeyPatch, allowed: Allowed) -> None:
    rows = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 8000)) for ip in ("127.0.0.1", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    assert "is not this machine" in refused("http://localhost:8000/", allowed)


def test_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = refused("http://gpu:8000/secret", Allowed(pairs("gpu:8000")))
    assert said.startswith("gpu:8000: no such host is known here")


def test_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with listening(answer(b"direct")) as server:
        assert fetch(server.url, LOOPBACK).body == b"direct"


@pytest.mark.parametrize("value", ["a\r\nX: 1", "a\nb", "a\x00", "schlüssel"])
def test_a_header_that_would_break_out_is_refused(value: str) -> None:
    said = refused("http://127.0.0.1:9/", headers=[("Authorization", f"secret {value}")])
    assert said == "header 'Authorization': only plain ASCII without line breaks is allowed"


def test_no_token_no_header() -> None:
    assert bearer("") == bearer(" \n") == ()
    assert fetching.SECONDS == 5
    assert fetching.MOST_BYTES == 8 * 2**20
