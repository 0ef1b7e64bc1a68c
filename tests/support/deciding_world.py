"""A world around eligibility and ranking: everything that they read is told to them, all that they say is seen."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import Publisher
from landbridge.domain import claims
from landbridge.domain.features import PROCESS_FEATURES
from landbridge.runtime.ids import new_id
from landbridge.schema.wire import event_v1, report_v1
from landbridge.schema.wire.common_v1 import Epoch
from support.deciding import claims_of, contract_document, effective
from support.wait import wait_until

_encode = msgspec.json.Encoder().encode
LASTS = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def _report(operation: str, outcome: str, took: timedelta) -> report_v1.AttemptReport:
    ended = now()
    return report_v1.AttemptReport(
        operation=operation,
        epoch=Epoch(generation=1, counter=1),
        at=ended,
        started_at=ended - took,
        finished_at=ended,
        outcome=report_v1.AttemptOutcome(outcome),
    )


class World:
    """Publishes what others would, and follows OPERATIONS as lineage does."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.seen: list[tuple[str, Any]] = []
        self._ids: set[str] = set()
        self._publisher = Publisher(bus)
        self._consumer = Consumer(bus, "OPERATIONS", "lineage")
        self._follower: asyncio.Task[None] | None = None
        self._contracts: dict[str, dict[str, Any]] = {}

    async def start(self) -> None:
        self._follower = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower
        await self._consumer.stop()

    async def _follow(self) -> None:
        while True:
            batch = await self._consumer.take(0.5)
            for message in batch:
                self._note(message)
            await self._consumer.ack(batch)

    def _note(self, message: Inbound) -> None:
        if message.id in self._ids:  # published again after a crash: consumers drop it by its id
            return
        self._ids.add(message.id)
        event = subjects.token(message.subject, 3)
        kind = {
            "assessed": event_v1.OperationsAssessed,
            "waiting": event_v1.OperationsWaiting,
            "decided": event_v1.OperationsDecided,
            "preempted": event_v1.OperationsPreempted,
        }.get(event)
        self.seen.append((event, msgspec.json.decode(message.body, type=kind) if kind else message.body))

    # -- what others say ----------------------------------------------------------------------------------------------

    async def publish(self, subject: str, type_: str, body: object, about: str = "") -> None:
        await self._publisher.publish([Outbound(subject, type_, _encode(body), about, id=new_id())])

    async def environment(
        self, name: str = "onprem-a", *, version: int = 1, failing: Iterable[str] = (), **spec: Any
    ) -> None:
        """Register an environment of which all but `failing` is proven and whose dispatcher is connected."""
        self._contracts[name] = contract_document(name, version, **spec)
        document = json.dumps(self._contracts[name]).encode()
        active = event_v1.ContractVersion(
            version=version, phase="active", document=document, sha256=str(hash(document))
        )
        contract = event_v1.EnvironmentContractChanged(environment=name, at=now(), versions=(active,))
        if failing:  # before the contract: not even for a moment is it eligible
            await self.evidence(name, failing=failing)
        await self.publish(subjects.environment("contract", name), "x", contract)
        if not failing:
            await self.evidence(name)
        await self.link(name)

    async def evidence(
        self,
        name: str = "onprem-a",
        *,
        failing: Iterable[str] = (),
        lasts: timedelta = LASTS,
        measured: Iterable[report_v1.Evidence] = (),
    ) -> None:
        """Everything that is claimed is proven, but for what is failing, claimed or not; and what is `measured`."""
        from landbridge.domain.contract_document import parse_contract

        failed = set(failing)
        probed = [
            claim
            for claim in claims_of(parse_contract(self._contracts[name]))
            if not claim.startswith("boundaries") or claim == claims.IDENTITY
        ]
        items = tuple(
            report_v1.Evidence(
                claim=claim,
                result=report_v1.EvidenceResult.FAILED if claim in failed else report_v1.EvidenceResult.PROVEN,
                at=now(),
                expires=now() + lasts,
                probe=f"{claim}@1",
                subject="disk 7",
            )
            for claim in [*probed, *sorted(failed.difference(probed))]
        )
        version = self._contracts[name]["metadata"]["version"]
        items = (*items, *measured)
        event = event_v1.EnvironmentEvidence(environment=name, at=now(), contract_version=version, items=items)
        await self.publish(subjects.environment("evidence", name), "x", event)

    async def link(self, name: str = "onprem-a", state: str = "connected") -> None:
        event = event_v1.EnvironmentLink(
            environment=name, state=event_v1.LinkState(state), since=now(), features=tuple(PROCESS_FEATURES)
        )
        await self.publish(subjects.environment("link", name), "x", event)

    async def control(self, name: str = "onprem-a", *, paused: bool = False, classes: Iterable[str] = ()) -> None:
        """Say what ann has paused: all of an environment, or some of its classes."""
        holds = tuple(
            event_v1.ControlHold(capability_class=held, by="ann", reason="new driver", at=now()) for held in classes
        )
        event = event_v1.EnvironmentControl(
            environment=name, paused=paused, by="ann", reason="disk swap", at=now(), holds=holds
        )
        await self.publish(subjects.environment("control", name), "x", event)

    async def document(self, kind: str, name: str, **spec: Any) -> None:
        body = json.dumps({"spec": spec}).encode()
        entry = event_v1.CatalogueEntry(kind=kind, name=name, version=1, document=body, at=now())
        await self.publish(subjects.catalogue(kind, name), "x", entry)

    async def accept(self, count: int = 1, *, project: str = "retail-eu", **spec: Any) -> list[str]:
        """Accept operations of one shape; return their ids."""
        operations = [str(uuid4()) for _ in range(count)]
        body = effective(project, **spec)
        type_ = event_type("operation", "OperationAccepted")
        events = [
            event_v1.OperationAccepted(
                operation=operation,
                project=project,
                op_seq=1,
                at=now(),
                effective=body,
                effective_sha256=hashlib.sha256(body).hexdigest(),
            )
            for operation in operations
        ]
        subject = subjects.operation("accepted", project)
        messages = [Outbound(subject, type_, _encode(event), event.operation, id=new_id()) for event in events]
        await self._publisher.publish(messages)
        return operations

    async def end(
        self,
        operations: Sequence[str],
        phase: str = "completed",
        *,
        project: str = "retail-eu",
        took: timedelta | None = None,
    ) -> None:
        """End operations; with `took`, by a report that the work took so long."""
        subject = subjects.operation(phase, project)
        messages = []
        for operation in operations:
            event = event_v1.OperationChanged(
                operation=operation,
                project=project,
                op_seq=5,
                phase=event_v1.Phase(phase),
                at=now(),
                report=_report(operation, phase, took) if took is not None else None,
            )
            type_ = event_type("operation", "OperationChanged")
            messages.append(Outbound(subject, type_, _encode(event), operation, id=new_id()))
        await self._publisher.publish(messages)

    async def requeue(
        self, operation: str, round_: int, *, free_from: str = "", project: str = "retail-eu", **more: Any
    ) -> None:
        """Free what an operation holds, and ask for a new round."""
        freed = event_v1.OperationFreed(operation=operation, project=project, round=round_ - 1, environment=free_from)
        await self.publish(subjects.operation("freed", project), "x", freed, operation)
        spec = more.pop("spec", {})
        event = event_v1.OperationRequeued(
            operation=operation, project=project, round=round_, effective=effective(project, **spec), **more
        )
        await self.publish(subjects.operation("requeued", project), "x", event, operation)

    # -- what was seen ------------------------------------------------------------------------------------------------

    def events(self, kind: str) -> list[Any]:
        return [event for found, event in self.seen if found == kind]

    def decided(self) -> list[tuple[str, int, str]]:
        """Every placement in the order of deciding: operation, round, environment."""
        return [
            (item.operation, item.round, item.environment)
            for event in self.events("decided")
            for item in event.operations
        ]

    def placed(self) -> dict[str, str]:
        """Environment by operation, by the latest decision."""
        return {operation: environment for operation, _, environment in self.decided()}

    def waits(self) -> dict[str, event_v1.OperationsWaiting]:
        """What each operation was last told it waits for."""
        return {item.operation: event for event in self.events("waiting") for item in event.operations}

    async def until_placed(self, operations: Iterable[str], timeout_s: float = 30.0) -> None:
        wanted = set(operations)
        await wait_until(
            lambda: wanted <= set(self.placed()), f"{len(wanted)} operations are placed", timeout_s=timeout_s
        )

    async def until_waiting(self, operations: Iterable[str], reason: str) -> None:
        def all_wait() -> bool:
            waits = self.waits()
            return all(operation in waits and waits[operation].reason == reason for operation in operations)

        try:
            await wait_until(all_wait, f"operations wait for {reason}", timeout_s=30)
        except AssertionError as error:
            told = {event.reason: event.message for event in self.waits().values()}
            raise AssertionError(f"{error}; told was {told}; placed are {len(self.placed())}") from None
