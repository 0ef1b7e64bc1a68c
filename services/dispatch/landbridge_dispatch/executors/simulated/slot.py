"""One simulated slot, how it is journalled, and how it is shown."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect
from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.executors.local.outcome import Ending
from landbridge_dispatch.executors.protocol import SlotKey, SlotView
from landbridge_dispatch.executors.simulated.ending import NOTHING, Contents, Remains, remains_of
from landbridge_dispatch.executors.simulated.model import Plan

BURIED_PLAN = Plan(0, 0)


Context = tuple[int, float | None, str, tuple[tuple[str, str], ...]]
"""Contract version, cost per hour, currency, resources as quantities."""


class Slot(msgspec.Struct, kw_only=True):
    """Mutable on purpose: thousands a second, one owner."""

    key: SlotKey
    term: int
    spec_sha256: str
    project: str
    policy: Disconnection
    plan: Plan
    contents: Contents = NOTHING
    context: Context = (0, None, "", ())
    """Contract version, cost per hour and currency."""
    phase: SlotPhase = SlotPhase.CREATED
    ended: bool = False
    denied: bool = False
    reason: str = ""
    stopping: str = ""
    settled_term: int = 0
    final: FinalReport | None = None
    started_ms: int = 0
    """Boot clock."""
    started_at: float = 0.0
    ended_at: float = 0.0
    checkpoint: str = ""
    remains: Remains | None = None
    wait_until_ms: int = 0

    def occupied(self) -> tuple[Any, ...]:
        """Return the journal entry that creates this slot."""
        operation, epoch = self.key
        policy = self.policy
        return (
            *("o", operation, epoch.generation, epoch.counter, self.term, self.spec_sha256, self.project),
            *((policy.policy, policy.within_ms, policy.grace_ms), self.plan, self.contents, self.context),
        )

    def entry(self, kind: str, *facts: Any) -> tuple[Any, ...]:
        """Return a journal entry about this slot."""
        operation, epoch = self.key
        return (kind, operation, epoch.generation, epoch.counter, *facts)

    def finish(self, cause: str, at: float) -> None:
        """End it, by itself or for a cause."""
        self.remains = remains_of(self.plan, self.contents, cause)
        self.phase, self.ended, self.ended_at = SlotPhase.FINISHED, True, at
        self.reason = self.remains.ending.reason

    def entomb(self, reason: str, at: float, *, denied: bool, ended: bool) -> None:
        """Make sure that nothing starts in it."""
        self.phase, self.ended, self.denied = SlotPhase.TOMBSTONE, ended, denied
        self.reason, self.ended_at = reason, at

    def shrink(self, term: int) -> None:
        """Keep of a settled slot what keeps it from starting again: there may be millions until the term is over."""
        self.settled_term = term
        self.spec_sha256, self.plan, self.contents = "", BURIED_PLAN, NOTHING
        if self.remains is not None and not self.remains.outputs:
            self.remains = _shared(self.remains.ending)

    def apply(self, entry: list[Any]) -> None:
        """Repeat what a journal entry says; the inverse of writing it."""
        kind, facts = entry[0], entry[4:]
        match kind:
            case "s":
                self.phase, self.started_ms, self.started_at = SlotPhase.RUNNING, facts[0], facts[1]
            case "f":
                self.finish(facts[0], facts[1])
            case "t":
                self.entomb(facts[0], facts[1], denied=facts[2], ended=facts[3])
            case "g":
                self.term = facts[0]
            case "x":
                self.stopping = facts[0]
            case "c":
                self.checkpoint = facts[0]
            case "a":
                self.final = FinalReport(ReportState(facts[0]), facts[1], facts[2])
            case "d":
                self.shrink(facts[0])

    def entries(self) -> list[tuple[Any, ...]]:
        """Return the entries that make this slot anew, for a rewritten journal."""
        found = [self.occupied()]
        if self.started_ms:
            found.append(self.entry("s", self.started_ms, self.started_at))
        if self.checkpoint:
            found.append(self.entry("c", self.checkpoint))
        if self.stopping:
            found.append(self.entry("x", self.stopping))
        if self.phase is SlotPhase.FINISHED and self.remains is not None:
            cause = self.reason if self.remains.ending.outcome == "cancelled" or self.reason == "timeout" else ""
            found.append(self.entry("f", cause, self.ended_at))
        if self.phase is SlotPhase.TOMBSTONE:
            found.append(self.entry("t", self.reason, self.ended_at, self.denied, self.ended))
        final = self.final
        if final is None and self.settled_term and self.remains is not None:
            # The plan is gone, so that the outcome cannot be worked out again.
            final = FinalReport(ReportState.FINISHED, self.remains.ending.outcome, self.remains.ending.reason)
        if final is not None:
            found.append(self.entry("a", final.state, final.outcome, final.reason))
        if self.settled_term:
            found.append(self.entry("d", self.settled_term))
        return found

    def implies(self, report: FinalReport) -> bool:
        """Tell whether the slot's own record already says what the dispatcher's answer says."""
        remains = self.remains
        return remains is not None and (remains.ending.outcome, self.reason) == (report.outcome, report.reason)

    def log(self) -> bytes:
        """Return what it would have written so far."""
        text = (self.plan.log or "simulated: started") + "\n" if self.started_at else ""
        text += f"simulated: ended {self.reason or 'as declared'}\n" if self.remains is not None else ""
        return text.encode()

    def view(self) -> SlotView:
        """Return the slot as it stands."""
        return SlotView(
            operation=self.key.operation,
            epoch=self.key.epoch,
            phase=self.phase,
            term=self.term,
            spec_sha256=self.spec_sha256,
            project=self.project,
            policy=self.policy,
            ended=self.ended,
            denied=self.denied,
            reason=self.reason,
            stopping=self.stopping,
            settled_term=self.settled_term,
            final=self.final,
            report=self._report(_resolved(self.context)),
        )

    def _report(self, resolved: wire.Resolved) -> wire.AttemptReport:
        operation, own_epoch = self.key
        epoch = wire.Epoch(generation=own_epoch.generation, counter=own_epoch.counter)
        started = datetime.fromtimestamp(self.started_at, UTC) if self.started_at else None
        if self.phase is SlotPhase.RUNNING and started is not None and not self.checkpoint:
            return wire.AttemptReport(
                operation=operation,
                epoch=epoch,
                state=wire.AttemptState.STARTED,
                at=started,
                started_at=started,
                resolved=resolved,
            )
        ended = datetime.fromtimestamp(self.ended_at, UTC) if self.ended_at else None
        remains = self.remains
        ending = None if remains is None else remains.ending
        return wire.AttemptReport(
            operation=operation,
            epoch=epoch,
            state=_STATES.get(self.phase, wire.AttemptState.UNSPECIFIED),
            at=ended or started or datetime.now(UTC),
            started_at=started,
            finished_at=ended if remains is not None else None,
            outcome=_OUTCOMES[ending.outcome] if ending else wire.AttemptOutcome.UNSPECIFIED,
            reason=self.reason,
            exit_code=ending.exit_code if ending else None,
            signal=ending.signal if ending else None,
            message=ending.message if ending else "",
            outputs=remains.outputs if remains else {},
            metrics=remains.metrics if remains else {},
            acceptance=remains.acceptance if remains else (),
            checkpoint=wire.CheckpointRef(epoch=epoch, manifest=self.checkpoint) if self.checkpoint else None,
            resolved=resolved if self.started_at else None,
        )


@lru_cache(maxsize=256)
def _shared(ending: Ending) -> Remains:
    return Remains(ending)


@lru_cache(maxsize=4096)
def _resolved(context: Context) -> wire.Resolved:
    version, cost, currency, resources = context
    return wire.Resolved(
        workload="simulated",
        host="simulated",
        executor="simulated",
        contract_version=version,
        resources=dict(resources),
        cost_per_hour=cost,
        currency=currency,
    )


def _context(version: int, cost: float | None, currency: str, resources: Sequence[Sequence[str]] = ()) -> Context:
    """Read a context from the journal; that of an earlier release tells no resources."""
    return version, cost, currency, tuple((name, quantity) for name, quantity in resources)


_OUTCOMES = {outcome.value: outcome for outcome in wire.AttemptOutcome}
_STATES = {
    SlotPhase.RUNNING: wire.AttemptState.STARTED,
    SlotPhase.FINISHED: wire.AttemptState.FINISHED,
    SlotPhase.TOMBSTONE: wire.AttemptState.RELINQUISHED,
}


def read_slots(entries: Iterable[list[Any]]) -> dict[SlotKey, Slot]:
    """Fold journal entries into slots. Unknown kinds are an error: the file is ours alone."""
    found: dict[SlotKey, Slot] = {}
    for entry in entries:
        key = SlotKey(entry[1], Epoch(entry[2], entry[3]))
        if entry[0] == "o":
            policy, within, grace = entry[7]
            found[key] = Slot(
                key=key,
                term=entry[4],
                spec_sha256=entry[5],
                project=entry[6],
                policy=Disconnection(OnDisconnect(policy), within, grace),
                plan=msgspec.convert(entry[8], Plan),
                contents=msgspec.convert(entry[9], Contents),
                context=_context(*entry[10]),
            )
        elif entry[0] == "r":
            found.pop(key, None)
        elif key in found:
            found[key].apply(entry)
    return found
