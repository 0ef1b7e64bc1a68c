"""What goes wrong, and what people do about it: every kind, at random moments of the storm.

Messages are dropped, repeated, delayed and reordered all the time: that is the bus's weather, see `bus`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OperationState
from simulation.world import people, targets
from simulation.world.clock import PROMISED_PPM
from simulation.world.coverage import protocol_state
from simulation.world.targets import Target

if TYPE_CHECKING:
    from simulation.world.world import World

Act = Callable[["World", Target], None]


_COMPANY, _COMPANY_OF_PASSING = 0.4, 0.9


@dataclass(frozen=True)
class Fault:
    """`choose` picks what is struck (None: there is nothing), `concerned` the operations that this meets."""

    act: Act
    choose: Callable[["World"], Target]
    concerned: Callable[["World", Target], Iterable[OperationState]]


def schedule(world: "World") -> None:
    kinds = world.plan.kinds or STANDARD
    for _ in range(world.plan.faults):
        kind = world.random.choice(kinds)
        at = world.random.randint(1_000, world.plan.storm_ms - 1_000)
        world.timeline.after(at, lambda kind=kind: strike(world, kind))  # type: ignore[misc]
        if world.random.random() < (_COMPANY_OF_PASSING if kind in PASSING else _COMPANY):
            # Trouble rarely comes alone: what is being stopped, moved or restored is struck again.
            other, soon = world.random.choice(kinds), at + world.random.randint(1, 4_000)
            world.timeline.after(soon, lambda other=other: strike(world, other))  # type: ignore[misc]
    keep_copies(world)


def keep_copies(world: "World") -> None:
    """Take the copies that restores go back to, now and then."""
    for name in world.environments:
        _snapshot(world, name)
    _backup(world)


def strike(world: "World", kind: str) -> None:
    fault = FAULTS[kind]
    target = fault.choose(world)
    if target is None:
        return
    for state in fault.concerned(world, target):
        world.truth.covered[f"fault {kind}", protocol_state(state)] += 1
    world.note(f"FAULT {kind} {target}")
    if kind in PASSING:
        world.near = world.centre.store.operations[target].environment
    fault.act(world, target)


def _snapshot(world: "World", name: str) -> None:
    world.snapshots[name] = world.environments[name].durable.copy()
    world.timeline.after(world.random.randint(5_000, 90_000), lambda: _snapshot(world, name))


def _backup(world: "World") -> None:
    world.backups.append(world.centre.store.copy())
    world.timeline.after(world.random.randint(5_000, 120_000), lambda: _backup(world))


def _length(world: "World") -> int:
    return world.random.choice((3_000, 20_000, 45_000, 90_000, 200_000))


# -- links and processes ----------------------------------------------------------------------------------------------


def cut(world: "World", name: Target) -> None:
    directions = world.random.choice((("up", "down"), ("up",), ("down",)))
    for direction in directions:
        world.bus.sever((name, direction))

    def mend() -> None:
        for direction in directions:
            world.bus.mend((name, direction))

    world.timeline.after(_length(world), mend)


def cut_all(world: "World", _: Target) -> None:
    def mend() -> None:
        for name in world.environments:
            world.bus.mend((name, "up"))

    for name in world.environments:
        world.bus.sever((name, "up"))
    world.timeline.after(_length(world), mend)


def dispatcher_killed(world: "World", name: Target) -> None:
    environment = world.environments[name]
    environment.kill_process()
    world.timeline.after(world.random.choice((500, 10_000, 90_000)), environment.revive)


def dispatcher_paused(world: "World", name: Target) -> None:
    world.environments[name].pause_process(_length(world), twin=False)


def dispatcher_twin(world: "World", name: Target) -> None:
    world.environments[name].pause_process(_length(world), twin=True)


def host_crash(world: "World", name: Target) -> None:
    environment = world.environments[name]
    environment.crash_host()
    world.timeline.after(world.random.choice((5_000, 60_000)), environment.revive)


def centre_crash(world: "World", _: Target) -> None:
    if world.centre.up:
        world.centre.crash()


def centre_paused(world: "World", _: Target) -> None:
    world.centre.paused_until = world.timeline.now + _length(world)


def commands_again(world: "World", name: Target) -> None:
    world.bus.redeliver(name)


def term_raised(world: "World", name: Target) -> None:
    """The term advances, as it does now and then by itself."""
    world.centre.raise_term(name)


# -- stores -----------------------------------------------------------------------------------------------------------


def environment_restored(world: "World", name: Target) -> None:
    world.note(f"{name}: RESTORE")
    orphans = world.orphans_allowed and world.random.random() < 0.7
    world.environments[name].restore(world.snapshots[name], orphans=orphans)


def _earlier(world: "World") -> Any:
    backup = world.backups[-1] if world.random.random() < 0.7 else world.random.choice(world.backups)
    world.backups = [backup]
    return backup


def centre_restored(world: "World", _: Target) -> None:
    """The coordinator's database goes back; intake still has all that it accepted."""
    world.restore_centre(_earlier(world), intake_too=False)


def stores_restored(world: "World", _: Target) -> None:
    """Intake's database goes back as well: what is submitted again, with its key, may be running already."""
    world.restore_centre(_earlier(world), intake_too=True)


# -- clocks -----------------------------------------------------------------------------------------------------------


def clock_offset(world: "World", name: Target) -> None:
    """The wall clock is stepped; it decides nothing, and betrays itself."""
    world.environments[name].clock.step_wall(world.random.choice((-3_600_000, -2_000, 2_000, 3_600_000)))


def clock_rate(world: "World", name: Target) -> None:
    """The boot clock runs at another rate, within the promise; so does the centre's."""
    world.environments[name].clock.set_rate(world.random.randint(-PROMISED_PPM, PROMISED_PPM))
    world.centre.clock.set_rate(world.random.randint(-PROMISED_PPM, PROMISED_PPM))


def clock_jump(world: "World", name: Target) -> None:
    """Time passes at once: in an environment a lease ends early, in the centre all of them count as granted now."""
    world.environments[name].clock.jump(world.random.choice((1_500, 8_000, 25_000, 3_600_000)))
    if world.random.random() < 0.3:
        world.centre.clock.jump(world.random.choice((15_000, 60_000, 3_600_000)))


def clock_wrong(world: "World", name: Target) -> None:
    """Every promise about a clock is broken: 20 % off, or set back."""
    world.truth.untrusted.add(name)
    clock = world.environments[name].clock
    if world.random.random() < 0.3:
        clock.jump(world.random.choice((-40_000, -5_000)))
        return
    clock.set_rate(world.random.choice((-200_000, 200_000)))
    world.timeline.after(_length(world), lambda: clock.set_rate(0))


# -- people -----------------------------------------------------------------------------------------------------------


def cancel(world: "World", operation: Target) -> None:
    people.cancel(world, operation)


def move(world: "World", operation: Target) -> None:
    people.move(world, operation, world.random.choice(("", *sorted(world.environments))))


def preempted(world: "World", operation: Target) -> None:
    """Ranking needs what an operation holds, or held when it looked."""
    state = world.centre.store.operations[operation]
    world.tell_centre(operation, model.Preempted(max(1, state.round - world.random.choice((0, 0, 0, 1)))))


def queue_changed(world: "World", operation: Target) -> None:
    people.change_queue(world, operation)


def override(world: "World", operation: Target) -> None:
    people.override(world, operation)


def declared_dead(world: "World", name: Target) -> None:
    """A host loses power, a person looks and says so, and much later it is switched on again."""
    environment = world.environments[name]
    environment.crash_host()
    environment.powered = False

    def power_on() -> None:
        environment.powered = True
        environment.revive()

    world.timeline.after(40_000, lambda: people.declare_dead(world, name))
    world.timeline.after(world.random.choice((150_000, 300_000)), power_on)


def hold_lifted(world: "World", _: Target) -> None:
    people.lift_hold(world)


def quarantine_decided(world: "World", key: Target) -> None:
    people.decide_quarantine(world, key)


FAULTS: dict[str, Fault] = {
    "cut": Fault(cut, targets.an_environment, targets.in_environment),
    "cut-all": Fault(cut_all, targets.everything, targets.all_operations),
    "dispatcher-killed": Fault(dispatcher_killed, targets.an_environment, targets.in_environment),
    "dispatcher-paused": Fault(dispatcher_paused, targets.an_environment, targets.in_environment),
    "dispatcher-twin": Fault(dispatcher_twin, targets.an_environment, targets.in_environment),
    "host-crash": Fault(host_crash, targets.an_environment, targets.in_environment),
    "environment-restored": Fault(environment_restored, targets.a_powered_environment, targets.in_environment),
    "centre-crash": Fault(centre_crash, targets.everything, targets.all_operations),
    "centre-paused": Fault(centre_paused, targets.everything, targets.all_operations),
    "centre-restored": Fault(centre_restored, targets.the_stores, targets.all_operations),
    "stores-restored": Fault(stores_restored, targets.the_stores, targets.all_operations),
    "commands-again": Fault(commands_again, targets.an_environment, targets.in_environment),
    "term-raised": Fault(term_raised, targets.an_environment, targets.in_environment),
    "clock-offset": Fault(clock_offset, targets.an_environment, targets.in_environment),
    "clock-rate": Fault(clock_rate, targets.an_environment, targets.in_environment),
    "clock-jump": Fault(clock_jump, targets.an_environment, targets.in_environment),
    "clock-wrong": Fault(clock_wrong, targets.an_environment, targets.in_environment),
    "cancel": Fault(cancel, targets.an_operation, targets.itself),
    "move": Fault(move, targets.an_operation, targets.itself),
    "preempted": Fault(preempted, targets.an_operation, targets.itself),
    "queue-changed": Fault(queue_changed, targets.an_operation, targets.itself),
    "override": Fault(override, targets.an_operation, targets.itself),
    "declared-dead": Fault(declared_dead, targets.a_powered_environment, targets.in_environment),
    "hold-lifted": Fault(hold_lifted, targets.everything, targets.all_operations),
    "quarantine-decided": Fault(quarantine_decided, targets.a_found_slot, targets.of_slot),
}

BEYOND_PROMISE = ("clock-wrong",)
"""Only in plans that ask for it: it excuses overlaps."""
PASSING = ("move", "cancel", "preempted")
"""What they begin passes quickly: they come more often, and mostly with company, so that the rest meets it."""
STANDARD = (*(kind for kind in FAULTS if kind not in BEYOND_PROMISE), *PASSING, "move")
"""All that the protocol promises to survive."""
