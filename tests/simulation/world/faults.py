"""What goes wrong: every kind of fault, at random moments of the storm."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.world.world import World

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OWNED


def schedule(world: "World") -> None:
    kinds = world.plan.kinds or tuple(FAULTS)
    for _ in range(world.plan.faults):
        kind = world.random.choice(kinds)
        at = world.random.randint(1_000, world.plan.storm_ms - 1_000)
        world.timeline.after(at, lambda kind=kind: strike(world, kind))  # type: ignore[misc]
    keep_copies(world)


def keep_copies(world: "World") -> None:
    """Take the copies that restores go back to, now and then."""
    for name in world.environments:
        _snapshot(world, name)
    _backup(world)


def strike(world: "World", kind: str) -> None:
    for state in world.centre.store.operations.values():
        world.truth.covered[f"fault {kind}", str(state.placement)] += 1
    world.note(f"FAULT {kind}")
    FAULTS[kind](world)


def _snapshot(world: "World", name: str) -> None:
    world.snapshots[name] = world.environments[name].durable.copy()
    world.timeline.after(world.random.randint(5_000, 90_000), lambda: _snapshot(world, name))


def _backup(world: "World") -> None:
    world.backups.append(world.centre.store.copy())
    world.timeline.after(world.random.randint(5_000, 120_000), lambda: _backup(world))


def _some(world: "World") -> str:
    return world.random.choice(sorted(world.environments))


def _length(world: "World") -> int:
    return world.random.choice((3_000, 20_000, 45_000, 90_000, 200_000))


def cut(world: "World") -> None:
    name = _some(world)
    directions = world.random.choice((("up", "down"), ("up",), ("down",)))
    for direction in directions:
        world.bus.cut.add((name, direction))

    def mend() -> None:
        for direction in directions:
            world.bus.cut.discard((name, direction))

    world.timeline.after(_length(world), mend)


def cut_all(world: "World") -> None:
    def mend() -> None:
        for name in world.environments:
            world.bus.cut.discard((name, "up"))

    for name in world.environments:
        world.bus.cut.add((name, "up"))
    world.timeline.after(_length(world), mend)


def dispatcher_killed(world: "World") -> None:
    environment = world.environments[_some(world)]
    environment.kill_process()
    world.timeline.after(world.random.choice((500, 10_000, 90_000)), environment.revive)


def dispatcher_paused(world: "World") -> None:
    world.environments[_some(world)].pause_process(_length(world), twin=False)


def dispatcher_twin(world: "World") -> None:
    world.environments[_some(world)].pause_process(_length(world), twin=True)


def host_crash(world: "World") -> None:
    environment = world.environments[_some(world)]
    environment.crash_host()
    world.timeline.after(world.random.choice((5_000, 60_000)), environment.revive)


def environment_restored(world: "World") -> None:
    name = _some(world)
    if not world.environments[name].powered:
        return
    world.note(f"{name}: RESTORE")
    # Work that outlives its own records and a centre that lost its own too: nobody is left who could know. One such
    # restore, on one side, is what the protocol promises to survive.
    orphans = world.random.random() < 0.5 and world.generation == 1
    world.orphaned = world.orphaned or orphans
    world.environments[name].restore(world.snapshots[name], orphans=orphans)


def centre_crash(world: "World") -> None:
    if world.centre.up:
        world.centre.crash()


def centre_paused(world: "World") -> None:
    world.centre.paused_until = world.timeline.now + _length(world)


def centre_restored(world: "World") -> None:
    if world.orphaned:
        return
    backup = world.backups[-1] if world.random.random() < 0.7 else world.random.choice(world.backups)
    world.backups = [backup]
    world.centre.restore(backup)


def cancel(world: "World") -> None:
    unfinished = world.centre.unfinished()
    if unfinished:
        world.cancel(world.random.choice(unfinished))


def override(world: "World") -> None:
    owned = [n for n, s in sorted(world.centre.store.operations.items()) if s.placement in OWNED]
    if owned:
        world.override(world.random.choice(owned))


def declared_dead(world: "World") -> None:
    """A host loses power, a person looks and says so, and much later it is switched on again."""
    name = _some(world)
    environment = world.environments[name]
    environment.crash_host()
    environment.powered = False

    def declare() -> None:
        if environment.powered:
            return
        for operation in sorted(world.centre.store.operations):
            world._to_centre(operation, model.DeclaredDead(name, "someone", "no power"))

    def power_on() -> None:
        environment.powered = True
        environment.revive()

    world.timeline.after(40_000, declare)
    world.timeline.after(world.random.choice((150_000, 300_000)), power_on)


def commands_again(world: "World") -> None:
    world.bus.redeliver(_some(world))


def term_period(world: "World") -> None:
    """The term advances, as it does now and then by itself."""
    from landbridge.domain.ownership.leases_centre import RaiseTerm

    name = _some(world)
    if name in world.centre.store.environments and world.centre.hears:
        world.centre._lease(name, RaiseTerm())


FAULTS: dict[str, Callable[["World"], None]] = {
    "cut": cut,
    "cut-all": cut_all,
    "dispatcher-killed": dispatcher_killed,
    "dispatcher-paused": dispatcher_paused,
    "dispatcher-twin": dispatcher_twin,
    "host-crash": host_crash,
    "environment-restored": environment_restored,
    "centre-crash": centre_crash,
    "centre-paused": centre_paused,
    "centre-restored": centre_restored,
    "cancel": cancel,
    "override": override,
    "declared-dead": declared_dead,
    "commands-again": commands_again,
    "term-raised": term_period,
}
