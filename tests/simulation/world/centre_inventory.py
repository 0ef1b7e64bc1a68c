"""The centre's eye on inventories: compared, quarantined, and after a restore the only truth."""

from typing import TYPE_CHECKING

from msgspec.structs import replace as put

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import environment_model as away
from landbridge.domain.ownership import leases_centre as leases
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.centre_recovery import why_not_adopt
from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.leases_centre import Link
from landbridge.domain.ownership.reconcile import compare, highest_slots
from simulation.world.store import Found, Items, SlotOf, Store
from simulation.world.wire import as_item

if TYPE_CHECKING:
    from simulation.world.world import World

_OVER = (model.ReportFinished, model.ReportRelinquished, model.ReportFailedToStart)
_GRACE_MS = 30_000


class Inventories:
    """Reconciliation and quarantine, as the coordinator does them around the pure comparison."""

    world: "World"
    store: Store

    def _apply(self, operation: str, message: model.Message, source: str) -> model.Decision:
        raise NotImplementedError

    def _lease(self, name: str, message: leases.LeaseMessage) -> leases.LeaseReply | None:
        raise NotImplementedError

    def _command(self, environment: str, operation: str, message: away.Message) -> None:
        raise NotImplementedError

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
        ahead = [(operation, item) for operation, item in items if _is_ahead(states.get(operation), item)]
        result = compare(name, term, lease.restored, states, items)
        self.world.truth.recorded(name, items)
        for operation, message in result.messages:
            self._apply(operation, message, name)
        unknown = set(result.quarantined)
        strange = [(operation, item) for operation, item in items if (operation, item.epoch) in unknown]
        undecided = self._note(name, items, strange + ahead)
        self._lease(name, leases.Reconciled(incarnation, term, undecided))
        self.store.shown[name] = (self.store.generation, items)
        self.recover()

    def recover(self) -> None:
        """After a restore, judge by what all environments have shown in the new generation.

        What a person has declared dead since then is not waited for.
        """
        store = self.store
        if not store.recovering:
            return
        for name in self.world.environments:
            if store.shown.get(name, (0,))[0] != store.generation and name not in store.declared_dead:
                return
        store.recovering = False
        items = [
            pair
            for _, (generation, shown) in sorted(store.shown.items())
            if generation == store.generation
            for pair in shown
        ]
        best = highest_slots(items)
        for operation in sorted(store.operations):
            if store.operations[operation].placement is PlacementState.RECOVERING:
                self._apply(operation, model.Recovered(best.get(operation)), "")
        for key, found in sorted(store.quarantine.items()):
            if key[1] in best and key[1] in store.operations and found.state == "open":
                store.quarantine[key] = Found(found.item, "adopted")

    # -- quarantine ---------------------------------------------------------------------------------------------------

    def _note(self, name: str, items: Items, unknown: list[tuple[str, model.InventoryItem]]) -> int:
        """Keep what an inventory shows of unknown work; return how much of it waits for a decision."""
        quarantine = self.store.quarantine
        for operation, item in unknown:
            key = (name, operation, item.epoch)
            state = quarantine[key].state if key in quarantine else "open"
            quarantine[key] = Found(item, "open" if state == "gone" else state)
            self.world.truth.alarms["quarantined"] += 1
            if state == "stopping":
                self._command(name, operation, away.Stop(item.epoch, "quarantined", _GRACE_MS))
        listed = {(name, operation, item.epoch) for operation, item in items}
        for key, found in sorted(quarantine.items()):
            undecided = key[0] == name and found.state in ("open", "stopping")
            if undecided and key not in listed and found.item.slot in FINAL:
                quarantine[key] = Found(found.item, "gone")
                self._release(key[1], found.item)
        return sum(1 for key, found in quarantine.items() if key[0] == name and found.state == "open")

    def _hear_quarantined(self, name: str, operation: str, message: model.Message) -> None:
        """Take note that unknown work which was asked to stop is over, and let its operation be placed."""
        outdated = isinstance(message, model.ReportRefused) and message.reason == "stale-epoch"
        if not (isinstance(message, _OVER) or outdated) or self.store.recovering:
            return
        assert isinstance(message, model.Reported)
        state = self.store.operations.get(operation)
        if state is not None and state.placement is not PlacementState.RECOVERING:
            return
        key = (name, operation, message.epoch)
        found = self.store.quarantine.get(key)
        if found is None or found.state != "stopping":
            return
        self.store.quarantine[key] = Found(found.item, "stopped")
        self._command(name, operation, away.Settled(message.epoch))
        self._release(operation, put(found.item, slot=SlotPhase.TOMBSTONE, final="relinquished"))

    def _release(self, operation: str, item: model.InventoryItem) -> None:
        """Let an operation that waited for a decision go on with what is known of its slot."""
        state = self.store.operations.get(operation)
        held = state is not None and state.placement is PlacementState.RECOVERING
        if held and not self.store.recovering and not self.store.undecided(operation):
            self._apply(operation, model.Recovered(item), "")

    def adopt_found(self, key: SlotOf, by: str) -> bool:
        """A person has a quarantined slot taken over; False: it cannot be."""
        name, operation, _ = key
        found = self.store.quarantine[key]
        if not self.may_be_adopted(key) or self.store.environments[name].link is not Link.CONNECTED:
            return False
        self._apply(operation, model.AdoptFound(found.item, by, "it is ours"), "")
        self.store.quarantine[key] = Found(found.item, "adopted")
        return True

    def may_be_adopted(self, key: SlotOf) -> bool:
        """Whether a quarantined slot may become its operation's placement, now or once its environment is heard."""
        _, operation, epoch = key
        state = self.store.operations.get(operation)
        if state is None or why_not_adopt(state, epoch) or self.store.quarantine[key].state != "open":
            return False
        higher = any(
            name == operation and other > epoch and found.state in ("open", "stopping")
            for (_, name, other), found in self.store.quarantine.items()
        )
        return not higher and not self.store.recovering

    def stop_found(self, key: SlotOf) -> None:
        """A person has a quarantined slot stopped."""
        name, operation, epoch = key
        self._command(name, operation, away.Stop(epoch, "quarantined", _GRACE_MS))
        self.store.quarantine[key] = Found(self.store.quarantine[key].item, "stopping")


def _is_ahead(state: model.OperationState | None, item: model.InventoryItem) -> bool:
    return state is not None and state.placement is not PlacementState.RECOVERING and item.epoch > state.epoch
