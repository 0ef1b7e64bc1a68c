"""What people do: cancel, move, free, attest, decide about unknown work. Each is one call, tried again until heard."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OWNED
from simulation.world.store import Crashed, SlotOf

if TYPE_CHECKING:
    from simulation.world.centre import Centre
    from simulation.world.world import World

_TRIES_AGAIN_MS = 4_000


def _call(world: "World", act: Callable[["Centre"], object]) -> None:
    """Have the centre carry something out in one transaction. Who got no answer asks again."""
    centre = world.centre
    if centre.hears:
        try:
            centre.transact(lambda: act(centre))
        except Crashed:
            pass
        else:
            return
    world.timeline.after(_TRIES_AGAIN_MS, lambda: _call(world, act))


def cancel(world: "World", operation: str) -> None:
    """Want an operation to end; a message like any other."""
    world.tell_centre(operation, model.CancelRequested("someone", force=world.random.random() < 0.5))


def move(world: "World", operation: str, to: str) -> None:
    """Want an operation in one environment, or with `to` empty wherever it may run."""
    world.note(f"MOVE {operation} to {to or 'anywhere'}")
    _call(world, lambda centre: centre.act(operation, model.MoveRequested(to, "someone", "drill")))


def change_queue(world: "World", operation: str) -> None:
    """Have an operation wait elsewhere."""
    wish = model.QueueChanged("someone", "drill", queue=world.random.choice(("night", "day")))
    _call(world, lambda centre: centre.act(operation, wish))


def override(world: "World", operation: str) -> None:
    """Free an operation although its old attempt may run."""

    def act(centre: "Centre") -> None:
        state = centre.store.operations.get(operation)
        if state is not None and state.placement in OWNED:
            world.note(f"OVERRIDE {operation}")
            world.truth.overlap_allowed.add(operation)
        centre.act(operation, model.Override("someone", "drill"))

    _call(world, act)


def declare_dead(world: "World", name: str) -> None:
    """Attest that an environment is off, having looked."""

    def act(centre: "Centre") -> None:
        if not world.environments[name].powered:
            world.note(f"DECLARED DEAD {name}")
            centre.declare_dead(name)

    _call(world, act)


def lift_hold(world: "World") -> None:
    """Confirm that the silence is real."""
    _call(world, lambda centre: centre.lift_hold())


def decide_quarantine(world: "World", key: SlotOf) -> None:
    """Have unknown work taken over; where that cannot be, or by choice, have it stopped."""
    adopts = world.random.random() < 0.6

    def act(centre: "Centre") -> None:
        found = centre.store.quarantine.get(key)
        if found is None or found.state not in ("open", "stopping"):
            return
        if adopts and centre.adopt_found(key, "someone"):
            world.note(f"ADOPTED {key[1]} {key[2]} in {key[0]}")
        elif not adopts or not centre.may_be_adopted(key):
            world.note(f"STOPS unknown {key[1]} {key[2]} in {key[0]}")
            centre.stop_found(key)

    _call(world, act)
