"""Questions of other services of the centre, answered by the replica that admits: plans, and decisions made again."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.requests import respond
from landbridge.schema.wire.request_v1 import AskReply, PlanRequest, ReplayRequest
from landbridge_ranking import replaying
from landbridge_ranking.planning import Planner

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService

log = logging.getLogger(__name__)

_plan: Final = msgspec.json.Decoder(PlanRequest)
_replay: Final = msgspec.json.Decoder(ReplayRequest)
_encode: Final = msgspec.json.Encoder().encode


class Asks:
    """The responders of one replica."""

    def __init__(self, service: "RankingService") -> None:
        self._service = service
        self._planner = Planner(service.desk, service.clock)

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer until the block is left."""
        bus = self._service.bus
        subscriptions = [
            await respond(bus, subjects.ask("ranking", "plan"), self._answer_plan),
            await respond(bus, subjects.ask("ranking", "replay"), self._answer_replay),
        ]
        try:
            yield
        finally:
            for subscription in subscriptions:
                await subscription.close()

    async def _answer_plan(self, _: str, body: bytes) -> bytes:
        try:
            request = _plan.decode(body)
            found = await self._planner.plan(request.requirements, request.operation)
        except msgspec.MsgspecError as error:
            return _encode(AskReply(found=False, message=f"requirements that ranking cannot read: {error}"))
        return _encode(AskReply(found=True, json=_encode(found)))

    async def _answer_replay(self, _: str, body: bytes) -> bytes:
        try:
            request = _replay.decode(body)
        except msgspec.MsgspecError as error:
            return _encode(AskReply(found=False, message=f"a question that ranking cannot read: {error}"))
        async with self._service.database.transaction(readonly=True) as tx:
            found = await replaying.replayed(tx, request.decision, request.operation)
        if found is None:
            return _encode(AskReply(found=False, message=f"there is no decision {request.decision}"))
        return _encode(AskReply(found=True, json=_encode(found)))
