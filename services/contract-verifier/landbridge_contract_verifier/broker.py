"""Whether the broker keeps what it acknowledges: every server says how it stores, and one that syncs late is told of.

The promises about what is never lost rest on it, and nothing else in the centre would notice.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from prometheus_client import Gauge

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError
from landbridge.bus.requests import respond
from landbridge.bus.servers import GATHER_S, StoringServer, storing_servers
from landbridge.runtime import logs
from landbridge.schema.wire.request_v1 import AskReply

log = logs.get(__name__)

EVERY_S: Final = 60.0
RETRY_S: Final = 5.0
# As `doctor` and `/readyz` name it.
CHECK: Final = "broker-sync"
_encode: Final = msgspec.json.Encoder().encode
_late = Gauge("landbridge_broker_servers_syncing_late", "Servers of the broker that acknowledge before data is on disk")


def problem_of(servers: Sequence[StoringServer]) -> str:
    """Say what is wrong with how servers store, with the way to mend it; empty if nothing is."""
    late = [server.name for server in servers if not server.syncs_always]
    if not servers:
        return "no server of the broker says that it keeps streams"
    if not late:
        return ""
    return (
        f"expected sync_interval: always in the jetstream section of every server, found something else on "
        f"{', '.join(late)}: what is acknowledged there is not on disk yet, and a loss of power loses it; "
        "write it into the configuration and start the server anew"
    )


class BrokerWatch:
    """Asks again and again. `problem` is what was found last, `late` are the servers; empty before the first answer."""

    def __init__(self, bus: Bus, *, every_s: float = EVERY_S, gather_s: float = GATHER_S) -> None:
        self._bus = bus
        self._every_s, self._gather_s = every_s, gather_s
        self._looked = asyncio.Event()
        self.problem = ""
        self.late: tuple[str, ...] = ()
        self._known = False

    @asynccontextmanager
    async def answering(self, bus: Bus) -> AsyncIterator[None]:
        """Answer alerting, on a connection of the centre, until the block is left."""
        subject = subjects.ask("contract-verifier", "broker")
        subscription = await respond(bus, subject, self._answer, queue="contract-verifier")
        try:
            yield
        finally:
            await subscription.close()

    async def _answer(self, _: str, __: bytes) -> bytes:
        if not self._known:
            return _encode(AskReply(found=False, message="no server of the broker has said yet how it stores"))
        return _encode(AskReply(found=True, json=_encode(self.late)))

    def look_again(self) -> None:
        """Ask soon: the connection is new, and so may be the servers."""
        self._looked.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._looked.clear()
            pause_s = RETRY_S
            try:
                servers = await storing_servers(self._bus, gather_s=self._gather_s)
            except BusError as error:
                log.info("the broker could not be asked how it stores", error=str(error))
            else:
                self._note(servers)
                pause_s = self._every_s if servers else RETRY_S
            try:
                await asyncio.wait_for(self._looked.wait(), pause_s)
            except TimeoutError:
                continue

    def _note(self, servers: Sequence[StoringServer]) -> None:
        found = problem_of(servers)
        _late.set(sum(not server.syncs_always for server in servers))
        if found and found != self.problem:
            log.error("broker_syncs_late", problem=found)
        if self.problem and not found:
            log.info("broker_syncs_always", servers=[server.name for server in servers])
        self.problem, self._known = found, bool(servers)
        self.late = tuple(server.name for server in servers if not server.syncs_always)
