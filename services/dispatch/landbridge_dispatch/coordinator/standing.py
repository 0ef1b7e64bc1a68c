"""What ranking asks about what it has charged: whether a placement holds it. Read from the rows, without a lock."""

from typing import Final

import msgspec

from landbridge.domain.ownership.standing import standing
from landbridge.schema.wire import request_v1 as wire
from landbridge.store import Database
from landbridge_dispatch.coordinator import rows
from landbridge_dispatch.coordinator.session import is_id

_request: Final = msgspec.json.Decoder(wire.StandingRequest)
_encode: Final = msgspec.json.Encoder().encode


async def answer(database: Database, body: bytes) -> bytes:
    """Answer how operations stand; nothing while the centre recovers, for the rows are then older than the work."""
    asked = _request.decode(body).items
    async with database.transaction(readonly=True) as tx:
        known = await rows.peek_many(tx, sorted({item.operation for item in asked if is_id(item.operation)}))
        # After the rows: a recovery that began meanwhile makes them worth nothing.
        if await tx.fetchval("select recovering from centre"):
            return _encode(wire.StandingReply(recovering=True))
    states = {state.operation: state for state in known}
    items = tuple(
        wire.Standing(
            operation=item.operation,
            round=item.round,
            state=standing(states.get(item.operation), item.round, item.environment).value,
        )
        for item in asked
    )
    return _encode(wire.StandingReply(items=items))
