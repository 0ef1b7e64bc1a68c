"""Questions of the centre's services, answered by the replica that admits: plans, decisions made again, overrides."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.requests import respond
from landbridge.runtime.failures import TransientFailure
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import AskReply, OverrideRequest, PlanRequest, ReplayRequest
from landbridge.store import StoreError
from landbridge_ranking import overriding, replaying
from landbridge_ranking.planning import Planner

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService

log = logging.getLogger(__name__)

_plan: Final = msgspec.json.Decoder(PlanRequest)
_replay: Final = msgspec.json.Decoder(ReplayRequest)
_override: Final = msgspec.json.Decoder(OverrideRequest)
# What a message may have beside its body.
_HEADERS: Final = 4096
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
            await respond(bus, subjects.ask("ranking", "override"), self._answer_override),
        ]
        try:
            yield
        finally:
            for subscription in subscriptions:
                await subscription.close()

    async def _answer_plan(self, _: str, body: bytes) -> bytes:
        try:
            request = _plan.decode(body)
            found: object
            if request.together:
                found = {"items": await self._planner.plan_together([request.requirements, *request.together])}
            else:
                found = await self._planner.plan(request.requirements, request.operation)
        except msgspec.MsgspecError as error:
            return _encode(AskReply(found=False, message=f"requirements that ranking cannot read: {error}"))
        return self._bounded(_encode(AskReply(found=True, json=_encode(found))), 1 + len(request.together))

    def _bounded(self, reply: bytes, operations: int) -> bytes:
        """Return an answer, or where the broker would not take it, what to do."""
        if len(reply) <= self._service.bus.max_payload - _HEADERS:
            return reply
        told = f"the plans of {operations} operations have {len(reply)} bytes; ask for fewer of them at once"
        problem = ProblemError(413, "Too large", told)
        return _encode(AskReply(found=False, json=_encode(problem.body()), message=told))

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

    async def _answer_override(self, _: str, body: bytes) -> bytes:
        """Answer after the commit; a refusal is told as the problem that it is."""
        try:
            found = await overriding.override(self._service, _override.decode(body))
        except msgspec.MsgspecError as error:
            return _encode(AskReply(found=False, message=f"a question that ranking cannot read: {error}"))
        except ProblemError as problem:
            return _encode(AskReply(found=False, json=_encode(problem.body()), message=problem.detail))
        except (StoreError, TransientFailure) as error:
            log.info("an override could not be made: %s", error)
            return _encode(AskReply(found=False, message=f"ranking could not make it now, try again: {error}"))
        return _encode(AskReply(found=True, json=_encode(found)))
