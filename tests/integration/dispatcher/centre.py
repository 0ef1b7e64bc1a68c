"""A scripted coordinator on a real broker: the domain's own lease rules, and placements as the test wants them."""

import asyncio
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import declare_durable
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import Publisher
from landbridge.bus.requests import query
from landbridge.domain.ownership.leases_centre import (
    EnvironmentLease,
    Hello,
    LeaseReply,
    Link,
    RaiseTerm,
    Reconciled,
    Renew,
    Silent,
    claim_refusal,
    decide_lease,
)
from landbridge.schema.wire import command_v1 as command
from landbridge.schema.wire import report_v1 as report
from landbridge.schema.wire import request_v1 as request
from landbridge.schema.wire.common_v1 import Epoch, PlacementRef
from support.wait import wait_until

Key = tuple[str, str]


def an_epoch(counter: int, generation: int = 1) -> Epoch:
    return Epoch(generation=generation, counter=counter)


def key_of(item: Any) -> Key:
    return item.operation, f"{item.epoch.generation}.{item.epoch.counter}"


class Centre:
    """Answers leases and claims of one environment, sends commands, keeps every report."""

    def __init__(self, bus: Bus, environment: str = "onprem-a", *, ttl_ms: int = 6000) -> None:
        self.bus = bus
        self.environment = environment
        self.ttl_ms = ttl_ms
        self.row = EnvironmentLease(environment=environment)
        self.grants_claims = True
        self.loses_grants = False
        """Claims are granted here, and their answers never arrive."""
        self.deaf = False
        self.compares = True
        self.may_start = False
        self.refuse: dict[Key, str] = {}
        self.lease_requests: list[request.LeaseRequest] = []
        self.claims: list[Key] = []
        self.granted: dict[Key, int] = {}
        self.reports: list[report.AttemptReport] = []
        self.inventories: list[report.Inventory] = []
        self.surveys: list[report.Survey] = []
        self.evidence: list[report.Evidence] = []
        self.messages = 0
        self.on_claim: Callable[[list[Key]], None] = lambda keys: None
        self._publisher = Publisher(bus)
        self._tasks: list[asyncio.Task[None]] = []
        self._consumers: list[Consumer] = []

    async def open(self) -> None:
        await declare_durable(self.bus, streams.environment_durable(self.environment))
        await self.bus.respond(subjects.lease(self.environment), self._lease)
        await self.bus.respond(subjects.claim(self.environment), self._claim)
        for durable, take in (("coordinator", self._report), ("contract-verifier", self._evidence)):
            consumer = Consumer(self.bus, streams.REPORTS, durable)
            self._consumers.append(consumer)
            self._tasks.append(asyncio.create_task(self._read(consumer, take)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for consumer in self._consumers:
            await consumer.stop()

    # -- what the environment asks -------------------------------------------------------------------------------------

    async def _lease(self, _subject: str, body: bytes) -> bytes:
        asked = msgspec.json.decode(body, type=request.LeaseRequest)
        if self.deaf:
            await asyncio.Event().wait()
        self.lease_requests.append(asked)
        message: Hello | Renew = (
            Hello(incarnation=asked.incarnation, term=asked.term, n=asked.n, features=asked.features)
            if asked.kind is request.LeaseKind.HELLO
            else Renew(asked.incarnation, asked.term, asked.n)
        )
        decision = decide_lease(self.row, message, 0)
        self.row = decision.state
        assert decision.reply is not None
        self.may_start = decision.reply.may_start
        return self._grant(decision.reply)

    def _grant(self, reply: LeaseReply) -> bytes:
        return msgspec.json.encode(
            request.LeaseGrant(
                term=reply.term,
                n=reply.n,
                ttl_ms=self.ttl_ms,
                may_start=reply.may_start,
                want_inventory=reply.want_inventory,
                refused=reply.refused,
                at=datetime.now(UTC),
            )
        )

    async def _claim(self, _subject: str, body: bytes) -> bytes:
        asked = msgspec.json.decode(body, type=request.ClaimRequest)
        keys = [key_of(item) for item in asked.items]
        self.claims += keys
        self.on_claim(keys)
        passing = claim_refusal(self.row, asked.incarnation, asked.term)
        granted, refused = [], []
        for item in asked.items:
            reason = passing or self.refuse.get(key_of(item), "")
            if reason or not self.grants_claims:
                refused.append(
                    request.ClaimRefusal(operation=item.operation, epoch=item.epoch, reason=reason or "withdrawn")
                )
            else:
                granted.append(item)
                self.granted[key_of(item)] = asked.term
        if self.loses_grants:
            await asyncio.Event().wait()
        reply = request.ClaimReply(term=asked.term, granted=tuple(granted), refused=tuple(refused))
        return msgspec.json.encode(reply)

    async def _read(self, consumer: Consumer, take: Callable[[str, bytes], None]) -> None:
        while True:
            batch = await consumer.take()
            for message in batch:
                self.messages += 1
                take(subjects.token(message.subject, 4), message.body)
            await consumer.ack(batch)

    def _report(self, kind: str, body: bytes) -> None:
        if kind == "attempts":
            self.reports += msgspec.json.decode(body, type=report.AttemptReports).items
            return
        if kind == "survey":
            self.surveys.append(msgspec.json.decode(body, type=report.Survey))
            return
        inventory = msgspec.json.decode(body, type=report.Inventory)
        self.inventories.append(inventory)
        if inventory.part == inventory.parts and self.compares:
            self.compare(inventory)

    def compare(self, inventory: report.Inventory) -> None:
        """Let the environment start work, as the coordinator does once it has compared an inventory."""
        self.row = decide_lease(self.row, Reconciled(inventory.incarnation, inventory.term), 0).state

    def _evidence(self, _kind: str, body: bytes) -> None:
        self.evidence += msgspec.json.decode(body, type=report.EvidenceReports).items

    # -- what the centre says ------------------------------------------------------------------------------------------

    async def send(self, kind: str, *commands: Any) -> None:
        await self._publisher.publish([self._outbound(kind, command_) for command_ in commands])

    def _outbound(self, kind: str, value: Any) -> Outbound:
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        name = type(value).__name__ if not isinstance(value, bytes) else "Offers"
        return Outbound(subjects.command(self.environment, kind), event_type("command", name), body)

    def an_offer(self, command_: list[str], *, operation: str = "", counter: int = 1, **spec: Any) -> command.Offer:
        features = spec.pop("features", ())
        beside = {"environmentSettings": settings} if (settings := spec.pop("environment_settings", None)) else {}
        document = {
            "apiVersion": "landbridge/v1",
            "kind": "Operation",
            "metadata": {"name": "tried", "project": "retail-eu"},
            "spec": {"type": "job", "command": command_, **spec},
            **beside,
        }
        body = json.dumps(document).encode()
        return command.Offer(
            operation=operation or str(uuid.uuid4()),
            project="retail-eu",
            epoch=an_epoch(counter),
            attempt=counter,
            spec=body,
            spec_sha256=sha256(body).hexdigest(),
            features=features,
            claim_by=datetime.now(UTC) + timedelta(seconds=30),
        )

    async def offer(self, command_: list[str], **options: Any) -> command.Offer:
        offered = self.an_offer(command_, **options)
        await self.send("offer", command.Offers(offers=(offered,)))
        return offered

    async def stop(self, placed: Any, *, reason: str = "cancelled", grace_s: int = 5, force: bool = False) -> None:
        item = command.Stop(
            operation=placed.operation, epoch=placed.epoch, reason=reason, grace_seconds=grace_s, force=force
        )
        await self.send("stop", command.Stops(items=(item,)))

    async def settle(self, *placed: Any) -> None:
        items = tuple(PlacementRef(operation=each.operation, epoch=each.epoch) for each in placed)
        await self.send("settle", command.Settlements(items=items))

    async def withdraw(self, *placed: Any) -> None:
        items = tuple(PlacementRef(operation=each.operation, epoch=each.epoch) for each in placed)
        await self.send("withdraw", command.Withdrawals(items=items))

    async def ask(self, kind: str, placed: Any, **fields: Any) -> request.QueryReply:
        body = msgspec.json.encode(request.QueryRequest(operation=placed.operation, epoch=placed.epoch, **fields))
        return msgspec.json.decode(await query(self.bus, self.environment, kind, body), type=request.QueryReply)

    def lose(self) -> None:
        """As the coordinator does once nothing was heard for the time to live."""
        self.row = decide_lease(self.row, Silent(self.row.grants), 0).state

    def raise_term(self) -> None:
        self.row = decide_lease(self.row, RaiseTerm(), 0).state

    # -- what tests wait for -------------------------------------------------------------------------------------------

    def of(self, placed: Any, *states: report.AttemptState) -> list[report.AttemptReport]:
        return [
            each for each in self.reports if key_of(each) == key_of(placed) and (not states or each.state in states)
        ]

    async def until(self, placed: Any, *states: report.AttemptState, timeout_s: float = 20.0) -> report.AttemptReport:
        await wait_until(
            lambda: self.of(placed, *states),
            f"{placed.operation} is reported {' or '.join(states)}",
            timeout_s=timeout_s,
        )
        return self.of(placed, *states)[0]

    async def until_connected(self, timeout_s: float = 20.0) -> None:
        await wait_until(
            lambda: self.row.link is Link.CONNECTED and self.may_start, "it may start work", timeout_s=timeout_s
        )
