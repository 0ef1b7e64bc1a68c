"""Surveys of an environment against the record: what two in a row show is told, and its end as well."""

from datetime import UTC, datetime

import msgspec

from landbridge.bus import subjects
from landbridge.schema.wire import event_v1, report_v1
from landbridge.store import Database
from landbridge_dispatch.coordinator.service import CoordinatorService
from support.coordinator_stage import Ref, ScriptedEnvironment, Stage, an_epoch
from support.wait import wait_until

from .conftest import Join


async def survey(a: ScriptedEnvironment, *refs: Ref, over: bool = False, complete: bool = True) -> None:
    slots = tuple(report_v1.SurveyedSlot(operation=operation, epoch=epoch, over=over) for operation, epoch in refs)
    body = report_v1.Survey(
        incarnation=a.incarnation, term=a.term, at=datetime.now(UTC), complete=complete, slots=slots
    )
    await a.say("survey", body)


async def drifts(stage: Stage, environment: str = "a") -> list[list[tuple[str, str, str]]]:
    """Every value that was told, in order."""
    found = [m for m in await stage.links.messages() if m.subject == subjects.environment("drift", environment)]
    told = [msgspec.json.decode(message.body, type=event_v1.EnvironmentDrift) for message in found]
    return [[(item.kind, item.operation, item.epoch) for item in event.items] for event in told]


async def test_what_two_surveys_in_a_row_show_is_drift_until_it_is_gone(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await join("a")
    runs, lost = await stage.accept(), await stage.accept()
    await stage.decide([runs, lost], "a")
    here, gone = await a.run(runs), await a.run(lost)
    stranger: Ref = ("6f1c2d3e-0000-5000-8000-00000000000a", an_epoch(4))

    await survey(a, here, gone)
    await survey(a, here, stranger)  # once may be a moment's difference

    async def seen(number: int) -> bool:
        return bool(await dispatch_db.fetchval("select count(*) from drift") == number)

    await wait_until(lambda: seen(2), "it is seen")
    assert await drifts(stage) == []
    await survey(a, here, stranger)
    told = [("missing-work", lost, "1.1"), ("unknown-work", stranger[0], "1.4")]
    await wait_until(lambda: drifts(stage), "it is told")
    assert await drifts(stage) == [told]
    await survey(a, here, stranger)  # the same again is no news
    await survey(a, here, gone)
    await wait_until(lambda: seen(0), "it is gone")

    async def resolved() -> bool:
        return (await drifts(stage))[-1] == []

    await wait_until(resolved, "its end is told")
    assert await drifts(stage) == [told, []]
    await a.tell(a.report(here, "finished", "completed"))
    await stage.until(runs, "pending", "running", "completed")


async def test_work_that_was_removed_at_its_site_is_told_at_once_and_follows_its_retry_rule(
    coordinator: CoordinatorService, stage: Stage, join: Join
) -> None:
    a = await join("a")
    operation = await stage.accept(retries={"limit": 1, "backoff": "10ms"})
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    await a.tell(a.report(ref, "finished", "failed", reason="removed-externally", message="somebody deleted its pod"))
    await wait_until(lambda: drifts(stage), "it is told")
    assert await drifts(stage) == [[("removed-externally", operation, "1.1")]]
    assert [event.phase.value for event in await stage.told(operation)][:3] == ["pending", "running", "retrying"]


async def test_surveys_of_an_earlier_life_say_nothing(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    a = await join("a")
    operation = await stage.accept()
    await stage.decide([operation], "a")
    ref = await a.run(operation)
    term, a.term = a.term, a.term - 1
    await survey(a)
    a.term = term
    await a.tell(a.report(ref, "finished", "completed"))  # in order behind it
    await stage.until(operation, "pending", "running", "completed")
    assert await dispatch_db.fetchval("select count(*) from drift") == 0


async def test_what_is_in_quarantine_is_told_there_and_not_as_drift(
    coordinator: CoordinatorService, stage: Stage, join: Join, dispatch_db: Database
) -> None:
    stranger: Ref = ("6f1c2d3e-0000-5000-8000-00000000000a", an_epoch(4))
    a = ScriptedEnvironment(stage, "a")
    await a.join(a.slot(stranger, "running"))
    assert await dispatch_db.fetchval("select count(*) from quarantine") == 1
    other: Ref = ("6f1c2d3e-0000-5000-8000-00000000000b", an_epoch(1))
    for _ in range(2):
        await survey(a, stranger, other)
    await wait_until(lambda: drifts(stage), "what is not in quarantine is told")
    assert await drifts(stage) == [[("unknown-work", other[0], "1.1")]]
