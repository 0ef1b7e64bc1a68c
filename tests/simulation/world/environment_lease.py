"""How a dispatcher keeps its environment's lease: hello, renewals, the inventory, and distrust of its own clocks."""

from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as put

from landbridge.domain.ownership import environment_model as model
from landbridge.domain.ownership.leases import HeldLease, clock_jumped, lease_granted, lease_voided
from landbridge.domain.ownership.leases_centre import LeaseReply
from landbridge.domain.ownership.policy import DEFAULT_TIMING
from simulation.world.clock import MachineClock
from simulation.world.process import Process
from simulation.world.workloads import Durable

if TYPE_CHECKING:
    from simulation.world.world import World

_HURRY_MS = 2_000
# Clocks are looked at with every beat here, not every second: standing still is what exceeds two beats.
_WATCHED = put(DEFAULT_TIMING, renewal_ms=2 * DEFAULT_TIMING.renewal_ms)
_DISPLACED_MS = 5_000


class LeaseKeeping:
    """The part of an environment that talks to the centre about its lease."""

    world: "World"
    name: str
    random: Random
    clock: MachineClock
    durable: Durable
    lease: HeldLease
    sent_truly_at: int
    """True time at which the request behind the present lease was sent; only the ground truth reads it."""
    process: Process | None

    def tell(self, process: Process, operation: str, message: model.Message) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def kill_process(self) -> None:
        raise NotImplementedError

    def revive(self) -> None:
        raise NotImplementedError

    def _beat(self) -> None:
        process = self.process
        if process is not None and process.can_act:
            self._look_at_clocks(process)
            self._ask(process)
            message: model.Message = model.LeaseLost()
            if not self.lease.is_valid(self.clock.now()):
                for operation in sorted(process.held):
                    self.tell(process, operation, message)
            self.flush()
        hurry = process is not None and not self.lease.may_start
        wait = _HURRY_MS if hurry else DEFAULT_TIMING.renewal_ms
        self.world.timeline.after(wait * self.world.pace, self._beat)

    def _look_at_clocks(self, process: Process) -> None:
        """Void the lease if a clock jumped or the process stood still: it is renewed before anything starts."""
        now, before = self.clock.reading(), process.reading
        process.reading = now
        why = "" if before is None else clock_jumped(before, now, _WATCHED)
        if why:
            self.world.note(f"{self.name}: lease voided: {why}")
            self.lease = lease_voided(self.lease)

    def _ask(self, process: Process) -> None:
        kind = "renew" if process.greeted and self.lease.is_valid(self.clock.now()) else "hello"
        asked = (kind, process.incarnation, self.durable.term, self.durable.n + 1)
        sent_at, truly = self.clock.now(), self.world.timeline.now
        if kind == "hello":
            process.greeted = False

        def answered(reply: LeaseReply) -> bool:
            if process.can_act and process is self.process:
                self._lease_reply(process, reply, sent_at, truly)
            return True

        def arrive(request: Any) -> bool:
            self.world.centre.lease_request(self.name, request, answered)
            return True

        self.world.bus.request(self.name, "up", asked, arrive)

    def _lease_reply(self, process: Process, reply: LeaseReply, sent_at: int, truly: int) -> None:
        if reply.refused:
            if reply.refused == "displaced":
                self.world.note(f"{self.name}: {process.incarnation} displaced, stops")
                self.kill_process()
                self.world.timeline.after(_DISPLACED_MS, self.revive)
            process.greeted = False
            self.lease = lease_voided(self.lease)
            return
        before = self.lease
        self.lease = lease_granted(
            before, term=reply.term, n=reply.n, ttl_ms=DEFAULT_TIMING.ttl_ms, may_start=reply.may_start,
            sent_at=sent_at, received_at=self.clock.now(), rules=self.world.rules,
        )  # fmt: skip
        if (self.lease.term, self.lease.n) != (reply.term, reply.n):
            return
        known = (before.term, before.n) == (reply.term, reply.n)
        self.sent_truly_at = max(truly, self.sent_truly_at) if known else truly
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
        self.flush()
