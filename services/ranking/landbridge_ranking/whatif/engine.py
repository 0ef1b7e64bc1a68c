"""Virtual time: work arrives, is admitted by the ranking service's own passes, runs, and gives back what it held."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final, NamedTuple, Protocol

from landbridge.domain.admission import Admission, Admitted
from landbridge.domain.ledger import Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.tickets import Ticket
from landbridge_ranking.whatif.behaviour import Behaviours
from landbridge_ranking.whatif.deciding import LOOK_AGAIN, Decider
from landbridge_ranking.whatif.work import Arrival
from landbridge_ranking.whatif.world import START

_ARRIVES, _ENDS, _LOOK, _WAKE = range(4)
_PASS: Final = 1000
_PATIENCE_S: Final = 14 * 86_400.0  # after the last arrival or end, what waits for a window to close waits no longer
_TICK_S: Final = 1.0  # what happens within a second is decided together, as the service does with a batch


class Placed(NamedTuple):
    """One stay of an operation: from, until (seconds), where, with what; it starts after `delay_s` of them.

    `finished` False: it was asked to leave, or `let_down` by the environment. `price` is what it costs an hour by the
    prices that held when it was placed, and in which currency; None: unknown.
    """

    arrival: Arrival
    environment: str
    at_s: float
    until_s: float
    amounts: dict[str, int]
    finished: bool = True
    price: tuple[float, str] | None = None
    round: int = 1
    delay_s: float = 0.0
    let_down: bool = False


class Observing(Protocol):
    """Hears how stays went, and has rankings follow what is observed."""

    def left(self, placed: Placed, moment: datetime) -> None: ...
    def look(self, admission: Admission, now: datetime) -> bool: ...


class Watching(Protocol):
    """Hears what takes room and gives it back, and after every pass the moment."""

    def takes(self, placed: Placed) -> None: ...
    def gives_back(self, placed: Placed) -> None: ...
    def moment(self, at_s: float) -> None: ...


@dataclass
class Outcome:
    """What became of the work. `unplaced` waits for ever, each with what it was last told.

    `ends_s` is when the last operation ended, `arrived_s` when the last one came.
    """

    placed: list[Placed]
    unplaced: list[tuple[Arrival, str, str]]
    ends_s: float
    arrived_s: float
    evictions: int
    let_down: int
    assessments: int
    passes: int


class Run:
    """One policy over the whole trace. `Run(decider, work, …).run()`."""

    def __init__(
        self,
        decider: Decider,
        work: Sequence[Arrival],
        watch: Watching,
        observer: Observing,
        behaviours: Behaviours,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        """`progress` is told how many operations have ended."""
        view = decider.book.view
        self._decider = decider
        self._admission = Admission(Ledger(), Limits(view.catalogue, view.capacity()), revalidate=self._revalidate)
        self._watch, self._observer, self._behaviours, self._progress = watch, observer, behaviours, progress
        self._number = count()
        self._events: list[tuple[float, int, int, object]] = []
        self._shapes: dict[str, RequirementClass] = {}
        self._arrivals: dict[str, Arrival] = {each.operation: each for each in work}
        self._rounds: dict[str, int] = {}
        self._running: dict[str, Placed] = {}
        self._placed: list[Placed] = []
        self._evictions = self._let_down = self._passes = self._done = 0
        self._wake_at: float | None = None
        self._stirred_at = 0.0  # when something last arrived or ended
        for each in work:
            self._plan(_tick(each.at_s), _ARRIVES, each)

    def run(self) -> Outcome:
        """Go on until nothing more can happen."""
        at = 0.0
        while self._events:
            at = self._events[0][0]
            self._happen(at)
            self._observe(at)
            self._admit(at)
            self._watch.moment(at)
        return Outcome(
            self._placed,
            list(self._left()),
            max((each.until_s for each in self._placed), default=at),
            max((each.at_s for each in self._arrivals.values()), default=0.0),
            self._evictions,
            self._let_down,
            self._decider.assessments,
            self._passes,
        )

    # -- what happens -------------------------------------------------------------------------------------------------

    def _plan(self, at_s: float, kind: int, what: object) -> None:
        heapq.heappush(self._events, (at_s, kind, next(self._number), what))

    def _happen(self, at: float) -> None:
        """Take everything that happens at one moment: ends before arrivals would need room, so both before a pass."""
        arrived: dict[str, list[Ticket]] = {}
        while self._events and self._events[0][0] <= at:
            _, kind, _, what = heapq.heappop(self._events)
            if kind in (_ARRIVES, _ENDS):
                self._stirred_at = at
            if kind == _ARRIVES and isinstance(what, Arrival):
                self._arrive(what, at, arrived)
            elif kind == _ENDS and isinstance(what, Placed):
                self._end(what, at)
            elif kind == _LOOK and isinstance(what, RequirementClass):
                self._look(what, at)
            else:
                self._wake_at = None
        for key, tickets in arrived.items():
            self._admission.arrive(key, tickets)

    def _arrive(self, arrival: Arrival, at: float, arrived: dict[str, list[Ticket]]) -> None:
        key = arrival.shape.key
        if key not in self._shapes:
            self._shapes[key] = arrival.shape
            self._look(arrival.shape, at)
        elif key not in arrived:
            self._renew(arrival.shape, _moment(at))  # prices may have ended
        round_ = self._rounds[arrival.operation] = self._rounds.get(arrival.operation, 0) + 1
        ticket = Ticket(arrival.operation, round_, next(self._number), _moment(at))
        arrived.setdefault(key, []).append(ticket)

    def _end(self, placed: Placed, at: float) -> None:
        name = placed.arrival.operation
        if self._running.get(name) is not placed:
            return
        del self._running[name]
        self._leave(placed, at)
        if placed.let_down:
            self._let_down += 1
            self._plan(at + _TICK_S, _ARRIVES, placed.arrival)
        else:
            self._done += 1
            self._progress(self._done)

    def _leave(self, placed: Placed, at: float) -> None:
        self._placed.append(placed)
        self._watch.gives_back(placed)
        self._observer.left(placed, _moment(at))
        self._admission.release(placed.arrival.operation)

    def _renew(self, shape: RequirementClass, now: datetime) -> None:
        plan = self._decider.plan(shape, now)
        bucket = self._admission.buckets.get(shape.key)
        if bucket is None or bucket.plan is not plan:
            self._admission.set_plan(shape.key, plan)

    def _look(self, shape: RequirementClass, at: float) -> None:
        """Judge a class by this moment, and again later where time alone may change the verdict."""
        self._renew(shape, _moment(at))
        if self._decider.may_change(shape) and at - self._stirred_at < _PATIENCE_S:
            self._plan(at + LOOK_AGAIN.total_seconds(), _LOOK, shape)

    def _revalidate(self, bucket: str, environment: str, now: datetime) -> datetime | None:
        found = self._decider.book.index.assess(self._shapes[bucket], now)
        verdict = next((each for each in found.verdicts if each.environment == environment), None)
        known = self._decider.verdict(self._shapes[bucket]).verdicts
        planned = next((each.classes for each in known if each.environment == environment), ())
        if verdict is None or verdict.violations or not set(planned) <= set(verdict.classes):
            return None
        return verdict.valid_until or datetime.max.replace(tzinfo=START.tzinfo)

    # -- deciding -----------------------------------------------------------------------------------------------------

    def _observe(self, at: float) -> None:
        """Rank anew by what is observed, at the pace of the service; nobody asks while nothing waits."""
        waiting = [key for key, bucket in self._admission.buckets.items() if bucket.tickets]
        now = _moment(at)
        if waiting and self._decider.ranks and self._observer.look(self._admission, now):
            for key in waiting:
                self._renew(self._shapes[key], now)
            self._admission.wake_hopeless()

    def _admit(self, at: float) -> None:
        admission, now = self._admission, _moment(at)
        while True:
            self._passes += 1
            for each in admission.admit(now, _PASS):
                self._start(each, at)
            self._evict(at)
            if not admission.has_more:
                break
        timer = admission.next_timer
        if timer is not None:
            wake = max(_tick((timer - START).total_seconds()), at + _TICK_S)
            if self._wake_at is None or wake < self._wake_at:
                self._wake_at = wake
                self._plan(wake, _WAKE, None)

    def _start(self, admitted: Admitted, at: float) -> None:
        arrival, round_, choice = self._arrivals[admitted.ticket.operation], admitted.ticket.round, admitted.choice
        course = self._behaviours.course(choice.environment, arrival.operation, round_, arrival.duration_s)
        until = at + course.delay_s + max(course.runs_s, _TICK_S)
        placed = Placed(
            arrival,
            choice.environment,
            at,
            until,
            dict(admitted.charge.amounts),
            finished=not course.let_down,
            price=self._decider.hourly(arrival.shape, choice),
            round=round_,
            delay_s=course.delay_s,
            let_down=course.let_down,
        )
        self._running[arrival.operation] = placed
        self._watch.takes(placed)
        self._plan(_tick(until), _ENDS, placed)

    def _evict(self, at: float) -> None:
        """Whoever is asked to leave does so at once, and waits again for all of its work."""
        evicted, self._admission.evicted = self._admission.evicted, []
        for each in evicted:
            name = each.charge.operation
            placed = self._running.pop(name)
            self._leave(placed._replace(until_s=at, finished=False, let_down=False), at)
            self._evictions += 1
            self._plan(at + _TICK_S, _ARRIVES, placed.arrival)

    def _left(self) -> Iterable[tuple[Arrival, str, str]]:
        for bucket in self._admission.buckets.values():
            for ticket in bucket.tickets:
                wait = bucket.wait
                reason, message = (wait.reason.value, wait.message) if wait is not None else ("", "")
                yield self._arrivals[ticket.operation], reason, message


def _tick(at_s: float) -> float:
    """Round up to the moment at which it is decided about."""
    return float(-(-at_s // _TICK_S)) * _TICK_S


def _moment(at_s: float) -> datetime:
    return START + timedelta(seconds=at_s)
