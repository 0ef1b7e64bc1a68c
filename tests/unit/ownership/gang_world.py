"""A gang, its environments and an admitter that places it as a whole, with faults from a seed.

What environments hold is kept here, beside what the centre says: a grant is judged by it.
"""

import random
from typing import Any

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre import accept
from landbridge.domain.ownership.centre_model import OperationState, PlacementState, Timer
from landbridge.domain.ownership.centre_shared import is_terminal
from landbridge.domain.ownership.gang import decide_gang, joined, members_left
from landbridge.domain.ownership.gang_model import Gang
from landbridge.domain.ownership.policy import Retries

SITES = ("x", "y", "z")
TIMERS: dict[Timer, model.Message] = {
    Timer.OFFER: model.OfferTimeout(),
    Timer.QUEUE: model.QueueTimeout(),
    Timer.RETRY: model.RetryDue(),
    Timer.START: model.StartDue(),
}


class GangWorld:
    """Members `a`, `b`, …; `now` in milliseconds."""

    def __init__(self, members: int = 3, *, apart: bool = False, seed: int = 0, **declared: Any) -> None:
        self.random = random.Random(seed)
        self.now = 1_000
        self.gang = Gang("train", members, apart)
        self.names = [chr(ord("a") + i) for i in range(members)]
        self.declared = {"start_within_ms": 60_000, "retries": Retries(2, 1_000), **declared}
        self.states: dict[str, OperationState] = {}
        self.effects: list[tuple[str, model.Effect]] = []
        self.tickets: dict[str, int] = {}  # rounds that wait for admission
        self.decisions: list[tuple[str, model.Decided]] = []  # on their way
        self.claimed: set[tuple[str, Any]] = set()
        self.running: dict[str, Any] = {}  # what environments run, with its epoch
        self.stopping: dict[str, str] = {}
        self.opened = 0

    # -- what happens -------------------------------------------------------------------------------------------------

    def accept(self, *names: str) -> "GangWorld":
        for name in names or self.names:
            accepted = model.Accepted(operation=name, project="p", gang=self.gang, **self.declared)
            self.states[name] = accept(accepted, self.now)
            self.tickets[name] = 1
            for other, told in joined(self.states, name):
                self.tell(other, told)
        return self

    def tell(self, name: str, message: model.Message) -> None:
        for operation, decision in decide_gang(self.states, name, message, self.now):
            before = self.states[operation]
            self.states[operation] = decision.state
            for effect in decision.effects:
                self.effects.append((operation, effect))
                self._take(operation, before, effect)

    def _take(self, name: str, before: OperationState, effect: model.Effect) -> None:
        state = self.states[name]
        match effect:
            case model.Requeue(round):
                self.tickets[name] = round
            case model.Grant(epoch):
                self.check_grant(name)
                self.running.setdefault(name, epoch)
            case model.SendStop(_, epoch, reason) if self.running.get(name) == epoch:
                self.stopping[name] = reason
        if is_terminal(state):
            self.tickets.pop(name, None)

    def check_grant(self, name: str) -> None:
        """Nobody is granted anything before every member that is left holds a place."""
        if self.gang.apart and self.opened:
            return
        for other, state in self.states.items():
            if not is_terminal(state):
                assert (other, state.epoch) in self.claimed, f"{name} is granted, {other} is not claimed"
        assert len(self.states) == self.gang.members
        self.opened += 1

    # -- environments and ranking -------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Decide about all members that wait, if they are all that are left; what goes on by itself, by itself."""
        alone = {n for n in self.tickets if self.gang.apart and self.states[n].together}
        whole = set(self.tickets) if len(self.tickets) >= members_left(self.states) else set()
        if len(self.states) < self.gang.members:
            whole = set()
        for name in sorted(alone | whole):
            site = self.random.choice(SITES)
            self.decisions.append((name, model.Decided(self.tickets.pop(name), site, "d")))

    def hear(self, at: int = 0) -> None:
        name, decided = self.decisions.pop(at)
        self.tell(name, decided)

    def claim(self, name: str) -> None:
        state = self.states[name]
        if state.placement is PlacementState.OFFERED:
            self.claimed.add((name, state.epoch))
            self.tell(name, model.Claim(state.environment, state.epoch, 1))

    def report(self, kind: type[Any], name: str, **more: Any) -> None:
        state = self.states[name]
        common = {"environment": state.environment, "epoch": state.epoch, "term": 1, "environment_term": 1}
        self.tell(name, kind(**common, **more))

    def start(self, name: str) -> None:
        if name in self.running and self.running[name] == self.states[name].epoch:
            self.report(model.ReportStarted, name)

    def finish(self, name: str, outcome: str = "completed", **more: Any) -> None:
        if self.running.pop(name, None) == self.states[name].epoch:
            self.stopping.pop(name, None)
            self.report(model.ReportFinished, name, outcome=outcome, **more)

    def obey(self, name: str) -> None:
        """Carry out a stop: a cancel ends the work, anything else gives it back."""
        reason = self.stopping.get(name)
        if reason == "cancelled":
            self.finish(name, "cancelled")
        elif reason is not None:
            del self.stopping[name]
            if self.running.pop(name) == self.states[name].epoch:
                self.report(model.ReportRelinquished, name, reason=reason)

    def tick(self, ms: int) -> None:
        self.now += ms
        for name, state in sorted(self.states.items()):
            if state.timer is not Timer.NONE and state.due_at <= self.now:
                self.tell(name, TIMERS[state.timer])

    # -- all of it ----------------------------------------------------------------------------------------------------

    def phases(self) -> list[str]:
        return [self.states[name].phase.value for name in sorted(self.states)]

    def of(self, kind: type[Any], name: str = "") -> list[Any]:
        return [effect for who, effect in self.effects if isinstance(effect, kind) and name in ("", who)]

    def place(self) -> "GangWorld":
        """Have all members admitted and offered."""
        self.admit()
        while self.decisions:
            self.hear()
        return self

    def begin(self) -> "GangWorld":
        """Have all members run."""
        self.place()
        for _ in range(2):
            for name in self.names:
                self.claim(name)
        for name in self.names:
            self.start(name)
        return self

    def fault(self) -> None:
        """Do one thing that may happen to one member, those that go on more often than those that do harm."""
        name = self.random.choice(sorted(self.states))
        common = [
            self.claim,
            self.claim,
            self.claim,
            self.start,
            self._hear_any,
            self._hear_any,
            self._admit,
            self._wait,
        ]
        rare = [self.obey, self._end, self._refuse, self._lose_link, self._preempt, self._declare_dead]
        if self.random.random() < 0.002:
            self.tell(name, model.CancelRequested("ann", "over"))
        self.random.choice(common if self.random.random() < 0.92 else rare)(name)

    def _hear_any(self, _: str) -> None:
        if self.decisions:
            self.hear(self.random.randrange(len(self.decisions)))

    def _admit(self, _: str) -> None:
        self.admit()

    def _wait(self, _: str) -> None:
        self.tick(self.random.choice([100, 500, 1_000, 5_000, 31_000]))

    def _end(self, name: str) -> None:
        self.finish(name, self.random.choice(["completed", "failed"]))

    def _refuse(self, name: str) -> None:
        if self.states[name].placement is PlacementState.OFFERED:
            self.report(model.ReportRefused, name, reason="no-capacity")

    def _lose_link(self, name: str) -> None:
        lost = self.states[name].environment
        for other in sorted(self.states) if lost else ():
            self.tell(other, model.LinkLost(lost))

    def _preempt(self, name: str) -> None:
        self.tell(name, model.Preempted(self.states[name].round, "room"))

    def _declare_dead(self, name: str) -> None:
        if name in self.running:
            del self.running[name]
            self.stopping.pop(name, None)
            self.tell(name, model.DeclaredDead(self.states[name].environment, "ann"))

    def come_to_an_end(self) -> None:
        """Let everything go well from now on; it has to end."""
        for _ in range(60):
            if all(is_terminal(state) for state in self.states.values()):
                return
            for name in sorted(self.states):
                self.obey(name)
            self.begin()
            if not self.stopping and all(is_terminal(s) or n in self.running for n, s in self.states.items()):
                for name in sorted(self.running):
                    self.finish(name)
            self.tick(5_000)
        raise AssertionError(f"it does not end: {self.states}")
