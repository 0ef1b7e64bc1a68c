"""Assessing operations as they come: one verdict per class and batch."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.classify import classify
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.units import UnitError
from landbridge.domain.verdict import Assessment, Outlook
from landbridge.domain.waiting import announcement, reason
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import PermanentFailure
from landbridge.schema.wire.event_v1 import OperationAccepted, OperationRequeued, OperationRound
from landbridge.store import Tx
from landbridge_eligibility import messages, store
from landbridge_eligibility.deciding import KEEP_FOR, Deciding, KnownClass

MOST_SHAPES: Final = 20_000
# A class that is used on and on is written again only when its time runs out noticeably.
_RENEW_WITHIN: Final = KEEP_FOR - timedelta(days=1)


class _Ended(msgspec.Struct):
    operation: str


_accepted = msgspec.json.Decoder(OperationAccepted)
_requeued = msgspec.json.Decoder(OperationRequeued)
_ended = msgspec.json.Decoder(_Ended)


@dataclass(slots=True)
class _Group:
    """Operations of one class within a batch."""

    requirement_class: RequirementClass
    operations: list[OperationRound] = field(default_factory=list)


@dataclass(slots=True)
class _Work:
    """What a batch asks for. `gone` need no place any more, or get another verdict now."""

    groups: dict[str, _Group] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)


class EligibilityHandler:
    """Handles accepted, requeued and ended operations. Changes memory only by what may be derived again."""

    def __init__(self, deciding: Deciding, clock: Clock, expect: Callable[[datetime | None], None]) -> None:
        """`expect` is told until when each verdict holds."""
        self._deciding = deciding
        self._expect = expect
        self._clock = clock
        self._encoder = messages.AssessmentEncoder()
        self._shapes: OrderedDict[str, RequirementClass] = OrderedDict()

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        work = self._read(batch)
        now = self._clock.wall()
        if work.gone:
            await store.drop_waiting(tx, work.gone)
        events: list[Outbound] = []
        homeless: list[_Group] = []
        met: list[tuple[RequirementClass, Assessment]] = []
        for group in (group for group in work.groups.values() if group.operations):
            assessment = self._deciding.assess(group.requirement_class, now)
            if assessment.outlook is Outlook.ELIGIBLE:
                met.append((group.requirement_class, assessment))
                events += self._assessed(group, assessment)
            else:
                homeless.append(group)
        if homeless:
            met += await self._homeless(tx, homeless, events, now)
        await self._remember(tx, met, now)
        return events

    def _assessed(self, group: _Group, assessment: Assessment) -> list[Outbound]:
        body = self._encoder.encode(group.requirement_class, assessment)
        return messages.assessed(group.requirement_class.requirements.project, body, group.operations)

    async def _homeless(
        self, tx: Tx, groups: Sequence[_Group], events: list[Outbound], now: datetime
    ) -> list[tuple[RequirementClass, Assessment]]:
        """Let operations wait. Under the lock the verdict is asked for again: no change can slip in between."""
        await store.share_lock(tx)
        met = []
        for group in groups:
            assessment = self._deciding.assess(group.requirement_class, now)
            met.append((group.requirement_class, assessment))
            events += self._assessed(group, assessment)
            if assessment.outlook is Outlook.ELIGIBLE:
                continue
            why = reason(assessment)
            cause = store.Cause(why.code.value, assessment.outlook.value, announcement(assessment))
            await store.let_wait(tx, group.requirement_class.key, group.operations, cause, now + KEEP_FOR)
            events += messages.waiting(group.requirement_class.requirements.project, assessment, why, group.operations)
        return met

    async def _remember(self, tx: Tx, met: Sequence[tuple[RequirementClass, Assessment]], now: datetime) -> None:
        """Write classes that are new, or whose time runs out; learn them once they are committed."""
        known = self._deciding.known
        fresh: list[KnownClass] = []
        ends: list[datetime] = []
        for requirement_class, assessment in met:
            if assessment.valid_until is not None:
                ends.append(assessment.valid_until)
            found = known.get(requirement_class.key)
            if found is None or found.keep_until < now + _RENEW_WITHIN:
                fresh.append(KnownClass(requirement_class, announcement(assessment), now + KEEP_FOR, now))
            else:
                found.used_at = max(found.used_at, now)
        if fresh:
            await store.keep_classes(tx, fresh)
        tx.after_commit(lambda: self._learn(fresh, min(ends, default=None)))

    def _learn(self, fresh: Sequence[KnownClass], end: datetime | None) -> None:
        """Only what is known can be asked about: an end that comes before its class would be met in vain."""
        self._deciding.learn(fresh)
        self._expect(end)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, batch: Sequence[Inbound]) -> _Work:
        work = _Work()
        for message in batch:
            try:
                self._read_one(message, work)
            except (msgspec.MsgspecError, UnitError) as error:
                told = f"{message.type or 'message'} cannot be read: {error}"
                raise PermanentFailure(told, offenders=(message.id,)) from error
        return work

    def _read_one(self, message: Inbound, work: _Work) -> None:
        event = subjects.token(message.subject, 3)
        if event == "accepted":
            accepted = _accepted.decode(message.body)
            self._add(work, self._class_of(accepted), accepted.operation, 1)
        elif event == "requeued":
            requeued = _requeued.decode(message.body)
            found = classify(requeued.effective, excluded=tuple(requeued.exclude), failed_over=requeued.failed_over)
            self._add(work, found, requeued.operation, requeued.round)
            work.gone.append(requeued.operation)
        elif event in ("failed", "cancelled"):  # what was completed had been placed, so it does not wait
            ended = _ended.decode(message.body).operation
            work.gone.append(ended)
            for group in work.groups.values():
                group.operations = [item for item in group.operations if item.operation != ended]

    def _add(self, work: _Work, requirement_class: RequirementClass, operation: str, round_: int) -> None:
        group = work.groups.setdefault(requirement_class.key, _Group(requirement_class))
        group.operations.append(OperationRound(operation=operation, round=round_))

    def _class_of(self, accepted: OperationAccepted) -> RequirementClass:
        """Classify by the specification's hash where it was met before: many operations are of one shape."""
        sha256 = accepted.effective_sha256
        known = self._shapes.get(sha256) if sha256 else None
        if known is None:
            known = classify(accepted.effective)
            if sha256:
                self._shapes[sha256] = known
                if len(self._shapes) > MOST_SHAPES:
                    self._shapes.popitem(last=False)
        return known
