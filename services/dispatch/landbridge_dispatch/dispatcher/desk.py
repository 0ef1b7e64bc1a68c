"""Where everything about placements is decided, one batch after the other, and carried out.

What arrives (commands, claim replies, what the executor shows) is fed to `domain.ownership.environment.decide`. The
effects are carried out in waves: the first effect of every operation, grouped by kind so that an executor gets them as
lists, then the second ones, and so on. So each operation's effects keep their order, each done before the next begins,
and a thousand operations cost few calls. If an effect cannot be carried out, the process ends: whoever starts next
reads the slots, which are the truth.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.environment import decide
from landbridge.domain.ownership.leases import HeldLease
from landbridge.runtime import logs
from landbridge.runtime.failpoints import failpoint
from landbridge.schema.wire.report_v1 import AttemptReport
from landbridge_dispatch.dispatcher.clocks import boot_ms
from landbridge_dispatch.dispatcher.wire import held_slot
from landbridge_dispatch.executors.protocol import Burial, Executor, RefusedError, SlotKey, SlotView, StopOrder, Work

log = logs.get(__name__)

Item = tuple[str, own.Message]
_Group = list[tuple[str, Any]]
_CHUNK = 2000
_BEFORE_THE_END = frozenset({own.ReportState.STARTED, own.ReportState.CHECKPOINTED})
_WITHOUT_DETAIL = frozenset({own.ReportState.REFUSED})


class Claims(Protocol):
    """Where placements to claim go."""

    def add(self, key: SlotKey, term: int) -> None: ...


class Reports(Protocol):
    """Where reports go."""

    def add(
        self, operation: str, report: own.Report, detail: AttemptReport | None = None, message: str = ""
    ) -> None: ...


class Desk:
    """Holds what this environment knows of every operation. All state changes happen in `run`."""

    def __init__(self, executor: Executor, lease: Callable[[], HeldLease], claims: Claims, reports: Reports) -> None:
        self.executor = executor
        self.reserved = 0
        """Operations that are claimed or granted and occupy no slot yet."""
        self.on_idle: Callable[[], None] = lambda: None
        self._lease = lease
        self._claims = claims
        self._reports = reports
        self._held: dict[str, own.HeldOperation] = {}
        self._now_held, self._now_ms = lease(), boot_ms()
        self._works: dict[SlotKey, Work] = {}
        self._started: dict[SlotKey, AttemptReport] = {}
        self._ended: dict[SlotKey, AttemptReport] = {}
        """What the executor told, until it is reported. Kept beside the state, which would keep it for long."""
        self._words: dict[SlotKey, str] = {}
        self._queue: list[tuple[Sequence[Item], asyncio.Future[None] | None]] = []
        self._arrived = asyncio.Event()
        self._perform: dict[type, Callable[[_Group], Awaitable[Iterable[Item]]]] = {
            own.Claim: self._claim,
            own.Report: self._report,
            own.OccupySlot: self._occupy,
            own.StartWork: self._start,
            own.RegrantSlot: self._regrant,
            own.StopWork: self._stop,
            own.Tombstone: self._bury,
            own.RecordFinished: self._record,
            own.MarkSettled: self._settle,
            own.RemoveSlot: self._remove,
            own.Alarm: self._alarm,
        }

    # -- what others call ----------------------------------------------------------------------------------------------

    def feed(self, items: Sequence[Item]) -> None:
        """Take messages in, without waiting."""
        self._queue.append((items, None))
        self._arrived.set()

    async def done(self, items: Sequence[Item]) -> None:
        """Take messages in, and return once all they led to is carried out."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((items, future))
        self._arrived.set()
        await future

    def expect(self, work: Work) -> None:
        """Remember what an offer is about, until its slot is occupied."""
        self._works[work.key] = work

    def unexpect(self, key: SlotKey) -> None:
        """Forget what an offer was about."""
        self._works.pop(key, None)

    def explain(self, key: SlotKey, words: str) -> None:
        """Remember why something is refused, for the report that will say so."""
        self._words[key] = words

    def refuse(self, key: SlotKey, reason: str, words: str) -> None:
        """Report a placement as refused without deciding anything: the command about it was not understood."""
        report = own.Report(key.epoch, own.ReportState.REFUSED, self._lease().term, reason=reason)
        self._reports.add(key.operation, report, None, words)

    def restore(self, found: dict[str, own.Restarted]) -> None:
        """Begin with what an earlier dispatcher left. Nothing is reported yet: that needs a new term."""
        for operation, restarted in found.items():
            state = own.HeldOperation(operation=operation)
            self._held[operation] = decide(state, restarted, self._lease(), boot_ms()).state

    def held(self) -> list[own.HeldOperation]:
        """Return what is known, for people and for tests."""
        return list(self._held.values())

    def tell(self, key: SlotKey, report: AttemptReport | None, *, ended: bool) -> None:
        """Remember what the executor says of a slot, for the report that will follow."""
        if ended:
            self._started.pop(key, None)
        if report is not None:
            (self._ended if ended else self._started)[key] = report

    def count(self) -> int:
        return len(self._held)

    def find(self, operation: str) -> own.HeldOperation | None:
        return self._held.get(operation)

    def knows(self, key: SlotKey) -> own.Slot | None:
        state = self._held.get(key.operation)
        return None if state is None else state.slot(key.epoch)

    async def broadcast(self, message: own.Message) -> None:
        """Tell every operation, in pieces, so that commands are not held up."""
        operations = list(self._held)
        for start in range(0, len(operations), _CHUNK):
            await self.done([(operation, message) for operation in operations[start : start + _CHUNK]])

    # -- the loop ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Decide and carry out until cancelled. Raises what an executor raised."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            queue, self._queue = self._queue, []
            self._look_at_clock()
            pending: dict[str, deque[own.Effect]] = {}
            for items, _ in queue:
                for operation, message in items:
                    self._decide(operation, message, pending)
            await self._carry_out(pending)
            for _, future in queue:
                if future is not None and not future.done():
                    future.set_result(None)
            if not self._queue:
                self.on_idle()

    def _decide(self, operation: str, message: own.Message, pending: dict[str, deque[own.Effect]]) -> None:
        state = self._held.get(operation)
        before = 0
        if state is None:
            state = own.HeldOperation(operation=operation)
        elif state.offered is not None or state.granted is not None:
            before = 1
        decision = decide(state, message, self._now_held, self._now_ms)
        after = decision.state
        if after is not state:
            waiting = after.offered is not None or after.granted is not None
            self.reserved += waiting - before
            if before and not waiting:
                self._works.pop(SlotKey(operation, state.granted or state.offered or after.highest), None)
            if waiting or after.slots:
                self._held[operation] = after
            else:
                self._held.pop(operation, None)
        if not decision.effects:
            if isinstance(message, own.Exited | own.StartFailed):
                self._ended.pop(SlotKey(operation, message.epoch), None)
        else:
            pending.setdefault(operation, deque()).extend(decision.effects)

    async def _carry_out(self, pending: dict[str, deque[own.Effect]]) -> None:
        while pending:
            groups: dict[type, _Group] = {}
            for operation in list(pending):
                effects = pending[operation]
                effect = effects.popleft()
                groups.setdefault(type(effect), []).append((operation, effect))
                if not effects:
                    del pending[operation]
            for kind, group in groups.items():
                results = await self._perform[kind](group)
                if results:
                    self._look_at_clock()
                for operation, message in results:
                    self._decide(operation, message, pending)

    def _look_at_clock(self) -> None:
        """Read lease and clock once for all that is decided before the next wait."""
        self._now_held, self._now_ms = self._lease(), boot_ms()

    # -- effects -------------------------------------------------------------------------------------------------------

    async def _claim(self, group: _Group) -> Iterable[Item]:
        for operation, claim in group:
            self._claims.add(SlotKey(operation, claim.epoch), claim.term)
        return ()

    async def _report(self, group: _Group) -> Iterable[Item]:
        unknown: _Group = []
        for operation, report in group:
            key = SlotKey(operation, report.epoch)
            known = self._started if report.state in _BEFORE_THE_END else self._ended
            detail = known.pop(key, None)
            if detail is None and report.state not in _WITHOUT_DETAIL:
                unknown.append((operation, report))
                continue
            self._reports.add(operation, report, detail, self._words.pop(key, ""))
        if unknown:
            views = await asyncio.gather(*(self.executor.look(SlotKey(op, report.epoch)) for op, report in unknown))
            for (operation, report), view in zip(unknown, views, strict=True):
                key = SlotKey(operation, report.epoch)
                detail = None if view is None or not view.told else view.report
                self._reports.add(operation, report, detail, self._words.pop(key, ""))
        return ()

    async def _occupy(self, group: _Group) -> Iterable[Item]:
        known = [
            (operation, effect, self._works.pop(SlotKey(operation, effect.epoch), None)) for operation, effect in group
        ]
        works = [_with_term(work, effect.term) for _, effect, work in known if work is not None]
        found = iter(await self.executor.occupy(works))
        failpoint("dispatcher.after-occupy")
        results: list[Item] = []
        for operation, effect, work in known:
            if work is None:
                # The offer came to an earlier dispatcher: without its specification nothing can start.
                results.append((operation, own.StartFailed(effect.epoch, "offer-lost", None, denied=True)))
            else:
                results.append((operation, self._occupied(effect, work, next(found))))
        return results

    def _occupied(self, effect: own.OccupySlot, work: Work, found: SlotView | RefusedError | None) -> own.Message:
        if found is None:
            return own.Occupied(effect.epoch, effect.term)
        if isinstance(found, RefusedError):
            self._words[work.key] = str(found)
            return own.StartFailed(effect.epoch, found.code, None, denied=True)
        ours = found.phase is own.SlotPhase.TOMBSTONE or found.spec_sha256 == work.spec_sha256
        return own.FoundOccupied(held_slot(found), ours)

    async def _start(self, group: _Group) -> Iterable[Item]:
        await self.executor.start([SlotKey(operation, effect.epoch) for operation, effect in group])
        failpoint("dispatcher.after-start")
        return ()

    async def _regrant(self, group: _Group) -> Iterable[Item]:
        for operation, effect in group:
            await self.executor.regrant(SlotKey(operation, effect.epoch), effect.term)
        return ()

    async def _stop(self, group: _Group) -> Iterable[Item]:
        await self.executor.stop(
            [StopOrder(SlotKey(operation, stop.epoch), stop.reason, stop.grace_ms) for operation, stop in group]
        )
        return ()

    async def _bury(self, group: _Group) -> Iterable[Item]:
        term = self._lease().term
        await self.executor.bury(
            [Burial(SlotKey(operation, effect.epoch), effect.report, term) for operation, effect in group]
        )
        return ()

    async def _record(self, group: _Group) -> Iterable[Item]:
        answers = []
        for operation, effect in group:
            key = SlotKey(operation, effect.epoch)
            told = self._ended.get(key)
            # The executor's own record, which led to this answer, mostly says the same.
            if told is None or (told.outcome, told.reason) != (effect.report.outcome, effect.report.reason):
                answers.append((key, effect.report))
        if answers:
            await self.executor.record(answers)
        return ()

    async def _settle(self, group: _Group) -> Iterable[Item]:
        await self.executor.settle([(SlotKey(operation, effect.epoch), effect.term) for operation, effect in group])
        return ()

    async def _remove(self, group: _Group) -> Iterable[Item]:
        await self.executor.remove([SlotKey(operation, effect.epoch) for operation, effect in group])
        return ()

    async def _alarm(self, group: _Group) -> Iterable[Item]:
        for operation, alarm in group:
            log.error("ownership_alarm", kind=alarm.kind, operation=operation, message=alarm.message)
        return ()


def _with_term(work: Work, term: int) -> Work:
    return work if work.term == term else replace(work, term=term)
