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
from landbridge.domain.ownership.leases import HeldLease, lease_voided
from landbridge.domain.ownership.leases_centre import Hello, chain_intact
from landbridge.domain.ownership.policy import Disconnection
from simulation.world.clock import MachineClock
from simulation.world.environment_lease import LeaseKeeping
from simulation.world.process import Process
from simulation.world.workloads import Durable, Key, Workload, Workloads

if TYPE_CHECKING:
    from simulation.world.world import World

_CLAIM_AGAIN_MS = 3_000


class Environment(LeaseKeeping, Workloads):
    def __init__(self, world: "World", name: str, clock: MachineClock, *, self_stop_works: bool) -> None:
        self.world = world
        self.name = name
        self.random = world.random
        self.clock = clock
        self.durable = Durable()
        self.lease = HeldLease()
        self.sent_truly_at = 0
        self.workloads: dict[Key, Workload] = {}
        self.self_stop_works = self_stop_works
        self.incarnations = 0
        self.process: Process | None = None
        self.powered = True
        self.start_process()
        self._beat()

    # -- the dispatcher's life ----------------------------------------------------------------------------------------

    def start_process(self) -> None:
        self.incarnations += 1
        process = Process(self.world.timeline, f"{self.name}-{self.incarnations}")
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
        unrecorded = {(self.name, *key) for key in self.workloads if key not in earlier.slots}
        self.world.truth.unrecorded |= unrecorded
        if row is not None and not chain_intact(row, hello):
            self.world.truth.orphans |= unrecorded
        self.durable = earlier.copy()
        self.lease = HeldLease(term=self.durable.term, n=self.durable.n)
        self.start_process()
        self.world.bus.redeliver(self.name)

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
        now, rules, truth = self.clock.now(), self.world.rules, self.world.truth
        decision = decide(state, message, self.lease, now, rules)
        after = decision.state
        slot = state.slots[-1].phase if state.slots else SlotPhase.EMPTY
        truth.covered[type(message).__name__, str(slot)] += 1
        truth.twice_away(after, decide(after, message, self.lease, now, rules).state, message)
        if after.forgettable and after.highest == state.highest and not decision.effects:
            process.held.pop(operation, None)
        else:
            process.held[operation] = after
        if decision.effects:
            process.queues.setdefault(operation, []).extend(decision.effects)
            self._work(process, operation)

    def _work(self, process: Process, operation: str) -> None:
        if operation in process.working:
            return
        process.working.add(operation)
        slow = self.random.random()
        latency = int(slow * 30) if slow < 0.9 else self.random.randint(0, 8_000)
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
                self.flush()
            case model.Alarm():
                self.world.truth.alarms[effect.kind] += 1
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

    # -- what goes to the centre --------------------------------------------------------------------------------------

    def _claim(self, process: Process, operation: str, claim: model.Claim) -> None:
        def answered(reply: model.Message) -> bool:
            if process.can_act:
                self.tell(process, operation, reply)
            return True

        def arrive(_: Any) -> bool:
            self.world.centre.claim(self.name, process.incarnation, operation, claim, answered)
            return True

        self.world.bus.request(self.name, "up", (operation, claim), arrive)
        again = _CLAIM_AGAIN_MS + self.random.randint(0, 1_000)
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
            self.world.timeline.after(_CLAIM_AGAIN_MS, lambda: self._claim_again(process, operation, epoch))

    def flush(self) -> None:
        """Send what the outbox holds, in order."""
        process = self.process
        if process is None or not process.can_act or not self.durable.outbox:
            return
        held, self.durable.outbox = self.durable.outbox, []
        for item in held:
            payload = (self.world.message_id(), self.name, item)
            self.world.bus.stream(self.name, "up", payload, self.world.centre.report)
