"""The catalogue stream compared with the tables: what a lost or restored stream lacks is told again."""

import asyncio
from hashlib import sha256

import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Outbound
from landbridge.bus.state import LastPerSubject
from landbridge.domain.documents import KINDS
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.schema.wire.event_v1 import CatalogueEntry
from landbridge.store import Tx
from landbridge_intake import messages, store
from landbridge_intake.commit import Committer

log = logs.get(__name__)

_ENTRY: msgspec.json.Decoder[CatalogueEntry] = msgspec.json.Decoder(CatalogueEntry)
_SNAPSHOT_S = 30.0


async def repair_catalogue(bus: Bus, committer: Committer, clock: Clock) -> int:
    """Publish current documents that the stream does not have in that version; return how many.

    Usually there are none. Replicas that change a document at the same moment may publish in another order than they
    committed; this puts it right as well. The events go through the outbox as all others do.
    """
    known = await _snapshot(bus)

    async with committer.reading() as tx:
        lacking = await _lacking(tx, known, clock)
    if not lacking:
        return 0

    async def work(_: Tx) -> tuple[None, list[Outbound]]:
        return None, lacking

    await committer.run(work)
    log.warning("the catalogue stream lacked documents; they are told again", documents=len(lacking))
    return len(lacking)


async def _lacking(tx: Tx, known: dict[tuple[str, str], int], clock: Clock) -> list[Outbound]:
    events: list[Outbound] = []
    for kind in KINDS.values():
        for row in await store.current_documents(tx, kind.slug, versioned=kind.versioned):
            name, version, body = row["name"], row["version"], row["document"]
            if known.get((kind.slug, name)) != version:
                digest = sha256(body).hexdigest()
                events.append(messages.catalogue_entry(kind.slug, name, version, body, digest, clock.wall()))
    return events


async def _snapshot(bus: Bus) -> dict[tuple[str, str], int]:
    """Return the version of every document that the stream shows as existing."""
    reader = LastPerSubject(bus, streams.CATALOGUE, subjects.catalogue(subjects.ANY, subjects.ANY))
    known: dict[tuple[str, str], int] = {}

    async def read() -> None:
        async for message in reader:
            try:
                entry = _ENTRY.decode(message.body)
            except msgspec.MsgspecError:
                continue  # it will be replaced
            if not entry.deleted:
                known[entry.kind, entry.name] = entry.version

    task = asyncio.create_task(read(), name="catalogue-snapshot")
    try:
        await asyncio.wait_for(reader.caught_up.wait(), _SNAPSHOT_S)
    finally:
        task.cancel()
    return known
