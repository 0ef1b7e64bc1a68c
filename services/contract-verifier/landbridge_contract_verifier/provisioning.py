"""Making the broker fit the accounts table: accounts pushed, durables of environments created, ended accounts buried.

Level-triggered: it compares what should be with what it can do, at the start, after every reconnection of the broker
(which may have lost its accounts) and whenever something changed. JWTs are made and pushed under the row's lock.
"""

import asyncio
import contextlib

from landbridge.bus import accounts
from landbridge.bus.accounts import Issuer, Keys, Kind
from landbridge.bus.connection import Bus
from landbridge.bus.declare import declare_durable, delete_durable
from landbridge.bus.errors import BusError
from landbridge.bus.streams import environment_durable, leaf_durable
from landbridge.runtime import logs
from landbridge.store import Database, StoreError, Tx
from landbridge_contract_verifier import accounts_table
from landbridge_contract_verifier.accounts_table import Account

log = logs.get(__name__)

_RETRY_S = 2.0


class Provisioner:
    """Without keys the broker has no accounts (tests, a trusted laptop); only durables are made then."""

    def __init__(self, database: Database, bus: Bus, keys: Keys | None, issuer: Issuer | None) -> None:
        self._database = database
        self._bus = bus
        self.keys = keys
        self._issuer = issuer
        self._wake = asyncio.Event()
        self._everything = True

    def wake(self) -> None:
        """Look again soon: something may be wanted."""
        self._wake.set()

    def look_at_everything(self) -> None:
        """Push all accounts again: the broker may have lost them."""
        self._everything = True
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled. What fails is tried again; the reason is logged."""
        while True:
            self._wake.clear()
            everything, self._everything = self._everything, False
            try:
                async with self._database.transaction() as tx:
                    todo = await accounts_table.every(tx, *(() if everything else ("wanted", "ending")))
                for kind, name in todo:
                    await self.ensure(kind, name)
            except (BusError, StoreError) as error:
                log.warning("accounts are not as they should be yet", error=str(error))
                self._everything = self._everything or everything
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _RETRY_S)
                continue
            await self._wake.wait()

    async def ensure(self, kind: Kind, name: str) -> Account | None:
        """Bring one account to its wanted state; return it. Raises BusError or StoreError."""
        async with self._database.transaction() as tx:
            account = await accounts_table.locked(tx, kind, name)
            if account is None:
                return None
            if account.state in ("ending", "ended"):
                await self._end(tx, account)
            else:
                await self._make(tx, account)
        return account

    async def _make(self, tx: Tx, account: Account) -> None:
        if self.keys is not None and self._issuer is not None:
            await self._issuer.push(await self._token(tx, account, self.keys))
        if account.kind == "environment":
            # A name used again must not meet the commands of its earlier life.
            since = account.since if account.generation > 1 else None
            ways = (environment_durable(account.name, since), leaf_durable(account.name, since))
            await declare_durable(self._bus, ways[account.leaf])
            await delete_durable(self._bus, ways[not account.leaf])
        if account.state != "ready":
            await accounts_table.set_state(tx, account, "ready")
            log.info("account is ready", kind=account.kind, name=account.name, generation=account.generation)

    async def _end(self, tx: Tx, account: Account) -> None:
        if self.keys is not None and self._issuer is not None:
            await self._issuer.push(accounts.tombstone(self.keys, account.kind, account.name, account.generation))
        if account.state == "ending":
            if account.kind == "environment":
                for durable in (environment_durable(account.name), leaf_durable(account.name)):
                    await delete_durable(self._bus, durable)
            await accounts_table.set_state(tx, account, "ended")
            log.info("account has ended", kind=account.kind, name=account.name, generation=account.generation)

    async def _token(self, tx: Tx, account: Account, keys: Keys) -> str:
        revoked = await accounts_table.revoked(tx, account)
        if account.kind == "environment":
            return accounts.environment_account(
                keys, account.name, account.generation, revoked=revoked, leaf=account.leaf
            )
        return accounts.project_account(keys, account.name, account.generation, revoked=revoked)
