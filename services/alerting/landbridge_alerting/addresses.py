"""Where a webhook may go. Receivers are configured, yet whoever may set them must not reach into the centre's network.

Every address that a name resolves to is checked, and the connection is made to a checked address, so that a name that
resolves to something else a moment later gains nothing. Private and local targets need an entry in the allow-list.
"""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address

# Ways to write an IPv4 address inside an IPv6 one; what they lead to is checked, not how they look.
_NAT64: Final = IPv6Network("64:ff9b::/96")
_RESOLVE_S: Final = 5.0


class AddressRefusedError(Exception):
    """A webhook's target may not be contacted."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked target: connect to `address`, speak to `host`."""

    scheme: str
    host: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """What may be contacted although it is private: networks such as `10.0.0.0/8`, or exact host names."""

    networks: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> "AllowList":
        """Read entries separated by commas. Raises ValueError for an empty or unusable entry."""
        networks, hosts = [], set()
        for entry in filter(None, (part.strip() for part in text.split(","))):
            if entry[0].isdigit() or ":" in entry:
                networks.append(str(ip_network(entry, strict=False)))
            else:
                hosts.add(entry.lower().rstrip("."))
        return cls(tuple(networks), frozenset(hosts))

    def covers(self, host: str, address: Address) -> bool:
        return host in self.hosts or any(address in ip_network(network) for network in self.networks)


def check_url(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a webhook's URL. Raises AddressRefusedError that says what is wrong."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefusedError(f"the URL cannot be read: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise AddressRefusedError(f"expected http:// or https://, found {parts.scheme or 'no scheme'}")
    host = (parts.hostname or "").lower().rstrip(".")
    if not host:
        raise AddressRefusedError("the URL has no host")
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80)


def is_public(address: Address) -> bool:
    """Tell whether an address is somewhere on the internet, looking through embedded IPv4 addresses."""
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def _embedded(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def choose(host: str, addresses: Sequence[Address], allowed: AllowList) -> Address:
    """Return the address to connect to. Raises AddressRefusedError if any of them is not allowed."""
    if not addresses:
        raise AddressRefusedError(f"{host} has no address")
    for address in addresses:
        if not is_public(address) and not allowed.covers(host, address):
            raise AddressRefusedError(
                f"{host} is at {address}, which is not public; add it to LANDBRIDGE_WEBHOOK_ALLOW if that is intended"
            )
    return addresses[0]


async def resolve(url: str, allowed: AllowList) -> Target:
    """Check a URL and resolve it. Raises AddressRefusedError, or OSError if the name cannot be resolved now."""
    scheme, host, port = check_url(url)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_RESOLVE_S):
        # The resolver also reads forms such as 2130706433 or 0x7f.1: the result is what is checked.
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ip_address(str(item[4][0]).split("%", 1)[0]) for item in found))
    return Target(scheme, host, port, str(choose(host, addresses, allowed)))
