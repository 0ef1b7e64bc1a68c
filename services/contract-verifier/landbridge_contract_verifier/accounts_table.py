"""Accounts and users of the broker as they are kept: what should be there, and who was issued credentials."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from landbridge.bus.accounts import IssuedUser, Kind
from landbridge.store import Tx

State = Literal["wanted", "ready", "ending", "ended"]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One account. `since`: when this generation began. `leaf`: its site has its own NATS, and only that connects."""

    kind: Kind
    name: str
    generation: int
    state: State
    since: datetime
    leaf: bool = False


async def want(tx: Tx, kind: Kind, name: str, now: datetime) -> None:
    """Have an account made. A name that was used before gets a new generation: another key, other users."""
    await tx.execute(
        """
        insert into account (kind, name, generation, state, since) values ($1, $2, 1, 'wanted', $3)
        on conflict (kind, name) do update
        set generation = account.generation + 1, state = 'wanted', since = $3, leaf = false
        where account.state in ('ending', 'ended')
        """,
        kind,
        name,
        now,
    )


async def end(tx: Tx, kind: Kind, name: str, now: datetime) -> None:
    """Have an account ended, and all its users with it."""
    await tx.execute("update account set state = 'ending' where kind = $1 and name = $2", kind, name)
    await tx.execute(
        "update account_user set revoked_at = $3 where kind = $1 and account = $2 and revoked_at is null",
        kind,
        name,
        now,
    )


async def locked(tx: Tx, kind: Kind, name: str) -> Account | None:
    """Return an account, locked: whoever pushes its JWT must hold it, so that no older one is pushed later."""
    row = await tx.fetchrow(
        "select kind, name, generation, state, since, leaf from account where kind = $1 and name = $2 for update",
        kind,
        name,
    )
    return Account(**dict(row)) if row is not None else None


async def every(tx: Tx, *states: State) -> list[tuple[Kind, str]]:
    """Return accounts in any of `states`, all if none is named."""
    wanted = list(states) or ["wanted", "ready", "ending", "ended"]
    rows = await tx.fetch("select kind, name from account where state = any($1) order by kind, name", wanted)
    return [(row["kind"], row["name"]) for row in rows]


async def set_state(tx: Tx, account: Account, state: State) -> None:
    await tx.execute("update account set state = $3 where kind = $1 and name = $2", account.kind, account.name, state)


async def set_leaf(tx: Tx, account: Account, *, leaf: bool) -> None:
    """Change the way in which an environment connects; it has to be pushed."""
    await tx.execute(
        "update account set leaf = $3, state = 'wanted' where kind = $1 and name = $2", account.kind, account.name, leaf
    )


async def has_users(tx: Tx, account: Account) -> bool:
    """Tell whether somebody holds credentials of the account's present generation."""
    row = await tx.fetchrow(
        """
        select exists (
            select from account_user where kind = $1 and account = $2 and generation = $3 and revoked_at is null
        ) as found
        """,
        account.kind,
        account.name,
        account.generation,
    )
    return bool(row and row["found"])


async def revoked(tx: Tx, account: Account) -> Mapping[str, int]:
    """Return the revoked users of an account's present generation with their times, as Unix seconds, rounded up."""
    rows = await tx.fetch(
        """
        select public, ceil(extract(epoch from revoked_at))::bigint as at from account_user
        where kind = $1 and account = $2 and generation = $3 and revoked_at is not null
        """,
        account.kind,
        account.name,
        account.generation,
    )
    return {row["public"]: int(row["at"]) for row in rows}


async def issued(tx: Tx, account: Account, user: IssuedUser, by: str, now: datetime) -> None:
    """Keep that a user was made: its public key and the digest of its credentials."""
    await tx.execute(
        """
        insert into account_user (public, kind, account, generation, name, sha256, issued_by, issued_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        user.public,
        account.kind,
        account.name,
        account.generation,
        user.name,
        user.sha256,
        by,
        now,
    )


async def revoke_users(tx: Tx, account: Account, now: datetime, *, name: str = "", keep: str = "") -> int:
    """Revoke the users of an account, or those named `name`, but not the one with the public key `keep`."""
    return await tx.execute(
        """
        update account_user set revoked_at = $4
        where kind = $1 and account = $2 and generation = $3 and revoked_at is null
          and ($5 = '' or name = $5) and public <> $6
        """,
        account.kind,
        account.name,
        account.generation,
        now,
        name,
        keep,
    )
