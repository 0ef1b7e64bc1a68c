"""What a fault strikes, and which operations it meets there."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from landbridge.domain.ownership.centre_model import OWNED, OperationState

if TYPE_CHECKING:
    from simulation.world.world import World

Target = Any
"""An environment, an operation, a quarantined slot, or everything; None: there is nothing to strike."""


def an_environment(world: "World") -> Target:
    """Often the one where something is being stopped just now."""
    if world.near and world.random.random() < 0.4:
        return world.near
    return world.random.choice(sorted(world.environments))


def a_powered_environment(world: "World") -> Target:
    name = an_environment(world)
    return name if world.environments[name].powered else None


def everything(world: "World") -> Target:
    return "all"


def an_operation(world: "World") -> Target:
    """Mostly one that runs, or at least has not ended: people rarely mind the others."""
    states = world.centre.store.operations
    names = world.centre.unfinished()
    if world.random.random() < 0.6:
        names = [name for name in names if states[name].placement in OWNED] or names
    if not names or world.random.random() < 0.1:
        names = sorted(world.centre.store.operations)
    return world.random.choice(names) if names else None


def a_found_slot(world: "World") -> Target:
    open_ones = [key for key, found in sorted(world.centre.store.quarantine.items()) if found.state == "open"]
    return world.random.choice(open_ones) if open_ones else None


def the_stores(world: "World") -> Target:
    return None if world.orphans_allowed else "all"


def in_environment(world: "World", name: Target) -> Iterable[OperationState]:
    return [state for state in world.centre.store.operations.values() if state.environment in (name, "")]


def all_operations(world: "World", _: Target) -> Iterable[OperationState]:
    return list(world.centre.store.operations.values())


def itself(world: "World", operation: Target) -> Iterable[OperationState]:
    return [world.centre.store.operations[operation]]


def of_slot(world: "World", key: Target) -> Iterable[OperationState]:
    state = world.centre.store.operations.get(key[1])
    return [] if state is None else [state]
