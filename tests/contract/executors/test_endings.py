"""Every way to end is told apart, with all that is known about it."""

import signal

import pytest

from contract.executors.harness import Behaviour, Harness, Watcher, a_lease, a_work, boot_ms, run, stop
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptReport
from landbridge_dispatch.executors.protocol import SlotView
from support.wait import wait_until


def ended(view: SlotView) -> AttemptReport:
    assert view.phase is SlotPhase.FINISHED
    assert view.ended
    assert view.report is not None
    return view.report


async def test_exit_code_zero_is_completed_with_times_and_context(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()))
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason, report.exit_code) == (AttemptOutcome.COMPLETED, "", 0)
    assert report.started_at is not None
    assert report.finished_at is not None
    assert report.started_at <= report.finished_at
    assert report.resolved is not None
    assert report.resolved.executor == harness.name


async def test_another_exit_code_is_failed_with_that_code(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(exit_code=3)))
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason, report.exit_code) == (AttemptOutcome.FAILED, "exit-code", 3)


async def test_a_signal_is_failed_with_that_signal(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(signal=signal.SIGSEGV)))
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason, report.signal) == (AttemptOutcome.FAILED, "signal", signal.SIGSEGV)
    assert "SIGSEGV" in report.message


async def test_too_much_memory_is_told_apart_from_any_other_kill(harness: Harness, watcher: Watcher) -> None:
    hungry = a_work(harness.command(Behaviour(out_of_memory=True)), resources={"requests": {"memory": "64Mi"}})
    killed = a_work(harness.command(Behaviour(signal=signal.SIGKILL)), resources={"requests": {"memory": "64Mi"}})
    await run(harness.executor, hungry, killed)

    assert ended(await watcher.end(hungry.key)).reason == "out-of-memory"
    assert ended(await watcher.end(killed.key)).reason == "signal"


async def test_a_timeout_is_failed_as_such(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=60)), lifecycle={"timeout": "200ms", "stopGrace": "5s"})
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason) == (AttemptOutcome.FAILED, "timeout")


async def test_cancelling_ends_it_as_cancelled(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=60)))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)
    await stop(harness.executor, work)

    view = await watcher.end(work.key)

    report = ended(view)
    assert (report.outcome, report.reason, view.stopping) == (AttemptOutcome.CANCELLED, "cancelled", "cancelled")
    assert report.signal == signal.SIGTERM


async def test_stopping_for_another_reason_keeps_that_reason(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=60)))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)
    await stop(harness.executor, work, reason="superseded")

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason) == (AttemptOutcome.CANCELLED, "superseded")


@pytest.mark.parametrize(("grace_ms", "force"), [(500, False), (60_000, True)])
async def test_who_ignores_the_polite_signal_is_killed(
    harness: Harness, watcher: Watcher, grace_ms: int, force: bool
) -> None:
    work = a_work(harness.command(Behaviour(seconds=60, ignore_term=True)))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)
    await until_ready(harness, work.key)
    asked = boot_ms()
    await stop(harness.executor, work, grace_ms=grace_ms, force=force)

    report = ended(await watcher.end(work.key))

    assert report.signal == signal.SIGKILL
    assert (boot_ms() - asked >= grace_ms) is not force


async def until_ready(harness: Harness, key: object) -> None:
    """A real program needs a moment until it has set its signal handlers."""
    if harness.real:
        await wait_until((harness.directory(key) / "ready").exists, "the workload is ready")  # type: ignore[arg-type]


async def test_a_lost_lease_stops_self_stopping_work_in_time_and_no_other(harness: Harness, watcher: Watcher) -> None:
    command = harness.command(Behaviour(seconds=60))
    policies = {
        "stops": {"policy": "stop-after-grace", "grace": "2s"},
        "goes-on": {"policy": "continue"},
        "finishes": {"policy": "must-finish"},
    }
    works = {name: a_work(command, lifecycle={"disconnection": policy}) for name, policy in policies.items()}
    harness.executor.hold_lease(a_lease(seconds=2 * harness.slowness))
    await run(harness.executor, *works.values())
    for work in works.values():
        await watcher.until(work.key, SlotPhase.RUNNING)

    report = ended(await watcher.end(works["stops"].key))

    assert report.reason == "self-stopped"
    assert watcher.phases(works["goes-on"].key) == [SlotPhase.RUNNING]
    assert watcher.phases(works["finishes"].key) == [SlotPhase.RUNNING]


async def test_a_lease_that_is_renewed_stops_nothing(harness: Harness, watcher: Watcher) -> None:
    work = a_work(
        harness.command(Behaviour(seconds=1.5)),
        lifecycle={"disconnection": {"policy": "stop-after-grace", "grace": "1s"}},
    )
    harness.executor.hold_lease(a_lease(seconds=harness.slowness))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)
    harness.executor.hold_lease(a_lease(seconds=60))

    assert ended(await watcher.end(work.key)).outcome is AttemptOutcome.COMPLETED


async def test_outputs_are_registered_with_size_and_digest(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()), outputs={"model": {"connection": "models"}})
    await run(harness.executor, work)

    output = ended(await watcher.end(work.key)).outputs["model"]

    assert output.exists
    assert output.connection == "models"
    assert output.path == f"{work.operation}/e1-1/model"
    assert output.bytes > 0
    assert len(output.sha256) == 64


async def test_met_acceptance_is_completed(harness: Harness, watcher: Watcher) -> None:
    work = a_work(
        harness.command(Behaviour(metrics={"auc": 0.9})),
        outputs={"model": {"connection": "models"}},
        acceptance=[{"metric": "auc", "atLeast": 0.8}, {"output": "model", "exists": True}, {"exitCodes": [0]}],
    )
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert report.outcome is AttemptOutcome.COMPLETED
    assert report.metrics == {"auc": 0.9}
    assert [result.met for result in report.acceptance] == [True, True, True]


async def test_unmet_acceptance_is_failed_and_says_what_was_found(harness: Harness, watcher: Watcher) -> None:
    work = a_work(
        harness.command(Behaviour(metrics={"auc": 0.5}, writes_outputs=False)),
        outputs={"model": {"connection": "models"}},
        acceptance=[{"metric": "auc", "atLeast": 0.8}, {"output": "model", "exists": True}],
    )
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.reason, report.exit_code) == (AttemptOutcome.FAILED, "acceptance-not-met", 0)
    assert [(result.met, result.found) for result in report.acceptance] == [(False, "0.5"), (False, "not there")]


async def test_an_accepted_exit_code_is_completed(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(exit_code=4)), acceptance=[{"exitCodes": [0, 4]}])
    await run(harness.executor, work)

    report = ended(await watcher.end(work.key))

    assert (report.outcome, report.exit_code) == (AttemptOutcome.COMPLETED, 4)


async def test_a_sealed_checkpoint_is_seen_while_the_work_runs(harness: Harness, watcher: Watcher) -> None:
    work = a_work(
        harness.command(Behaviour(seconds=60, seals_after=0.2)),
        checkpoints={"connection": "checkpoints"},
    )
    await run(harness.executor, work)

    def sealed() -> SlotView | None:
        return next((view for view in watcher.of(work.key) if view.report and view.report.checkpoint), None)

    view = await wait_until(sealed, "a checkpoint was seen")
    assert view.phase is SlotPhase.RUNNING
    assert view.report.checkpoint.manifest == f"{work.operation}/e1-1/sealed-1/manifest.json"
