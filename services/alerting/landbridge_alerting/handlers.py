"""Facts from the streams: what waits and starts, and what nobody could handle."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound, decode_value
from landbridge.bus.errors import EnvelopeError
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import PermanentFailure
from landbridge.store import Tx
from landbridge_alerting import facts

EVENTS: Final = ("assessed", "waiting", "decided", "retrying", "failed", "cancelled")
# Reports of placements that never ran; how a workload itself ended is its owner's business.
_NOT_STARTED: Final = frozenset({"failed-to-start", "refused"})
_ERROR_MAX: Final = 300


class _Part(msgspec.Struct, rename="camel"):
    """Of a message, what alerting reads."""


class _Round(_Part):
    operation: str


class _Requirements(_Part):
    project: str = ""
    queue: str = ""


class _Assessment(_Part):
    id: str
    requirements: bytes = b""


class _Assessed(_Part):
    assessment: _Assessment


class _Waiting(_Part):
    by: str = ""
    operations: tuple[_Round, ...] = ()
    reason: str = ""
    assessment_id: str = ""


class _Placed(_Part):
    operation: str
    environment: str = ""


class _Decided(_Part):
    operations: tuple[_Placed, ...] = ()


class _Report(_Part):
    state: str = ""
    reason: str = ""


class _Changed(_Part):
    operation: str
    environment: str = ""
    reason: str = ""
    report: _Report | None = None


_ASSESSED: Final = msgspec.json.Decoder(_Assessed)
_WAITING: Final = msgspec.json.Decoder(_Waiting)
_DECIDED: Final = msgspec.json.Decoder(_Decided)
_CHANGED: Final = msgspec.json.Decoder(_Changed)
_REQUIREMENTS: Final = msgspec.json.Decoder(_Requirements)


def _decode(decoder: Any, message: Inbound) -> Any:
    try:
        return decoder.decode(message.body)
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"{message.type}: {error}", offenders=[message.id]) from error


class _Batch:
    """What a batch has said so far; operations that are gone are forgotten together."""

    def __init__(self, tx: Tx, now: datetime) -> None:
        self.tx = tx
        self.now = now
        self.starts: Counter[tuple[str, str]] = Counter()
        self.asked: dict[str, tuple[str, str]] = {}
        self.gone: set[str] = set()

    async def forget_gone(self) -> None:
        if self.gone:
            await facts.gone(self.tx, self.gone, self.now)
            self.gone = set()

    async def finish(self) -> None:
        await self.forget_gone()
        if self.asked:
            await facts.asked(self.tx, self.asked, self.now)
        if self.starts:
            await facts.count_starts(self.tx, self.starts, self.now)


class OperationsHandler:
    """Keeps what waits and counts what did not start. In the order of the stream: a wait may end in the same batch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        so_far = _Batch(tx, self._clock.wall())
        for message in batch:
            match subjects.token(message.subject, 3):
                case "assessed":
                    self._assessed(message, so_far)
                case "waiting":
                    await self._waiting(message, so_far)
                case "decided":
                    decided: _Decided = _decode(_DECIDED, message)
                    so_far.gone.update(each.operation for each in decided.operations)
                    so_far.starts.update((each.environment, facts.PLACED) for each in decided.operations)
                case _:
                    self._changed(message, so_far)
        await so_far.finish()
        return ()

    def _assessed(self, message: Inbound, so_far: _Batch) -> None:
        assessment = _decode(_ASSESSED, message).assessment
        try:
            requirements = _REQUIREMENTS.decode(assessment.requirements or b"{}")
        except msgspec.MsgspecError as error:
            raise PermanentFailure(f"requirements of {assessment.id}: {error}", offenders=[message.id]) from error
        project = requirements.project or subjects.project_of(message.subject)
        so_far.asked[assessment.id] = (project, requirements.queue)

    async def _waiting(self, message: Inbound, so_far: _Batch) -> None:
        waiting: _Waiting = _decode(_WAITING, message)
        await so_far.forget_gone()
        project = subjects.project_of(message.subject)
        known = so_far.asked.get(waiting.assessment_id)
        queue = known[1] if known is not None else await facts.queue_of(so_far.tx, waiting.assessment_id)
        operations = [each.operation for each in waiting.operations]
        if message.deliveries > 1:
            operations = await facts.still_waiting(so_far.tx, operations)
        # Ranking only sees what some environment could run.
        eligible = waiting.by == "ranking" and waiting.reason != "no-eligible-environment"
        reason = waiting.reason
        await facts.wait(so_far.tx, operations, project, queue, reason, so_far.now, eligible=eligible)

    def _changed(self, message: Inbound, so_far: _Batch) -> None:
        changed: _Changed = _decode(_CHANGED, message)
        so_far.gone.add(changed.operation)
        report = changed.report
        if report is not None and report.state in _NOT_STARTED and changed.environment:
            so_far.starts[changed.environment, report.reason or changed.reason or report.state] += 1


def _text(value: str) -> str:
    """Return a header's value for people."""
    try:
        return decode_value(value)
    except EnvelopeError:
        return value


class DeadLetterHandler:
    """Counts dead letters by service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        counts: Counter[str] = Counter()
        errors: dict[str, str] = {}
        for message in batch:
            service = subjects.token(message.subject, 3)
            counts[service] += 1
            errors[service] = _text(message.headers.get("lb-error", ""))[:_ERROR_MAX]
        now = self._clock.wall()
        for service in sorted(counts):
            await facts.count_dead(tx, service, counts[service], errors[service], now)
        return ()
