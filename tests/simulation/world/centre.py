"""The centre: one store with transactions that may crash, and the production decisions around it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as put

from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import environment_model as away
from landbridge.domain.ownership import leases_centre as leases
from landbridge.domain.ownership.centre import accept, decide
from landbridge.domain.ownership.centre_model import OWNED, OperationState, PlacementState, Timer
from landbridge.domain.ownership.expiry import Watch, look, release_wait_ms, silent_ms
from landbridge.domain.ownership.leases_centre import EnvironmentLease, LeaseReply, Link, decide_lease
from landbridge.domain.ownership.policy import DEFAULT_TIMING
from landbridge.domain.ownership.reconcile import compare, highest_slots
from simulation.world.wire import as_item, as_report

if TYPE_CHECKING:
    from simulation.world.world import World


class Crashed(Exception):  # noqa: N818 - it is what happens here, not an error of ours
    """The centre died inside this call."""


@dataclass
class Store:
    """What Postgres holds. Values are immutable, so a copy of the tables is a backup."""

    operations: dict[str, OperationState] = field(default_factory=dict)
    environments: dict[str, EnvironmentLease] = field(default_factory=dict)
    inbox: set[int] = field(default_factory=set)
    outbox: list[Callable[[], None]] = field(default_factory=list)
    shown: dict[str, tuple[int, tuple[tuple[str, model.InventoryItem], ...]]] = field(default_factory=dict)
    generation: int = 1
    recovering: bool = False

    def copy(self) -> "Store":
        return replace(
            self,
            operations=dict(self.operations),
            environments=dict(self.environments),
            inbox=set(self.inbox),
            outbox=list(self.outbox),
            shown=dict(self.shown),
        )


class Centre:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.store = Store()
        self.up = True
        self.watch = Watch()
        self.clock = world.machine_clock()
        self.paused_until = 0
        world.timeline.after(1_000, self._tick)

    def state_of(self, operation: str) -> OperationState:
        return self.store.operations[operation]

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
        now = self.now()
        for name in sorted(self.store.environments):
            message = leases.BeginGeneration(self.store.generation)
            decision = decide_lease(self.store.environments[name], message, now, self.world.rules)
            self.store.environments[name] = decision.state
        for name in sorted(self.store.operations):
            self._apply(name, model.GenerationRaised(self.store.generation), "")
        for accepted in self.world.submitted:
            self.submit(accepted)  # intake publishes again what the centre may not know any more
        self._publish()

    def now(self) -> int:
        return self.clock.now()

    # -- transactions -------------------------------------------------------------------------------------------------

    def _transaction(self, body: Callable[[], Any]) -> Any:
        """Run one transaction; the centre may die before its commit (nothing happened) or after (nothing was sent)."""
        dies = 0 if self.world.bus.calm else self.world.random.random()
        if dies > 0.9995:
            self.crash()
            raise Crashed
        result = body()
        if dies > 0.999:
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
        truth.covered[type(message).__name__, str(before.placement)] += 1
        truth.decision(before, message, decision, source)
        again = decide(decision.state, message, now, rules)
        truth.twice(decision.state, again.state, message)
        if decision.state is not before:
            after = decision.state
            where = f"{after.phase} {after.placement} {after.epoch} {after.environment}"
            self.world.note(f"centre: {operation} {type(message).__name__} {source} -> {where}")
        self.store.operations[operation] = decision.state
        for effect in decision.effects:
            self._effect(decision.state, effect)
        return decision

    def _effect(self, state: OperationState, effect: model.Effect) -> None:
        operation = state.operation
        match effect:
            case model.SendOffer(environment, epoch, _, _, _):
                self._command(environment, operation, away.Offer(epoch, 0, state.policy))
            case model.SendWithdraw(environment, epoch):
                self._command(environment, operation, away.Withdraw(epoch))
            case model.SendStop(environment, epoch, reason, grace, force):
                self._command(environment, operation, away.Stop(epoch, reason, grace, force))
            case model.SendSettle(environment, epoch):
                self._command(environment, operation, away.Settled(epoch))
            case model.Requeue(round_, _, exclude):
                self.store.outbox.append(lambda: self.world.rank(operation, round_, exclude))
            case model.RaiseTerm(environment):
                self._lease(environment, leases.RaiseTerm())

    def _command(self, environment: str, operation: str, message: away.Message) -> None:
        receive = self.world.environments[environment].command
        self.store.outbox.append(lambda: self.world.bus.stream(environment, "down", (operation, message), receive))

    def _lease(self, name: str, message: leases.LeaseMessage) -> LeaseReply | None:
        before = self.store.environments.get(name)
        if before is None:
            before = EnvironmentLease(environment=name, generation=self.store.generation)
        decision = decide_lease(before, message, self.now(), self.world.rules)
        self.store.environments[name] = decision.state
        self.world.truth.covered[type(message).__name__, str(before.link)] += 1
        for effect in decision.effects:
            if isinstance(effect, leases.Regrant):
                for operation, state in sorted(self.store.operations.items()):
                    if state.environment == name and state.placement in OWNED:
                        self.store.operations[operation] = put(state, grant_term=max(state.grant_term, effect.term))
            elif isinstance(effect, leases.LeaseAlarm):
                self.world.truth.alarms.append(effect.kind)
            else:
                self.world.note(f"centre: link of {name}: {effect.link} term {decision.state.term}")
        return decision.reply

    # -- what comes in ------------------------------------------------------------------------------------------------

    def submit(self, accepted: model.Accepted) -> None:
        if accepted.operation in self.store.operations:
            return
        recovering = self.store.recovering and self.world.rules.reconcile_after_restore
        generation = self.store.generation if self.world.rules.new_generation_on_restore else 1
        accepted = put(accepted, generation=generation, recovering=recovering)
        state = accept(accepted, self.now())
        self.store.operations[accepted.operation] = state
        self.world.rank(accepted.operation, state.round, ())

    def deliver(self, message_id: int, operation: str, message: model.Message, source: str = "") -> bool:
        """One message of a stream, at least once; False: nobody is there."""
        if not self.hears:
            return False
        if operation not in self.store.operations:
            return True

        def body() -> None:
            if message_id not in self.store.inbox:
                self.store.inbox.add(message_id)
                self._apply(operation, message, source)

        try:
            self._transaction(body)
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
            reply = self._transaction(lambda: self._lease(name, message))
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
            reply = self._transaction(body)
        except Crashed:
            return
        if reply is not None:
            self.world.bus.request(name, "down", reply, answer)

    def report(self, payload: tuple[int, str, Any]) -> bool:
        message_id, name, item = payload
        if not self.hears:
            return False
        if item[0] == "inventory":
            try:
                self._transaction(lambda: self._inventory(name, item[1], item[2], item[3]))
            except Crashed:
                return False
            return True
        operation, report = item
        lease = self.store.environments.get(name)
        message = as_report(name, report, lease.term if lease is not None else 0)
        return self.deliver(message_id, operation, message, name)

    def _inventory(self, name: str, incarnation: str, term: int, slots: list[tuple[str, away.Slot]]) -> None:
        lease = self.store.environments.get(name)
        if lease is None or incarnation != lease.incarnation or term != lease.held_term:
            return
        if lease.reconciled_term == lease.held_term:
            return
        items = tuple((operation, as_item(name, slot, term)) for operation, slot in slots)
        concerned = {operation for operation, _ in items}
        states = {
            operation: state
            for operation, state in self.store.operations.items()
            if operation in concerned or state.environment == name
        }
        result = compare(name, term, lease.restored, states, items)
        for operation, message in result.messages:
            self._apply(operation, message, name)
        if result.quarantined:
            self.world.truth.alarms.append("quarantined")
        self._lease(name, leases.Reconciled(incarnation, term))
        self.store.shown[name] = (self.store.generation, items)
        self._recover()

    def _recover(self) -> None:
        """After a restore, judge by what all environments have shown in the new generation."""
        store = self.store
        everyone = all(store.shown.get(name, (0,))[0] == store.generation for name in self.world.environments)
        if not store.recovering or not everyone:
            return
        store.recovering = False
        items = [pair for name in sorted(store.shown) for pair in store.shown[name][1]]
        best = highest_slots(items)
        for operation in sorted(store.operations):
            if store.operations[operation].placement is PlacementState.RECOVERING:
                self._apply(operation, model.Recovered(best.get(operation)), "")

    # -- time ---------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.world.timeline.after(3_000, self._tick)
        if not self.hears:
            return
        try:
            self._transaction(self._timers)
            self._transaction(self._expire)
        except Crashed:
            return

    def _timers(self) -> None:
        now = self.now()
        kinds: dict[Timer, model.Message] = {
            Timer.OFFER: model.OfferTimeout(),
            Timer.QUEUE: model.QueueTimeout(),
            Timer.RETRY: model.RetryDue(),
        }
        for operation, state in list(self.store.operations.items()):
            if state.timer is not Timer.NONE and state.due_at <= now:
                self._apply(operation, kinds[state.timer], "")

    def _expire(self) -> None:
        now, store, rules = self.now(), self.store, self.world.rules
        heard = {name: e.grants for name, e in store.environments.items() if e.link is not Link.NEVER}
        self.watch = look(self.watch, heard, now)
        for name in sorted(self.watch.silent_since):
            environment = store.environments[name]
            self._lease(name, leases.Silent(environment.grants))
            silence = silent_ms(self.watch, name, now)
            for operation in self._placed(name):
                state = store.operations[operation]
                if state.placement is PlacementState.OFFERED or not state.control_lost:
                    self._apply(operation, model.LinkLost(name), "")
                wait = release_wait_ms(state.policy.stop_ms, DEFAULT_TIMING, rules)
                expired = model.EnvironmentExpired(
                    environment=name, silent_ms=silence, wait_ms=wait, held=self.watch.held,
                    self_stop_verified=self.world.environments[name].self_stop_works,
                )  # fmt: skip
                self._apply(operation, expired, "")

    def _placed(self, name: str) -> list[str]:
        return sorted(
            operation
            for operation, state in self.store.operations.items()
            if state.environment == name and (state.placement in OWNED or state.placement is PlacementState.OFFERED)
        )

    def unfinished(self) -> list[str]:
        return sorted(name for name, state in self.store.operations.items() if state.phase not in TERMINAL)
