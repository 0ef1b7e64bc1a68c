"""Logs, outputs and live detail: asked of the environment, authorised and audited here, never stored here."""

from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from landbridge.bus.connection import Bus
from landbridge.bus.errors import NoResponder, Unavailable
from landbridge.bus.requests import query
from landbridge.runtime.auth import Principal
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.common_v1 import Epoch
from landbridge.schema.wire.request_v1 import QueryReply, QueryRequest
from landbridge.store import Database
from landbridge_lineage.state import State

QUERY_SECONDS: Final = 10.0
CHUNK_BYTES: Final = 256 * 1024
_AUDIT: Final = """
insert into audit (id, at, principal, role, action, project, operation, environment, detail, outcome)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
_reply: Final = msgspec.json.Decoder(QueryReply)


class Place(NamedTuple):
    """Where an attempt runs or ran."""

    environment: str
    epoch: str
    attempt: int


class Ask(NamedTuple):
    """One question to an environment. `kind` is logs, outputs, output-chunk or detail."""

    kind: str
    name: str = ""
    offset: int = 0
    limit: int = CHUNK_BYTES
    tail: int = 0


class Live:
    """Asks environments. Every question leaves an audit row before it is sent, and its outcome in it afterwards."""

    def __init__(self, bus: Bus, database: Database, *, timeout_s: float = QUERY_SECONDS) -> None:
        self._bus = bus
        self._database = database
        self._timeout_s = timeout_s

    async def ask(
        self, principal: Principal, state: State, place: Place, ask: Ask, *, audit_id: str, now: datetime
    ) -> QueryReply:
        """Return the environment's answer. Raises ProblemError 503 if it is not reached, 502 if it talks nonsense."""
        generation, _, counter = place.epoch.partition(".")
        request = QueryRequest(
            operation=state.operation,
            epoch=Epoch(generation=int(generation), counter=int(counter)),
            name=ask.name,
            offset=ask.offset,
            limit=ask.limit,
            tail=ask.tail,
        )
        detail = f"attempt {place.attempt} {ask.name} offset {ask.offset} tail {ask.tail}"
        row = (principal.name, principal.role.name.lower(), ask.kind, state.project, state.operation)
        await self._database.execute(_AUDIT, audit_id, now, *row, place.environment, detail, "asked")
        outcome = "failed"
        try:
            answer = await self._query(place.environment, ask.kind, msgspec.json.encode(request))
            outcome = "answered" if answer.found else "not found"
            return answer
        finally:
            await self._database.execute("update audit set outcome = $2 where id = $1", audit_id, outcome)

    async def _query(self, environment: str, kind: str, body: bytes) -> QueryReply:
        try:
            return _reply.decode(await query(self._bus, environment, kind, body, timeout_s=self._timeout_s))
        except (NoResponder, Unavailable) as error:
            detail = f"{error}; what it holds stays there and can be read once it is back"
            raise ProblemError(503, "Environment not reached", detail, headers={"Retry-After": "5"}) from error
        except msgspec.MsgspecError as error:
            raise ProblemError(502, "Unreadable answer", f"environment {environment}: {error}") from error
