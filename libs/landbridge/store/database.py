"""Access to Postgres: one pool per process and schema, transactions with typed failures.

The only module, with `migrate`, that imports asyncpg. SQL belongs to the callers; connection handling, time limits and
the translation of driver errors belong here.
"""

import asyncio
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import asyncpg

from landbridge.store.errors import ContentionError, StoreError, TransientStoreError, UnavailableError
from landbridge.store.tx import Tx

_HEALTH_SECONDS = 0.9
_COMMAND_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
# Statements that wait for the commit are sent as one, whose text depends on which came together.
_PREPARED_STATEMENTS = 256

_CONTENTION = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    TimeoutError,  # of a statement: somebody else's lock, or a statement too heavy to be repeated for ever
)
_UNAVAILABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresIOError,
    asyncpg.InternalClientError,
    asyncpg.InvalidAuthorizationSpecificationError,
    # A standby, a schema that is being rebuilt or a grant that is missing: no message is at fault.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidCachedStatementError,
    ConnectionError,
)


def translate(error: BaseException) -> StoreError | None:
    """Return the typed store error for a driver error, or None if it is not a driver error."""
    if isinstance(error, StoreError):
        return None
    if isinstance(error, _CONTENTION):
        return ContentionError(str(error))
    if isinstance(error, _UNAVAILABLE):
        return UnavailableError(f"Postgres is not available: {error or type(error).__name__}")
    if isinstance(error, asyncpg.InterfaceError):
        # The driver reports "connection is closed" and "pool is closing" this way.
        closed = "clos" in str(error) or "released" in str(error)
        return UnavailableError(f"Postgres connection was lost: {error}") if closed else StoreError(str(error))
    if isinstance(error, asyncpg.PostgresError):
        return StoreError(f"{type(error).__name__}: {error}")
    return None


class _Transaction:
    """Async context manager: commits on a clean exit, rolls back on an error, translates driver errors."""

    __slots__ = ("_acquired", "_options", "_pool", "_single", "_tx")

    def __init__(
        self, pool: "asyncpg.Pool[Any]", *, isolation: str | None = None, readonly: bool = False, single: bool = False
    ) -> None:
        """`single`: one statement and no more, which is a transaction by itself."""
        self._pool = pool
        self._options = (isolation, readonly)
        self._single = single
        self._acquired: Any = None
        self._tx: Tx | None = None

    async def __aenter__(self) -> Tx:
        try:
            self._acquired = await self._pool.acquire(timeout=_CONNECT_SECONDS)
        except OSError as error:  # includes TimeoutError
            await self._release()
            raise UnavailableError(f"Postgres gave no connection: {error or 'no answer in time'}") from error
        except BaseException as error:
            await self._release()
            typed = translate(error)
            if typed is None:
                raise
            raise typed from error
        isolation, readonly = self._options
        transaction = None if self._single else self._acquired.transaction(isolation=isolation, readonly=readonly)
        self._tx = Tx(self._acquired, transaction)
        return self._tx

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        committed = False
        assert self._tx is not None
        try:
            if kind is None:
                await self._tx.commit()
                committed = True
            else:
                await self._tx.rollback()
        except BaseException as failure:
            # A failed rollback means a broken connection; the error that led here is the one to report.
            typed = translate(failure)
            if error is None:
                if typed is None:
                    raise
                raise typed from failure
            if typed is None and not isinstance(failure, Exception):
                raise
        finally:
            await self._release()
            self._tx.finish(committed=committed)
        if error is not None:
            typed = translate(error)
            if typed is not None:
                raise typed from error

    async def _release(self) -> None:
        acquired, self._acquired = self._acquired, None
        if acquired is not None:
            try:
                await self._pool.release(acquired, timeout=_CONNECT_SECONDS)
            except Exception as error:
                if translate(error) is None:
                    raise


async def _keep_session(_: Any) -> None:
    """Leave a returned connection as it is: nothing of ours changes the session, and a reset costs a round trip."""


class Database:
    """A pool of connections that see one schema first; connections lost to Postgres are replaced when next used."""

    def __init__(self, pool: "asyncpg.Pool[Any]", schema: str) -> None:
        self._pool = pool
        self.schema = schema

    @classmethod
    async def open(cls, dsn: str, schema: str, *, size: int = 4, application: str = "landbridge") -> Self:
        """Open a pool of up to `size` connections with `schema` as search path.

        No connection is made here, so opening succeeds while Postgres is down; use `healthy()` to wait for it.
        Raises StoreError for a DSN that cannot be read.
        """
        try:
            _ = urlsplit(dsn).port  # the driver reads the DSN only when it connects
            pool = await asyncpg.create_pool(
                dsn,
                min_size=0,
                max_size=size,
                command_timeout=_COMMAND_SECONDS,
                timeout=_CONNECT_SECONDS,
                max_inactive_connection_lifetime=0,
                max_cached_statement_lifetime=0,
                statement_cache_size=_PREPARED_STATEMENTS,
                reset=_keep_session,
                server_settings={"search_path": schema, "application_name": application, "jit": "off"},
            )
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise StoreError(f"The Postgres DSN cannot be read: {error}") from error
        return cls(pool, schema)

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> _Transaction:
        """Begin a transaction (READ COMMITTED unless `isolation` says otherwise).

        Raises ContentionError or UnavailableError, from the statement or from the commit, when trying again may help.
        """
        return _Transaction(self._pool, isolation=isolation, readonly=readonly)

    async def execute(self, sql: str, *args: object) -> int:
        """Run one statement in its own transaction."""
        async with _Transaction(self._pool, single=True) as tx:
            return await tx.execute(sql, *args)

    async def fetch(self, sql: str, *args: object) -> "list[asyncpg.Record]":
        """Read rows in their own transaction."""
        async with _Transaction(self._pool, single=True) as tx:
            return await tx.fetch(sql, *args)

    async def fetchrow(self, sql: str, *args: object) -> Any:
        """Read one row in its own transaction."""
        async with _Transaction(self._pool, single=True) as tx:
            return await tx.fetchrow(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        """Read one value in its own transaction."""
        async with _Transaction(self._pool, single=True) as tx:
            return await tx.fetchval(sql, *args)

    async def healthy(self) -> bool:
        """Tell within a second whether Postgres answers on a pooled connection."""
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                return bool(await self.fetchval("select 1"))
        except (TransientStoreError, TimeoutError):
            return False

    async def wait_until_healthy(self, *, first_pause_s: float = 0.05, longest_pause_s: float = 1.0) -> None:
        """Return when Postgres answers; pauses grow from `first_pause_s` to `longest_pause_s` between tries."""
        pause = first_pause_s
        while not await self.healthy():
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest_pause_s)

    async def close(self) -> None:
        """Close all connections, waiting a few seconds for statements in flight."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
