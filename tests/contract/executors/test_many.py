"""Many at the same moment: each attempt has its own end, and none waits for another."""

import asyncio
import random

from contract.executors.harness import Behaviour, Harness, Watcher, a_lease, a_work, boot_ms, run, stop
from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge.schema.wire.report_v1 import AttemptOutcome

ENDS = {AttemptOutcome.COMPLETED, AttemptOutcome.CANCELLED}


async def test_a_cancel_at_the_moment_of_the_end_leaves_one_end_each(harness: Harness, watcher: Watcher) -> None:
    count = round(40 / harness.slowness) if harness.real else 200
    chance = random.Random(7)
    works = [a_work(harness.command(Behaviour(seconds=0.5))) for _ in range(count)]
    await run(harness.executor, *works)

    async def cancel(index: int) -> None:
        await watcher.until(works[index].key, SlotPhase.RUNNING, timeout_s=60)
        await asyncio.sleep(0.45 + chance.random() * 0.15)
        await stop(harness.executor, works[index])

    await asyncio.gather(*map(cancel, range(count)))
    ends = [await watcher.end(work.key, timeout_s=60) for work in works]
    outcomes = {view.report.outcome for view in ends if view.report is not None}

    assert all(view.report is not None for view in ends)
    assert outcomes <= ENDS, outcomes
    for work, view in zip(works, ends, strict=True):
        reports = [seen.report for seen in watcher.of(work.key) if seen.phase in FINAL]
        assert len({(report.outcome, report.finished_at) for report in reports if report is not None}) == 1
        again = await harness.executor.look(work.key)
        assert again is not None
        assert again.report == view.report


async def test_each_of_many_stops_itself_in_time_also_those_that_ignore_the_polite_signal(
    harness: Harness, watcher: Watcher
) -> None:
    """All are due in the same tick of the same clock; the polite and the stubborn alternate."""
    count = round(20 / harness.slowness) if harness.real else 50
    grace_ms = 1_000
    policy = {"disconnection": {"policy": "stop-after-grace", "grace": f"{grace_ms}ms"}}
    works = [
        a_work(harness.command(Behaviour(seconds=120, ignore_term=bool(number % 2))), lifecycle=policy)
        for number in range(count)
    ]
    lease = a_lease(seconds=10 * harness.slowness)
    harness.executor.hold_lease(lease)
    await run(harness.executor, *works)

    async def ended(index: int) -> int:
        view = await watcher.end(works[index].key, timeout_s=60 * harness.slowness)
        assert view.report is not None
        assert view.report.reason == "self-stopped"
        return boot_ms()

    times = await asyncio.gather(*map(ended, range(count)))
    within = works[0].policy.within_ms
    assert min(times) >= lease.valid_until, "none stops while the lease is valid"
    # Nothing is placed again before this bound, which the centre counts from the same lease.
    assert max(times) <= lease.valid_until + within + grace_ms + KILL_MARGIN_MS
