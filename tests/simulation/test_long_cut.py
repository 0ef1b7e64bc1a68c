"""A link that is cut for a week, with thousands of commands and reports waiting on either side of it."""

from collections import Counter

import pytest

from landbridge.domain.lifecycle import TERMINAL, Phase
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import environment_model as away
from landbridge.domain.ownership.leases_centre import Link
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect, Retries
from simulation.world.workloads import Workload
from simulation.world.world import Plan, World

WEEK_MS = 7 * 86_400_000
SLOWER = 20_000
"""How much slower beats and looks go during the week: some of each is enough, each speaks of every operation."""
RECONCILED_WITHIN_MS = 30_000
UP, DOWN = ("a", "up"), ("a", "down")


class Quiet(World):
    """A world without faults in which everything runs in one environment until it is told to end."""

    def __init__(self) -> None:
        super().__init__(1, plan=Plan(operations=0, faults=0))
        self.bus.calm = True
        self.environments["a"]._complete = self._goes_on  # type: ignore[method-assign]
        self.sealed: list[tuple[str, model.PlacementState]] = []
        """Checkpoints as the centre heard of them, and where their operations stood then."""
        self._apply = self.centre._apply
        self.centre._apply = self._hear  # type: ignore[method-assign]

    def _hear(self, operation: str, message: model.Message, source: str) -> model.Decision:
        if isinstance(message, model.ReportCheckpointed):
            self.sealed.append((message.checkpoint, self.centre.store.operations[operation].placement))
        return self._apply(operation, message, source)

    def start(self, number: int) -> None:
        """Submit one operation; none is a gang, which a slow start would end."""
        for one in range(number):
            policy, retries = Disconnection(OnDisconnect.CONTINUE), Retries(2, 1_000)
            self._accept(
                model.Accepted(
                    operation=f"o{one}", project="p", policy=policy, retries=retries, queue_timeout_ms=WEEK_MS,
                    start_within_ms=0,
                )
            )  # fmt: skip

    def _goes_on(self, workload: Workload) -> None:
        """Nothing ends by itself here."""

    def _rank(self, operation: str, wish: model.Requeue, tries: int) -> None:
        self.tell_centre(operation, model.Decided(wish.round, "a"))

    def running(self) -> dict[str, Workload]:
        return {w.operation: w for w in self.environments["a"].workloads.values() if w.started}

    def complete(self, workload: Workload) -> None:
        environment = self.environments["a"]
        environment._end(workload)
        exited = away.Exited(workload.epoch, away.Outcome.COMPLETED, "exit-code")
        environment._tell_exit((workload.operation, workload.epoch), exited)

    def phases(self) -> Counter[Phase]:
        return Counter(state.phase for state in self.centre.store.operations.values())

    @property
    def reconciled(self) -> bool:
        """Whether the environment is connected, and nothing that waited for the link waits any more."""
        lease = self.centre.store.environments["a"]
        shown = lease.link is Link.CONNECTED and lease.reconciled_term == lease.held_term == lease.term
        return shown and not self.bus.waiting.get(UP) and not self.bus.waiting.get(DOWN)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [500, 5_000])
def test_a_week_without_the_link_leaves_no_gap_and_repeats_nothing(number: int) -> None:
    world = Quiet()
    world.until(3_000)
    world.start(number)
    world.until(90_000)
    names = sorted(world.centre.store.operations)
    assert world.phases() == {Phase.RUNNING: number}

    for way in (UP, DOWN):
        world.bus.sever(way)
    world.until(world.timeline.now + 45_000)
    world.pace = SLOWER
    ended, runs_on = names[: number // 2], names[number // 2 :]
    running = world.running()
    assert sorted(running) == names
    for operation in ended:
        world.complete(running[operation])
    for operation in runs_on:
        world.environments["a"]._seal(running[operation])
    for operation in names:
        world.tell_centre(operation, model.CancelRequested("someone"))
    world.until(world.timeline.now + WEEK_MS)
    assert len(world.bus.waiting[UP]) >= number
    assert len(world.bus.waiting[DOWN]) >= number
    assert world.phases() == {Phase.RUNNING: number}

    world.pace = 1
    for environment in world.environments.values():
        environment._beat()
    world.centre._tick()
    for way in (UP, DOWN):
        world.bus.mend(way)
    returned = world.timeline.now
    while not world.reconciled:
        world.until(world.timeline.now + 500)
        assert world.timeline.now - returned <= RECONCILED_WITHIN_MS
    world.until(returned + RECONCILED_WITHIN_MS)
    # What had completed before its cancel was heard stays completed; the rest is being stopped.
    assert world.phases()[Phase.COMPLETED] == len(ended)

    world.finish()
    states = world.centre.store.operations
    assert {states[name].phase for name in ended} == {Phase.COMPLETED}
    assert {states[name].phase for name in runs_on} == {Phase.CANCELLED}
    _each_checkpoint_was_heard_of_once(world, {running[name].sealed: states[name] for name in runs_on})
    for once in (" START ", " END "):
        assert Counter(line.split()[3] for line in world.truth.trace if once in line) == dict.fromkeys(names, 1)
    for name in names:
        history = world.truth.events[name]
        assert [event.op_seq for event in history] == list(range(2, len(history) + 2))
        assert sum(event.event in TERMINAL for event in history) == 1


def _each_checkpoint_was_heard_of_once(world: Quiet, sealed: dict[str, model.OperationState]) -> None:
    """Of those that were sealed during the cut, none is missing; one holds unless the end had overtaken it."""
    heard = dict(world.sealed)
    assert len(heard) == len(world.sealed)
    assert set(sealed) <= set(heard)
    for checkpoint, state in sealed.items():
        assert (state.checkpoint == checkpoint) is (heard[checkpoint] is model.PlacementState.RUNNING)
