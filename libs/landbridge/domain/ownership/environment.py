"""The environment's side of ownership: `decide(state, message, lease, now) -> Decision`.

Pure: the same code runs in the dispatcher, in the state machine tests and in the simulation. `now` is the boot clock
in milliseconds, `lease` the environment's lease as held at that moment.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.ownership.environment_model import (
    FINAL,
    Claim,
    ClaimRefused,
    Decision,
    Effect,
    FinalReport,
    FoundOccupied,
    Granted,
    HeldOperation,
    LeaseGranted,
    LeaseLost,
    Message,
    Occupied,
    Offer,
    RegrantSlot,
    RemoveSlot,
    Report,
    ReportState,
    Restarted,
    Settled,
    Slot,
    SlotPhase,
    StartWork,
    StopWork,
    Withdraw,
)
from landbridge.domain.ownership.environment_shared import (
    Context,
    claim_offer,
    give_back,
    proceed,
    put,
    repeat_answer,
    settle,
    stop_lower,
)
from landbridge.domain.ownership.environment_work import WORK_HANDLERS
from landbridge.domain.ownership.leases import HeldLease, self_stop_schedule
from landbridge.domain.ownership.rules import PRODUCTION, Rules


def decide(state: HeldOperation, message: Message, lease: HeldLease, now: int, rules: Rules = PRODUCTION) -> Decision:
    """Decide what one message changes for one operation in this environment, and what must be done, in order."""
    return _HANDLERS[type(message)](state, message, Context(lease, now, rules))


def _offer(state: HeldOperation, offer: Offer, context: Context) -> Decision:
    lease = context.lease
    if offer.epoch < state.highest:
        return Decision(state, (Report(offer.epoch, ReportState.REFUSED, lease.term, reason="stale-epoch"),))
    slot = state.slot(offer.epoch)
    if slot is not None:
        return repeat_answer(state, slot, context)
    if state.granted == offer.epoch:
        return Decision(state)
    state = replace(state, highest=offer.epoch, policy=offer.policy, granted=None)
    if offer.refuse:
        state = replace(state, offered=None)
        return Decision(state, (Report(offer.epoch, ReportState.REFUSED, lease.term, reason=offer.refuse),))
    state, effects = stop_lower(replace(state, offered=offer.epoch, claim_by=offer.claim_by), offer.epoch)
    if not context.rules.two_phase:
        occupied = proceed(replace(state, granted=offer.epoch, granted_term=lease.term), context)
        return Decision(occupied.state, effects + occupied.effects)
    claiming = claim_offer(state, context)
    return Decision(claiming.state, effects + claiming.effects)


def _granted(state: HeldOperation, grant: Granted, context: Context) -> Decision:
    lease = context.lease
    slot = state.slot(grant.epoch)
    if slot is not None:
        if slot.phase is SlotPhase.CREATED and slot.term < grant.term == lease.term:
            state = put(state, replace(slot, term=grant.term))
            return Decision(state, (RegrantSlot(grant.epoch, grant.term), StartWork(grant.epoch)))
        # Granted although it is over here: the centre has not seen the final report in this term.
        return repeat_answer(state, slot, context) if slot.phase in FINAL else Decision(state)
    if state.granted == grant.epoch and state.granted_term == grant.term:
        return Decision(state)
    if state.offered != grant.epoch:
        if grant.epoch < state.highest or grant.term != lease.term:
            return Decision(state)  # a reply from the past: its grant is void here
        return give_back(state, grant.epoch, "not-expected", context)
    if grant.term != lease.term:
        return claim_offer(state, context)  # our term has moved on: ask again in the new one
    return proceed(replace(state, granted=grant.epoch, granted_term=grant.term), context)


def _occupied(state: HeldOperation, occupied: Occupied, _context: Context) -> Decision:
    if state.slot(occupied.epoch) is not None:
        return Decision(state)  # stopped while the slot was being created: its tombstone stands
    state = _no_longer_pending(state, occupied.epoch)
    state = put(state, Slot(epoch=occupied.epoch, phase=SlotPhase.CREATED, term=occupied.term))
    return Decision(state, (StartWork(occupied.epoch),))


def _no_longer_pending(state: HeldOperation, epoch: Any) -> HeldOperation:
    return replace(
        state,
        granted=None if state.granted == epoch else state.granted,
        offered=None if state.offered == epoch else state.offered,
    )


def _found_occupied(state: HeldOperation, found: FoundOccupied, context: Context) -> Decision:
    epoch = found.epoch
    if state.slot(epoch) is not None:
        return Decision(state)
    granted_term = state.granted_term if state.granted == epoch else 0
    state = _no_longer_pending(state, epoch)
    if not found.ours:
        decision = give_back(state, epoch, "slot-occupied", context, tombstone=False)
        return Decision(decision.state, (*decision.effects, context.alarm("slot-occupied", state.operation, epoch)))
    slot = found.slot
    if slot.phase is SlotPhase.CREATED:
        regrant = slot.term < granted_term == context.lease.term
        slot = replace(slot, term=granted_term) if regrant else slot
        again: tuple[Effect, ...] = (RegrantSlot(epoch, granted_term),) if regrant else ()
        return Decision(put(state, slot), (*again, StartWork(epoch)))
    return repeat_answer(put(state, slot), slot, context)


def _claim_refused(state: HeldOperation, refused: ClaimRefused, context: Context) -> Decision:
    if refused.retry:
        return Decision(state)
    slot = state.slot(refused.epoch)
    if slot is not None:
        if slot.phase is not SlotPhase.CREATED or slot.term >= context.lease.term:
            return Decision(state)
        # Created under a grant of an older term and not granted again: it may not start any more.
        stopping = put(state, replace(slot, stopping="not-granted"))
        return Decision(stopping, (StopWork(slot.epoch, "not-granted", 0),))
    if state.offered == refused.epoch and state.granted is None:
        state = replace(state, offered=None)
    return Decision(state)


def _withdraw(state: HeldOperation, withdraw: Withdraw, _context: Context) -> Decision:
    if state.offered == withdraw.epoch and state.granted is None:
        state = replace(state, offered=None)
    return Decision(state)


def _settled(state: HeldOperation, settled: Settled, context: Context) -> Decision:
    slot = state.slot(settled.epoch)
    if slot is None or slot.phase not in FINAL:
        return Decision(state)
    return settle(state, slot, context)


def _lease_granted(state: HeldOperation, _message: LeaseGranted, context: Context) -> Decision:
    """Act on a newer term: remove what is over, report again what is not settled, claim again what has not started."""
    lease = context.lease
    effects: tuple[Effect, ...] = ()
    for slot in state.slots:
        if slot.phase in FINAL:
            if slot.settled_term:
                if lease.term > slot.settled_term:
                    state = replace(state, slots=tuple(s for s in state.slots if s.epoch != slot.epoch))
                    effects += (RemoveSlot(slot.epoch),)
            elif slot.reported_term < lease.term:
                again = repeat_answer(state, slot, context)
                state, effects = again.state, effects + again.effects
        elif slot.phase is SlotPhase.CREATED and slot.term < lease.term and lease.allows_start(context.now):
            effects += (Claim(slot.epoch, lease.term),)
    if state.granted is not None and state.granted_term < lease.term:
        proceeding = proceed(state, context)
        return Decision(proceeding.state, effects + proceeding.effects)
    if state.granted is None:
        claiming = claim_offer(state, context)
        state, effects = claiming.state, effects + claiming.effects
    return Decision(state, effects)


def _lease_lost(state: HeldOperation, _message: LeaseLost, context: Context) -> Decision:
    """Stop self-stopping work whose time is over. The guardian does the same by itself; this is the second line."""
    schedule = self_stop_schedule(state.policy, context.lease.valid_until)
    if schedule is None:
        return Decision(state)
    begin = schedule.checkpoint_at or schedule.terminate_at
    effects: tuple[Effect, ...] = ()
    for slot in state.slots:
        if slot.phase is SlotPhase.RUNNING and not slot.stopping and begin <= context.now:
            state = put(state, replace(slot, stopping="lease-lost"))
            checkpoint = schedule.checkpoint_at > 0
            effects += (StopWork(slot.epoch, "lease-lost", state.policy.grace_ms, checkpoint),)
    return Decision(state, effects)


def _restarted(state: HeldOperation, restarted: Restarted, context: Context) -> Decision:
    slots = tuple(sorted(restarted.slots, key=lambda slot: slot.epoch))
    highest = max([state.highest, *(slot.epoch for slot in slots)])
    state = HeldOperation(operation=state.operation, highest=highest, slots=slots, policy=restarted.policy)
    effects: tuple[Effect, ...] = ()
    for slot in slots:
        if slot.epoch not in restarted.lost or slot.phase in FINAL:
            continue
        if slot.phase is SlotPhase.RUNNING:
            report = FinalReport(ReportState.FINISHED, "failed", "vanished")
            decision = context.finish(state, slot, report)
        else:
            decision = give_back(state, slot.epoch, "restarted", context)
        state, effects = decision.state, effects + decision.effects
    return Decision(state, effects)


_HANDLERS: dict[type, Callable[[HeldOperation, Any, Context], Decision]] = {
    Offer: _offer,
    Granted: _granted,
    ClaimRefused: _claim_refused,
    Withdraw: _withdraw,
    Settled: _settled,
    Occupied: _occupied,
    FoundOccupied: _found_occupied,
    LeaseGranted: _lease_granted,
    LeaseLost: _lease_lost,
    Restarted: _restarted,
    **WORK_HANDLERS,
}
