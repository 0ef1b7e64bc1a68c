"""The site's own NATS: commands lie there already, and reports wait there until the centre has stored them.

Reports are stored at the site first, read again in their order, published to the centre with the ids that they have,
and removed once the centre has acknowledged them: publish, then drop. What a crash between the two repeats is known to
the centre by its id.
"""

import asyncio
from typing import Final

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import ApiError
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError, StreamMissing, TooLarge
from landbridge.bus.publish import publish_batch
from landbridge.bus.site_streams import STREAM_NOT_FOUND, Journal, declare_site, sourced, trim
from landbridge.runtime import logs

log = logs.get(__name__)

LOOK_S: Final = 2.0
DROP_EVERY_S: Final = 1.0
TRIM_EVERY: Final = 30  # looks
RETRY_S: Final = 1.0
TRY_S: Final = 5.0
SILENT_S: Final = 60.0
"""The broker needs up to 40 s after a restart of either side before commands come again."""


class OwnBroker:
    """Forwards reports and watches that commands arrive. `await open(bus)`, then `run()`."""

    def __init__(self, environment: str, *, budget_bytes: int, replicas: int) -> None:
        self.waiting = 0
        """Reports (messages) that the centre has not stored yet, as of the last look."""
        self.silent_s: float | None = None
        self.stored = asyncio.Event()
        """Set by whoever has stored a report."""
        self._environment = environment
        self._budget_bytes, self._replicas = budget_bytes, replicas
        self._bus: Bus
        self._journal: Journal
        self._position = 0  # the centre has everything up to here
        self._dropped = 0
        self._streams = 0  # how often they were lost: positions count in one of their lives only
        self._dropping = asyncio.Lock()
        self._cut = False

    async def open(self, bus: Bus) -> None:
        """Declare the site's streams, however long that takes."""
        while True:
            try:
                await declare_site(bus, self._environment, budget_bytes=self._budget_bytes, replicas=self._replicas)
                self._journal = Journal(bus, streams.SITE_REPORTS)
                self._position, last = await self._journal.extent()
            except BusError as error:
                log.warning("site_streams_wait", error=str(error))
                await asyncio.sleep(RETRY_S)
            else:
                break
        self._bus, self._dropped, self.waiting = bus, self._position, last - self._position

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forward(), name="forward")
            group.create_task(self._drop(), name="drop")
            group.create_task(self._look(), name="look")

    def problem(self) -> str:
        """Return what is wrong with the arrival of commands; "" if nothing is."""
        if self.silent_s is None or self.silent_s < SILENT_S:
            return ""
        return (
            f"nothing has come from the centre's commands for {self.silent_s:.0f} s: expected a sign of life every "
            "second; if the lease is renewed meanwhile, restart the site's NATS"
        )

    # -- reports -------------------------------------------------------------------------------------------------------

    async def _forward(self) -> None:
        while True:
            self.stored.clear()
            streams_before = self._streams
            try:
                page = await self._journal.page(self._position)
            except BusError as error:
                log.warning("reports_unread", error=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            if page:
                await self._deliver(page)
                if self._streams != streams_before:
                    continue  # the page was of streams that are gone; those of now begin anew
                self._position = page[-1].stream_sequence
                self.waiting = max(0, self.waiting - len(page))
            else:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self.stored.wait()
        except TimeoutError:
            return

    async def _deliver(self, page: list[Inbound]) -> None:
        """Publish to the centre until it has stored all."""
        while True:
            try:
                await publish_batch(
                    self._bus, streams.REPORTS, [self._outbound(each) for each in page], deadline_s=TRY_S
                )
            except TooLarge as error:
                await self._deliver_singly(page, error)
                return
            except BusError as error:
                self._note_cut(error)
                await asyncio.sleep(RETRY_S)
            else:
                if self._cut:
                    self._cut = False
                    log.info("reports_flow_again", messages=len(page))
                return

    async def _deliver_singly(self, page: list[Inbound], error: TooLarge) -> None:
        """Deliver the others of a page; what the centre can never take stays known in its slot."""
        if len(page) > 1:
            for each in page:
                await self._deliver([each])
            return
        log.error("report_too_large_for_the_centre", id=page[0].id, bytes=len(page[0].body), error=str(error))

    def _note_cut(self, error: BusError) -> None:
        if not self._cut:
            self._cut = True
            reason = "nobody answers at the centre" if isinstance(error, StreamMissing) else str(error)
            log.warning("reports_wait", waiting=self.waiting, error=reason)

    def _outbound(self, message: Inbound) -> Outbound:
        return Outbound(
            subjects.report(self._environment, subjects.token(message.subject, 4)),
            message.type,
            message.body,
            about=message.about,
            id=message.id,
            traceparent=message.traceparent,
            source=message.source,
        )

    async def _drop(self) -> None:
        """Remove what the centre has; not after each page, for every removal is a synchronisation of the disk."""
        while True:
            await asyncio.sleep(DROP_EVERY_S)
            async with self._dropping:
                upto = self._position
                if upto == self._dropped:
                    continue
                try:
                    await self._journal.drop(upto)
                    self._dropped = upto
                except BusError as error:
                    log.warning("reports_not_dropped", error=str(error))

    def _begin_anew(self, position: int = 0) -> None:
        """Forget positions: they were those of streams that are gone."""
        self._streams += 1
        self._position = self._dropped = position

    # -- commands ------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        looks = 0
        while True:
            try:
                await self._look_at_reports()
                self.silent_s = await sourced(self._bus)
                looks += 1
                if looks % TRIM_EVERY == 0 and (upto := await trim(self._bus)):
                    log.info("commands_trimmed", upto=upto)
            except BusError as error:
                log.warning("site_streams_unread", error=str(error))
            await asyncio.sleep(LOOK_S)

    async def _look_at_reports(self) -> None:
        """Count what waits. Streams that are gone, with the disk of the site's NATS, are declared again."""
        try:
            first, last = await self._journal.extent()
        except ApiError as error:
            if error.code != STREAM_NOT_FOUND:
                raise
            log.error("site_streams_lost", error=str(error))
            # Not while something is dropped: of new streams nothing has been delivered yet.
            async with self._dropping:
                self._begin_anew()
                await declare_site(
                    self._bus, self._environment, budget_bytes=self._budget_bytes, replicas=self._replicas
                )
            first, last = await self._journal.extent()
        if last < self._position:
            self._begin_anew(first)
        self.waiting = max(0, last - self._position)
