"""A link is cut while thousands of operations run: some end meanwhile, the others are cancelled at the centre.

Orders wait on one side, reports on the other. When the link is back, both are reconciled, and the independent audit
says whether anything is missing, or had its effect twice.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.declare import api
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.bus.scan import scan
from landbridge.domain.ids import cloud_event_key, operation_id
from landbridge.store import Database, StoreError
from support.proxy import Wire
from support.wait import wait_until

from . import audit as auditing
from . import truth
from .audit import Findings
from .cut_site import SITE, CutSite, DirectSite, LeafSite, status
from .load import Acknowledged
from .world import PROJECT, QUEUE, World

TTL_S = 6.0
_SOURCE = "/tests/cut"
_RUNS_S = 180.0
_DONE_S = 180.0
_TOGETHER = 5


@dataclass(frozen=True)
class CutOptions:
    """`count` operations end during the cut and as many are cancelled. `ends_s`: how long the former run.

    `restart`: who is killed and started again during the cut, "" for nobody, `centre` or `site`.
    """

    folder: Path
    cut_s: float
    count: int
    ends_s: float
    leaf: bool
    restart: str = ""
    say: Callable[[str], None] = print


class CutRun:
    """`await run()` returns the report."""

    def __init__(self, options: CutOptions) -> None:
        self.options = options
        self.world = World(options.folder / "data", ttl_s=TTL_S, sites=() if options.leaf else (SITE,))
        self.site: CutSite = LeafSite(self.world) if options.leaf else DirectSite(self.world)
        self.told = Acknowledged()
        self.report: dict[str, Any] = {"leaf": options.leaf, "cut_s": options.cut_s, "restart": options.restart}

    async def run(self) -> dict[str, Any]:
        await self.world.open()
        try:
            await self.site.start()
            journals = truth.JournalKeeper({SITE: self.site.home}, self.options.folder)
            await wait_until(self._connected, "the site has its lease", timeout_s=60, every_s=0.1)
            journals.start()
            try:
                await self._phases()
            finally:
                await journals.stop()
            findings = await self._audit(journals)
        finally:
            await self.site.stop()
            await self.world.close()
        return {**self.report, **findings.to_json(), "good": findings.good}

    async def _connected(self) -> bool:
        return bool((await status(self.site.home)).get("lease", {}).get("mayStart"))

    async def _phases(self) -> None:
        options, say = self.options, self.options.say
        database = await self.world.database("lineage")
        try:
            long = await self._submit("long", 3600.0)
            await self._until(database, {"running": len(long)}, _RUNS_S)
            ending = await self._submit("ending", options.ends_s)
            await self._until(database, {"running": len(long) + len(ending)}, _RUNS_S, at_least=True)
            before = await self._last(streams.COMMANDS)
            say(f"{len(long) + len(ending)} operations run; the link is cut for {options.cut_s:g} s")
            await self._cut(long, before)
            began = time.monotonic()
            self.site.wire.heal()
            await wait_until(self._connected, "the site has its lease again", timeout_s=_DONE_S, every_s=0.05)
            self.report["lease_after_s"] = round(time.monotonic() - began, 2)
            await self._until(database, {"completed": len(ending), "cancelled": len(long)}, _DONE_S)
            self.report["reconciled_after_s"] = round(time.monotonic() - began, 2)
            say(json.dumps(self.report))
        finally:
            await database.close()

    async def _cut(self, long: list[str], before: int) -> None:
        options = self.options
        self.site.wire.set(Wire.BLACK_HOLE)
        until = time.monotonic() + options.cut_s
        await asyncio.sleep(min(1.0, options.cut_s / 10))
        await self._cancel(long)
        if options.restart:
            await asyncio.sleep(options.cut_s / 6)
            await self._restart()
        await asyncio.sleep(max(0.0, until - 2.0 - time.monotonic()))
        self.report["reports_queued"] = await self.site.queued()
        self.report["commands_queued"], self.report["command_messages"] = await self._commands(before)
        await asyncio.sleep(max(0.0, until - time.monotonic()))

    async def _restart(self) -> None:
        if self.options.restart == "site":
            await self.site.restart()
            return
        await asyncio.to_thread(self.world.hold, "nats")
        await asyncio.sleep(1.0)
        await asyncio.to_thread(self.world.release, "nats")

    # -- what clients do ----------------------------------------------------------------------------------------------

    async def _submit(self, name: str, seconds: float) -> list[str]:
        bus = await self.world.application_bus()
        keys = [f"{name}-{number}" for number in range(self.options.count)]
        kind = event_type("submission", "Operation")
        documents = [_document(key, seconds) for key in keys]
        messages = [
            Outbound(subjects.submit(PROJECT), kind, document, id=key, source=_SOURCE)
            for key, document in zip(keys, documents, strict=True)
        ]
        try:
            await publish_batch(bus, streams.SUBMISSIONS, messages)
        finally:
            await bus.drain()
        for key in keys:
            self.told.operations[key] = operation_id(PROJECT, cloud_event_key(_SOURCE, key))
        return [self.told.operations[key] for key in keys]

    async def _cancel(self, operations: list[str]) -> None:
        bus = await self.world.application_bus()
        kind = event_type("intent", "Cancel")
        bodies = [
            json.dumps({"operation": each, "by": _SOURCE, "reason": "the link is cut"}).encode() for each in operations
        ]
        messages = [
            Outbound(subjects.intent("cancel", PROJECT), kind, body, about=each)
            for each, body in zip(operations, bodies, strict=True)
        ]
        pause_s = self.options.cut_s / 2 / len(messages)
        try:
            # A few at a time over half of the cut, so that they become many orders and not one long list.
            for start in range(0, len(messages), _TOGETHER):
                await publish_batch(bus, streams.INTENTS, messages[start : start + _TOGETHER])
                await asyncio.sleep(pause_s * _TOGETHER)
        finally:
            await bus.drain()

    # -- what is there ------------------------------------------------------------------------------------------------

    async def _until(
        self, database: Database, wanted: dict[str, int], timeout_s: float, *, at_least: bool = False
    ) -> None:
        """Wait until so many operations are in these phases, as lineage tells it."""

        async def reached() -> bool:
            try:
                rows = await database.fetch(
                    "select phase, count(*) as n from operation where project = $1 group by phase", PROJECT
                )
            except StoreError:
                return False
            found = {str(row["phase"]): int(row["n"]) for row in rows}
            self.report["phases"] = found
            if at_least:
                return sum(found.get(phase, 0) for phase in (*wanted, "completed")) >= sum(wanted.values())
            return all(found.get(phase, 0) == number for phase, number in wanted.items())

        await wait_until(reached, f"{wanted} of {self.options.count} each", timeout_s=timeout_s, every_s=0.1)

    async def _last(self, stream: str) -> int:
        bus = await self.world.bus("streams")
        try:
            return int((await api(bus, f"STREAM.INFO.{stream}"))["state"]["last_seq"])
        finally:
            await bus.drain()

    async def _commands(self, before: int) -> tuple[int, int]:
        """Return how many orders, in how many messages, were given since."""
        orders = messages = 0
        bus = await self.world.bus("streams")
        try:
            async for message in scan(bus, streams.COMMANDS, [subjects.every("command", SITE)], first=before + 1):
                body = msgspec.json.decode(message.body)
                orders += len(body.get("items") or body.get("offers") or [body])
                messages += 1
        finally:
            await bus.drain()
        return orders, messages

    async def _audit(self, journals: truth.JournalKeeper) -> Findings:
        committed = await auditing.read_stream(self.world)
        ran = truth.collect({}, {SITE: journals.file(SITE)})
        return auditing.audit(self.told, ran, committed, [])


def _document(name: str, seconds: float) -> bytes:
    spec = {
        "type": "job",
        "queue": QUEUE,
        "command": ["simulate", f"duration={round(seconds * 1000)}ms"],
        "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}},
        "constraints": {"environments": {"allow": [SITE]}},
        "lifecycle": {
            "expectedDuration": "1s",
            "timeout": "3h",
            "stopGrace": "1s",
            "disconnection": {"policy": "continue"},
        },
    }
    metadata = {"name": name, "project": PROJECT}
    document = {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}
    return json.dumps(document, separators=(",", ":")).encode()
