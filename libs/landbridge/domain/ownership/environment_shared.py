"""What all handlers of the environment's side share: the context, slots, final answers, going on with a grant."""

import msgspec
from msgspec.structs import replace

from landbridge.domain.ownership.environment_model import (
    FINAL,
    Alarm,
    Claim,
    Decision,
    Effect,
    FinalReport,
    HeldOperation,
    MarkSettled,
    OccupySlot,
    RecordFinished,
    RemoveSlot,
    Report,
    ReportState,
    Slot,
    SlotPhase,
    StopWork,
    Tombstone,
)
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge.domain.ownership.rules import Rules

SUPERSEDED = "superseded"


class Context(msgspec.Struct, frozen=True):
    """What every handler needs beside state and message."""

    lease: HeldLease
    now: int
    rules: Rules

    def finish(self, state: HeldOperation, slot: Slot, report: FinalReport) -> Decision:
        """Record a final report in the slot, then report it."""
        done = replace(
            slot, phase=SlotPhase.FINISHED, report=report, reported_term=self.lease.term, settled_term=0, stopping=""
        )
        effects = (RecordFinished(slot.epoch, report), final_report(slot.epoch, report, self.lease.term))
        return Decision(put(state, done), effects)

    def alarm(self, kind: str, operation: str, epoch: Epoch) -> Alarm:
        """Name operation and epoch in an alarm."""
        return Alarm(kind, f"operation {operation}, epoch {epoch}: {kind.replace('-', ' ')}")


def put(state: HeldOperation, slot: Slot) -> HeldOperation:
    """Return the state with this slot in place of the one of the same epoch."""
    others = [other for other in state.slots if other.epoch != slot.epoch]
    others.append(slot)
    others.sort(key=_by_epoch)
    highest = max(state.highest, slot.epoch)
    return replace(state, slots=tuple(others), highest=highest)


def _by_epoch(slot: Slot) -> Epoch:
    return slot.epoch


def final_report(epoch: Epoch, report: FinalReport, term: int) -> Report:
    """Return the recorded answer as a report in this term."""
    return Report(epoch, report.state, term, report.outcome, report.reason, report.detail)


def give_back(
    state: HeldOperation,
    epoch: Epoch,
    reason: str,
    context: Context,
    *,
    report_state: ReportState = ReportState.RELINQUISHED,
    detail: object = None,
    tombstone: bool = True,
) -> Decision:
    """Occupy the slot for ever, then say that the epoch will not run here."""
    report = FinalReport(report_state, "", reason, detail)
    term = context.lease.term
    state = replace(
        state,
        granted=None if state.granted == epoch else state.granted,
        offered=None if state.offered == epoch else state.offered,
    )
    if not context.rules.tombstone_before_relinquish:
        state = replace(state, slots=tuple(slot for slot in state.slots if slot.epoch != epoch))
        return Decision(state, (RemoveSlot(epoch), final_report(epoch, report, term)))
    known = state.slot(epoch)
    slot_term = term if known is None else known.term
    slot = Slot(epoch=epoch, phase=SlotPhase.TOMBSTONE, term=slot_term, report=report, reported_term=term)
    occupy: tuple[Effect, ...] = (Tombstone(epoch, report),) if tombstone else ()
    return Decision(put(state, slot), (*occupy, final_report(epoch, report, term)))


def repeat_answer(state: HeldOperation, slot: Slot, context: Context) -> Decision:
    """Say again what was said of this slot; nothing is done a second time."""
    term = context.lease.term
    if slot.report is not None:
        state = put(state, replace(slot, reported_term=max(slot.reported_term, term)))
        return Decision(state, (final_report(slot.epoch, slot.report, term),))
    if slot.phase is SlotPhase.RUNNING:
        return Decision(state, (Report(slot.epoch, ReportState.STARTED, term),))
    return Decision(state)


def settle(state: HeldOperation, slot: Slot, context: Context) -> Decision:
    """Remember that the centre knows; remove the slot once the term of the settlement is over."""
    term = context.lease.term
    if not context.rules.keep_slot_until_term_advances or 0 < slot.settled_term < term:
        state = replace(state, slots=tuple(s for s in state.slots if s.epoch != slot.epoch))
        return Decision(state, (RemoveSlot(slot.epoch),))
    if slot.settled_term:
        return Decision(state)
    return Decision(put(state, replace(slot, settled_term=max(term, 1))), (MarkSettled(slot.epoch, max(term, 1)),))


def active_below(state: HeldOperation, epoch: Epoch) -> bool:
    """Whether a lower epoch of the same operation may still run here."""
    return any(slot.epoch < epoch and slot.phase not in FINAL for slot in state.slots)


def stop_lower(state: HeldOperation, epoch: Epoch) -> tuple[HeldOperation, tuple[Effect, ...]]:
    """Begin to stop every lower epoch: that a higher one exists proves that they are superseded."""
    effects: tuple[Effect, ...] = ()
    for slot in state.slots:
        if slot.epoch < epoch and slot.phase not in FINAL and not slot.stopping:
            state = put(state, replace(slot, stopping=SUPERSEDED))
            effects += (StopWork(slot.epoch, SUPERSEDED, state.policy.grace_ms),)
    return state, effects


def claim_offer(state: HeldOperation, context: Context) -> Decision:
    """Claim what is offered, if the lease allows starting and the offer still stands by our own clock.

    What was claimed before is claimed again however late: its grant may be lost, and then nobody else would ask.
    """
    stands = state.claim_by == 0 or context.now <= state.claim_by or state.claimed == state.offered
    if state.offered is None or not stands or not context.lease.allows_start(context.now):
        return Decision(state)
    return Decision(replace(state, claimed=state.offered), (Claim(state.offered, context.lease.term),))


def proceed(state: HeldOperation, context: Context) -> Decision:
    """Occupy the slot of what is granted, once nothing lower is left of the same operation."""
    epoch = state.granted
    if epoch is None:
        return Decision(state)
    if context.rules.stop_lower_first and active_below(state, epoch):
        state, effects = stop_lower(state, epoch)
        return Decision(state, effects)
    if state.granted_term != context.lease.term:
        # Granted in a term that is over while a lower epoch was stopping: claim again.
        state = replace(state, granted=None, offered=epoch, claim_by=0)
        return claim_offer(state, context)
    return Decision(state, (OccupySlot(epoch, state.granted_term),))
