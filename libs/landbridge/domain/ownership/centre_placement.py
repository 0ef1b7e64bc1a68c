"""The centre's side: accepting, waiting, offering, granting, and the timers in between."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import Condition, Phase
from landbridge.domain.ownership.centre_model import (
    Alarm,
    Claim,
    Decided,
    Decision,
    Effect,
    Free,
    Grant,
    OfferTimeout,
    OperationState,
    PlacementState,
    QueueTimeout,
    RefuseClaim,
    Requeue,
    RetryDue,
    SendOffer,
    SendWithdraw,
    Timer,
    Waiting,
)
from landbridge.domain.ownership.centre_shared import (
    end,
    event,
    former_of,
    is_owned,
    is_terminal,
    leave,
    move,
    set_condition,
)
from landbridge.domain.ownership.leases import GANG_INCOMPLETE, PASSING_REFUSALS
from landbridge.domain.ownership.policy import Timing
from landbridge.domain.ownership.rules import Rules

MISSING = "missing"
"""Stop of work that a full inventory does not show: its slot is to be occupied, and nothing of it may run."""


def _decided(state: OperationState, decided: Decided, now: int, _rules: Rules, timing: Timing) -> Decision:
    if is_terminal(state) or decided.round < state.round or state.placement is PlacementState.RECOVERING:
        # Decided for a round that is over: whatever was charged for it is free.
        return Decision(state, (Free(decided.round, decided.environment),))
    if state.placement is not PlacementState.IDLE or state.timer is Timer.RETRY:
        return Decision(state)  # the same decision again
    if decided.round > state.round:
        return Decision(state, (_ahead(state, f"round {decided.round}", f"round {state.round}"),))
    former = state.former
    if state.grant_term:
        former = (*former, former_of(state))
    effects: tuple[Effect, ...] = ()
    if state.unplaceable:
        state, cleared = set_condition(state, Condition.UNPLACEABLE, False, "decided")
        effects = (cleared,)
    state = move(
        state,
        Phase.PENDING,
        epoch=state.epoch.following(state.generation),
        environment=decided.environment,
        decision_id=decided.decision_id,
        contract_version=decided.contract_version,
        valid_until=decided.valid_until,
        placement=PlacementState.OFFERED,
        grant_term=0,
        former=former,
        concluded=False,
        missing=False,
        unplaceable=False,
        claimed=0,
        timer=Timer.OFFER,
        due_at=now + timing.offer_ms,
    )
    offer = SendOffer(
        state.environment, state.epoch, state.attempts + 1, state.checkpoint, state.due_at, decided.served_by
    )
    return Decision(state, (*effects, event(state, "pending", reason="decided"), offer))


def _ahead(state: OperationState, found: str, known: str) -> Alarm:
    text = f"operation {state.operation}: heard of {found}, but the centre knows only {known}; was it restored?"
    return Alarm("centre-behind", text)


def _waiting(state: OperationState, waiting: Waiting, _now: int, _rules: Rules, _timing: Timing) -> Decision:
    idle = state.placement is PlacementState.IDLE and state.timer is not Timer.RETRY
    if is_terminal(state) or waiting.round != state.round or not idle:
        return Decision(state)
    effects: tuple[Effect, ...] = ()
    if state.phase is not Phase.QUEUED:
        state = move(state, Phase.QUEUED)
        effects = (event(state, "queued", reason=waiting.reason, message=waiting.message),)
    if waiting.unplaceable and state.exclude:
        # Nothing is left beside the environments that failed it: better those again than nowhere.
        state = replace(state, round=state.round + 1, exclude=())
        return Decision(state, (*effects, Requeue(state.round, "exclusions-lifted", only=state.pinned)))
    if waiting.unplaceable is not state.unplaceable:
        state = replace(state, unplaceable=waiting.unplaceable)
        state, changed = set_condition(
            state, Condition.UNPLACEABLE, waiting.unplaceable, waiting.reason, waiting.message
        )
        effects = (*effects, changed)
    return Decision(state, effects)


def _claim(state: OperationState, claim: Claim, now: int, rules: Rules, _timing: Timing) -> Decision:
    if claim.epoch > state.epoch:
        alarm = _ahead(state, f"epoch {claim.epoch}", f"epoch {state.epoch}")
        return Decision(state, (RefuseClaim(claim.epoch, "unknown-epoch"), alarm))
    refusal = _why_not(state, claim, rules)
    if refusal:
        return Decision(state, (RefuseClaim(claim.epoch, refusal, refusal in PASSING_REFUSALS),))
    if is_owned(state):
        if claim.term > state.grant_term:
            state = replace(state, grant_term=claim.term)
        return Decision(state, (Grant(claim.epoch, claim.term),))
    stale = claim.stale_verdict
    if not stale and 0 < state.valid_until <= now:
        stale = "verdict-expired"
    if stale:
        back = leave(state, Phase.QUEUED, now, reason=stale)
        return Decision(back.state, (*back.effects, RefuseClaim(claim.epoch, stale)))
    if state.gang and not state.together:
        return _withhold(state, claim, now)
    gang = state.start_within_ms
    state = replace(
        state,
        placement=PlacementState.CLAIMED,
        grant_term=claim.term,
        timer=Timer.START if gang else Timer.NONE,
        due_at=now + gang if gang else 0,
    )
    return Decision(state, (Grant(claim.epoch, claim.term),))


def _withhold(state: OperationState, claim: Claim, now: int) -> Decision:
    """Note that a gang's member is claimed, and have the environment ask again: the gang decides on the grant."""
    if not state.claimed:
        state = replace(state, timer=Timer.OFFER, due_at=now + state.start_within_ms)
    state = replace(state, claimed=claim.term)
    return Decision(state, (RefuseClaim(claim.epoch, GANG_INCOMPLETE, True),))


def _why_not(state: OperationState, claim: Claim, rules: Rules) -> str:
    """Name what stands against granting the current epoch to this environment; empty = nothing."""
    if claim.epoch < state.epoch or claim.environment != state.environment:
        return "superseded"
    if is_terminal(state):
        return "ended"
    if state.cancel and rules.no_grant_after_cancel:
        return "cancelled"
    if state.placement is PlacementState.IDLE:
        return "withdrawn"
    if state.placement is PlacementState.RECOVERING:
        return "recovering"
    if claim.term < state.grant_term:
        return "stale-term"
    if (state.missing or state.stopping == MISSING) and rules.no_grant_while_record_lost:
        return "record-lost"  # it may run there, unrecorded: a grant would start it a second time
    return ""


def _offer_timeout(state: OperationState, _m: OfferTimeout, now: int, _rules: Rules, _timing: Timing) -> Decision:
    if state.placement is not PlacementState.OFFERED or now < state.due_at:
        return Decision(state)
    if state.claimed and not state.together:
        text = f"not all members of gang {state.gang.name} were claimed within {state.start_within_ms // 1000} s"
        return take_back(state, now, GANG_INCOMPLETE, text)
    return take_back(state, now, "offer-unclaimed", f"environment {state.environment} did not claim the offer in time")


def take_back(
    state: OperationState,
    now: int,
    reason: str,
    message: str = "",
    *,
    exclude: tuple[str, ...] = (),
    failed_over: bool = False,
) -> Decision:
    """Withdraw an offer, which needs nobody's consent, and have the operation ranked again."""
    withdraw = SendWithdraw(state.environment, state.epoch)
    return leave(
        state,
        Phase.QUEUED,
        now,
        reason=reason,
        message=message,
        exclude=exclude,
        failed_over=failed_over,
        extra=(withdraw,),
    )


def _queue_timeout(state: OperationState, _m: QueueTimeout, now: int, _rules: Rules, _timing: Timing) -> Decision:
    if is_terminal(state) or state.placement is not PlacementState.IDLE or now < state.queue_due:
        return Decision(state)
    waited_s = state.queue_timeout_ms // 1000
    if state.gang and not state.together and not state.unplaceable:
        message = (
            f"gang {state.gang.name} found no places for all of its members within the queue timeout of {waited_s} s"
        )
        return end(state, Phase.FAILED, reason=GANG_INCOMPLETE, message=message)
    message = f"no environment took it within its queue timeout of {waited_s} s"
    return end(state, Phase.FAILED, reason="no-eligible-environment", message=message)


def _retry_due(state: OperationState, _m: RetryDue, now: int, _rules: Rules, _timing: Timing) -> Decision:
    if state.placement is not PlacementState.IDLE or state.timer is not Timer.RETRY or now < state.due_at:
        return Decision(state)
    state = replace(state, timer=Timer.QUEUE, due_at=state.queue_due)
    return Decision(state, (Requeue(state.round, "retry-due", state.exclude, only=state.pinned),))


PLACEMENT_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    Decided: _decided,
    Waiting: _waiting,
    Claim: _claim,
    OfferTimeout: _offer_timeout,
    QueueTimeout: _queue_timeout,
    RetryDue: _retry_due,
}
