"""The two kinds of site that a link is cut from: one with its own NATS, one without."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from landbridge.bus import streams
from landbridge.bus.site_streams import Journal
from landbridge.client.site import SiteError, ask_site
from landbridge.schema.wire.report_v1 import AttemptReports
from landbridge_embedded.process import write_private
from support.own_nats import SiteNats
from support.proxy import Proxy

from . import world as worlds
from .world import World

SITE = "sim-a"
_SITE_BYTES = streams.GIB


class CutSite(Protocol):
    """A site and the wire to it."""

    home: Path
    wire: Proxy

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def restart(self) -> None:
        """Kill what keeps reports here, and start it again."""

    async def queued(self) -> int:
        """Return how many reports (one of an attempt each) wait here."""


async def status(home: Path) -> dict[str, Any]:
    """Ask a dispatcher, {} if it does not answer."""
    try:
        return await asyncio.to_thread(ask_site, home, {"do": "status"})
    except SiteError:
        return {}


class DirectSite:
    """A dispatcher that speaks with the centre's NATS: its own journal holds what is not reported yet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.home = world.home(SITE)

    async def start(self) -> None:
        self.wire = self._world.wires[SITE]

    async def stop(self) -> None: ...

    async def restart(self) -> None:
        await asyncio.to_thread(self._world.hold, f"dispatcher-{SITE}")
        await asyncio.to_thread(self._world.release, f"dispatcher-{SITE}")

    async def queued(self) -> int:
        return int((await status(self.home)).get("reportsWaiting", 0))


class LeafSite:
    """A leaf node behind a wire, and a dispatcher that knows nothing else."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._root = world.data.root.parent / "leaf-site"
        self.home = self._root / "home"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        port = int(urlsplit(self._world.state["natsLeafUrl"]).port or 0)
        self.wire = Proxy(lambda: port)
        await self.wire.open()
        async with self._world.client() as client:
            await client.apply(json.dumps(worlds.contract(SITE)).encode())
            answer = await worlds.patiently(client, SITE, leaf=True)
        self.nats = SiteNats(self._root / "nats", SITE, str(answer["creds"]), self.wire.port)
        await self.nats.start()
        write_private(self.home / "bindings.yaml", json.dumps(worlds.bindings(SITE, self._root.parent)))
        await self._dispatch()

    async def _dispatch(self) -> None:
        log = (self._root / "dispatcher.log").open("ab")
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "landbridge_dispatch.dispatcher"),
            stdout=log,
            stderr=log,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("LANDBRIDGE_")},
                "PYTHONDONTWRITEBYTECODE": "",
                "LANDBRIDGE_ENVIRONMENT": SITE,
                "LANDBRIDGE_DATA_DIR": str(self.home),
                "LANDBRIDGE_NATS_URL": self.nats.url,
                "LANDBRIDGE_NATS_DOMAIN": self.nats.domain,
                "LANDBRIDGE_NATS_NKEY": str(self.nats.seed),
                "LANDBRIDGE_SITE_BYTES": str(_SITE_BYTES),
            },
        )
        log.close()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await asyncio.wait_for(self._process.wait(), 40)
        await self.nats.stop()
        await self.wire.close()

    async def restart(self) -> None:
        await self.nats.kill()
        await self.nats.start()

    async def queued(self) -> int:
        bus = await self.nats.bus()
        found, position = 0, 0
        try:
            journal = Journal(bus, streams.SITE_REPORTS)
            while page := await journal.page(position):
                position = page[-1].stream_sequence
                for message in (each for each in page if each.subject.endswith(".attempts")):
                    found += len(msgspec.json.decode(message.body, type=AttemptReports).items)
        finally:
            await bus.drain()
        return found
