"""One transaction's worth of decisions: rows in, decisions in memory, rows, timers, events and commands out.

Commands are gathered into one message per environment and kind, events stay one per operation.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from landbridge.bus.envelope import Outbound
from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre import accept, decide
from landbridge.domain.ownership.centre_model import OperationState
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.gang import decide_gang, joined, members_left
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.runtime import logs
from landbridge.store import Tx
from landbridge_dispatch.coordinator import gangs, rows
from landbridge_dispatch.coordinator.declared import Specification, Specifications, as_raw, declare
from landbridge_dispatch.coordinator.measures import alarms, transitions
from landbridge_dispatch.coordinator.outgoing import Commands, changed, freed, requeued
from landbridge_dispatch.coordinator.rows import Row

log = logs.get(__name__)

Answer = model.Grant | model.RefuseClaim
# What environments say may be anything: only what can be an id reaches Postgres.
is_id = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class Session:
    """Decides for operations inside one transaction. Nothing outside changes before the commit."""

    def __init__(
        self, tx: Tx, specifications: Specifications, wall: datetime, *, timing: Timing = DEFAULT_TIMING
    ) -> None:
        self.tx = tx
        self.now = int(wall.timestamp() * 1000)
        self.answers: dict[tuple[str, Epoch], Answer] = {}
        self.raised: set[str] = set()
        """Environments whose term must rise in this transaction."""
        self._at = wall.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._specifications = specifications
        self._timing = timing
        self._rows: dict[str, Row] = {}
        self._fresh: dict[bytes, Specification] = {}
        self._events: list[tuple[OperationState, model.Lifecycle | model.Requeue | model.Free]] = []
        self._commands = Commands()
        self._offers: list[tuple[OperationState, model.SendOffer]] = []
        self._timers: dict[int, list[str]] = {}
        self._gangs: dict[gangs.Key, list[str]] = {}

    # -- rows ---------------------------------------------------------------------------------------------------------

    async def load(self, operations: Iterable[str]) -> None:
        """Read and lock operations that are not at hand yet; those that do not exist stay absent."""
        wanted = sorted(name for name in set(operations).difference(self._rows) if is_id(name))
        if wanted:
            self._take_in(await rows.load(self.tx, wanted))
            await self._complete_gangs()

    async def load_active(self, environment: str, *, after: str = rows.FIRST_ID, limit: int = 100_000) -> list[str]:
        """Read and lock what an environment may know of; return the ids read."""
        found = await rows.load_active(self.tx, environment, after=after, limit=limit)
        self._take_in(found)
        await self._complete_gangs()
        return list(found)

    def _take_in(self, found: Mapping[str, Row]) -> None:
        """Have rows at hand; those that are, are as decided so far: members of a gang are read with each of them."""
        for operation, row in found.items():
            self._rows.setdefault(operation, row)

    async def load_due(self, operations: Iterable[str]) -> list[str]:
        """Read and lock the operations whose timer has run out; return them."""
        wanted = sorted(set(operations).difference(self._rows))
        found = await rows.load_due(self.tx, wanted, self.now) if wanted else {}
        self._take_in(found)
        await self._complete_gangs()
        return list(found)

    async def _complete_gangs(self) -> None:
        """Read and lock the members of all gangs at hand: about none of them is decided without the others.

        Asked after the locks are held: who joined meanwhile is seen.
        """
        keys = {gangs.key_of(row.state) for row in self._rows.values() if row.state.gang}
        if not keys:
            return
        missing = [operation for operation in await gangs.members(self.tx, keys) if operation not in self._rows]
        if missing:
            self._take_in(await rows.load(self.tx, missing))
        self._gangs = gangs.by_key(row.state for row in self._rows.values())

    def state(self, operation: str) -> OperationState | None:
        """Return the state by now, None if the operation is unknown here."""
        row = self._rows.get(operation)
        return None if row is None else row.state

    def states(self) -> dict[str, OperationState]:
        return {operation: row.state for operation, row in self._rows.items()}

    # -- decisions ----------------------------------------------------------------------------------------------------

    def accept(self, message: model.Accepted, specification: Specification) -> None:
        """Begin an operation, unless it is known."""
        if message.operation in self._rows:
            return
        state = accept(message, self.now)
        self._rows[message.operation] = Row(state, specification.sha256, new=True)
        self._fresh.setdefault(specification.sha256, specification)
        self._note_timer(state)

    async def join_gangs(self) -> None:
        """Make what was begun here members of their gangs; those of a gang that has ended end with it."""
        new = [row.state for row in self._rows.values() if row.new and row.state.gang]
        if not new:
            return
        await gangs.join(self.tx, new)
        await self._complete_gangs()
        for state in new:
            for operation, told in joined(self._members(state), state.operation):
                self.decide(operation, told)

    def decide_for_gang(self, operation: str, message: model.Message) -> None:
        """Decide the same for an operation and all other members of its gang that have not ended."""
        for name in sorted(self._members(self._rows[operation].state)):
            self._apply(name, decide(self._rows[name].state, message, self.now, timing=self._timing))

    def _members(self, state: OperationState) -> dict[str, OperationState]:
        if not state.gang:
            return {state.operation: state}
        return {name: self._rows[name].state for name in self._gangs[gangs.key_of(state)]}

    def decide(self, operation: str, message: model.Message) -> None:
        """Run the production decision and gather its effects. The operation must be at hand."""
        state = self._rows[operation].state
        if not state.gang:
            self._apply(operation, decide(state, message, self.now, timing=self._timing))
            return
        for name, decision in decide_gang(self._members(state), operation, message, self.now, timing=self._timing):
            self._apply(name, decision)

    def _apply(self, operation: str, decision: model.Decision) -> None:
        row = self._rows[operation]
        before, after = row.state, decision.state
        row.state = after
        if after.due_at and after.due_at != before.due_at:
            self._note_timer(after)
        for effect in decision.effects:
            self._take(after, effect)

    def _take(self, state: OperationState, effect: model.Effect) -> None:
        match effect:
            case model.Lifecycle() | model.Requeue() | model.Free():
                self._events.append((state, effect))
            case model.SendOffer():
                self._offers.append((state, effect))
            case model.Grant() | model.RefuseClaim():
                self.answers[state.operation, effect.epoch] = effect
            case model.RaiseTerm(environment):
                self.raised.add(environment)
            case model.Alarm(kind, message):
                alarms.labels(kind).inc()
                log.error("ownership_alarm", kind=kind, operation=state.operation, detail=message)
            case _:
                self._commands.add(state.operation, effect)

    def _note_timer(self, state: OperationState) -> None:
        if state.timer is not model.Timer.NONE:
            second = -(-state.due_at // 1000) * 1000
            self._timers.setdefault(second, []).append(state.operation)

    def command(self, operation: str, effect: model.SendStop | model.SendSettle) -> None:
        """Gather a command about a slot that no operation here accounts for."""
        self._commands.add(operation, effect)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def finish(self) -> list[Outbound]:
        """Write everything and return the messages to log and publish with it."""
        await self._fetch_specifications()  # the last reading: what is written goes together with the event log
        await rows.save(self.tx, self._rows.values())
        await self._keep_specifications()
        await self._save_timers()
        outgoing = [self._event(state, effect) for state, effect in self._events]
        for state, offer in self._offers:
            self._commands.offer(state, offer, self._specification(state.operation))
        outgoing += self._commands.messages()
        self._count()
        return outgoing

    async def _keep_specifications(self) -> None:
        fresh = [s for s in self._fresh.values() if self._specifications.get(s.sha256) is None]
        if not fresh:
            return
        await self.tx.later(
            "content",
            "insert into content (sha256, body) select * from unnest($1::bytea[], $2::bytea[]) on conflict do nothing",
            [specification.sha256 for specification in fresh],
            [specification.body for specification in fresh],
        )
        for specification in fresh:
            self.tx.after_commit(lambda kept=specification: self._specifications.keep(kept))  # type: ignore[misc]

    async def _fetch_specifications(self) -> None:
        """Read the specifications that messages need and memory does not have."""
        named = [state.operation for state, _ in self._offers]
        named += [state.operation for state, effect in self._events if isinstance(effect, model.Requeue)]
        lacking = {self._rows[name].spec_sha256 for name in named}.difference(self._fresh)
        lacking = {sha256 for sha256 in lacking if self._specifications.get(sha256) is None}
        if lacking:
            found = await self.tx.fetch(
                "select sha256, body from content where sha256 = any($1::bytea[])", sorted(lacking)
            )
            for sha256, body in found:
                self._fresh[sha256] = Specification(sha256, body, as_raw(body), declare(body))
                self._specifications.keep(self._fresh[sha256])

    def _specification(self, operation: str) -> Specification:
        sha256 = self._rows[operation].spec_sha256
        return self._fresh.get(sha256) or self._specifications.get(sha256)  # type: ignore[return-value]

    async def _save_timers(self) -> None:
        if self._timers:
            await self.tx.later(
                "timer",
                "insert into timer (due_at, operations) select * from unnest($1::bigint[], $2::text[])",
                list(self._timers),
                [",".join(operations) for operations in self._timers.values()],
            )

    def _event(self, state: OperationState, effect: model.Lifecycle | model.Requeue | model.Free) -> Outbound:
        if isinstance(effect, model.Lifecycle):
            return changed(state, effect, self._at)
        if isinstance(effect, model.Requeue):
            left = members_left(self._members(state)) if state.gang else 0
            return requeued(state, effect, self._specification(state.operation).raw, left)
        return freed(state, effect)

    def _count(self) -> None:
        counts: dict[Phase, int] = {}
        for _, effect in self._events:
            if isinstance(effect, model.Lifecycle) and effect.event == effect.phase.value:
                counts[effect.phase] = counts.get(effect.phase, 0) + 1

        def count() -> None:
            for phase, number in counts.items():
                transitions.labels(phase.value).inc(number)

        if counts:
            self.tx.after_commit(count)
