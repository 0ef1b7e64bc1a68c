"""Noticing that the broker has lost messages: a stream that lives never goes back.

What was seen of the stream last is kept in the centre's row, so that a loss is noticed whenever it happened, also one
that newer messages have hidden since. It stays noticed until the logs are published again.
"""

from typing import TYPE_CHECKING, Final

from landbridge.bus import streams
from landbridge.bus.declare import ApiError, api
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError
from landbridge.domain.ownership.leases_centre import Link, Silent
from landbridge.runtime import logs
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments
from landbridge_dispatch.coordinator.measures import alarms

if TYPE_CHECKING:
    from landbridge_dispatch.coordinator.core import Core
    from landbridge_dispatch.coordinator.service import CoordinatorService

log = logs.get(__name__)

_WITHIN_S: Final = 3.0
_STREAM_NOT_FOUND: Final = 10059
_SEEN: Final = "select stream_created, stream_last, stream_lost_at is not null from centre"
# Of two replicas the second compared with what the first has meanwhile gone beyond: it looks again the next time.
_NOTE: Final = """
update centre set stream_created = $1, stream_last = $2 where stream_created = $3 and stream_last = $4
"""
_NOTE_LOSS: Final = """
update centre set stream_created = $1, stream_last = $2, stream_lost_at = coalesce(stream_lost_at, now())
"""


async def last_message(service: "CoordinatorService") -> tuple[str, int] | None:
    """Return when the stream OPERATIONS was created, and the number of its last message; ("", 0): there is none.

    None while the broker cannot tell.
    """
    try:
        found = await api(service.bus, f"STREAM.INFO.{streams.OPERATIONS}", timeout_s=_WITHIN_S)
    except ApiError as error:
        return ("", 0) if error.code == _STREAM_NOT_FOUND else None
    except (BusError, TimeoutError):
        return None
    return str(found["created"]), int(found["state"]["last_seq"])


async def look(service: "CoordinatorService") -> None:
    """Compare the stream with what was seen of it before. Raises StoreError."""
    if not service.bus.healthy():
        return
    row = await service.database.fetchrow(_SEEN)
    # Before the question: what is stored later may not be in the answer. Nothing is locked while it is asked.
    stored = service.bus.stored.get(streams.OPERATIONS, 0)
    now = await last_message(service)
    if row is None or now is None:
        return
    before_created, before_last, known = row
    created, last = now
    expected = max(before_last, stored)
    lost = last < expected or (before_last > 0 and created != before_created)
    if lost:
        # Whatever another replica saw meanwhile: what was stored before the question is gone.
        await service.database.execute(_NOTE_LOSS, created, last)
    elif now != (before_created, before_last):
        await service.database.execute(_NOTE, created, last, before_created, before_last)
    if not lost:
        return
    service.bus.stored[streams.OPERATIONS] = last
    if not known:
        alarms.labels("stream-lost").inc()
        log.error("stream_lost", stream=streams.OPERATIONS, created=created, last=last, expected=expected)


async def made_whole(core: "Core") -> None:
    """Forget a loss that was noticed: the logs were published again. Environments repeat what the broker has lost."""

    async def work(tx: Tx) -> tuple[None, list[Outbound]]:
        events: list[Outbound] = []
        if not await tx.execute("update centre set stream_lost_at = null where stream_lost_at is not null"):
            return None, events
        heard = [name for name, lease in (await environments.all_leases(tx)).items() if lease.link is Link.CONNECTED]
        for lease in (await environments.lock(tx, heard)).values():
            # Their next renewal is refused, so they say hello; what runs is not touched.
            await core.tell_lease(tx, lease, Silent(lease.grants), events)
        return None, events

    await core.run(work, "made-whole")
