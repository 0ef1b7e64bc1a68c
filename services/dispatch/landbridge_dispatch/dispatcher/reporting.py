"""Reports go out in lists: at once when idle, in growing batches under load, again and again until stored.

What waits here is lost with the process, and need not be kept: every report that matters can be made again from the
slots, and is, in every new term, until the centre has settled it.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.errors import BusError, TooLarge
from landbridge.bus.ids import new_event_id
from landbridge.bus.publish import Publisher
from landbridge.domain.ownership import environment_model as own
from landbridge.runtime import logs
from landbridge.runtime.failpoints import failpoint
from landbridge.schema.wire.report_v1 import (
    AttemptReport,
    AttemptReports,
    AttemptState,
    Evidence,
    EvidenceReports,
    Inventory,
    SlotState,
    Survey,
    SurveyedSlot,
)
from landbridge_dispatch.dispatcher.wire import attempt_report

log = logs.get(__name__)

LIST_MAX: Final = 250
LIST_BYTES: Final = 400_000
MOST_SURVEYED: Final = 3_000
MESSAGE_CHARS_MAX: Final = 2000
RETRY_S: Final = 1.0
FEW: Final = 4
LINGER_S: Final = 0.005
_encode: Final = msgspec.json.Encoder().encode


_Item = TypeVar("_Item", AttemptReport, SlotState)


class Reporter:
    """Publishes attempts' reports, inventories and evidence of one environment."""

    def __init__(
        self, environment: str, incarnation: str, *, subject: Callable[[str, str], str] = subjects.report
    ) -> None:
        self.term = 0
        self.on_stored: Callable[[], None] = lambda: None
        self._subject = subject
        self._environment = environment
        self._incarnation = incarnation
        self._publisher: Publisher
        self._connected = asyncio.Event()
        self._waiting: dict[tuple[str, int, int, str], AttemptReport] = {}
        self._in_hand = 0
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, operation: str, report: own.Report, detail: AttemptReport | None = None, message: str = "") -> None:
        """Take a report; one that waits of the same placement and state is replaced by it."""
        epoch = report.epoch
        key = (operation, epoch.generation, epoch.counter, report.state)
        self._waiting[key] = attempt_report(operation, report, detail, message)
        self._empty.clear()
        self._arrived.set()

    @property
    def waiting(self) -> int:
        return len(self._waiting) + self._in_hand

    async def flush(self) -> None:
        """Return once everything that was added is stored."""
        await self._empty.wait()

    async def run(self, bus: Bus) -> None:
        """Publish until cancelled; what cannot be published now is tried again."""
        self._publisher = Publisher(bus)
        self._connected.set()
        last = 0
        while True:
            await self._arrived.wait()
            if last > FEW:
                # Under load a short pause makes lists longer; a lone report is never held up.
                await asyncio.sleep(LINGER_S)
            self._arrived.clear()
            batch, self._waiting = self._waiting, {}
            last = self._in_hand = len(batch)
            await self._publish_attempts(list(batch.values()))
            self._in_hand = 0
            if not self._waiting:
                self._empty.set()

    async def _publish_attempts(self, reports: Sequence[AttemptReport]) -> None:
        messages = [self._attempts(chunk) for chunk in _chunks(reports)]
        if any(report.state is AttemptState.FINISHED for report in reports):
            failpoint("dispatcher.before-final-report")
        try:
            await self._store(messages)
        except TooLarge as error:
            if len(reports) == 1:
                log.error("report_too_large", operation=reports[0].operation, error=str(error))
                await self._store([self._attempts([_shortened(reports[0])])])
                return
            for report in reports:
                await self._publish_attempts([report])

    async def publish_evidence(self, contract_version: int, items: Sequence[Evidence]) -> None:
        """Store evidence."""
        body = _encode(EvidenceReports(contract_version=contract_version, items=tuple(items)))
        await self._store([self._message("evidence", "EvidenceReports", body)])

    async def publish_inventory(self, term: int, slots: Sequence[SlotState]) -> None:
        """Store a whole inventory, in as many parts as it takes."""
        chunks = list(_chunks(slots)) or [[]]
        messages = [
            self._message(
                "inventory",
                "Inventory",
                _encode(
                    Inventory(
                        incarnation=self._incarnation, term=term, part=part, parts=len(chunks), slots=tuple(chunk)
                    )
                ),
            )
            for part, chunk in enumerate(chunks, 1)
        ]
        await self._store(messages)

    async def publish_survey(self, at: datetime, slots: Sequence[SurveyedSlot]) -> None:
        """Store what is here, as much as one message takes."""
        listed = tuple(slots[:MOST_SURVEYED])
        complete = len(listed) == len(slots)
        survey = Survey(incarnation=self._incarnation, term=self.term, at=at, complete=complete, slots=listed)
        await self._store([self._message("survey", "Survey", _encode(survey))])

    def _attempts(self, reports: Sequence[AttemptReport]) -> Outbound:
        body = _encode(AttemptReports(incarnation=self._incarnation, term=self.term, items=tuple(reports)))
        return self._message("attempts", "AttemptReports", body)

    def _message(self, kind: str, name: str, body: bytes) -> Outbound:
        # The id is made once: what is published again after a lost answer stays the same message.
        return Outbound(self._subject(self._environment, kind), event_type("report", name), body, id=new_event_id())

    async def _store(self, messages: Sequence[Outbound]) -> None:
        """Publish, however long the centre is away. Raises TooLarge."""
        await self._connected.wait()
        while True:
            try:
                await self._publisher.publish(messages)
            except TooLarge:
                raise
            except BusError as error:
                log.warning("reports_wait", messages=len(messages), error=str(error))
                await asyncio.sleep(RETRY_S)
            else:
                self.on_stored()
                return


def _chunks(items: Sequence[_Item]) -> list[list[_Item]]:
    """Split into lists that make messages of a moderate size: reports differ in size a hundredfold."""
    chunks: list[list[_Item]] = []
    room = count = 0
    for item in items:
        size = _rough_size(item)
        if not chunks or count >= LIST_MAX or room < size:
            chunks.append([])
            room, count = LIST_BYTES, 0
        chunks[-1].append(item)
        room -= size
        count += 1
    return chunks


def _rough_size(item: AttemptReport | SlotState) -> int:
    """Estimate the encoded size in bytes, from above for what can grow."""
    report = item.report if isinstance(item, SlotState) else item
    if report is None:
        return 200
    connections = len(report.resolved.connections) if report.resolved is not None else 0
    parts = len(report.outputs) + len(report.metrics) + len(report.acceptance) + connections
    return 700 + len(report.message) * 2 + 400 * parts


def _shortened(report: AttemptReport) -> AttemptReport:
    """Return a report without what may be large; the slot keeps everything."""
    return replace(
        report,
        message=f"{report.message[:MESSAGE_CHARS_MAX]} (shortened: the whole report is in the environment)",
        outputs={},
        metrics={},
        acceptance=tuple(replace(item, criterion=item.criterion[:200], found="") for item in report.acceptance[:20]),
    )
