"""One spelling of an address is read; every other is refused before anything is asked."""

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lib.addresses import HOSTS, Allowed, address_of, listed, pairs
from lib.errors import FetchError, InputError

LOOPBACK = Allowed(loopback=True)


@pytest.mark.parametrize(
    ("url", "host", "port", "target"),
    [
        ("http://127.0.0.1:8000/metrics", "127.0.0.1", 8000, "/metrics"),
        ("http://127.0.0.1", "127.0.0.1", 80, "/"),
        ("https://gpu-3.rack.internal/v1/models?x=1", "gpu-3.rack.internal", 443, "/v1/models?x=1"),
        ("HTTP://LocalHost:1/", "localhost", 1, "/"),
        ("http://h:8000?x=@y", "h", 8000, "/?x=@y"),
        ("http://[::1]:8000/", "::1", 8000, "/"),
        ("http://[0:0:0:0:0:0:0:1]:8000/", "::1", 8000, "/"),
        ("http://[2001:DB8::0:5]/", "2001:db8::5", 80, "/"),
    ],
)
def test_what_is_read(url: str, host: str, port: int, target: str) -> None:
    found = address_of(url)
    assert (found.host, found.port, found.target) == (host, port, target)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "//127.0.0.1:8000",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "http:/127.0.0.1/",
        "http:///metrics",
        "http://:8000/",
        "http://127.0.0.1:/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:8000:9000/",
        "http://127.0.0.1:+80/",
        "http://user@127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1:80@10.0.0.1/",
        "http://127.0.0.1#@10.0.0.1/",
        "http://127.0.0.1/#part",
        "http://127.0.0.1\\@10.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.01/",
        "http://127.0.0.1.5/",
        "http://127.0.0.256/",
        "http://name.0x1/",
        "http://1.2.3/",
        "http://0/",
        "http://0.0.0.0:8000/",
        "http://[::]:8000/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[ff02::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1%eth0]/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://::1/",
        "http://[::1]x:80/",
        "http://[]/",
        "http://localhost./",
        "http://.localhost/",
        "http://a..b/",
        "http://-a.b/",
        "http://a-.b/",
        "http://a%2eb/",
        "http://127.0.0.1%00.evil/",
        "http://127.0.0.1 /",
        " http://127.0.0.1/",
        "http://127.0.0.1/\r\nHost: evil",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\x00",
        "http://127.0.0.1/\x7f",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://münchen.example/",
        "http://①②⑦.0.0.1/",
        f"http://{'a' * 64}.b/",
        f"http://{'a.' * 130}b/",
        f"http://h/{'a' * 3000}",
    ],
)
def test_what_is_refused(url: str) -> None:
    with pytest.raises(FetchError, match=r"^address: ") as error:
        address_of(url)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


@given(ip=st.ip_addresses(v=4), port=st.integers(1, 65535))
def test_an_ipv4_address_has_one_spelling(ip: ipaddress.IPv4Address, port: int) -> None:
    whole = int(ip)
    a, b, c, d = ip.packed
    for host in (str(whole), hex(whole), f"{a}.{b}.{c * 256 + d}", f"0{a:o}.{b}.{c}.{d}"):
        with pytest.raises(FetchError):
            address_of(f"http://{host}:{port}/")
    assume(not (ip.is_unspecified or ip.is_multicast or whole == 2**32 - 1))
    found = address_of(f"http://{ip}:{port}/")
    assert (found.host, found.port) == (str(ip), port)
    assert LOOPBACK.permits(found) == (a == 127)


@given(ip=st.ip_addresses(v=6), port=st.integers(1, 65535))
def test_spellings_of_an_ipv6_address_mean_the_same(ip: ipaddress.IPv6Address, port: int) -> None:
    found = []
    for spelling in (ip.compressed, ip.exploded, ip.exploded.upper()):
        try:
            found.append(address_of(f"http://[{spelling}]:{port}/"))
        except FetchError:
            found.append(None)
    assert len(set(found)) == 1
    if found[0] is not None:
        assert LOOPBACK.permits(found[0]) == (ip == ipaddress.IPv6Address("::1"))
        assert Allowed(pairs(f"[{ip.exploded}]:{port}")).permits(found[0])


@given(st.text(max_size=40), st.sampled_from(["", "http://", "https://", "http://[", "http://1."]))
def test_any_text_is_read_or_refused_in_one_line(text: str, start: str) -> None:
    said = ""
    try:
        found = address_of(start + text)
    except FetchError as error:
        said = str(error)
    else:
        assert 1 <= found.port <= 65535
        assert address_of(f"{found.scheme}://{found.shown}{found.target}") == found
    assert said == "" or said.isprintable()


def test_the_list() -> None:
    allowed = Allowed(pairs("gpu-1:8000, 10.0.0.5:9000\n[fd00::1]:80"))
    for url in (
        "http://gpu-1:8000/x",
        "https://GPU-1:8000",
        "http://10.0.0.5:9000",
        "http://[fd00::1]",
    ):
        assert allowed.permits(address_of(url)), url
    for url in (
        "http://gpu-1",
        "http://gpu-1:8001",
        "http://10.0.0.6:9000",
        "http://127.0.0.1:8000",
    ):
        assert not allowed.permits(address_of(url)), url
    assert not Allowed().permits(address_of("http://127.0.0.1:8000"))
    for url in ("http://localhost:1", "http://127.8.9.1:2", "http://[::1]:3"):
        assert LOOPBACK.permits(address_of(url)), url
    for url in ("http://localhost.evil:1", "http://127.0.0.1.nip.io", "http://169.254.169.254"):
        assert not LOOPBACK.permits(address_of(url)), url


@pytest.mark.parametrize(
    "text",
    ["gpu-1", "gpu-1:", "gpu-1:x", "gpu-1:8000/metrics", "http://gpu-1:8000", "a@b:80", "*:80"],
)
def test_a_pair_that_is_none_names_the_setting(text: str) -> None:
    with pytest.raises(InputError, match=HOSTS):
        listed(False, {HOSTS: f"ok:80,{text}"})


def test_the_setting() -> None:
    assert listed(True, {}) == LOOPBACK
    assert listed(False, {}) == Allowed()
    assert listed(False, {HOSTS: "ok:80"}) == Allowed(frozenset({("ok", 80)}))
