"""A running lineage service and what a test does to it."""

import hashlib
from typing import Any

import httpx2
import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.runtime.clock import SystemClock
from landbridge.schema.wire.event_v1 import CatalogueEntry
from landbridge_lineage.service import LineageService
from support.lineage_messages import outbound
from support.wait import wait_until

ADMIN = "admin-token-of-the-tests"


class Lineage:
    """The service, an HTTP client for it as admin, and what a test does to it."""

    def __init__(self, service: LineageService, bus: Bus) -> None:
        self.service = service
        self.bus = bus
        self.http = self.client(ADMIN)
        self._clients = [self.http]

    def client(self, token: str) -> httpx2.AsyncClient:
        base = f"http://127.0.0.1:{self.service.port}"
        return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    async def publish(self, *messages: Inbound) -> None:
        """Publish on OPERATIONS and wait until everything was handled."""
        before = self.service.loops[0].handled
        await publish_batch(self.bus, streams.OPERATIONS, [outbound(each) for each in messages])
        await wait_until(
            lambda: self.service.loops[0].handled >= before + len(messages), "lineage has handled what was published"
        )

    async def state(self, event: str, environment: str, body: msgspec.Struct) -> None:
        message = Outbound(
            subjects.environment(event, environment),
            event_type("environment", type(body).__name__),
            msgspec.json.encode(body),
        )
        await publish_batch(self.bus, streams.ENVIRONMENTS, [message])

    async def document(self, kind: str, name: str, content: dict[str, Any], *, deleted: bool = False) -> None:
        entry = CatalogueEntry(
            kind=kind,
            name=name,
            version=1,
            document=msgspec.json.encode(content),
            deleted=deleted,
            at=SystemClock().wall(),
        )
        message = Outbound(
            subjects.catalogue(kind, name), event_type("catalogue", "CatalogueEntry"), msgspec.json.encode(entry)
        )
        await publish_batch(self.bus, streams.CATALOGUE, [message])

    async def access(self, name: str, role: str, *projects: str) -> httpx2.AsyncClient:
        """Give somebody a token and return a client that uses it, once the service knows."""
        token = f"token-of-{name}-0123456789"
        digest = hashlib.sha256(token.encode()).hexdigest()
        content = {"name": name, "role": role, "projects": list(projects), "tokenSha256": digest}
        await self.document("access", name, content)
        await wait_until(lambda: self.service.auth.principal_of(token), f"{name} is known")
        self._clients.append(self.client(token))
        return self._clients[-1]

    async def get(self, path: str, client: httpx2.AsyncClient | None = None, **params: Any) -> Any:
        answer = await (client or self.http).get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()
