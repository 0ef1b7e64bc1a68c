"""Workloads with their guardians, and the durable part of an environment that they share with the dispatcher."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from landbridge.domain.ownership import environment_model as model
from landbridge.domain.ownership.environment_model import FINAL, Outcome, Slot, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease, StartVerdict, self_stop_schedule, start_verdict
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Disconnection, OnDisconnect
from simulation.world.clock import MachineClock
from simulation.world.truth import Start

if TYPE_CHECKING:
    from simulation.world.world import World

Key = tuple[str, Epoch]


@dataclass
class Workload:
    """A workload with its guardian: waits at the true start, then runs."""

    operation: str
    epoch: Epoch
    policy: Disconnection
    started: bool = False
    gone: bool = False
    sealed: str = ""
    """Manifest of its latest sealed checkpoint."""


@dataclass
class Durable:
    """What survives a crash, and goes back in time in a restore."""

    slots: dict[Key, Slot] = field(default_factory=dict)
    policies: dict[str, Disconnection] = field(default_factory=dict)
    exits: dict[Key, model.Exited | model.StartFailed] = field(default_factory=dict)
    outbox: list[Any] = field(default_factory=list)
    term: int = 0
    n: int = 0

    def copy(self) -> "Durable":
        return replace(
            self, slots=dict(self.slots), policies=dict(self.policies), exits=dict(self.exits), outbox=list(self.outbox)
        )


class Workloads:
    """Everything in an environment that outlives its dispatcher."""

    world: "World"
    name: str
    random: Random
    clock: MachineClock
    durable: Durable
    lease: HeldLease
    sent_truly_at: int
    workloads: dict[Key, Workload]
    self_stop_works: bool

    def tell_dispatcher(self, operation: str, message: model.Message) -> None:
        raise NotImplementedError

    def _launch(self, operation: str, epoch: Epoch) -> None:
        key = (operation, epoch)
        if key in self.workloads:
            return
        policy = self.durable.policies.get(operation, Disconnection())
        workload = Workload(operation, epoch, policy)
        self.workloads[key] = workload
        pulling = self.random.randint(5, 400) if self.random.random() < 0.85 else self.random.randint(0, 40_000)
        self.world.timeline.after(pulling, lambda: self._true_start(workload, self.clock.now() + 60_000))

    def _true_start(self, workload: Workload, give_up_at: int) -> None:
        if workload.gone:
            return
        key = (workload.operation, workload.epoch)
        slot = self.durable.slots.get(key)
        verdict = self._verdict(workload, slot)
        if verdict is StartVerdict.WAIT and self.clock.now() < give_up_at:
            self.world.timeline.after(1_000, lambda: self._true_start(workload, give_up_at))
            return
        if verdict is not StartVerdict.START or self.random.random() < 0.04:
            self._end(workload)
            denied = verdict is not StartVerdict.START
            self._tell_exit(key, model.StartFailed(workload.epoch, "denied" if denied else "no-image", denied=denied))
            return
        workload.started = True
        state = self.world.centre.store.operations.get(workload.operation)
        term = slot.term if slot is not None else self.lease.term
        self.world.note(f"{self.name}: START {workload.operation} {workload.epoch} term {term}")
        start = Start(
            environment=self.name, operation=workload.operation, epoch=workload.epoch, term=term,
            slot=slot.phase if slot else None, phase=None if state is None else state.phase,
            lease_age=self.world.timeline.now - self.sent_truly_at,
        )  # fmt: skip
        self.world.truth.start(start)
        if slot is not None and slot.phase is SlotPhase.CREATED:
            self.durable.slots[key] = Slot(epoch=slot.epoch, phase=SlotPhase.RUNNING, term=slot.term)
        self.tell_dispatcher(workload.operation, model.Started(workload.epoch))
        duration = self.random.choice((200, 2_000, 15_000, 90_000, 240_000))
        self.world.timeline.after(self.random.randint(1, duration), lambda: self._complete(workload))
        if self.random.random() < 0.2:
            self.world.timeline.after(self.random.randint(1, duration), lambda: self._seal(workload))
        self._guard(workload)

    def _seal(self, workload: Workload) -> None:
        """Seal a checkpoint, if it still runs."""
        if workload.gone or not workload.started:
            return
        workload.sealed = self.world.truth.sealed(workload.operation, workload.epoch)
        self.tell_dispatcher(workload.operation, model.Checkpointed(workload.epoch, workload.sealed))

    def _verdict(self, workload: Workload, slot: Slot | None) -> StartVerdict:
        rules = self.world.rules
        if not rules.true_start_check:
            return StartVerdict.START
        if slot is None or slot.phase is not SlotPhase.CREATED:
            return StartVerdict.NEVER
        lower = any(w.operation == workload.operation and w.epoch < workload.epoch for w in self.workloads.values())
        if lower and rules.stop_lower_first:
            return StartVerdict.WAIT
        return start_verdict(slot.term, self.lease, self.clock.now(), rules)

    def _complete(self, workload: Workload) -> None:
        if workload.gone:
            return
        self._end(workload)
        outcome = Outcome.FAILED if self.random.random() < 0.25 else Outcome.COMPLETED
        self._tell_exit(
            (workload.operation, workload.epoch), model.Exited(workload.epoch, outcome, "exit-code", workload.sealed)
        )

    def _stop(self, operation: str, stop: model.StopWork) -> None:
        workload = self.workloads.get((operation, stop.epoch))
        if workload is None:
            # Nothing of it is there: the dispatcher finds out and says so.
            slot = self.durable.slots.get((operation, stop.epoch))
            if slot is not None and slot.phase not in FINAL and (operation, stop.epoch) not in self.durable.exits:
                self._tell_exit((operation, stop.epoch), model.Exited(stop.epoch, Outcome.CANCELLED, stop.reason))
            return

        if stop.checkpoint and self.random.random() < 0.8:
            self._seal(workload)

        def dead() -> None:
            if workload.gone:
                return
            started = workload.started
            self._end(workload)
            ended = model.Exited(stop.epoch, Outcome.CANCELLED, stop.reason, workload.sealed)
            gone: model.Exited | model.StartFailed = ended
            if not started:
                gone = model.StartFailed(stop.epoch, stop.reason, denied=True)
            self._tell_exit((operation, stop.epoch), gone)

        slow = self.random.random() < 0.3
        self.world.timeline.after(self.random.randint(1, 30_000 if slow else 3_000), dead)

    def _guard(self, workload: Workload) -> None:
        """Stop by itself if the lease is not renewed; independent of the dispatcher; asleep for up to two seconds."""
        if workload.gone:
            return
        schedule = self_stop_schedule(workload.policy, self.lease.valid_until)
        if schedule is None or not self.self_stop_works:
            return
        left = schedule.kill_at + 5_000 - self.clock.now()
        if left > 0:
            step = min(left, 5_000) if left < 8_000 else left - 5_000
            # The kill comes as late as promised: grace, five seconds of margin, and an unnoticed pause.
            self.world.timeline.after(self.clock.true_delay(step), lambda: self._guard(workload))
            return
        pause = self.random.randint(0, DEFAULT_TIMING.delta_ms - 200)
        self.world.timeline.after(pause, lambda: self._self_stop(workload))

    def _self_stop(self, workload: Workload) -> None:
        if workload.gone:
            return
        self.world.note(f"{self.name}: SELF-STOP {workload.operation} {workload.epoch}")
        if workload.policy.policy is OnDisconnect.CHECKPOINT_THEN_STOP:
            self._seal(workload)
        self._end(workload)
        stopped = model.Exited(workload.epoch, Outcome.CANCELLED, "self-stopped", workload.sealed, self_stopped=True)
        self._tell_exit((workload.operation, workload.epoch), stopped)

    def _tell_exit(self, key: Key, message: model.Exited | model.StartFailed) -> None:
        self.durable.exits[key] = message
        self.tell_dispatcher(key[0], message)

    def _kill(self, operation: str, epoch: Epoch) -> None:
        workload = self.workloads.get((operation, epoch))
        if workload is not None:
            self._end(workload)

    def _end(self, workload: Workload) -> None:
        workload.gone = True
        self.workloads.pop((workload.operation, workload.epoch), None)
        if workload.started:
            self.world.note(f"{self.name}: END {workload.operation} {workload.epoch}")
            self.world.truth.stop(self.name, workload.operation, workload.epoch)
