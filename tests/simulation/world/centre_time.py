"""The centre's clocks: timers of operations, and the expirer that notices silence."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership import leases_centre as leases
from landbridge.domain.ownership.centre_model import OWNED, PlacementState, Timer
from landbridge.domain.ownership.expiry import Watch, lift_hold, look, release_wait_ms, silent_ms
from landbridge.domain.ownership.leases_centre import Link
from landbridge.domain.ownership.policy import DEFAULT_TIMING
from simulation.world.store import Crashed, Store

if TYPE_CHECKING:
    from simulation.world.world import World

_LOOK_MS = 3_000
_DUE: dict[Timer, model.Message] = {
    Timer.OFFER: model.OfferTimeout(),
    Timer.QUEUE: model.QueueTimeout(),
    Timer.RETRY: model.RetryDue(),
    Timer.START: model.StartDue(),
}


class Times:
    """What the centre does because time passes. Its watch lives in memory: a restart begins it anew."""

    world: "World"
    store: Store
    watch: Watch

    @property
    def hears(self) -> bool:
        raise NotImplementedError

    def now(self) -> int:
        raise NotImplementedError

    def transact(self, body: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def _apply(self, operation: str, message: model.Message, source: str) -> model.Decision:
        raise NotImplementedError

    def _lease(self, name: str, message: leases.LeaseMessage) -> leases.LeaseReply | None:
        raise NotImplementedError

    def _tick(self) -> None:
        self.world.timeline.after(_LOOK_MS * self.world.pace, self._tick)
        if not self.hears:
            return
        try:
            self.transact(self._timers)
            self.transact(self._expire)
        except Crashed:
            return

    def _timers(self) -> None:
        now = self.now()
        due = [
            (operation, state.timer)
            for operation, state in self.store.operations.items()
            if state.timer is not Timer.NONE and state.due_at <= now
        ]
        for operation, timer in due:
            self._apply(operation, _DUE[timer], "")

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

    def lift_hold(self) -> None:
        """A person has looked: the silence is real."""
        self.watch = lift_hold(self.watch)
