"""NATS, Postgres and Redis of one machine: started here unless a setting names others."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from landbridge_embedded.keeper import Keeper, Note, RestartPolicy
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.nats import NatsServer
from landbridge_embedded.postgres import PostgresServer
from landbridge_embedded.process import Child
from landbridge_embedded.redis import RedisServer
from landbridge_embedded.spawn import Running


class Server(Protocol):
    """One of the starters."""

    child: Child

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class External:
    """Servers of the user, which are neither started nor stopped here; empty means "start one"."""

    nats_url: str = ""
    postgres_dsn: str = ""
    redis_url: str = ""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "External":
        return cls(
            environ.get("LANDBRIDGE_NATS_URL", ""),
            environ.get("LANDBRIDGE_POSTGRES_DSN", ""),
            environ.get("LANDBRIDGE_REDIS_URL", ""),
        )


class Servers:
    """Starts what is needed, keeps it alive on the same ports, stops it."""

    def __init__(
        self,
        data: DataDirectory,
        ports: Mapping[str, int],
        external: External,
        note: Note,
        *,
        calm_s: float = 30.0,
        broker_returned: Callable[[], None] = lambda: None,
    ) -> None:
        self._calm_s, self._broker_returned = calm_s, broker_returned
        self._data, self._ports, self._external, self._note = data, ports, external, note
        self._nats: NatsServer | None = None
        self._postgres: PostgresServer | None = None
        self._redis: RedisServer | None = None
        self.keepers: dict[str, Keeper] = {}
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def nats_url(self) -> str:
        return self._nats.url if self._nats else self._external.nats_url

    @property
    def leaf_url(self) -> str:
        """Where sites with their own NATS connect; empty: not to a NATS that was started here."""
        return f"nats-leaf://127.0.0.1:{self._nats.leaf_port}" if self._nats else ""

    @property
    def postgres_dsn(self) -> str:
        """Over the unix socket where Postgres is ours: a fifth less time for each statement than over loopback TCP."""
        return self._postgres.socket_dsn if self._postgres else self._external.postgres_dsn

    @property
    def redis_url(self) -> str:
        return self._redis.url if self._redis else self._external.redis_url

    async def start(self, accounts: Callable[[], Awaitable[str]]) -> None:
        """Start all at once; the first failure is raised after the rest has been told to stop.

        `accounts` makes the keys and returns the broker's configuration of them, while the others start.
        """
        async with asyncio.TaskGroup() as tasks:
            if not self._external.postgres_dsn:
                self._postgres = PostgresServer(self._data.root, port=self._ports["postgres"])
                tasks.create_task(self._keep("postgres", self._postgres))
            if not self._external.redis_url:
                self._redis = RedisServer(self._data.root, port=self._ports["redis"])
                tasks.create_task(self._keep("redis", self._redis))
            if not self._external.nats_url:
                text = await accounts()
                self._nats = NatsServer(
                    self._data.root,
                    accounts=text,
                    port=self._ports["nats"],
                    monitor_port=self._ports["nats-monitor"],
                    leaf_port=self._ports["nats-leaf"],
                )
                tasks.create_task(self._keep("nats", self._nats))

    async def _keep(self, name: str, server: Server) -> None:
        await server.start()

        async def start_again() -> Running:
            await server.start()
            if server is self._nats:
                self._broker_returned()
            return self._watch(server.child)

        policy = RestartPolicy(calm_s=self._calm_s)
        keeper = self.keepers[name] = Keeper(name, start_again, server.child.log, self._note, policy)
        keeper.adopt(self._watch(server.child))

    def _watch(self, child: Child) -> Running:
        running = Running(child.pid, asyncio.get_running_loop().create_future())

        async def wait() -> None:
            running.ended.set_result(await child.wait())

        task = asyncio.create_task(wait(), name=f"watch-{child.name}")
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)
        return running

    async def stop(self) -> None:
        """Stop all that were started here, each by its own signal."""
        for keeper in self.keepers.values():
            keeper.leave()
        started = [server for server in (self._nats, self._postgres, self._redis) if server is not None]
        await asyncio.gather(*(server.stop() for server in started))
