"""The centre: one store with transactions that may crash, and the production decisions around it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as put

from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import environment_model as away
from landbridge.domain.ownership import leases_centre as leases
from landbridge.domain.ownership.centre import accept, decide
from landbridge.domain.ownership.centre_model import OWNED, OperationState
from landbridge.domain.ownership.expiry import Watch
from landbridge.domain.ownership.leases_centre import LeaseReply, decide_lease
from simulation.world.centre_inventory import Inventories
from simulation.world.centre_time import Times
from simulation.world.store import Crashed, Store
from simulation.world.wire import as_report

if TYPE_CHECKING:
    from simulation.world.world import World

INSIDE = ("centre", "in")
"""Where what the centre's own services say waits while it is down."""
_DIES_BEFORE, _DIES_AFTER = 0.9995, 0.999


class Centre(Inventories, Times):
    def __init__(self, world: "World") -> None:
        self.world = world
        self.store = Store()
        self.up = True
        self.watch = Watch()
        self.clock = world.machine_clock()
        self.paused_until = 0
        world.timeline.after(1_000, self._tick)

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def hears(self) -> bool:
        return self.up and self.world.timeline.now >= self.paused_until

    def crash(self) -> None:
        self.up = False
        self.world.note("centre: CRASH")
        self.world.timeline.after(self.world.random.randint(500, 60_000), self.revive)

    def revive(self) -> None:
        if self.up:
            return
        self.up = True
        self.watch = Watch()
        self._publish()

    def restore(self, earlier: Store) -> None:
        """Put the store back to an earlier copy and begin a new generation, as the procedure demands."""
        self.world.note("centre: RESTORE")
        self.store = earlier.copy()
        self.store.inbox = set()
        self.up = True
        self.watch = Watch()
        self.world.truth.rolled_back(self.store.operations)
        self.world.generation += 1  # kept outside the database: a second restore must rise above the first
        self.store.generation = self.world.generation
        self.store.recovering = True
        self.store.shown = {}
        self.store.declared_dead = frozenset()
        for name in sorted(self.store.environments):
            self._lease(name, leases.BeginGeneration(self.store.generation))
        for name in sorted(self.store.operations):
            self._apply(name, model.GenerationRaised(self.store.generation), "")
        self._publish()

    def now(self) -> int:
        return self.clock.now()

    # -- transactions -------------------------------------------------------------------------------------------------

    def transact(self, body: Callable[[], Any]) -> Any:
        """Run one transaction; the centre may die before its commit (nothing happened) or after (nothing was sent)."""
        dies = 0 if self.world.bus.calm else self.world.random.random()
        if dies > _DIES_BEFORE:
            self.crash()
            raise Crashed
        result = body()
        if dies > _DIES_AFTER:
            self.crash()
            raise Crashed
        self._publish()
        return result

    def _publish(self) -> None:
        pending, self.store.outbox = self.store.outbox, []
        for send in pending:
            send()

    def _apply(self, operation: str, message: model.Message, source: str) -> model.Decision:
        before = self.store.operations[operation]
        now, rules, truth = self.now(), self.world.rules, self.world.truth
        decision = decide(before, message, now, rules)
        after = decision.state
        truth.covered[type(message).__name__, str(before.placement)] += 1
        truth.decision(before, message, decision, source)
        truth.twice(after, decide(after, message, now, rules).state, message)
        if after is not before:
            where = f"{after.phase} {after.placement} {after.epoch} {after.environment}"
            self.world.note(f"centre: {operation} {type(message).__name__} {source} -> {where}")
            self.store.operations[operation] = after
        for effect in decision.effects:
            self._effect(after, effect)
        return decision

    def _effect(self, state: OperationState, effect: model.Effect) -> None:
        operation = state.operation
        match effect:
            case model.SendOffer(environment, epoch, _, resume_from, _):
                self.world.truth.offered(state, resume_from)
                self._command(environment, operation, away.Offer(epoch, 0, state.policy))
            case model.SendWithdraw(environment, epoch):
                self._command(environment, operation, away.Withdraw(epoch))
            case model.SendStop(environment, epoch, reason, grace, force):
                self._command(environment, operation, away.Stop(epoch, reason, grace, force))
            case model.SendSettle(environment, epoch):
                self._command(environment, operation, away.Settled(epoch))
            case model.Requeue():
                self.store.outbox.append(lambda: self.world.rank(operation, effect))
            case model.RaiseTerm(environment):
                self._lease(environment, leases.RaiseTerm())

    def _command(self, environment: str, operation: str, message: away.Message) -> None:
        receive = self.world.environments[environment].command
        self.store.outbox.append(lambda: self.world.bus.stream(environment, "down", (operation, message), receive))

    def _lease(self, name: str, message: leases.LeaseMessage) -> LeaseReply | None:
        before = self.store.environments.get(name)
        if before is None:
            before = leases.EnvironmentLease(environment=name, generation=self.store.generation)
        decision = decide_lease(before, message, self.now(), self.world.rules)
        self.store.environments[name] = decision.state
        self.world.truth.lease(before, decision.state)
        for effect in decision.effects:
            if isinstance(effect, leases.Regrant):
                for operation, state in sorted(self.store.operations.items()):
                    if state.environment == name and state.placement in OWNED:
                        self.store.operations[operation] = put(state, grant_term=max(state.grant_term, effect.term))
            elif isinstance(effect, leases.LeaseAlarm):
                self.world.truth.alarms[effect.kind] += 1
            else:
                self.world.note(f"centre: link of {name}: {effect.link} term {decision.state.term}")
        return decision.reply

    # -- what people want ---------------------------------------------------------------------------------------------

    def act(self, operation: str, message: model.Message) -> None:
        """Carry out what a person wants of one operation."""
        if operation in self.store.operations:
            self._apply(operation, message, "")

    def declare_dead(self, name: str) -> None:
        """Free all that an environment holds, and do not wait for it in a recovery."""
        message = model.DeclaredDead(name, "someone", "no power")
        for operation, state in sorted(self.store.operations.items()):
            if state.environment == name:
                self._apply(operation, message, "")
        self.store.declared_dead |= {name}
        self.recover()

    def raise_term(self, name: str) -> None:
        if self.hears and name in self.store.environments:
            self._lease(name, leases.RaiseTerm())

    # -- what comes in ------------------------------------------------------------------------------------------------

    def submit(self, accepted: model.Accepted) -> bool:
        """Take what intake has committed. What may already run somewhere is not placed before somebody has looked."""
        if not self.hears:
            return False
        store, rules = self.store, self.world.rules
        if accepted.operation in store.operations:
            return True
        recovering = (store.recovering or store.undecided(accepted.operation)) and rules.reconcile_after_restore
        generation = store.generation if rules.new_generation_on_restore else 1
        accepted = put(accepted, generation=generation, recovering=recovering)
        state = accept(accepted, self.now())
        store.operations[accepted.operation] = state
        self.world.rank(accepted.operation, model.Requeue(state.round, "accepted"))
        return True

    def deliver(self, message_id: int, operation: str, message: model.Message, source: str = "") -> bool:
        """One message of a stream, at least once; False: nobody is there."""
        if not self.hears:
            return False
        if operation not in self.store.operations and not source:
            return True

        def body() -> None:
            if message_id not in self.store.inbox:
                self.store.inbox.add(message_id)
                if operation in self.store.operations:
                    self._apply(operation, message, source)
                if source:
                    self._hear_quarantined(source, operation, message)

        try:
            self.transact(body)
        except Crashed:
            return False
        return True

    def lease_request(
        self, name: str, request: tuple[str, str, int, int], answer: Callable[[LeaseReply], bool]
    ) -> None:
        if not self.hears:
            return
        kind, incarnation, term, n = request
        message: leases.LeaseMessage
        message = (
            leases.Hello(incarnation=incarnation, term=term, n=n)
            if kind == "hello"
            else leases.Renew(incarnation, term, n)
        )
        try:
            reply = self.transact(lambda: self._lease(name, message))
        except Crashed:
            return
        if reply is not None:
            self.world.bus.request(name, "down", reply, answer)

    def claim(
        self, name: str, incarnation: str, operation: str, claim: away.Claim, answer: Callable[[away.Message], bool]
    ) -> None:
        if not self.hears or name not in self.store.environments:
            return

        def body() -> away.Message | None:
            refusal = leases.claim_refusal(self.store.environments[name], incarnation, claim.term)
            if refusal:
                return away.ClaimRefused(claim.epoch, refusal, refusal != "displaced")
            if operation not in self.store.operations:
                return away.ClaimRefused(claim.epoch, "unknown")
            decision = self._apply(operation, model.Claim(name, claim.epoch, claim.term), name)
            for effect in decision.effects:
                if isinstance(effect, model.Grant):
                    return away.Granted(effect.epoch, effect.term)
                if isinstance(effect, model.RefuseClaim):
                    return away.ClaimRefused(effect.epoch, effect.reason, effect.retry)
            return None

        try:
            reply = self.transact(body)
        except Crashed:
            return
        if reply is not None:
            self.world.bus.request(name, "down", (operation, reply), lambda payload: answer(payload[1]))

    def report(self, payload: tuple[int, str, Any]) -> bool:
        message_id, name, item = payload
        if not self.hears:
            return False
        if item[0] == "inventory":
            try:
                self.transact(lambda: self._inventory(name, item[1], item[2], item[3]))
            except Crashed:
                return False
            return True
        operation, report = item
        lease = self.store.environments.get(name)
        message = as_report(name, report, lease.term if lease is not None else 0)
        return self.deliver(message_id, operation, message, name)

    def unfinished(self) -> list[str]:
        return sorted(name for name, state in self.store.operations.items() if state.phase not in TERMINAL)
