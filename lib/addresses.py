"""Addresses of other servers: how they may be written, and which may be asked.

Only one spelling of every address is read, so that a list of addresses means what it says.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lib import settings
from lib.errors import FetchError, InputError

HOSTS = "DRAFTWORTH_MONITOR_HOSTS"
LOCALHOST = "localhost"
PORTS = {"http": 80, "https": 443}

Pair = tuple[str, int]

_LONGEST_URL = 2048
_URL = re.compile(r"(https?)://([^/?]*)([/?].*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True)
class Address:
    """Where a URL points: `host` in lower case, an IP address in its one canonical spelling."""

    scheme: str
    host: str
    port: int
    target: str = field(default="/", repr=False)

    @property
    def shown(self) -> str:
        """host:port, as every message names it."""
        return f"{self._bracketed}:{self.port}"

    @property
    def named(self) -> str:
        """As the header Host names it, without the port that the scheme implies."""
        return self._bracketed if self.port == PORTS[self.scheme] else self.shown

    @property
    def origin(self) -> tuple[str, str, int]:
        """What a header that was meant for it may be sent to."""
        return self.scheme, self.host, self.port

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        """Whether it is written as this machine's own."""
        return self.host == LOCALHOST or is_loopback_ip(self.host)


@dataclass(frozen=True)
class Allowed:
    """What may be asked: `pairs` of host and port, and any port of this machine if `loopback`."""

    pairs: frozenset[Pair] = frozenset()
    loopback: bool = False

    def permits(self, address: Address) -> bool:
        """Whether the address is among them, as it is written."""
        return (address.host, address.port) in self.pairs or (self.loopback and address.is_loopback)


def pairs(text: str) -> frozenset[Pair]:
    """The pairs of `host:port, host:port`. Raises InputError that names what is none."""
    return frozenset(_pair(part) for part in re.split(r"[,\s]+", text) if part)


def _pair(part: str) -> Pair:
    try:
        found = address_of(f"http://{part}")
    except FetchError as error:
        raise InputError(f"{HOSTS}: {error}") from None
    if found.target != "/" or not re.search(r":[0-9]+$", part):
        raise InputError(f"{HOSTS}: {found.shown} is needed as host:port and nothing more")
    return found.host, found.port


def listed(loopback: bool, env: Mapping[str, str] | None = None) -> Allowed:
    """The list of the settings, and this machine's own ports where `loopback`."""
    return Allowed(pairs(str(settings.get(HOSTS, env))), loopback)


def address_of(url: str) -> Address:
    """Where a URL points, by its spelling alone. Raises FetchError in one line."""
    if len(url) > _LONGEST_URL:
        raise FetchError(f"address: longer than {_LONGEST_URL:,} characters; shorten it")
    if re.search(r"[^\x21-\x7e]|\\", url):
        raise FetchError(
            "address: only plain ASCII without spaces and backslashes is read; "
            "write a name of other letters in its xn-- form"
        )
    if "#" in url:
        raise FetchError("address: has a fragment; leave out # and what follows")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise FetchError("address: http://host:port or https://host:port is allowed")
    scheme, authority, target = parts[1].lower(), parts[2], parts[3] or "/"
    if "@" in authority:
        raise FetchError("address: has a user or password; leave it out, a token goes in a header")
    split = _AUTHORITY.fullmatch(authority)
    port = int(split[2] or PORTS[scheme]) if split else 0
    if split is None or not 1 <= port <= 65535:
        raise FetchError(
            "address: a host and a port of 1 to 65535 are needed, as in http://host:8000"
        )
    host = _host(split[1].lower())
    return Address(scheme, host, port, target if target.startswith("/") else f"/{target}")


def _host(host: str) -> str:
    if host.startswith("["):
        return _ip6(host)
    labels = host.split(".")
    if not host or len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise FetchError(
            f"address: {host[:80] or 'an empty host'} is no host name; "
            "letters, digits and hyphens between single dots are allowed"
        )
    if not _NUMBER.fullmatch(labels[-1]):
        return host
    try:
        return _usable(ipaddress.IPv4Address(host), host)
    except ValueError:
        raise FetchError(
            f"address: {host[:80]} is an unusual spelling; write an IPv4 address as four decimal "
            "numbers of 0 to 255 without leading zeros"
        ) from None


def _ip6(host: str) -> str:
    try:
        if "%" in host:
            raise ValueError
        ip = ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        raise FetchError(
            f"address: {host[:80]} is no IPv6 address; write it without a zone, as [::1]:8000"
        ) from None
    if ip.ipv4_mapped is not None or ip.sixtofour is not None or ip.teredo is not None:
        raise FetchError(f"address: {host[:80]} wraps an IPv4 address; write that one instead")
    return _usable(ip, host)


def _usable(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, host: str) -> str:
    if ip.is_unspecified or ip.is_multicast or str(ip) == "255.255.255.255":
        raise FetchError(f"address: {host} is no single host; write 127.0.0.1 for this machine")
    return str(ip)


def is_loopback_ip(host: str) -> bool:
    """Whether it is an IP address of this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
