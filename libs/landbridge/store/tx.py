"""One transaction: statements, writes that wait for the next one or for the end, calls after the commit.

Every statement is a round trip, and so are beginning and committing: they are spared where they can be.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from landbridge.store.errors import UnavailableError
from landbridge.store.together import Together


class Tx:
    """One open transaction. Statements take positional parameters `$1`, `$2`, …; rows are read by name or position."""

    __slots__ = ("_after_commit", "_after_rollback", "_begun", "_closing", "_connection", "_later", "_transaction")

    def __init__(self, connection: Any, transaction: Any) -> None:
        """`transaction` is the driver's, not begun; None where the one statement to come is a transaction by itself."""
        self._connection = connection
        self._transaction = transaction
        self._begun = transaction is None
        self._later = Together()
        self._closing: list[tuple[str, str, Sequence[object]]] = []
        self._after_commit: list[Callable[[], None]] = []
        self._after_rollback: list[Callable[[], None]] = []

    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` made once the transaction is committed: the moment to change what is held in memory."""
        self._after_commit.append(call)

    def after_rollback(self, call: Callable[[], None]) -> None:
        """Have `call` made if the transaction was not committed, or if that is not known (the connection broke)."""
        self._after_rollback.append(call)

    def finish(self, *, committed: bool) -> None:
        """Make the calls; for the transaction itself, which calls it exactly once."""
        for call in self._after_commit if committed else self._after_rollback:
            call()

    async def later(self, writes: str, sql: str, *args: object) -> None:
        """Have a write run before whatever comes next: another statement, or the commit; its errors come then.

        Writes that wait are sent in one round trip and do not see each other's effects. So `writes` names what this
        one touches, such as its table: writes of the same name run one after the other. `sql` is one plain `insert`,
        `update` or `delete`, without a `with` of its own.
        """
        if self._later.holds(writes):
            await self.flush()
        self._later.add(writes, sql, args)

    def last(self, writes: str, sql: str, *args: object) -> None:
        """Have a write run as `later` does, but with the last statement of all: no reading of this transaction sees it.

        What it touches must be touched by no other write of the transaction.
        """
        self._closing.append((writes, sql, args))

    async def flush(self) -> None:
        """Run the writes that wait."""
        if self._later:
            await self._begin()
            sql, args = self._later.take()
            await self._connection.execute(sql, *args)

    async def _begin(self) -> None:
        """Begin before the first statement: what only writes at its end is one statement, which commits by itself."""
        if self._begun:
            return
        try:
            await self._transaction.start()
        except OSError as error:  # includes TimeoutError
            self._connection.terminate()
            raise UnavailableError(f"Postgres does not begin: {error or 'no answer in time'}") from error
        except asyncio.CancelledError:
            self._connection.terminate()  # it may have begun, and nobody would end it
            raise
        self._begun = True

    async def commit(self) -> None:
        """Write what waits and commit; for the transaction itself. A single statement commits by itself."""
        for writes, sql, args in self._closing:
            await self.later(writes, sql, *args)
        if self._begun:
            await self._write_and_commit()
        elif self._later:
            sql, args = self._later.take()
            await self._connection.execute(sql, *args)

    async def _write_and_commit(self) -> None:
        try:
            await self.flush()
        except BaseException:
            # The connection goes back to the pool, without what is left of this transaction.
            await self.rollback()
            raise
        if self._transaction is not None:
            await self._transaction.commit()

    async def rollback(self) -> None:
        """Undo what was begun; for the transaction itself."""
        if self._begun and self._transaction is not None and not self._connection.is_closed():
            await self._transaction.rollback()

    async def _ready(self) -> None:
        """Before a statement that answers: begin, and run the writes that wait."""
        await self._begin()
        await self.flush()

    async def execute(self, sql: str, *args: object) -> int:
        """Run one statement; return the number of rows it touched (0 where Postgres reports none)."""
        await self._ready()
        tag: str = await self._connection.execute(sql, *args)
        count = tag.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one statement for many parameter rows. Prefer one statement over `unnest` arrays on hot paths."""
        await self._ready()
        await self._connection.executemany(sql, rows)

    async def fetch(self, sql: str, *args: object) -> list[Any]:
        """Return all rows."""
        await self._ready()
        rows: list[Any] = await self._connection.fetch(sql, *args)
        return rows

    async def fetchrow(self, sql: str, *args: object) -> Any:
        """Return the first row, or None."""
        await self._ready()
        row: Any = await self._connection.fetchrow(sql, *args)
        return row

    async def fetchval(self, sql: str, *args: object) -> Any:
        """Return the first column of the first row, or None."""
        await self._ready()
        return await self._connection.fetchval(sql, *args)
