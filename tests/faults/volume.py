"""Volume under kills: many operations, and every service killed and started again twice on the way."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.domain.ids import cloud_event_key, operation_id
from landbridge.store import StoreError
from landbridge_lineage.replay import compare, compare_with_stream

from . import audit as auditing
from . import truth
from .load import Diary, patiently
from .run import caught_up, versions
from .world import APPLICATION, PROCESS_SITES, PROJECT, QUEUE, SERVICES, SIMULATED_SITES, World

_SUBMISSION = event_type("submission", "Operation")
_SOURCE = f"/applications/{PROJECT}/{APPLICATION}"
_BATCH = 250
_KILLS = 2
_QUIET_S = 180.0


@dataclass(frozen=True)
class Volume:
    """How many operations go where."""

    processes: int
    simulated: int
    folder: Path
    say: Callable[[str], None] = print
    ttl_s: float = 10.0


def _document(number: int, *, simulated: bool) -> bytes:
    spec: dict[str, Any] = {
        "type": "job",
        "queue": QUEUE,
        "command": ["true"],
        "resources": {"requests": {"cpu": f"{100 + number % 4 * 50}m", "memory": "64Mi"}},
        "constraints": {"environments": {"allow": list(SIMULATED_SITES if simulated else PROCESS_SITES)}},
        "lifecycle": {"expectedDuration": "1s", "timeout": "5m", "disconnection": {"policy": "continue"}},
    }
    metadata = {"name": f"volume-{number}", "project": PROJECT}
    document = {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}
    return json.dumps(document, separators=(",", ":")).encode()


class VolumeRun:
    """`await VolumeRun(volume).run()` returns the report."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        volume.folder.mkdir(parents=True, exist_ok=True)
        self.world = World(volume.folder / "data", ttl_s=volume.ttl_s)
        self.diary = Diary(volume.folder / "clients.jsonl")
        homes = {site: self.world.home(site) for site in SIMULATED_SITES}
        self.journals = truth.JournalKeeper(homes, volume.folder)
        self.kills: dict[str, int] = {}

    async def run(self) -> dict[str, Any]:
        """Submit everything, kill meanwhile, wait for every end, audit."""
        volume = self.volume
        await self.world.open()
        self.journals.start()
        try:
            began = time.monotonic()
            killing = asyncio.create_task(self._kill_everything(), name="kills")
            await self._submit([_document(number, simulated=False) for number in range(volume.processes)], "p")
            await self._submit([_document(number, simulated=True) for number in range(volume.simulated)], "s")
            await killing
            await self._ended(volume.processes + volume.simulated)
            seconds = time.monotonic() - began
            return await self._audit(seconds)
        finally:
            await self.journals.stop()
            self.diary.close()
            await self.world.close()

    async def _submit(self, documents: Sequence[bytes], prefix: str) -> None:
        bus = await self.world.application_bus()
        subject = subjects.submit(PROJECT)
        try:
            for start in range(0, len(documents), _BATCH):
                part = enumerate(documents[start : start + _BATCH], start)
                messages = [
                    Outbound(subject, _SUBMISSION, body, id=f"{prefix}-{number}", source=_SOURCE)
                    for number, body in part
                ]
                await patiently(lambda said=messages: publish_batch(bus, streams.SUBMISSIONS, said))  # type: ignore[misc]
                for message in messages:
                    operation = operation_id(PROJECT, cloud_event_key(_SOURCE, message.id))
                    self.diary.note("received", message.id, operation)
        finally:
            await bus.drain()

    async def _kill_everything(self) -> None:
        """Kill each service twice, one after the other, each time once the one before is ready again."""
        for _ in range(_KILLS):
            for name in (*SERVICES, *(f"dispatcher-{site}" for site in self.world.sites)):
                while not (pid := self.world.pid(name)):
                    await asyncio.sleep(0.05)
                os.kill(pid, signal.SIGKILL)
                self.kills[name] = self.kills.get(name, 0) + 1
                while self.world.pid(name) in (0, pid):
                    await asyncio.sleep(0.05)
                await self.world.until_ready()
        self.volume.say(f"killed: {self.kills}")

    async def _ended(self, expected: int) -> None:
        """Wait until all have ended. RuntimeError when nothing moves any more."""
        database = await self.world.database("lineage")
        query = "select count(*) from operation where phase in ('completed', 'failed', 'cancelled')"
        ended, changed = 0, time.monotonic()
        try:
            while ended < expected:
                with contextlib.suppress(StoreError):
                    found = int((await database.fetch(query))[0][0])
                    if found > ended:
                        ended, changed = found, time.monotonic()
                if time.monotonic() - changed > _QUIET_S:
                    self.volume.say(f"{expected - ended} of {expected} operations do not end")
                    return
                await asyncio.sleep(0.25)
        finally:
            await database.close()

    async def _audit(self, seconds: float) -> dict[str, Any]:
        await asyncio.sleep(1.0)
        world = self.world
        committed = await auditing.read_stream(world)
        files = {site: world.home(site) / truth.AUDIT for site in PROCESS_SITES}
        ran = truth.collect(files, {site: self.journals.file(site) for site in SIMULATED_SITES})
        findings = auditing.audit(self.diary.known, ran, committed, [])
        database, bus = await world.database("lineage"), await world.bus("streams")
        try:
            await caught_up(database, bus)
            replays = [await compare(database), await compare_with_stream(database, bus)]
        finally:
            await bus.drain()
            await database.close()
        findings.projection += [each.text() for each in replays if not each.equal]
        return {
            "operations": self.volume.processes + self.volume.simulated,
            **findings.to_json(),
            "kills": self.kills,
            "seconds": round(seconds, 1),
            "replay": replays[-1].text(),
            "versions": versions(),
            "good": findings.good,
        }
