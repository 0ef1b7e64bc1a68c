"""One environment: durable slots, workloads with guardians, and a dispatcher process that may die, pause and return.

The dispatcher runs the production `environment.decide`; guardians run the production `start_verdict` and
`self_stop_schedule`. What survives what: a dispatcher crash loses the process only; a host crash also the workloads;
a restore puts the durable part back to an earlier copy.
"""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as put

from landbridge.domain.ownership import environment_model as model
from landbridge.domain.ownership.environment import decide
from landbridge.domain.ownership.environment_model import FINAL, HeldOperation, Slot, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease, lease_granted, lease_voided
from landbridge.domain.ownership.leases_centre import Hello, LeaseReply, chain_intact
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Disconnection
from simulation.world.clock import MachineClock
from simulation.world.workloads import Durable, Key, Workload, Workloads

if TYPE_CHECKING:
    from simulation.world.world import World


class Process:
    """One dispatcher process. A paused one keeps what it had decided to do, and does it when it wakes."""

    def __init__(self, environment: "Environment", incarnation: str) -> None:
        self.environment = environment
        self.incarnation = incarnation
        self.alive = True
        self.paused_until = 0
        self.held: dict[str, HeldOperation] = {}
        self.queues: dict[str, list[model.Effect]] = {}
        self.working: set[str] = set()
        self.inventory_term = 0
        self.greeted = False
        self.asked_at = -1

    @property
    def can_act(self) -> bool:
        return self.alive and self.environment.world.timeline.now >= self.paused_until


class Environment(Workloads):
    def __init__(self, world: "World", name: str, origin: int, ppm: int, *, self_stop_works: bool) -> None:
        self.world = world
        self.name = name
        self.random = world.random
        self.clock = MachineClock(world.timeline, origin, ppm)
        self.durable = Durable()
        self.lease = HeldLease()
        self.workloads: dict[Key, Workload] = {}
        self.self_stop_works = self_stop_works
        self.incarnations = 0
        self.process: Process | None = None
        self.powered = True
        self.start_process()
        self._beat()
        self._pump()

    # -- the dispatcher's life ----------------------------------------------------------------------------------------

    def start_process(self) -> None:
        self.incarnations += 1
        process = Process(self, f"{self.name}-{self.incarnations}")
        self.process = process
        by_operation: dict[str, list[Slot]] = {}
        for (operation, _), slot in sorted(self.durable.slots.items()):
            by_operation.setdefault(operation, []).append(slot)
        for operation, slots in by_operation.items():
            lost = tuple(slot.epoch for slot in slots if self._is_lost((operation, slot.epoch), slot))
            policy = self.durable.policies.get(operation, Disconnection())
            self.tell(process, operation, model.Restarted(tuple(slots), lost, policy))
        for (operation, _), exited in sorted(self.durable.exits.items(), key=lambda pair: pair[0]):
            self.tell(process, operation, exited)
        self.lease = lease_voided(self.lease)
        self._ask(process)

    def _is_lost(self, key: Key, slot: Slot) -> bool:
        return slot.phase not in FINAL and key not in self.workloads and key not in self.durable.exits

    def kill_process(self) -> None:
        if self.process is not None:
            self.process.alive = False
            self.process = None

    def crash_host(self) -> None:
        self.kill_process()
        for workload in list(self.workloads.values()):
            self._end(workload)
        self.lease = HeldLease(term=self.durable.term, n=self.durable.n)

    def restore(self, earlier: Durable, *, orphans: bool) -> None:
        """Put the durable part back; workloads die with it, or run on although their objects are gone."""
        self.kill_process()
        if not orphans:
            for workload in list(self.workloads.values()):
                self._end(workload)
        row = self.world.centre.store.environments.get(self.name)
        hello = Hello(incarnation="", term=earlier.term, n=earlier.n + 1)
        if row is not None and not chain_intact(row, hello):
            self.world.truth.orphans |= {(self.name, workload.operation) for workload in self.workloads.values()}
        self.durable = earlier.copy()
        self.lease = HeldLease(term=self.durable.term, n=self.durable.n)
        self.start_process()
        self.world.bus.redeliver(self.name)

    # -- lease --------------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        process = self.process
        if process is not None and process.can_act:
            self._ask(process)
            message: model.Message = model.LeaseLost()
            if not self.lease.is_valid(self.clock.now()):
                for operation in sorted(process.held):
                    self.tell(process, operation, message)
        hurry = process is not None and not self.lease.may_start
        self.world.timeline.after(2_000 if hurry else DEFAULT_TIMING.renewal_ms, self._beat)

    def _ask(self, process: Process) -> None:
        kind = "renew" if process.greeted and self.lease.is_valid(self.clock.now()) else "hello"
        asked = (kind, process.incarnation, self.durable.term, self.durable.n + 1)
        sent_at = self.clock.now()
        process.asked_at = sent_at
        if kind == "hello":
            process.greeted = False

        def answered(reply: LeaseReply) -> bool:
            if process.can_act and process is self.process:
                self._lease_reply(process, reply, sent_at)
            return True

        def arrive(request: Any) -> bool:
            self.world.centre.lease_request(self.name, request, answered)
            return True

        self.world.bus.request(self.name, "up", asked, arrive)

    def _lease_reply(self, process: Process, reply: LeaseReply, sent_at: int) -> None:
        if reply.refused:
            if reply.refused == "displaced":
                self.world.note(f"{self.name}: {process.incarnation} displaced, stops")
                self.kill_process()
                self.world.timeline.after(5_000, self.revive)
            process.greeted = False
            self.lease = lease_voided(self.lease)
            return
        before = self.lease
        self.lease = lease_granted(
            before, term=reply.term, n=reply.n, ttl_ms=DEFAULT_TIMING.ttl_ms, may_start=reply.may_start,
            sent_at=sent_at, received_at=self.clock.now(), rules=self.world.rules,
        )  # fmt: skip
        if (self.lease.term, self.lease.n) == (reply.term, reply.n):
            self.durable.term, self.durable.n = reply.term, reply.n
            process.greeted = True
            if reply.want_inventory and process.inventory_term < reply.term:
                self._send_inventory(process, reply.term)
            if self.lease.term > before.term or (self.lease.may_start and not before.may_start):
                for operation in sorted(process.held):
                    self.tell(process, operation, model.LeaseGranted())

    def _send_inventory(self, process: Process, term: int) -> None:
        process.inventory_term = term
        slots = [(operation, slot) for (operation, _), slot in sorted(self.durable.slots.items())]
        self.durable.outbox.append(("inventory", process.incarnation, term, slots))

    def pause_process(self, length: int, *, twin: bool) -> None:
        """Stop the dispatcher for a while; with a twin, another takes over and the first wakes up late."""
        process = self.process
        if process is None:
            return
        process.paused_until = self.world.timeline.now + length
        if twin:
            self.start_process()

    def revive(self) -> None:
        if self.process is None and self.powered:
            self.start_process()

    # -- messages and effects -----------------------------------------------------------------------------------------

    def tell_dispatcher(self, operation: str, message: model.Message) -> None:
        if self.process is not None:
            self.tell(self.process, operation, message)

    def command(self, payload: tuple[str, model.Message]) -> bool:
        process = self.process
        if process is None or not process.can_act:
            return False
        operation, message = payload
        if isinstance(message, model.Offer):
            self.durable.policies.setdefault(operation, message.policy)
        self.tell(process, operation, message)
        return True

    def tell(self, process: Process, operation: str, message: model.Message) -> None:
        """Run the production decision and queue its effects; one operation's effects run one after another."""
        state = process.held.get(operation) or HeldOperation(operation=operation)
        decision = decide(state, message, self.lease, self.clock.now(), self.world.rules)
        slot = state.slots[-1].phase if state.slots else SlotPhase.EMPTY
        self.world.truth.covered[type(message).__name__, str(slot)] += 1
        if decision.state.forgettable and decision.state.highest == state.highest and not decision.effects:
            process.held.pop(operation, None)
        else:
            process.held[operation] = decision.state
        if decision.effects:
            process.queues.setdefault(operation, []).extend(decision.effects)
            self._work(process, operation)

    def _work(self, process: Process, operation: str) -> None:
        if operation in process.working:
            return
        process.working.add(operation)
        latency = self.random.randint(0, 30) if self.random.random() < 0.9 else self.random.randint(0, 8_000)
        self.world.timeline.after(latency, lambda: self._next_effect(process, operation))

    def _next_effect(self, process: Process, operation: str) -> None:
        if not process.alive:
            return
        if not process.can_act:
            wait = process.paused_until - self.world.timeline.now
            self.world.timeline.after(wait, lambda: self._next_effect(process, operation))
            return
        process.working.discard(operation)
        queue = process.queues.get(operation)
        if not queue:
            return
        effect = queue.pop(0)
        self._execute(process, operation, effect)
        if queue:
            self._work(process, operation)

    def _execute(self, process: Process, operation: str, effect: model.Effect) -> None:
        match effect:
            case model.Claim():
                self._claim(process, operation, effect)
            case model.OccupySlot():
                self._occupy(process, operation, effect)
            case model.StartWork():
                self._launch(operation, effect.epoch)
            case model.StopWork():
                self._stop(operation, effect)
            case model.Report():
                self.durable.outbox.append((operation, effect))
                self._pump(once=True)
            case model.Alarm():
                self.world.truth.alarms.append(effect.kind)
            case _:
                self._write_slot((operation, effect.epoch), effect)

    def _occupy(self, process: Process, operation: str, effect: model.OccupySlot) -> None:
        key, slots = (operation, effect.epoch), self.durable.slots
        if key in slots:
            self.tell(process, operation, model.FoundOccupied(slots[key]))
            return
        self.durable.exits.pop(key, None)  # of an earlier life of this epoch, before a restore
        slots[key] = Slot(epoch=effect.epoch, phase=SlotPhase.CREATED, term=effect.term)
        self.tell(process, operation, model.Occupied(effect.epoch, effect.term))

    def _write_slot(self, key: Key, effect: model.Effect) -> None:
        slots = self.durable.slots
        known = slots.get(key)
        match effect:
            case model.RegrantSlot(_, term) if known is not None and known.phase is SlotPhase.CREATED:
                slots[key] = put(known, term=max(term, known.term))
            case model.Tombstone(epoch, report):
                self._kill(*key)
                if known is None or known.phase not in FINAL:
                    slots[key] = Slot(epoch=epoch, phase=SlotPhase.TOMBSTONE, term=self.lease.term, report=report)
            case model.RecordFinished(_, report) if known is not None and known.phase not in FINAL:
                slots[key] = put(known, phase=SlotPhase.FINISHED, report=report)
            case model.MarkSettled(_, term) if known is not None:
                slots[key] = put(known, settled_term=term)
            case model.RemoveSlot():
                slots.pop(key, None)
                self.durable.exits.pop(key, None)

    def _claim(self, process: Process, operation: str, claim: model.Claim) -> None:
        def answered(reply: model.Message) -> bool:
            if process.can_act:
                self.tell(process, operation, reply)
            return True

        def arrive(_: Any) -> bool:
            self.world.centre.claim(self.name, process.incarnation, operation, claim, answered)
            return True

        self.world.bus.request(self.name, "up", claim, arrive)
        again = 3_000 + self.random.randint(0, 1_000)
        self.world.timeline.after(again, lambda: self._claim_again(process, operation, claim.epoch))

    def _claim_again(self, process: Process, operation: str, epoch: Epoch) -> None:
        """No answer yet: ask again, with the term held by now."""
        state = process.held.get(operation)
        if process is not self.process or not process.can_act or state is None:
            return
        slot = state.slot(epoch)
        pending = state.offered == epoch and state.granted is None and slot is None
        ungranted = slot is not None and slot.phase is SlotPhase.CREATED and slot.term < self.lease.term
        if (pending or ungranted) and self.lease.allows_start(self.clock.now()):
            self._claim(process, operation, model.Claim(epoch, self.lease.term))
        elif pending or ungranted:
            self.world.timeline.after(3_000, lambda: self._claim_again(process, operation, epoch))

    def _pump(self, *, once: bool = False) -> None:
        """Send what the outbox holds, in order."""
        process = self.process
        if process is not None and process.can_act:
            for item in self.durable.outbox:
                self.world.bus.stream(self.name, "up", (self.world.message_id(), self.name, item),
                                      self.world.centre.report)  # fmt: skip
            self.durable.outbox.clear()
        if not once:
            self.world.timeline.after(2_000, self._pump)
