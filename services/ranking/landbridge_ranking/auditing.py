"""The audit of the ledger: charges that no placement holds are found, told, and given back once they are surely over.

Charges end with the events of their operations. Should one never come (set aside as a dead letter, lost with a restored
database), what it would have freed is not held for ever: the admitter asks the operations' owner, whose word is the
same as its event. What may still be placed is told and kept.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError
from landbridge.domain.charge_audit import ChargeAudit, Key, Unowned
from landbridge.domain.ledger import Charge
from landbridge.domain.ownership.standing import Standing
from landbridge.runtime import logs
from landbridge.runtime.failures import TransientFailure
from landbridge.schema.wire import request_v1 as wire
from landbridge.store import StoreError, Tx
from landbridge_ranking import unowned
from landbridge_ranking.measures import given_back
from landbridge_ranking.measures import unowned as unowned_charges

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService

log = logs.get(__name__)

# Found by one look and confirmed by the next: given back well within a minute.
LOOK_EVERY_S: Final = 15.0
# Younger ones are being decided on, offered and claimed.
YOUNGEST: Final = timedelta(seconds=5)
MOST_ASKED: Final = 500
# Behind by more messages than this, the end of what is charged may be among them.
MOST_BEHIND: Final = 1_000
ANSWER_S: Final = 5.0
_STANDINGS: Final = {standing.value: standing for standing in Standing}
_encode: Final = msgspec.json.Encoder().encode
_reply: Final = msgspec.json.Decoder(wire.StandingReply)


class Auditing:
    """Looks every `every_s` seconds for as long as its replica admits."""

    def __init__(self, service: "RankingService", every_s: float = LOOK_EVERY_S) -> None:
        self._service = service
        self._every_s = every_s
        self._audit = ChargeAudit()
        self._shows = True  # whether something is shown; not known at first

    async def run(self) -> None:
        """Look until cancelled. An owner that is away, or recovers, says nothing, and nothing is given back."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self.look()
            except (BusError, StoreError, TransientFailure, msgspec.MsgspecError) as error:
                log.info("charges_not_compared", error=str(error))

    async def look(self) -> None:
        """Compare all charges once with what their operations' owner says."""
        service, now = self._service, self._service.clock.wall()
        if not service.desk.settled or sum(loop.lag() for loop in service.loops) > MOST_BEHIND:
            return
        charges = [
            charge
            for charge in service.desk.admission.ledger.charges()
            if charge.at is None or now - charge.at >= YOUNGEST
        ]
        told = await self._ask(charges)
        if told is None:
            return
        found = self._audit.look(charges, told, now)
        if found or self._shows:
            await service.outbox.commit(lambda tx: self._conclude(tx, found))

    async def _ask(self, charges: Sequence[Charge]) -> dict[Key, Standing] | None:
        """Return how charged operations stand; None while it cannot be told."""
        told: dict[Key, Standing] = {}
        for first in range(0, len(charges), MOST_ASKED):
            items = tuple(
                wire.HeldRound(operation=charge.operation, round=charge.round, environment=charge.environment)
                for charge in charges[first : first + MOST_ASKED]
            )
            body = _encode(wire.StandingRequest(items=items))
            reply = _reply.decode(
                await self._service.bus.request(subjects.ask("coordinator", "standing"), body, ANSWER_S)
            )
            if reply.recovering:
                return None
            # A word of a newer release is none that anything is given back by.
            told |= {
                (item.operation, item.round): _STANDINGS[item.state] for item in reply.items if item.state in _STANDINGS
            }
        return told

    async def _conclude(self, tx: Tx, found: Sequence[Unowned]) -> Sequence[Outbound]:
        """In the admitter's turn: give back what is over and still charged, admit who waited for it, tell all of it."""
        service = self._service
        before = await unowned.shown(tx)
        # What was charged anew since the question, or given back by its own event, is no longer what was found.
        events, still = await service.handler.give_back(tx, found)
        now = service.clock.wall()
        await unowned.keep(tx, still, now)
        after = await unowned.shown(tx)
        tx.after_commit(lambda: self._note(still, before, after))
        return [*events, *unowned.events(before, after, now)]

    def _note(self, found: Sequence[Unowned], before: unowned.Shown, after: unowned.Shown) -> None:
        self._shows = bool(after)
        for name in {*before, *after}:
            unowned_charges.labels(name).set(len(after.get(name, ())))
        for each in found:
            if each.over:
                given_back.labels(each.standing.value).inc()
                log.warning(
                    "charge_given_back",
                    operation=each.charge.operation,
                    round=each.charge.round,
                    environment=each.charge.environment,
                    reason=each.standing.value,
                )
