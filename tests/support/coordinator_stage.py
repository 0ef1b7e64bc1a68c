"""The stage around a coordinator: what intake, ranking and people say, scripted environments, and what was told."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import api
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.schema.wire import command_v1, common_v1, event_v1, report_v1, request_v1
from support.intake_service import read_message
from support.wait import wait_until

PROJECT = "retail-eu"
# A killed coordinator has to start again meanwhile, on a machine that may be busy.
PATIENCE_S = 60.0
Ref = tuple[str, common_v1.Epoch]


def effective(
    name: str = "train", project: str = PROJECT, *, gang: dict[str, Any] | None = None, **lifecycle: Any
) -> bytes:
    """Return a rendered operation's bytes."""
    document = {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": name, "project": project},
        "spec": {"type": "job", "command": ["true"], "lifecycle": lifecycle},
    }
    if gang is not None:
        document["spec"]["gang"] = gang  # type: ignore[index]
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def an_epoch(counter: int, generation: int = 1) -> common_v1.Epoch:
    return common_v1.Epoch(generation=generation, counter=counter)


class Tape:
    """All messages of one stream so far, each once, in order."""

    def __init__(self, bus: Bus, stream: str) -> None:
        self._bus = bus
        self._stream = stream
        self._next = 1
        self._found: dict[str, Inbound] = {}

    async def messages(self) -> list[Inbound]:
        last = (await api(self._bus, f"STREAM.INFO.{self._stream}"))["state"]["last_seq"]
        while self._next <= last:
            message = await read_message(self._bus, self._stream, self._next)
            self._found.setdefault(message.id, message)
            self._next += 1
        return list(self._found.values())


class Stage:
    """Speaks for everybody but the coordinator."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.operations = Tape(bus, streams.OPERATIONS)
        self.commands = Tape(bus, streams.COMMANDS)
        self.links = Tape(bus, streams.ENVIRONMENTS)

    async def _say(self, stream: str, subject: str, package: str, body: msgspec.Struct, about: str = "") -> None:
        kind = event_type(package, type(body).__name__)
        await publish_batch(self.bus, stream, [Outbound(subject, kind, msgspec.json.encode(body), about)])

    async def accept(
        self,
        name: str = "train",
        project: str = PROJECT,
        *,
        operation: str = "",
        gang: dict[str, Any] | None = None,
        **lifecycle: Any,
    ) -> str:
        """Say that intake has accepted an operation; return its id."""
        operation, body = operation or str(uuid4()), effective(name, project, gang=gang, **lifecycle)
        accepted = event_v1.OperationAccepted(
            operation=operation,
            project=project,
            name=name,
            queue="q",
            op_seq=1,
            at=datetime.now(UTC),
            effective=body,
            effective_sha256=hashlib.sha256(body).hexdigest(),
        )
        subject = subjects.operation("accepted", project)
        await self._say(streams.OPERATIONS, subject, "operation", accepted, operation)
        return operation

    async def decide(
        self,
        operations: Sequence[str],
        environment: str,
        round_: int = 1,
        *,
        contract_version: int = 0,
        valid_for: timedelta | None = None,
    ) -> None:
        now = datetime.now(UTC)
        decision = event_v1.Decision(id=f"decision-{uuid4().hex[:8]}", assessment_id="a", at=now)
        placed = tuple(
            event_v1.DecidedOperation(
                operation=operation,
                round=round_,
                environment=environment,
                contract_version=contract_version,
                valid_until=None if valid_for is None else now + valid_for,
            )
            for operation in operations
        )
        decided = event_v1.OperationsDecided(decision=decision, operations=placed)
        await self._say(streams.OPERATIONS, subjects.operation("decided", PROJECT), "operation", decided)

    async def wait(self, operation: str, round_: int = 1, condition: str = "", reason: str = "not-now") -> None:
        waiting = event_v1.OperationsWaiting(
            by="eligibility",
            operations=(event_v1.OperationRound(operation=operation, round=round_),),
            reason=reason,
            condition=condition,
        )
        await self._say(streams.OPERATIONS, subjects.operation("waiting", PROJECT), "operation", waiting)

    async def preempt(self, operation: str, round_: int = 1) -> None:
        preempted = event_v1.OperationsPreempted(
            operations=(event_v1.OperationRound(operation=operation, round=round_),),
            reason="lower-priority",
            message="operation h of queue q has the higher priority 9",
            claimant=str(uuid4()),
        )
        await self._say(streams.OPERATIONS, subjects.operation("preempted", PROJECT), "operation", preempted)

    async def cancel(self, operation: str, project: str = PROJECT, *, force: bool = False) -> None:
        wish = request_v1.Cancel(operation=operation, by="ann", reason="no longer needed", force=force)
        await self._say(streams.INTENTS, subjects.intent("cancel", project), "intent", wish, operation)

    async def document(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        body = json.dumps({"spec": spec}).encode()
        entry = event_v1.CatalogueEntry(kind=kind, name=name, version=1, document=body, at=datetime.now(UTC))
        await self._say(streams.CATALOGUE, subjects.catalogue(kind, name), "catalogue", entry)

    async def environment_says(self, event: str, body: Any) -> None:
        await self._say(streams.ENVIRONMENTS, subjects.environment(event, body.environment), "environment", body)

    async def told(self, operation: str) -> list[event_v1.OperationChanged]:
        """Return the lifecycle events of an operation, in order."""
        kind = event_type("operation", "OperationChanged")
        found = [m for m in await self.operations.messages() if m.about == operation and m.type == kind]
        return [msgspec.json.decode(message.body, type=event_v1.OperationChanged) for message in found]

    async def phases(self, operation: str) -> list[str]:
        return [subjects.token(m.subject, 3) for m in await self.operations.messages() if m.about == operation]

    async def others(self, operation: str, event: str) -> list[dict[str, Any]]:
        """Return the bodies of events beside the lifecycle: requeued, freed."""
        found = [m for m in await self.operations.messages() if m.about == operation]
        return [json.loads(m.body) for m in found if subjects.token(m.subject, 3) == event]

    async def until(self, operation: str, *events: str) -> list[event_v1.OperationChanged]:
        """Wait until the latest lifecycle events are these."""

        async def there() -> bool:
            told = [
                event.phase.value if event.condition is None else "condition" for event in await self.told(operation)
            ]
            return tuple(told[-len(events) :]) == events

        try:
            await wait_until(there, f"operation is told as {events}", timeout_s=PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; told: {await self.phases(operation)}") from None
        return await self.told(operation)

    async def ordered(self, environment: str, kind: str) -> list[Any]:
        """Return all items of an environment's commands of a kind."""
        types: dict[str, Any] = {
            "offer": command_v1.Offers,
            "withdraw": command_v1.Withdrawals,
            "stop": command_v1.Stops,
            "settle": command_v1.Settlements,
        }
        items: list[Any] = []
        for message in await self.commands.messages():
            if message.subject == subjects.command(environment, kind):
                body = msgspec.json.decode(message.body, type=types[kind])
                items += body.offers if kind == "offer" else body.items
        return items

    async def link(self, environment: str) -> str:
        found = [m for m in await self.links.messages() if m.subject == subjects.environment("link", environment)]
        return msgspec.json.decode(found[-1].body, type=event_v1.EnvironmentLink).state.value if found else ""


class ScriptedEnvironment:
    """A dispatcher that does what the test says, step by step."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.incarnation = uuid4().hex
        self.term = 0
        self.n = 0

    async def _ask(self, subject: str, body: msgspec.Struct, type_: Any) -> Any:
        for _ in range(200):
            try:
                answer = await self.stage.bus.request(subject, msgspec.json.encode(body), 2.0)
            except Exception:
                await asyncio.sleep(0.1)
                continue
            return msgspec.json.decode(answer, type=type_)
        raise AssertionError(f"nobody answers {subject}")

    async def lease(self, kind: str, **more: Any) -> request_v1.LeaseGrant:
        request = request_v1.LeaseRequest(
            kind=request_v1.LeaseKind(kind), incarnation=self.incarnation, term=self.term, n=self.n + 1, **more
        )
        grant: request_v1.LeaseGrant = await self._ask(subjects.lease(self.name), request, request_v1.LeaseGrant)
        if not grant.refused:
            self.term, self.n = grant.term, grant.n
        return grant

    async def say(self, kind: str, body: msgspec.Struct, name: str = "") -> None:
        message = Outbound(
            subjects.report(name or self.name, kind),
            event_type("report", type(body).__name__),
            msgspec.json.encode(body),
        )
        await publish_batch(self.stage.bus, streams.REPORTS, [message])

    async def show(self, *slots: report_v1.SlotState, part: int = 1, parts: int = 1) -> None:
        inventory = report_v1.Inventory(
            incarnation=self.incarnation, term=self.term, part=part, parts=parts, slots=tuple(slots)
        )
        await self.say("inventory", inventory)

    async def join(self, *slots: report_v1.SlotState) -> "ScriptedEnvironment":
        """Say hello, show the inventory, and renew until work may start."""
        await self.lease("hello")
        await self.show(*slots)

        async def may_start() -> bool:
            return (await self.lease("renew")).may_start

        await wait_until(may_start, f"{self.name} may start work", timeout_s=PATIENCE_S, every_s=0.05)
        return self

    async def claim(self, *refs: Ref) -> request_v1.ClaimReply:
        items = tuple(common_v1.PlacementRef(operation=operation, epoch=epoch) for operation, epoch in refs)
        request = request_v1.ClaimRequest(incarnation=self.incarnation, term=self.term, items=items)
        reply: request_v1.ClaimReply = await self._ask(subjects.claim(self.name), request, request_v1.ClaimReply)
        return reply

    def report(self, ref: Ref, state: str, outcome: str = "", **more: Any) -> report_v1.AttemptReport:
        more = {"term": self.term, "at": datetime.now(UTC), **more}
        return report_v1.AttemptReport(
            operation=ref[0],
            epoch=ref[1],
            state=report_v1.AttemptState(state),
            outcome=report_v1.AttemptOutcome(outcome),
            **more,
        )

    async def tell(self, *reports: report_v1.AttemptReport) -> None:
        await self.say(
            "attempts", report_v1.AttemptReports(incarnation=self.incarnation, term=self.term, items=reports)
        )

    def slot(
        self, ref: Ref, state: str, report: report_v1.AttemptReport | None = None, term: int = 0
    ) -> report_v1.SlotState:
        return report_v1.SlotState(
            operation=ref[0],
            epoch=ref[1],
            state=report_v1.SlotPhase(state),
            grant_term=term or self.term,
            report=report,
        )

    async def offered(self, operation: str, counter: int = 1) -> Ref:
        """Wait for the offer of a placement."""
        wanted = an_epoch(counter)

        async def there() -> bool:
            offers = await self.stage.ordered(self.name, "offer")
            return any(offer.operation == operation and offer.epoch == wanted for offer in offers)

        await wait_until(there, f"{operation} is offered to {self.name} as {counter}", timeout_s=PATIENCE_S)
        return operation, wanted

    async def take(self, operation: str, counter: int = 1) -> Ref:
        """Wait for the offer and claim it."""
        ref = await self.offered(operation, counter)
        reply = await self.claim(ref)
        assert [item.operation for item in reply.granted] == [operation], reply
        return ref

    async def run(self, operation: str, counter: int = 1) -> Ref:
        """Claim, and say that it runs."""
        ref = await self.take(operation, counter)
        await self.tell(self.report(ref, "started"))
        await self.stage.until(operation, "running")
        return ref
