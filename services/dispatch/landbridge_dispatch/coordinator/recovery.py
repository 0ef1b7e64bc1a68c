"""After the database was restored from a backup: a new generation, and nothing is placed before all is seen.

A generation begins alone: other replicas of the coordinator wait, and decide in it from then on. Its epochs and terms
are above all that the lost window can have issued; each operation waits until every environment has shown, in a term of
the new generation, what it holds.
"""

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership.centre_model import GenerationRaised
from landbridge.domain.ownership.leases_centre import BeginGeneration
from landbridge.runtime import logs
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments
from landbridge_dispatch.coordinator.core import Core

log = logs.get(__name__)

_PIECE = 1000
_OPEN = """
select id::text from operation where phase not in ('completed', 'failed', 'cancelled') and id > $1::uuid
order by id limit $2
"""
_FIRST = "00000000-0000-0000-0000-000000000000"


async def begin_generation(core: Core, generation: int) -> bool:
    """Begin a generation unless it, or a later one, has begun. Returns whether it did."""
    begun = await core.run(lambda tx: begin(core, tx, generation), "recovery", alone=True)
    if begun:
        log.warning("generation_begun", generation=generation)
    return begun


async def begin(core: Core, tx: Tx, generation: int) -> tuple[bool, list[Outbound]]:
    """Begin a generation inside a transaction that stands alone; the process takes it over at the commit."""
    if generation <= await tx.fetchval("select generation from centre for update"):
        return False, []
    events: list[Outbound] = []
    leases = await environments.lock(tx, (await environments.all_leases(tx)).keys())
    for lease in leases.values():
        await core.tell_lease(tx, lease, BeginGeneration(generation), events)
    await tx.execute("delete from inventory_part")
    events += await _raise_all(core, tx, generation)
    await tx.execute("update centre set generation = $1, recovering = true", generation)
    await tx.execute("update environment set ahead_term = 0, ahead_at = null")

    def take_over() -> None:
        core.generation, core.recovering = generation, True

    tx.after_commit(take_over)
    return True, events


async def _raise_all(core: Core, tx: Tx, generation: int) -> list[Outbound]:
    events: list[Outbound] = []
    after = _FIRST
    while True:
        found = [row[0] for row in await tx.fetch(_OPEN, after, _PIECE)]
        if found:
            session = core.session(tx)
            await session.load(found)
            for operation in found:
                session.decide(operation, GenerationRaised(generation))
            events += await session.finish()
        if len(found) < _PIECE:
            return events
        after = found[-1]
