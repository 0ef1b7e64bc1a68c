"""A name whose address changes between the check and the use: the address that was checked is the one that is used."""

import asyncio
import random
import socket
from ipaddress import ip_address
from typing import Any

import httpx2
import pytest

from landbridge_alerting.addresses import AllowList, is_public
from landbridge_alerting.delivery import DeliveryError, Sender

PUBLIC, INSIDE = "93.184.216.34", ("127.0.0.1", "169.254.169.254", "10.0.0.7", "::1", "::ffff:10.0.0.7")


class Resolver:
    """Answers with another address each time it is asked for a name, as a hostile name server does."""

    def __init__(self, seed: int) -> None:
        self.asked: list[str] = []
        self._chance = random.Random(seed)

    async def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        first = host not in self.asked
        self.asked.append(host)
        hostile = self._chance.choice(INSIDE)
        address = hostile if not first or host.startswith("inside") else PUBLIC
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]


async def test_no_flip_of_a_name_leads_to_an_inner_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver, connected = Resolver(1), list[tuple[str, str]]()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)

    def answer(request: httpx2.Request) -> httpx2.Response:
        connected.append((request.url.host, request.headers["host"]))
        return (
            httpx2.Response(302, headers={"Location": "http://127.0.0.1/"})
            if len(connected) % 5 == 0
            else httpx2.Response(200)
        )

    sender = Sender(AllowList(), timeout_s=5.0)
    await sender.close()
    sender._client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), follow_redirects=False)
    refused = 0
    for number in range(200):
        name = f"{'inside' if number % 4 == 3 else 'outside'}-{number}.example"
        scheme = "https" if number % 2 else "http"
        try:
            await sender.post(f"{scheme}://{name}:8443/hook", b"{}")
        except DeliveryError as error:
            refused += error.refused
    await sender.close()

    assert len(resolver.asked) == len(set(resolver.asked)) == 200, "each name is resolved once"
    assert [address for address, _ in connected if address != PUBLIC] == []
    assert all(host.startswith("outside-") for _, host in connected), "the receiver still sees the name it goes by"
    assert (len(connected), refused) == (150, 50 + 30)
    assert not any(is_public(ip_address(address)) for address in INSIDE)
