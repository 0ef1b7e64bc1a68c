"""A slot is created once, starts at most one workload, and keeps its answer until it is removed."""

from contract.executors.harness import Behaviour, Harness, Watcher, a_lease, a_work, run, stop
from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge_dispatch.executors.protocol import Burial, SlotView
from support.wait import wait_until


async def test_a_slot_is_created_once_and_the_second_finds_it(harness: Harness) -> None:
    work = a_work(harness.command(Behaviour(seconds=30)))

    first, second = await harness.executor.occupy([work, work])

    assert first is None
    assert isinstance(second, SlotView)
    assert (second.phase, second.spec_sha256, second.term) == (SlotPhase.CREATED, work.spec_sha256, work.term)


async def test_starting_twice_runs_once(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=0.3, log="hello")))
    await run(harness.executor, work)
    await harness.executor.start([work.key])
    await harness.executor.start([work.key])

    await watcher.end(work.key)

    assert watcher.phases(work.key) == [SlotPhase.RUNNING, SlotPhase.FINISHED]
    log = await harness.executor.logs(work.key)
    assert log is not None
    assert log.data.count(b"hello") == 1


async def test_an_occupied_slot_that_runs_is_found_running(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=30)))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)

    [found] = await harness.executor.occupy([work])

    assert isinstance(found, SlotView)
    assert found.phase is SlotPhase.RUNNING


async def test_two_epochs_of_one_operation_have_two_slots(harness: Harness) -> None:
    first = a_work(harness.command(Behaviour()))
    second = a_work(harness.command(Behaviour()), operation=first.operation, counter=2)

    assert await harness.executor.occupy([first, second]) == [None, None]
    assert {view.key for view in await harness.executor.inventory()} == {first.key, second.key}


async def test_nothing_starts_in_a_buried_slot(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(log="must not run")))
    report = FinalReport(ReportState.RELINQUISHED, "", "not-here")
    await harness.executor.bury([Burial(work.key, report, work.term, work.project)])

    [found] = await harness.executor.occupy([work])
    await harness.executor.start([work.key])

    assert isinstance(found, SlotView)
    assert (found.phase, found.final, found.ended) == (SlotPhase.TOMBSTONE, report, False)
    await _nothing_ever_ran(harness, watcher, work.key)


async def test_burying_an_occupied_slot_keeps_it_from_starting(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(log="must not run")))
    await harness.executor.occupy([work])
    report = FinalReport(ReportState.RELINQUISHED, "", "not-granted")
    await harness.executor.bury([Burial(work.key, report, work.term)])
    await harness.executor.start([work.key])

    await _nothing_ever_ran(harness, watcher, work.key)
    view = await harness.executor.look(work.key)
    assert view is not None
    assert (view.phase, view.final) == (SlotPhase.TOMBSTONE, report)


async def _nothing_ever_ran(harness: Harness, watcher: Watcher, key: object) -> None:
    """Other work that is started afterwards and ends shows that there was time enough."""
    other = a_work(harness.command(Behaviour()))
    await run(harness.executor, other)
    await watcher.end(other.key)
    assert not [view for view in watcher.views if view.key == key and view.phase is SlotPhase.RUNNING]
    log = await harness.executor.logs(key)  # type: ignore[arg-type]
    assert log is None or log.data == b""


async def test_an_expired_lease_at_the_true_start_means_not_started(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(log="must not run")))
    await harness.executor.occupy([work])
    harness.executor.hold_lease(a_lease(seconds=-1))
    await harness.executor.start([work.key])

    view = await watcher.end(work.key, timeout_s=30)

    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "no-lease", True)
    assert watcher.phases(work.key) == [SlotPhase.TOMBSTONE]


async def test_a_grant_of_an_older_term_starts_only_after_a_newer_grant(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=30)))
    harness.executor.hold_lease(a_lease(term=work.term + 1))
    await run(harness.executor, work)
    other = a_work(harness.command(Behaviour()), term=work.term + 1)
    await run(harness.executor, other)
    await watcher.end(other.key)
    assert watcher.phases(work.key) == []

    await harness.executor.regrant(work.key, work.term + 1)

    view = await watcher.until(work.key, SlotPhase.RUNNING)
    assert view.term == work.term + 1


async def test_a_lease_older_than_the_grant_never_lets_it_start(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()), term=9)
    await run(harness.executor, work)

    view = await watcher.end(work.key)

    assert (view.phase, view.denied) == (SlotPhase.TOMBSTONE, True)


async def test_stopping_what_has_not_started_keeps_it_from_starting(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()))
    await harness.executor.occupy([work])
    await stop(harness.executor, work)
    await harness.executor.start([work.key])

    view = await watcher.end(work.key)

    assert (view.phase, view.reason, view.denied) == (SlotPhase.TOMBSTONE, "cancelled", True)


async def test_a_settled_slot_stays_until_it_is_removed_and_then_is_gone(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()))
    await run(harness.executor, work)
    await watcher.end(work.key)
    await harness.executor.settle([(work.key, 4)])
    [kept] = await harness.executor.inventory()
    assert (kept.phase, kept.settled_term) == (SlotPhase.FINISHED, 4)

    await harness.executor.remove([work.key])

    assert await harness.executor.inventory() == []


async def test_a_recorded_answer_is_read_back(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()))
    await run(harness.executor, work)
    await watcher.end(work.key)
    answer = FinalReport(ReportState.FINISHED, "failed", "vanished")
    await harness.executor.record([(work.key, answer)])

    view = await harness.executor.look(work.key)

    assert view is not None
    assert view.final == answer


async def test_capacity_counts_what_has_not_ended(harness: Harness, watcher: Watcher) -> None:
    long, short = a_work(harness.command(Behaviour(seconds=30))), a_work(harness.command(Behaviour()))
    await run(harness.executor, long, short)
    await watcher.end(short.key)

    await wait_until(lambda: harness.executor.capacity().used == 1, "one slot is in use")
