"""Compare an environment's full inventory with what the centre believes, and choose what each difference means."""

from collections.abc import Iterable, Mapping

import msgspec

from landbridge.domain.ownership.centre_model import (
    OWNED,
    InventoryItem,
    InventoryMissing,
    Message,
    OperationState,
    PlacementState,
)
from landbridge.domain.ownership.epochs import Epoch


class Reconciliation(msgspec.Struct, frozen=True):
    """What to tell each operation, in order of operation and epoch, and what nobody here knows."""

    messages: tuple[tuple[str, Message], ...]
    quarantined: tuple[tuple[str, Epoch], ...]
    """Slots of unknown operations: reported to people, never deleted."""


def compare(
    environment: str,
    term: int,
    restored: bool,
    states: Mapping[str, OperationState],
    items: Iterable[tuple[str, InventoryItem]],
) -> Reconciliation:
    """Compare a complete inventory taken in `term`, the term in force, with the operations it may concern.

    `states` holds every operation of the inventory that exists, and every one that the centre believes claimed or
    running in this environment, or claimed there without a grant as a gang's member. Lower epochs come first, so that
    the current one has the last word.
    """
    messages: list[tuple[str, Message]] = []
    quarantined: list[tuple[str, Epoch]] = []
    found: set[tuple[str, Epoch]] = set()
    for operation, item in sorted(items, key=_by_operation_and_epoch):
        state = states.get(operation)
        if state is None:
            quarantined.append((operation, item.epoch))
            continue
        found.add((operation, item.epoch))
        messages.append((operation, item))
    missing = InventoryMissing(environment, term, restored)
    for operation in sorted(states):
        state = states[operation]
        here = state.environment == environment
        claimed = state.placement is PlacementState.OFFERED and 0 < state.claimed < term
        mine = here and (state.placement in OWNED or claimed)
        if mine and (operation, state.epoch) not in found:
            messages.append((operation, missing))
    return Reconciliation(tuple(messages), tuple(quarantined))


def _by_operation_and_epoch(pair: tuple[str, InventoryItem]) -> tuple[str, Epoch]:
    return pair[0], pair[1].epoch


def highest_slots(items: Iterable[tuple[str, InventoryItem]]) -> dict[str, InventoryItem]:
    """Return, for every operation, the slot with the highest epoch in any environment and in any state.

    After a restore of the centre this slot decides: finished is done, created or running is adopted, a tombstone is
    placed anew. All environments that may hold the operation must have shown their inventory first.
    """
    best: dict[str, InventoryItem] = {}
    for operation, item in items:
        known = best.get(operation)
        if known is None or known.epoch < item.epoch:
            best[operation] = item
    return best


def recovering(states: Mapping[str, OperationState]) -> list[str]:
    """Return the operations that wait for the environments to show what they hold."""
    return [name for name in sorted(states) if states[name].placement is PlacementState.RECOVERING]
