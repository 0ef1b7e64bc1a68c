"""A running intake service, and what a test does to it and hears from it."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import api
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.bus.state import LastPerSubject
from landbridge.runtime.ids import new_id
from support.wait import wait_until
from unit.documents.documents import a_document, as_json

ADMIN = "admin-token-of-the-tests"
ADMIN_SHA256 = hashlib.sha256(ADMIN.encode()).hexdigest()
SUBMISSION = event_type("submission", "Operation")


def an_operation(name: str = "churn-train", project: str = "retail-eu", **put: Any) -> bytes:
    """Return the bytes of a good operation; further values by dotted path (dots written as `__`)."""
    paths = {path.replace("__", "."): value for path, value in put.items()}
    return as_json(a_document("operation", {"metadata.name": name, "metadata.project": project, **paths}))


class Intake:
    """An HTTP client for intake as admin, the stream's side, and what was told."""

    service: Any = None  # where it runs in this process
    stop: Any = None

    def __init__(self, port: int, bus: Bus) -> None:
        self.port = port
        self.bus = bus
        self.http = self.client(ADMIN)

    def client(self, token: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=20)

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            answer = await self.http.post("/v1/documents", content=as_json(document))
            assert answer.status_code in {200, 202}, answer.text

    async def settle(self) -> None:
        """Apply the project and queue that most tests use."""
        await self.apply(a_document("queue"), a_document("project"))

    async def post(self, body: bytes, key: str = "", path: str = "/v1/operations") -> tuple[int, dict[str, Any]]:
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self.http.post(path, content=body, headers=headers)
        return answer.status_code, answer.json()

    async def send(
        self, bodies: Sequence[bytes], *, ids: Sequence[str] = (), project: str = "retail-eu", source: str = "app"
    ) -> list[str]:
        """Publish submissions to the stream; return their ids."""
        names = list(ids) or [new_id() for _ in bodies]
        found = [
            Outbound(subjects.submit(project), SUBMISSION, body, id=name, source=source)
            for body, name in zip(bodies, names, strict=True)
        ]
        await publish_batch(self.bus, streams.SUBMISSIONS, found)
        return names

    async def told(self, event: str, stream: str = streams.OPERATIONS) -> list[dict[str, Any]]:
        """Return the bodies of all events of a kind that are in the stream, in order, those sent again once."""
        prefix = subjects.operation(event, "x").rsplit(".", 1)[0] if stream == streams.OPERATIONS else event
        return [json.loads(m.body) for m in await self.messages(stream) if m.subject.startswith(prefix + ".")]

    async def messages(self, stream: str) -> list[Inbound]:
        info = await api(self.bus, f"STREAM.INFO.{stream}")
        found: dict[str, Inbound] = {}
        for sequence in range(info["state"]["first_seq"], info["state"]["last_seq"] + 1):
            if sequence:
                message = await read_message(self.bus, stream, sequence)
                found.setdefault(message.id, message)
        return list(found.values())

    async def quiet(self) -> None:
        """Wait until nothing of SUBMISSIONS is unhandled."""

        async def done() -> bool:
            last = (await api(self.bus, f"STREAM.INFO.{streams.SUBMISSIONS}"))["state"]["last_seq"]
            info = await api(self.bus, f"CONSUMER.INFO.{streams.SUBMISSIONS}.intake")
            return int(info["ack_floor"]["stream_seq"]) >= int(last)

        await wait_until(done, "all submissions are handled", timeout_s=30)

    async def close(self) -> None:
        await self.http.aclose()


async def read_message(bus: Bus, stream: str, sequence: int) -> Inbound:
    """Read one message of a stream by its number."""
    from base64 import b64decode

    from landbridge.bus.envelope import decode

    found = await api(bus, f"STREAM.MSG.GET.{stream}", {"seq": sequence})
    message = found["message"]
    head = b64decode(message.get("hdrs", "")).decode()
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return decode(message["subject"], headers, b64decode(message.get("data", "")))


async def current(bus: Bus, stream: str, subject_filter: str) -> dict[str, dict[str, Any]]:
    """Return the last message of every subject, by subject."""
    reader = LastPerSubject(bus, stream, subject_filter)
    found: dict[str, dict[str, Any]] = {}

    async def read() -> None:
        async for message in reader:
            found[message.subject] = msgspec.json.decode(message.body)

    task = asyncio.create_task(read())
    await asyncio.wait_for(reader.caught_up.wait(), 10)
    task.cancel()
    return found


async def stored(bus: Bus, stream: str) -> int:
    """Return how many messages a stream holds."""
    return int((await api(bus, f"STREAM.INFO.{stream}"))["state"]["messages"])
