"""The whole world: submissions, a stand-in for eligibility and ranking, faults, people, and the run itself."""

from dataclasses import dataclass, field
from random import Random

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.leases_centre import Link
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect, Retries
from landbridge.domain.ownership.rules import PRODUCTION, Rules
from simulation.world import people
from simulation.world.bus import FaultyBus, Weather
from simulation.world.centre import INSIDE, Centre
from simulation.world.clock import PROMISED_PPM, MachineClock, Timeline
from simulation.world.coverage import protocol_state
from simulation.world.environment import Environment
from simulation.world.store import Store
from simulation.world.truth import Truth
from simulation.world.truth_centre import Violated
from simulation.world.workloads import Durable

POLICIES = (
    Disconnection(OnDisconnect.CONTINUE),
    Disconnection(OnDisconnect.MUST_FINISH),
    Disconnection(OnDisconnect.CHECKPOINT_THEN_STOP, 10_000, 5_000),
    Disconnection(OnDisconnect.STOP_AFTER_GRACE, 2_000, 3_000),
)

_LOOKS_MS = 120_000
_DECIDES_AFTER, _OVERRIDES_AFTER = 2, 8
"""How many looks people give the protocol before they decide about unknown work, and before they free what is stuck."""


@dataclass
class Plan:
    """How much happens in one run."""

    operations: int = 24
    faults: int = 24
    storm_ms: int = 600_000
    calm_ms: int = 3_600_000
    weather: Weather = field(default_factory=Weather)
    kinds: tuple[str, ...] = ()
    """Only these kinds of fault; empty = all that the protocol promises to survive."""


class World:
    def __init__(self, seed: int, rules: Rules = PRODUCTION, plan: Plan | None = None) -> None:
        self.seed = seed
        self.rules = rules
        self.plan = plan or Plan()
        self.random = Random(seed)
        self.timeline = Timeline()
        self.truth = Truth()
        self.bus = FaultyBus(self.timeline, self.random, self.plan.weather, self._met)
        self._ids = 0
        self.pace = 1
        """How many times slower everything periodic goes: a week in which nothing happens need not be told by beats."""
        self.environments: dict[str, Environment] = {}
        self.centre = Centre(self)
        for name in ("a", "b", "c"):
            self.environments[name] = Environment(self, name, self.machine_clock(), self_stop_works=name != "c")
        self.generation = 1
        self.orphans_allowed = self.random.random() < 0.5
        """Either work may outlive its own records in an environment, or the centre may lose its own: nobody would be
        left who could know. One such restore, on one side, is what the protocol promises to survive."""
        self.submitted: list[model.Accepted] = []
        self.near = ""
        """The environment of what people meddled with last: trouble comes there too."""
        self.backups: list[Store] = []
        self.snapshots: dict[str, Durable] = {}

    def machine_clock(self) -> MachineClock:
        rate = self.random.randint(-PROMISED_PPM, PROMISED_PPM)
        return MachineClock(self.timeline, self.random.randint(0, 10**9), rate)

    def message_id(self) -> int:
        self._ids += 1
        return self._ids

    def note(self, text: str) -> None:
        self.truth.note(self.timeline.now, text)

    def _met(self, weather: str, operation: str) -> None:
        """Take note of what the weather did to a message about an operation."""
        state = self.centre.store.operations.get(operation)
        if state is not None:
            self.truth.covered[f"fault {weather}", protocol_state(state)] += 1

    # -- eligibility and ranking --------------------------------------------------------------------------------------

    def rank(self, operation: str, wish: model.Requeue) -> None:
        """Decide soon, for an environment that looks connected, or make it wait and decide later."""
        self.timeline.after(self.random.randint(1, 200), lambda: self._rank(operation, wish, 0))

    def _rank(self, operation: str, wish: model.Requeue, tries: int) -> None:
        connected = [
            name
            for name, lease in sorted(self.centre.store.environments.items())
            if lease.link is Link.CONNECTED and name not in wish.exclude and wish.only in ("", name)
        ]
        if not connected or (not self.bus.calm and self.random.random() < 0.1):
            waiting = model.Waiting(wish.round, "not-now", unplaceable=bool(wish.exclude) and tries > 3)
            self.tell_centre(operation, waiting)
            if tries < 200:
                again = self.random.randint(2_000, 20_000)
                self.timeline.after(again, lambda: self._rank(operation, wish, tries + 1))
            return
        chosen = self.random.choice(connected)
        self.tell_centre(operation, model.Decided(wish.round, chosen, f"decision-{wish.round}"))

    def tell_centre(self, operation: str, message: model.Message) -> None:
        """Say something to the coordinator from within the centre, at least once."""
        message_id = self.message_id()

        def receive(_: object) -> bool:
            return self.centre.deliver(message_id, operation, message)

        self.bus.post(INSIDE, None, receive)
        if not self.bus.calm and self.random.random() < 0.1:
            self.timeline.after(self.random.randint(0, 60_000), lambda: self.bus.post(INSIDE, None, receive))

    # -- applications -------------------------------------------------------------------------------------------------

    def submit(self, number: int, policy: Disconnection) -> None:
        retries = Retries(self.random.randint(0, 2), self.random.choice((0, 1_000, 10_000)))
        queue = self.random.choice((86_400_000, 86_400_000, 60_000))
        gang = self.random.choice((0, 0, 0, 1_000, 20_000))
        accepted = model.Accepted(
            operation=f"o{number}", project="p", policy=policy, retries=retries, queue_timeout_ms=queue,
            start_within_ms=gang,
        )  # fmt: skip
        self._accept(accepted)

    def _accept(self, accepted: model.Accepted) -> None:
        """Intake commits, and tells the coordinator. A key that it knows is the same operation."""
        if accepted not in self.submitted:
            self.submitted.append(accepted)
        self.bus.post(INSIDE, accepted, self.centre.submit)

    def restore_centre(self, backup: Store, *, intake_too: bool) -> None:
        """Restore the coordinator's database, and intake's: applications then submit again what got no answer."""
        self.centre.restore(backup)
        lost = [accepted for accepted in self.submitted if accepted.operation not in backup.operations]
        if not intake_too:
            for accepted in lost:
                self._accept(accepted)  # published again, from the event log
            return
        for accepted in lost:
            self.submitted.remove(accepted)
            again = self.random.choice((1_000, 30_000, 120_000))
            self.timeline.after(again, lambda accepted=accepted: self._accept(accepted))  # type: ignore[misc]

    # -- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> "World":
        from simulation.world.faults import schedule

        for number in range(self.plan.operations):
            at = self.random.randint(100, self.plan.storm_ms * 4 // 5)
            policy = self.random.choice(POLICIES)
            self.timeline.after(at, lambda number=number, policy=policy: self.submit(number, policy))  # type: ignore[misc]
        schedule(self)
        self.until(self.plan.storm_ms)
        return self.finish()

    def finish(self) -> "World":
        """End all faults, let people help where only people can, and demand that everything ends."""
        self._heal()
        end = self.timeline.now + self.plan.calm_ms
        self.until(self.timeline.now + _LOOKS_MS)  # by then everybody has come back, and submitted again
        looks = 1
        while self.timeline.now < end and not self._is_over():
            looks += 1
            self.until(self.timeline.now + _LOOKS_MS)
            if looks >= _DECIDES_AFTER:
                for key, found in sorted(self.centre.store.quarantine.items()):
                    if found.state == "open":
                        people.decide_quarantine(self, key)
            if looks >= _OVERRIDES_AFTER:
                for operation in self.centre.unfinished():
                    people.override(self, operation)
        self.until(self.timeline.now + 400_000)
        self.truth.settled(self.centre.store.operations, {accepted.operation for accepted in self.submitted})
        return self

    def _is_over(self) -> bool:
        store = self.centre.store
        return not self.centre.unfinished() and not any(found.state == "open" for found in store.quarantine.values())

    def until(self, moment: int) -> None:
        self.timeline.until(moment)

    def _heal(self) -> None:
        self.note("HEAL")
        self.bus.calm = True
        for way in sorted(self.bus.cut):
            self.bus.mend(way)
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
