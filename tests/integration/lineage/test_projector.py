"""The projector on a real Postgres: replicas, repetition, races, replay."""

import random
from collections.abc import Sequence

import pytest

from landbridge.bus.envelope import Inbound
from landbridge.runtime.failures import PermanentFailure
from landbridge.schema.wire.event_v1 import Phase
from landbridge.store import ContentionError, Database
from landbridge_lineage import reads, replay
from landbridge_lineage.projector import Projector
from landbridge_lineage.writes import Cell
from support.lineage_messages import (
    a_decision,
    a_verdict,
    a_whole_life,
    accepted,
    an_assessment,
    an_operation,
    assessed,
    changed,
    decided,
    placed,
    waiting,
)

OPERATIONS = [an_operation(f"op-{n}") for n in range(30)]


async def handle(db: Database, projector: Projector, messages: Sequence[Inbound]) -> None:
    async with db.transaction() as tx:
        await projector(tx, messages)


async def handle_until_kept(db: Database, projector: Projector, messages: Sequence[Inbound]) -> None:
    """What the loop does when two replicas race: it tries again."""
    for _ in range(5):
        try:
            await handle(db, projector, messages)
        except ContentionError:
            continue
        return
    raise AssertionError("contention did not end")


def everything() -> list[Inbound]:
    assessment = an_assessment("a-1", a_verdict("quay"), a_verdict("reef", "never"))
    decision = a_decision("d-1", "a-1", "quay")
    messages = [assessed(assessment, *OPERATIONS), decided(decision, "quay", *OPERATIONS)]
    for number, operation in enumerate(OPERATIONS):
        messages += a_whole_life(operation)[: 1 + number % 7]
        if number % 3 == 0:
            messages.append(waiting(operation))
    return messages


async def test_replay_equals_live_state_byte_for_byte(lineage_db: Database) -> None:
    projector, messages = Projector(), everything()
    random.Random(3).shuffle(messages)
    for start in range(0, len(messages), 17):
        await handle(lineage_db, projector, messages[start : start + 17])
    found = await replay.compare(lineage_db)
    assert found.equal, found.text()
    assert found.operations == 30


async def test_two_replicas_that_share_the_work_agree_with_a_replay(lineage_db: Database) -> None:
    replicas, messages = (Projector(), Projector()), everything()
    random.Random(5).shuffle(messages)
    for turn, start in enumerate(range(0, len(messages), 7)):
        await handle_until_kept(lineage_db, replicas[turn % 2], messages[start : start + 7])
    found = await replay.compare(lineage_db)
    assert found.equal, found.text()


async def test_handling_twice_equals_handling_once(lineage_db: Database) -> None:
    messages = everything()
    await handle(lineage_db, Projector(), messages)
    once = await replay.compare(lineage_db)
    await handle(lineage_db, Projector(), messages)
    twice = await replay.compare(lineage_db)
    assert twice.equal
    assert twice.stored_digest == once.stored_digest


async def test_a_replica_with_an_outdated_view_is_told_and_reads_again(lineage_db: Database) -> None:
    operation = OPERATIONS[0]
    life = a_whole_life(operation)
    outdated, other = Projector(), Projector()
    await handle(lineage_db, outdated, life[:1])
    await handle(lineage_db, other, life[1:2])
    with pytest.raises(ContentionError):
        await handle(lineage_db, outdated, life[2:3])
    await handle(lineage_db, outdated, life[2:3])
    state = await reads.operation(lineage_db, operation)
    assert state is not None
    assert (state.seq, state.phase) == (3, Phase.RUNNING)


async def test_operations_with_a_missing_event_are_counted_until_it_comes(lineage_db: Database) -> None:
    projector = Projector()
    first, second, third, *_ = a_whole_life(OPERATIONS[0])
    await handle(lineage_db, projector, [first, third])
    assert projector.gaps == 1
    await handle(lineage_db, projector, [second])
    assert projector.gaps == 0


async def test_counts_follow_every_move(lineage_db: Database) -> None:
    projector = Projector()
    first, second = OPERATIONS[:2]
    await handle(lineage_db, projector, [accepted(first), accepted(second)])
    await handle(lineage_db, projector, [placed(first, 2, "pending"), placed(first, 3, "running")])
    assert await reads.tally(lineage_db) == {
        Cell("coast", "batch", "", "accepted"): 1,
        Cell("coast", "batch", "quay", "running"): 1,
    }


async def test_one_unreadable_message_is_named_and_nothing_is_kept(lineage_db: Database) -> None:
    bad = changed(OPERATIONS[0], 1, "running")
    with pytest.raises(PermanentFailure) as caught:
        await handle(lineage_db, Projector(), [accepted(OPERATIONS[1]), bad])
    assert caught.value.offenders == {bad.id}
    assert await reads.operation(lineage_db, OPERATIONS[1]) is None


async def test_a_rolled_back_batch_leaves_nothing_in_memory(lineage_db: Database) -> None:
    projector = Projector()

    async def interrupted() -> None:
        async with lineage_db.transaction() as tx:
            await projector(tx, [accepted(OPERATIONS[0])])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await interrupted()
    await handle(lineage_db, projector, [accepted(OPERATIONS[0])])
    assert (await replay.compare(lineage_db)).equal


async def test_a_verdict_is_stored_once_and_the_newest_of_its_class_is_known(lineage_db: Database) -> None:
    projector = Projector()
    first = an_assessment("a-1", a_verdict("quay"))
    newer = an_assessment("a-2", a_verdict("quay", "not-now"))
    early, late = assessed(first, OPERATIONS[0]), assessed(newer)
    await handle(lineage_db, projector, [late])
    await handle(lineage_db, projector, [early, assessed(first, OPERATIONS[1])])
    assert await lineage_db.fetchval("select count(*) from assessment") == 2
    latest = await reads.latest_of_class(lineage_db, "c-1")
    assert latest is not None
    assert latest.id == "a-1"  # the last message of the three was minted last


async def test_repair_writes_what_was_damaged_and_counts_anew(lineage_db: Database) -> None:
    await handle(lineage_db, Projector(), everything())
    before = await replay.compare(lineage_db)
    damaged = OPERATIONS[7]
    await lineage_db.execute("update operation set state = $2, phase = 'odd' where id = $1", damaged, b"{}")
    await lineage_db.execute("delete from operation where id = $1", OPERATIONS[8])
    await lineage_db.execute("update tally set operations = operations + 1")
    found = await replay.compare(lineage_db)
    assert not found.equal
    assert set(found.differing) == {damaged, OPERATIONS[8]}
    assert damaged in found.text()
    assert await replay.repair(lineage_db, found) == 2
    after = await replay.compare(lineage_db)
    assert after.equal
    assert after.stored_digest == before.stored_digest
