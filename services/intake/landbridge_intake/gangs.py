"""Gangs of operations: all members declare the same, and there are no more of them than declared.

The member that is accepted first declares the gang. Judging and accepting are one transaction that locks the gangs, so
that replicas together never accept more. A name is used once in a project: it stays taken when the gang has ended.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from landbridge.domain.errors import Problem
from landbridge.store import Tx

CONFLICT: Final = "gang-conflict"
FULL: Final = "gang-full"


class Gang(msgspec.Struct, frozen=True, rename="camel"):
    """What a member declares about its gang, and all members alike. `queue` and `priority` are those it waits by."""

    name: str = ""
    members: int = 0
    start_within: str = ""
    span_environments: bool = False
    after_start: str = ""
    queue: str = ""
    priority: str = ""


NO_GANG: Final = Gang()
Key = tuple[str, str]
"""Project and name."""
_FIELDS: Final = {
    "members": "spec.gang.members",
    "start_within": "spec.gang.startWithin",
    "span_environments": "spec.gang.spanEnvironments",
    "after_start": "spec.gang.afterStart",
    "queue": "spec.queue",
    "priority": "spec.priority",
}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Gang).decode


def gang_of(effective: Mapping[str, Any]) -> Gang:
    """Return what an effective operation declares; `NO_GANG` for a member of none."""
    spec = effective.get("spec") or {}
    found = spec.get("gang") or {}
    if not found.get("name"):
        return NO_GANG
    return Gang(
        name=found["name"],
        members=found.get("members") or 0,
        start_within=found.get("startWithin") or "",
        span_environments=bool(found.get("spanEnvironments")),
        after_start="" if found.get("afterStart") in (None, "", "together") else found["afterStart"],
        queue=spec.get("queue") or "",
        priority=spec.get("priority") or "",
    )


class Known(msgspec.Struct):
    """A gang as it is known: what was declared, by whom, and how many members it has."""

    declared: Gang
    declared_by: str
    members: int

    def problems(self, gang: Gang) -> tuple[Problem, ...]:
        """Return what stands against another member."""
        found = [self._conflict(gang, field, path) for field, path in _FIELDS.items()]
        conflicts = tuple(problem for problem in found if problem is not None)
        if conflicts:
            return conflicts
        if self.members < self.declared.members:
            return ()
        message = f"gang {gang.name} has its {self.declared.members} members already"
        return (Problem("spec.gang.name", FULL, message, "name another gang: a name is used once in a project"),)

    def _conflict(self, gang: Gang, field: str, path: str) -> Problem | None:
        first, found = getattr(self.declared, field), getattr(gang, field)
        if first == found:
            return None
        declared, wanted = _told(first), _told(found)
        message = f"gang {gang.name} was declared with {declared} by operation {self.declared_by}, found {wanted}"
        return Problem(path, CONFLICT, message, f"write {declared} as the other members do, or name another gang")


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value else "nothing"


async def lock(tx: Tx, keys: Iterable[Key]) -> dict[Key, Known]:
    """Return the gangs that are known; nobody else accepts members of these until the commit."""
    ordered = sorted(keys)
    for project, name in ordered:  # every replica locks in one order
        key = f"landbridge gang {project}/{name}"
        await tx.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", key)
    rows = await tx.fetch(
        """select g.project, g.name, g.declared, g.declared_by::text, count(m.operation) from gang g
           join unnest($1::text[], $2::text[]) as wanted (project, name)
               on g.project = wanted.project and g.name = wanted.name
           left join gang_member m on m.project = g.project and m.gang = g.name
           group by g.project, g.name""",
        [project for project, _ in ordered],
        [name for _, name in ordered],
    )
    return {(row[0], row[1]): Known(_decode(row[2]), row[3], row[4]) for row in rows}


async def keep(tx: Tx, joined: Iterable[tuple[str, str, Gang]]) -> None:
    """Write who became a member: operation, project and what it declares. The first one declares the gang."""
    for operation, project, gang in joined:
        await tx.execute(
            "insert into gang (project, name, declared, declared_by) values ($1, $2, $3, $4) on conflict do nothing",
            project,
            gang.name,
            _encode(gang).decode(),
            operation,
        )
        await tx.execute(
            "insert into gang_member (operation, project, gang) values ($1, $2, $3) on conflict do nothing",
            operation,
            project,
            gang.name,
        )
