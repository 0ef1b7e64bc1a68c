"""Letting in: environments that join, people and applications that get a token. Secrets are shown once.

Kept are the SHA-256 of tokens and credentials, and public keys, which is what revoking needs.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from landbridge.bus import accounts
from landbridge.bus.accounts import Keys
from landbridge.bus.envelope import Outbound
from landbridge.runtime.auth import ALL_PROJECTS, Role, digest, new_token
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_contract_verifier import accounts_table, messages


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One access entry as it is kept."""

    name: str
    version: int
    role: str
    projects: tuple[str, ...]
    token_sha256: str
    issued_by: str
    at: datetime
    deleted: bool = False


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of POST /v1/access. `replace`: an entry of that name gets a new token, the old one ends."""

    name: str
    role: str = "submitter"
    project: str = ""
    projects: tuple[str, ...] = ()
    replace: bool = False

    def wanted_projects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*((self.project,) if self.project else ()), *self.projects)))


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered, once: the token, and credentials of the broker where one project was asked for."""

    entry: Entry
    token: str
    user: accounts.IssuedUser | None


def check_asked(asked: Asked, known_projects: Sequence[str]) -> None:
    """Raise ProblemError 422 for an entry that cannot be granted."""
    projects = asked.wanted_projects()
    role = Role.parse(asked.role)
    if role is None:
        expected = ", ".join(item.name.lower() for item in Role)
        raise ProblemError(422, "Unknown role", f"expected one of {expected}; found {asked.role!r}")
    if not projects and role is not Role.ADMIN:
        raise ProblemError(422, "No project", f"name the project of {asked.name}, or * for all")
    unknown = [name for name in projects if name != ALL_PROJECTS and name not in known_projects]
    if unknown:
        detail = f"no project {', '.join(map(repr, unknown))}; apply it first, or check the spelling"
        raise ProblemError(422, "Unknown project", detail)


async def grant(tx: Tx, asked: Asked, keys: Keys | None, by: str, now: datetime) -> tuple[Granted, list[Outbound]]:
    """Make an entry and its secrets. Raises ProblemError 409 if the name is taken and not to be replaced."""
    before = await find(tx, asked.name)
    if before is not None and not before.deleted and not asked.replace:
        detail = f"{asked.name} has access already; give another name, revoke it, or send replace"
        raise ProblemError(409, "Name is taken", detail)
    token = new_token()
    entry = Entry(
        name=asked.name,
        version=before.version + 1 if before is not None else 1,
        role=asked.role.lower(),
        projects=asked.wanted_projects() or (ALL_PROJECTS,),
        token_sha256=digest(token),
        issued_by=by,
        at=now,
    )
    await _save(tx, entry)
    if before is not None:
        await _revoke_user(tx, before, now)
    user = await _application_user(tx, entry, keys, by, now)
    return Granted(entry=entry, token=token, user=user), [_event(entry, now)]


async def revoke(tx: Tx, name: str, now: datetime) -> list[Outbound]:
    """End an entry: its token, and its user of the broker. Raises ProblemError 404 for an unknown one."""
    before = await find(tx, name)
    if before is None or before.deleted:
        raise ProblemError(404, "Not found", f"nobody named {name!r} has access")
    entry = msgspec.structs.replace(before, version=before.version + 1, deleted=True, at=now)
    await _save(tx, entry)
    await _revoke_user(tx, before, now)
    return [messages.access(name, entry.version, {}, now, deleted=True)]


def project_of(entry: Entry) -> str:
    """Return the one project whose broker account the entry's user is in; "" if it has no such user."""
    return entry.projects[0] if len(entry.projects) == 1 and entry.projects[0] != ALL_PROJECTS else ""


async def _application_user(
    tx: Tx, entry: Entry, keys: Keys | None, by: str, now: datetime
) -> accounts.IssuedUser | None:
    project = project_of(entry)
    if not project:
        return None
    await accounts_table.want(tx, "project", project, now)
    account = await accounts_table.locked(tx, "project", project)
    if account is None or keys is None:
        return None
    submits = Role.parse(entry.role) is not Role.VIEWER
    user = accounts.application_user(keys, project, entry.name, account.generation, submits=submits)
    await accounts_table.issued(tx, account, user, by, now)
    return user


async def _revoke_user(tx: Tx, entry: Entry, now: datetime) -> None:
    project = project_of(entry)
    account = await accounts_table.locked(tx, "project", project) if project else None
    if account is not None and await accounts_table.revoke_users(tx, account, now, name=entry.name):
        await accounts_table.set_state(tx, account, "wanted")  # has the revocation pushed


async def find(tx: Tx, name: str) -> Entry | None:
    row = await tx.fetchrow(
        "select name, version, role, projects, token_sha256, issued_by, at, deleted from access"
        " where name = $1 for update",
        name,
    )
    return Entry(**{**dict(row), "projects": tuple(row["projects"])}) if row is not None else None


async def listed(tx: Tx) -> list[Entry]:
    """Return the entries that count, by name."""
    rows = await tx.fetch(
        "select name, version, role, projects, token_sha256, issued_by, at, deleted from access"
        " where not deleted order by name"
    )
    return [Entry(**{**dict(row), "projects": tuple(row["projects"])}) for row in rows]


async def _save(tx: Tx, entry: Entry) -> None:
    await tx.execute(
        """
        insert into access (name, version, role, projects, token_sha256, issued_by, at, deleted)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict (name) do update set version = $2, role = $3, projects = $4, token_sha256 = $5, issued_by = $6,
            at = $7, deleted = $8
        """,
        entry.name,
        entry.version,
        entry.role,
        list(entry.projects),
        entry.token_sha256,
        entry.issued_by,
        entry.at,
        entry.deleted,
    )


def _event(entry: Entry, now: datetime) -> Outbound:
    document: dict[str, object] = {
        "name": entry.name,
        "role": entry.role,
        "projects": list(entry.projects),
        "tokenSha256": entry.token_sha256,
    }
    return messages.access(entry.name, entry.version, document, now)
