"""Decisions about the members of a gang together: none is granted before all are claimed.

An environment that claims a member's offer holds the place for it and is answered *not yet*; it asks again until it is
granted or the offer is withdrawn. The claim that completes the gang opens it for all, in one transaction that has
locked every member. Until then whatever takes a member's place away, or begins a new round for it, does so for all:
they go back together, and ranking admits them together again. Pure; the caller passes all members that are known.

Once all were granted: *together*, a member that ends without completing has the others cancelled, and one that has to
be placed again has the others stopped and given back, so that all that have not completed start again as a gang.
*Apart*, each goes on by itself.
"""

from collections.abc import Iterator, Mapping

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre import decide
from landbridge.domain.ownership.centre_model import (
    OWNED,
    CancelRequested,
    Claim,
    Decision,
    Message,
    OperationState,
    PlacementState,
)
from landbridge.domain.ownership.centre_shared import is_owned, is_terminal
from landbridge.domain.ownership.gang_model import (
    GANG_BROKEN,
    GANG_MEMBER_LOST,
    GangBroken,
    GangComplete,
    GangShrunk,
    GangWaits,
)
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.domain.ownership.rules import PRODUCTION, Rules

Members = Mapping[str, OperationState]
Step = tuple[str, Decision]
Told = tuple[str, Message]
_MOST_NAMED = 3


def decide_gang(
    members: Members,
    operation: str,
    message: Message,
    now: int,
    rules: Rules = PRODUCTION,
    timing: Timing = DEFAULT_TIMING,
) -> list[Step]:
    """Decide what a message to one member changes for it and for the others, in order."""
    states, steps = dict(members), list[Step]()

    def tell(name: str, told: Message) -> None:
        decision = decide(states[name], told, now, rules, timing)
        states[name] = decision.state
        steps.append((name, decision))

    before = states[operation]
    tell(operation, message)
    for name, told in _consequences(before, states[operation], states):
        tell(name, told)
    for name, told in _levelled(states):
        tell(name, told)
    if isinstance(message, Claim):
        after = states[operation]
        if after.together and not before.together:
            tell(operation, message)
        elif after.claimed and not before.claimed:
            tell(operation, GangWaits(_missing(after, states)))
    return steps


def joined(members: Members, operation: str) -> list[Told]:
    """Return what follows for an operation that was accepted into a gang of which others may have ended."""
    for name in sorted(members):
        if name != operation and _is_lost(members[name]) and not _is_released(members[name]):
            return [(operation, _lost(members[name]))]
    return []


def members_left(members: Members) -> int:
    """Return how many have to be placed together: all that were declared but those that have completed."""
    declared = max((state.gang.members for state in members.values()), default=0)
    return declared - sum(state.phase is Phase.COMPLETED for state in members.values())


# -- what one member's step means to the others ------------------------------------------------------------------------


def _consequences(before: OperationState, after: OperationState, states: Members) -> Iterator[Told]:
    others = [name for name in sorted(states) if name != after.operation and not is_terminal(states[name])]
    if is_terminal(after) and not is_terminal(before):
        if after.phase is Phase.COMPLETED:
            shrunk = GangShrunk(f"member {after.operation} of gang {after.gang.name} has completed")
            yield from ((name, shrunk) for name in others if not states[name].together)
        elif not _is_released(after):
            yield from ((name, _lost(after)) for name in others if not states[name].cancel)
    elif after.round > before.round and before.stopping != GANG_BROKEN and not _is_released(before):
        broken = GangBroken(f"member {after.operation} of gang {after.gang.name} has to be placed again")
        yield from ((name, broken) for name in others)


def _levelled(states: Members) -> Iterator[Told]:
    """Bring members to one stand: all may start, or none may, whatever was lost on the way here."""
    live = [state for name, state in sorted(states.items()) if not is_terminal(state)]
    if not live or any(state.placement is PlacementState.RECOVERING for state in live):
        return
    gang = live[0].gang
    waiting = [state for state in live if not state.together]
    started = [state for state in live if state.together or is_owned(state)]
    if not waiting:
        return
    if not started:
        if len(states) >= gang.members and all(_is_held(state) for state in live):
            text = f"all {len(live)} members of gang {gang.name} are claimed"
            yield from ((state.operation, GangComplete(text)) for state in live)
        return
    if gang.apart or all(state.placement in OWNED for state in live):
        yield from ((state.operation, GangComplete()) for state in waiting)
        return
    behind = ", ".join(state.operation for state in waiting if not is_owned(state))
    broken = GangBroken(f"gang {gang.name} starts together, and its member {behind} has no place now")
    yield from ((state.operation, broken) for state in started if not state.stopping and not state.cancel)


def _is_held(state: OperationState) -> bool:
    return state.placement is PlacementState.OFFERED and state.claimed > 0 and not state.cancel


def _is_released(state: OperationState) -> bool:
    """Tell whether a member goes on by itself."""
    return state.gang.apart and state.together


def _is_lost(state: OperationState) -> bool:
    return is_terminal(state) and state.phase is not Phase.COMPLETED


def _lost(state: OperationState) -> CancelRequested:
    by = f"gang {state.gang.name}: its member {state.operation} has ended as {state.phase.value}"
    return CancelRequested(by, GANG_MEMBER_LOST)


def _missing(state: OperationState, states: Members) -> str:
    """Say which members are not claimed yet."""
    live = [other for _, other in sorted(states.items()) if not is_terminal(other)]
    wanted = members_left(states)
    held = sum(_is_held(other) for other in live)
    where = [_stand(other) for other in live if not _is_held(other)]
    unknown = wanted - len(live)
    named = where[:_MOST_NAMED]
    if len(where) > _MOST_NAMED:
        named.append(f"{len(where) - _MOST_NAMED} others")
    if unknown > 0:
        named.append(f"{unknown} not accepted")
    told = "; ".join(named)
    return f"claimed by {state.environment}; gang {state.gang.name} has {held} of {wanted} members claimed, not {told}"


def _stand(state: OperationState) -> str:
    if state.placement is PlacementState.OFFERED:
        return f"{state.operation} (offered to {state.environment})"
    return f"{state.operation} ({state.phase.value})"
