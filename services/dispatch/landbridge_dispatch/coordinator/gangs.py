"""Which operations are members of which gang: a row each, written with the operation's own."""

from collections.abc import Iterable

from landbridge.domain.ownership.centre_model import OperationState
from landbridge.store import Tx

Key = tuple[str, str]
"""Project and gang."""

_MEMBERS = """
select m.operation::text from gang_member m
join unnest($1::text[], $2::text[]) as wanted (project, gang) on m.project = wanted.project and m.gang = wanted.gang
order by 1
"""


def key_of(state: OperationState) -> Key:
    return state.project, state.gang.name


def by_key(states: Iterable[OperationState]) -> dict[Key, list[str]]:
    """Return the members by gang."""
    found: dict[Key, list[str]] = {}
    for state in states:
        if state.gang:
            found.setdefault(key_of(state), []).append(state.operation)
    return found


async def members(tx: Tx, keys: Iterable[Key]) -> list[str]:
    """Return the operations that are members of these gangs."""
    ordered = sorted(keys)
    found = await tx.fetch(_MEMBERS, [project for project, _ in ordered], [gang for _, gang in ordered])
    return [row[0] for row in found]


async def join(tx: Tx, states: Iterable[OperationState]) -> None:
    """Write that operations are members of their gangs."""
    ordered = sorted(states, key=lambda state: state.operation)
    await tx.execute(
        """insert into gang_member (operation, project, gang) select * from unnest($1::uuid[], $2::text[], $3::text[])
           on conflict do nothing""",
        [state.operation for state in ordered],
        [state.project for state in ordered],
        [state.gang.name for state in ordered],
    )
