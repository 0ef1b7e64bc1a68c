"""The centre's side: what a slot found in an environment's full inventory means for the operation."""

from msgspec.structs import replace

from landbridge.domain.lifecycle import Condition, Phase
from landbridge.domain.ownership.centre_model import (
    AdoptFound,
    Alarm,
    Decision,
    Effect,
    Former,
    InventoryItem,
    OperationState,
    PlacementState,
    Reported,
    ReportFailedToStart,
    ReportFinished,
    ReportRelinquished,
    Requeue,
    SendSettle,
    SendStop,
    Timer,
)
from landbridge.domain.ownership.centre_placement import MISSING
from landbridge.domain.ownership.centre_reports import REPORT_HANDLERS, mark_running
from landbridge.domain.ownership.centre_shared import (
    event,
    former_of,
    is_owned,
    is_terminal,
    leave,
    move,
    phase_after_leaving,
    set_condition,
)
from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Timing
from landbridge.domain.ownership.rules import Rules


def inventory_item(state: OperationState, item: InventoryItem, now: int, rules: Rules, timing: Timing) -> Decision:
    """Adopt what is current, stop what is superseded, settle what is over, and never touch what is unknown."""
    if state.placement is PlacementState.RECOVERING:
        return Decision(state)
    if item.slot in FINAL:
        report = final_report(item)
        return REPORT_HANDLERS[type(report)](state, report, now, rules, timing)
    current = item.epoch == state.epoch and item.environment == state.environment
    if current and is_owned(state):
        return adopt(state, item)
    if item.epoch > state.epoch:
        text = f"operation {state.operation}: {item.environment} holds epoch {item.epoch}, never issued here"
        return Decision(state, (Alarm("quarantined", text),))
    return Decision(state, (SendStop(item.environment, item.epoch, "superseded", 0, True),))


def adopt(state: OperationState, item: InventoryItem) -> Decision:
    """Go on with work that is where it should be, now under the term in force."""
    stopping = "" if state.stopping == MISSING else state.stopping
    state = replace(state, grant_term=max(state.grant_term, item.term), missing=False, stopping=stopping)
    effects: tuple[Effect, ...] = ()
    if state.control_lost:
        state = replace(state, control_lost=False)
        state, changed = set_condition(state, Condition.CONTROL_LOST, False, "adopted")
        effects = (changed,)
    if item.slot is SlotPhase.RUNNING and state.placement is PlacementState.CLAIMED:
        begun = mark_running(state, item)
        return Decision(begun.state, effects + begun.effects)
    return Decision(state, effects)


def final_report(item: InventoryItem) -> Reported:
    """Return the final report that a slot records, as if it had just been sent in the inventory's term."""
    common = {
        "environment": item.environment,
        "epoch": item.epoch,
        "term": item.term,
        "environment_term": item.environment_term,
        "reason": item.reason,
        "message": item.message,
        "checkpoint": item.checkpoint,
        "report": item.report,
    }
    if item.slot is SlotPhase.FINISHED:
        return ReportFinished(outcome=item.outcome or "failed", exit_code=item.exit_code, **common)  # type: ignore[arg-type]
    kind = ReportFailedToStart if item.final == "failed-to-start" else ReportRelinquished
    return kind(**common)  # type: ignore[arg-type]


def recovered(state: OperationState, best: InventoryItem, now: int, rules: Rules, timing: Timing) -> Decision:
    """Take the highest epoch that any environment holds as the truth, after the centre lost its own.

    An epoch that the centre had issued above it left no slot anywhere, and its grant is void by the new terms.
    """
    over = best.slot is SlotPhase.TOMBSTONE
    if best.slot is SlotPhase.FINISHED:
        # Finished and already judged, or left behind by a later epoch: its report must not count twice.
        over = best.epoch < state.epoch or (best.epoch == state.epoch and state.concluded)
    former = state.former
    if state.grant_term and state.epoch != best.epoch:
        former = (*former, former_of(state))
    if over:
        return _place_anew(state, best, former, now)
    effects: tuple[Effect, ...] = ()
    if state.phase not in (Phase.PENDING, Phase.RUNNING):
        state = move(state, Phase.PENDING)
        effects = (event(state, "pending", reason="centre-restored"),)
    placement = PlacementState.RUNNING if state.phase is Phase.RUNNING else PlacementState.CLAIMED
    state = replace(
        state,
        epoch=best.epoch,
        environment=best.environment,
        grant_term=best.term,
        placement=placement,
        former=former,
        concluded=False,
        timer=Timer.NONE,
        due_at=0,
    )
    if best.slot is SlotPhase.FINISHED:
        report = final_report(best)
        decision = REPORT_HANDLERS[type(report)](state, report, now, rules, timing)
    else:
        decision = adopt(state, best)
    return Decision(decision.state, effects + decision.effects)


def why_not_adopt(state: OperationState, epoch: Epoch) -> str:
    """Say why a slot found in an environment cannot become the operation's placement; empty = it can."""
    if is_terminal(state):
        return f"the operation has ended: {state.phase.value}"
    if state.placement is PlacementState.RECOVERING:
        return ""
    if state.placement is not PlacementState.IDLE:
        return f"epoch {state.epoch} of it is placed in {state.environment}"
    if epoch <= state.epoch:
        return f"epoch {state.epoch} of it was issued since, which supersedes it"
    return ""


def adopt_found(state: OperationState, message: AdoptFound, now: int, rules: Rules, timing: Timing) -> Decision:
    """Take a slot that a person vouches for as the truth; the same as after a restore of the centre."""
    if why_not_adopt(state, message.found.epoch):
        return Decision(state)
    state = replace(state, op_seq=state.op_seq + 1)
    text = f"{message.by} adopts epoch {message.found.epoch} found in {message.found.environment}: {message.reason}"
    told = event(state, "observed", reason="adopted", message=text)
    taken = recovered(state, message.found, now, rules, timing)
    return Decision(taken.state, (told, *taken.effects))


def _place_anew(state: OperationState, best: InventoryItem, former: tuple[Former, ...], now: int) -> Decision:
    """Begin a new round above every epoch that was seen; the tombstone is settled."""
    settle: tuple[Effect, ...] = ()
    if best.slot in FINAL:
        settle = (SendSettle(best.environment, best.epoch),)
    former = (*former, Former(best.epoch, best.environment, state.attempts))
    state = replace(state, epoch=max(state.epoch, best.epoch), former=former, grant_term=0)
    if state.phase in (Phase.ACCEPTED, Phase.QUEUED, Phase.RETRYING) and not state.cancel:
        state = replace(
            state, placement=PlacementState.IDLE, round=state.round + 1, timer=Timer.QUEUE, due_at=state.queue_due
        )
        return Decision(state, (*settle, Requeue(state.round, "centre-restored", state.exclude, only=state.pinned)))
    return leave(state, phase_after_leaving(state), now, reason="centre-restored", wait_ms=0, extra=settle)
