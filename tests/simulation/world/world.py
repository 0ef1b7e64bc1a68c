"""The whole world: submissions, a stand-in for eligibility and ranking, faults, people, and the run itself."""

from dataclasses import dataclass, field
from random import Random

from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OWNED
from landbridge.domain.ownership.leases_centre import Link
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect, Retries
from landbridge.domain.ownership.rules import PRODUCTION, Rules
from simulation.world.bus import FaultyBus, Weather
from simulation.world.centre import Centre, Store
from simulation.world.clock import MachineClock, Timeline
from simulation.world.environment import Environment
from simulation.world.truth import Truth, Violated
from simulation.world.workloads import Durable

POLICIES = (
    Disconnection(OnDisconnect.CONTINUE),
    Disconnection(OnDisconnect.MUST_FINISH),
    Disconnection(OnDisconnect.CHECKPOINT_THEN_STOP, 10_000, 5_000),
    Disconnection(OnDisconnect.STOP_AFTER_GRACE, 2_000, 3_000),
)


@dataclass
class Plan:
    """How much happens in one run."""

    operations: int = 24
    faults: int = 24
    storm_ms: int = 600_000
    calm_ms: int = 3_600_000
    weather: Weather = field(default_factory=Weather)
    kinds: tuple[str, ...] = ()
    """Only these kinds of fault; empty = all."""


class World:
    def __init__(self, seed: int, rules: Rules = PRODUCTION, plan: Plan | None = None) -> None:
        self.seed = seed
        self.rules = rules
        self.plan = plan or Plan()
        self.random = Random(seed)
        self.timeline = Timeline()
        self.truth = Truth()
        self.bus = FaultyBus(self.timeline, self.random, self.plan.weather)
        self._ids = 0
        self.environments: dict[str, Environment] = {}
        self.centre = Centre(self)
        for name in ("a", "b", "c"):
            origin, ppm = self.random.randint(0, 10**9), self.random.randint(-9_900, 9_900)
            self.environments[name] = Environment(self, name, origin, ppm, self_stop_works=name != "c")
        self.generation = 1
        self.orphaned = False
        self.submitted: list[model.Accepted] = []
        self.backups: list[Store] = []
        self.snapshots: dict[str, Durable] = {}

    def machine_clock(self) -> MachineClock:
        return MachineClock(self.timeline, self.random.randint(0, 10**9), self.random.randint(-9_900, 9_900))

    def message_id(self) -> int:
        self._ids += 1
        return self._ids

    def note(self, text: str) -> None:
        self.truth.note(self.timeline.now, text)

    # -- eligibility and ranking --------------------------------------------------------------------------------------

    def rank(self, operation: str, round_: int, exclude: tuple[str, ...]) -> None:
        """Decide soon, for an environment that looks connected, or make it wait and decide later."""
        self.timeline.after(self.random.randint(1, 200), lambda: self._rank(operation, round_, exclude, 0))

    def _rank(self, operation: str, round_: int, exclude: tuple[str, ...], tries: int) -> None:
        states = self.centre.store.environments
        connected = [name for name in sorted(states) if states[name].link is Link.CONNECTED and name not in exclude]
        if not connected or (not self.bus.calm and self.random.random() < 0.1):
            waiting = model.Waiting(round_, "not-now", unplaceable=bool(exclude) and tries > 3)
            self._to_centre(operation, waiting)
            if tries < 200:
                again = self.random.randint(2_000, 20_000)
                self.timeline.after(again, lambda: self._rank(operation, round_, exclude, tries + 1))
            return
        chosen = self.random.choice(connected)
        self._to_centre(operation, model.Decided(round_, chosen, f"decision-{round_}"))

    def _to_centre(self, operation: str, message: model.Message) -> None:
        message_id = self.message_id()
        self._push(message_id, operation, message)
        if not self.bus.calm and self.random.random() < 0.1:
            self.timeline.after(self.random.randint(0, 60_000), lambda: self._push(message_id, operation, message))

    def _push(self, message_id: int, operation: str, message: model.Message) -> None:
        if not self.centre.deliver(message_id, operation, message):
            self.timeline.after(1_000, lambda: self._push(message_id, operation, message))

    # -- people -------------------------------------------------------------------------------------------------------

    def cancel(self, operation: str) -> None:
        self._to_centre(operation, model.CancelRequested("someone", force=self.random.random() < 0.5))

    def override(self, operation: str) -> None:
        state = self.centre.store.operations.get(operation)
        if state is not None and state.placement in OWNED:
            self.note(f"OVERRIDE {operation}")
            self.truth.overlap_allowed.add(operation)
            self._to_centre(operation, model.Override("someone", "drill"))

    # -- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> "World":
        from simulation.world.faults import schedule

        for number in range(self.plan.operations):
            at = self.random.randint(100, self.plan.storm_ms // 2)
            self.timeline.after(at, lambda number=number: self._submit(number))  # type: ignore[misc]
        schedule(self)
        self.until(self.plan.storm_ms)
        return self.finish()

    def finish(self) -> "World":
        """End all faults, let people help where only people can, and demand that everything ends."""
        self._heal()
        end = self.timeline.now + self.plan.calm_ms
        helped = 0
        while self.timeline.now < end and self.centre.unfinished():
            helped += 1
            self.until(self.timeline.now + 120_000)
            if helped >= 8:
                for operation in self.centre.unfinished():
                    self.override(operation)
        self.until(self.timeline.now + 400_000)
        self.truth.settled(self.centre.store.operations)
        return self

    def _submit(self, number: int) -> None:
        self.submit(number, self.random.choice(POLICIES))

    def submit(self, number: int, policy: Disconnection) -> None:
        retries = Retries(self.random.randint(0, 2), self.random.choice((0, 1_000, 10_000)))
        queue = self.random.choice((86_400_000, 86_400_000, 60_000))
        accepted = model.Accepted(
            operation=f"o{number}", project="p", policy=policy, retries=retries, queue_timeout_ms=queue
        )
        self._again(accepted)

    def _again(self, accepted: model.Accepted) -> None:
        if self.centre.up:
            self.submitted.append(accepted)
            self.centre.submit(accepted)
        else:
            self.timeline.after(1_000, lambda: self._again(accepted))

    def until(self, moment: int) -> None:
        while (at := self.timeline.next_at) is not None and at <= moment:
            self.timeline.step()
        self.timeline.now = max(self.timeline.now, moment)

    def _heal(self) -> None:
        self.note("HEAL")
        self.bus.calm = True
        self.bus.cut.clear()
        self.centre.paused_until = 0
        self.centre.revive()
        for environment in self.environments.values():
            environment.powered = True
            environment.revive()


def run(seed: int, rules: Rules = PRODUCTION, plan: Plan | None = None) -> World:
    """Run one seed; a violation carries the seed and the end of the trace, and the same seed replays it exactly."""
    world = World(seed, rules, plan)
    try:
        return world.run()
    except Violated as violated:
        tail = "\n".join(world.truth.trace[-60:])
        raise Violated(f"seed {seed}: {violated}\n{tail}") from None


def is_over(world: World) -> bool:
    return all(state.phase in TERMINAL for state in world.centre.store.operations.values())
