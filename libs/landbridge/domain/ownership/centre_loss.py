"""The centre's side: cancels, lost environments, declarations of people, and what comes after a loss."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import Condition, Phase
from landbridge.domain.ownership.centre_give_way import stop_to_give_way
from landbridge.domain.ownership.centre_model import (
    OWNED,
    AdoptFound,
    Alarm,
    CancelRequested,
    Decision,
    DeclaredDead,
    Effect,
    EnvironmentExpired,
    GenerationRaised,
    InventoryItem,
    InventoryMissing,
    LinkLost,
    MoveRequested,
    OperationState,
    Override,
    PlacementState,
    RaiseTerm,
    Recovered,
    Requeue,
    SendStop,
    SendWithdraw,
    Timer,
)
from landbridge.domain.ownership.centre_move import is_move_pending, move_requested, stop_for_move
from landbridge.domain.ownership.centre_placement import MISSING, take_back
from landbridge.domain.ownership.centre_recovery import adopt_found, inventory_item, recovered
from landbridge.domain.ownership.centre_shared import (
    end,
    is_owned,
    is_terminal,
    leave,
    phase_after_leaving,
    set_condition,
)
from landbridge.domain.ownership.policy import Timing
from landbridge.domain.ownership.rules import Rules


def _cancel(state: OperationState, cancel: CancelRequested, _now: int, _rules: Rules, _timing: Timing) -> Decision:
    reason = cancel.reason or "cancelled"
    message = f"cancelled by {cancel.by}" if cancel.by else ""
    if is_terminal(state):
        return Decision(state)
    if state.placement is PlacementState.IDLE:
        return end(replace(state, cancel=reason), Phase.CANCELLED, reason=reason, message=message)
    if state.placement is PlacementState.OFFERED:
        withdraw = SendWithdraw(state.environment, state.epoch)
        return end(replace(state, cancel=reason), Phase.CANCELLED, reason=reason, message=message, extra=(withdraw,))
    if state.cancel and (state.cancel_forced or not cancel.force):
        return Decision(state)
    forced = state.cancel_forced or cancel.force
    effects: tuple[Effect, ...] = ()
    if not state.cancel:
        state, cancelling = set_condition(state, Condition.CANCELLING, True, reason, message)
        effects = (cancelling,)
    state = replace(state, cancel=state.cancel or reason, cancel_forced=forced)
    if is_owned(state):
        effects += (_stop_for_cancel(state),)
    return Decision(state, effects)


def _stop_for_cancel(state: OperationState) -> SendStop:
    return SendStop(state.environment, state.epoch, "cancelled", state.policy.grace_ms or 30_000, state.cancel_forced)


def _link_lost(state: OperationState, lost: LinkLost, now: int, _rules: Rules, _timing: Timing) -> Decision:
    if state.environment != lost.environment:
        return Decision(state)
    text = f"environment {lost.environment} is not heard"
    if state.placement is PlacementState.OFFERED:
        return take_back(state, now, "environment-lost", text, failed_over=True)
    if state.placement in OWNED and not state.control_lost:
        state = replace(state, control_lost=True)
        state, changed = set_condition(state, Condition.CONTROL_LOST, True, "environment-lost", text)
        return Decision(state, (changed,))
    return Decision(state)


def _expired(state: OperationState, expired: EnvironmentExpired, now: int, rules: Rules, _t: Timing) -> Decision:
    """Free work by the passing of time: only what stops by itself, provably, and only after all of it has stopped."""
    if state.environment != expired.environment or state.placement not in OWNED or expired.held:
        return Decision(state)
    if rules.continue_never_expires and not state.policy.self_stopping:
        return Decision(state)
    if rules.self_stop_verified and not expired.self_stop_verified:
        return Decision(state)
    if expired.silent_ms < expired.wait_ms:
        return Decision(state)
    return _release(state, now, rules, "environment-lost", f"environment {state.environment} is lost; it stops by rule")


def _release(state: OperationState, now: int, rules: Rules, reason: str, message: str) -> Decision:
    """Leave a placement without its environment's word. The term rises with it: old grants can start nothing."""
    stop = SendStop(state.environment, state.epoch, "superseded", state.policy.grace_ms, True)
    extra: tuple[Effect, ...] = (stop,)
    if rules.term_bump_on_release:
        extra += (RaiseTerm(state.environment),)
    following = phase_after_leaving(state)
    return leave(state, following, now, reason=reason, message=message, failed_over=True, wait_ms=0, extra=extra)


def _declared_dead(state: OperationState, dead: DeclaredDead, now: int, rules: Rules, _timing: Timing) -> Decision:
    if state.environment != dead.environment:
        return Decision(state)
    message = f"{dead.by} declares environment {dead.environment} dead: {dead.reason}"
    if state.placement is PlacementState.OFFERED:
        return take_back(state, now, "declared-dead", message, failed_over=True)
    if state.placement not in OWNED:
        return Decision(state)
    return _release(state, now, rules, "declared-dead", message)


def _override(state: OperationState, override: Override, now: int, rules: Rules, _timing: Timing) -> Decision:
    if state.placement not in OWNED:
        return Decision(state)
    message = f"{override.by} moves it by emergency override: {override.reason}; the old attempt may overlap"
    flagged: tuple[Effect, ...] = ()
    if not state.cancel:
        text = f"epoch {state.epoch} may still run in {state.environment}"
        state, flag = set_condition(state, Condition.POSSIBLE_OVERLAP, True, "emergency-override", text)
        state, flagged = replace(state, overlap=state.epoch), (flag,)
    released = _release(state, now, rules, "emergency-override", message)
    return Decision(released.state, flagged + released.effects)


def _missing(state: OperationState, missing: InventoryMissing, now: int, rules: Rules, timing: Timing) -> Decision:
    """Judge what the environment's full inventory lacks. A grant of the inventory's own term came after it.

    Absence alone proves nothing, since a restore younger than the last link of the lease chain leaves no mark: the
    environment is asked to occupy the slot, make sure that nothing of it runs, and say so. If it was surely restored,
    work that goes on without the centre may be alive and well there: a person decides.
    """
    if state.environment == missing.environment and state.placement is PlacementState.OFFERED:
        return _claim_again(state, missing, now, timing)
    mine = state.environment == missing.environment and state.placement in OWNED
    if not mine or state.grant_term >= missing.term:
        return Decision(state)
    restored = (missing.restored or state.missing) and rules.detect_environment_restore
    if restored and not state.policy.self_stopping and not state.cancel:
        return _record_lost(state, missing)
    state = replace(state, grant_term=missing.term, missing=restored, stopping=MISSING)
    return Decision(state, (SendStop(state.environment, state.epoch, MISSING, 0, True),))


def _claim_again(state: OperationState, missing: InventoryMissing, now: int, timing: Timing) -> Decision:
    """Count a gang's member as not claimed: if its environment still holds the place it claims it in the new term."""
    if not 0 < state.claimed < missing.term:
        return Decision(state)
    return Decision(replace(state, claimed=0, due_at=now + timing.offer_ms))


def _record_lost(state: OperationState, missing: InventoryMissing) -> Decision:
    """Count absent work of a restored environment as running until a person says otherwise."""
    text = f"environment {missing.environment} was restored and has no record of epoch {state.epoch}"
    effects: tuple[Effect, ...] = ()
    if not state.control_lost:
        state, changed = set_condition(state, Condition.CONTROL_LOST, True, "record-lost", text)
        effects = (changed,)
    state = replace(state, grant_term=missing.term, missing=True, control_lost=True)
    alarm = Alarm("needs-operator", f"operation {state.operation}: {text}; declare it dead or override")
    return Decision(state, (*effects, alarm))


def _item(state: OperationState, item: InventoryItem, now: int, rules: Rules, timing: Timing) -> Decision:
    decision = inventory_item(state, item, now, rules, timing)
    if decision.state.cancel and is_owned(decision.state):
        return Decision(decision.state, (*decision.effects, _stop_for_cancel(decision.state)))
    if is_move_pending(decision.state):
        return Decision(decision.state, (*decision.effects, stop_for_move(decision.state)))
    if decision.state.stopping and is_owned(decision.state):
        return Decision(decision.state, (*decision.effects, stop_to_give_way(decision.state)))
    return decision


def _generation(state: OperationState, raised: GenerationRaised, _now: int, rules: Rules, _t: Timing) -> Decision:
    if is_terminal(state) or raised.generation <= state.generation:
        return Decision(state)
    if rules.new_generation_on_restore:
        state = replace(state, generation=raised.generation)
    if rules.reconcile_after_restore:
        state = replace(state, placement=PlacementState.RECOVERING, timer=Timer.NONE, due_at=0)
    return Decision(state)


def _recovered(state: OperationState, message: Recovered, now: int, rules: Rules, timing: Timing) -> Decision:
    if state.placement is not PlacementState.RECOVERING:
        return Decision(state)
    if message.best is not None:
        decision = recovered(state, message.best, now, rules, timing)
        if decision.state.cancel and is_owned(decision.state):
            return Decision(decision.state, (*decision.effects, _stop_for_cancel(decision.state)))
        return decision
    if state.cancel:
        return end(state, Phase.CANCELLED, reason="cancelled")
    if state.phase in (Phase.ACCEPTED, Phase.QUEUED, Phase.RETRYING):
        state = replace(
            state, placement=PlacementState.IDLE, round=state.round + 1, timer=Timer.QUEUE, due_at=state.queue_due
        )
        return Decision(state, (Requeue(state.round, "centre-restored", state.exclude, only=state.pinned),))
    return leave(state, phase_after_leaving(state), now, reason="centre-restored", wait_ms=0)


LOSS_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    CancelRequested: _cancel,
    LinkLost: _link_lost,
    EnvironmentExpired: _expired,
    DeclaredDead: _declared_dead,
    MoveRequested: move_requested,
    AdoptFound: adopt_found,
    Override: _override,
    InventoryMissing: _missing,
    InventoryItem: _item,
    GenerationRaised: _generation,
    Recovered: _recovered,
}
