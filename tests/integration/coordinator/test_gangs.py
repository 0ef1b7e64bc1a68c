"""Gangs in several environments on a real coordinator: together or not at all, also when it is killed in between."""

import asyncio
import base64
import contextlib
import json
from typing import Any

import pytest

from landbridge.schema.wire import request_v1
from landbridge.store import Database
from support.children import Child
from support.coordinator_stage import Ref, ScriptedEnvironment, Stage
from support.wait import wait_until

from .conftest import Join, StartChild, StartCoordinator

pytestmark = pytest.mark.timeout(300)

SITES = ("a", "b", "c")


def a_gang(**more: Any) -> dict[str, Any]:
    return {"name": "train", "members": 3, "spanEnvironments": True, **more}


async def accept_all(stage: Stage, **more: Any) -> list[str]:
    return [await stage.accept(f"member-{site}", gang=a_gang(**more)) for site in SITES]


async def decide_all(stage: Stage, operations: list[str], round_: int = 1) -> None:
    for operation, site in zip(operations, SITES, strict=True):
        await stage.decide([operation], site, round_)


async def all_run(stage: Stage, sites: list[ScriptedEnvironment], operations: list[str]) -> list[Ref]:
    """Place every member at its site until it runs; return their placements."""
    await decide_all(stage, operations)
    refs = [await site.offered(o) for site, o in zip(sites, operations, strict=True)]
    for _ in range(2):
        for site, ref in zip(sites, refs, strict=True):
            await site.claim(ref)
    for site, ref in zip(sites, refs, strict=True):
        await site.tell(site.report(ref, "started"))
        await stage.until(ref[0], "running")
    return refs


async def ask_until_granted(site: ScriptedEnvironment, ref: Ref) -> None:
    """Claim again as a dispatcher does, until granted."""

    async def granted() -> bool:
        reply = await site.claim(ref)
        assert {r.reason for r in reply.refused} <= {"gang-incomplete"}, reply
        return bool(reply.granted)

    await wait_until(granted, f"{ref[0]} is granted to {site.name}", timeout_s=60, every_s=0.1)


def reasons(reply: request_v1.ClaimReply) -> list[str]:
    return [refused.reason for refused in reply.refused]


@pytest.mark.usefixtures("coordinator")
async def test_grants_are_withheld_until_every_member_is_claimed_wherever_it_is(stage: Stage, join: Join) -> None:
    sites = [await join(name) for name in SITES]
    operations = await accept_all(stage)
    await decide_all(stage, operations)
    refs = [await site.offered(o) for site, o in zip(sites, operations, strict=True)]
    for site, ref in list(zip(sites, refs, strict=True))[:2]:
        assert reasons(await site.claim(ref)) == ["gang-incomplete"]
    assert (await sites[2].claim(refs[2])).granted
    for site, ref in list(zip(sites, refs, strict=True))[:2]:
        assert (await site.claim(ref)).granted
        assert (await site.claim(ref)).granted, "asked twice is granted once more"
    told = [event.reason for event in await stage.told(operations[0])]
    assert told == ["decided", "gang-incomplete", "gang-claimed"]
    message = (await stage.told(operations[0]))[1].message
    assert message.startswith("claimed by a; gang train has 1 of 3 members claimed, not ")
    assert f"{operations[2]} (offered to c)" in message


@pytest.mark.usefixtures("coordinator")
async def test_two_claims_in_the_same_moment_complete_a_gang_without_waiting_for_each_other(
    stage: Stage, join: Join
) -> None:
    sites = [await join(name) for name in SITES]
    operations = await accept_all(stage)
    await decide_all(stage, operations)
    refs = [await site.offered(o) for site, o in zip(sites, operations, strict=True)]
    await asyncio.wait_for(
        asyncio.gather(*(ask_until_granted(site, ref) for site, ref in zip(sites, refs, strict=True))), 30
    )


async def test_the_deadline_gives_all_places_back_and_the_gang_is_judged_again(
    start_coordinator: StartCoordinator, stage: Stage, join: Join
) -> None:
    await start_coordinator(offer_seconds=30)
    a, _, _ = [await join(name) for name in SITES]
    operations = await accept_all(stage, startWithin="2s")
    await decide_all(stage, operations)
    ref = await a.offered(operations[0])
    assert reasons(await a.claim(ref)) == ["gang-incomplete"]
    for operation in operations:
        await wait_until(lambda o=operation: stage.others(o, "requeued"), "it is judged again", timeout_s=30)  # type: ignore[misc]
        assert await stage.others(operation, "freed")
    assert reasons(await a.claim(ref)) == ["withdrawn"]
    for site in SITES:
        assert len(await stage.ordered(site, "withdraw")) == 1


@pytest.mark.usefixtures("coordinator")
async def test_an_environment_that_begins_anew_has_to_claim_again_before_anybody_is_granted(
    stage: Stage, join: Join
) -> None:
    a, b, c = [await join(name) for name in SITES]
    operations = await accept_all(stage)
    await decide_all(stage, operations)
    refs = [await site.offered(o) for site, o in zip((a, b, c), operations, strict=True)]
    assert reasons(await a.claim(refs[0])) == ["gang-incomplete"]
    await a.join()
    for site, ref in ((b, refs[1]), (c, refs[2])):
        assert reasons(await site.claim(ref)) == ["gang-incomplete"]
    assert (await a.claim(refs[0])).granted
    assert (await b.claim(refs[1])).granted


@pytest.mark.usefixtures("coordinator")
async def test_a_cancel_of_one_member_that_waits_ends_all_and_those_that_come_later(stage: Stage) -> None:
    first = await stage.accept("member-a", gang=a_gang())
    second = await stage.accept("member-b", gang=a_gang())
    await stage.cancel(first)
    told = await stage.until(second, "cancelled")
    assert told[-1].reason == "gang-member-lost"
    third = await stage.accept("member-c", gang=a_gang())
    await stage.until(third, "cancelled")


@pytest.mark.usefixtures("coordinator")
async def test_a_running_member_that_fails_has_the_others_stopped(stage: Stage, join: Join) -> None:
    sites = [await join(name) for name in SITES]
    operations = await accept_all(stage)
    refs = await all_run(stage, sites, operations)
    await sites[0].tell(sites[0].report(refs[0], "finished", "failed"))
    await stage.until(operations[0], "failed")
    for site, ref in list(zip(sites, refs, strict=True))[1:]:
        await wait_until(lambda s=site: stage.ordered(s.name, "stop"), "it is stopped")  # type: ignore[misc]
        [stop] = await stage.ordered(site.name, "stop")
        assert stop.reason == "cancelled"
        await site.tell(site.report(ref, "finished", "cancelled"))
        await stage.until(ref[0], "cancelled")


@pytest.mark.usefixtures("coordinator")
async def test_a_retry_of_one_member_stops_the_others_and_the_round_names_how_many_start(
    stage: Stage, join: Join
) -> None:
    sites = [await join(name) for name in SITES]
    operations = [
        await stage.accept(f"member-{s}", gang=a_gang(), retries={"limit": 1, "backoff": "1s"}) for s in SITES
    ]
    refs = await all_run(stage, sites, operations)
    await sites[2].tell(sites[2].report(refs[2], "finished", "completed"))
    await stage.until(operations[2], "completed")
    await sites[0].tell(sites[0].report(refs[0], "finished", "failed"))
    await stage.until(operations[0], "retrying")
    await wait_until(lambda: stage.ordered("b", "stop"), "the other one is stopped")
    [stop] = await stage.ordered("b", "stop")
    assert stop.reason == "gang-broken"
    await sites[1].tell(sites[1].report(refs[1], "relinquished", reason="gang-broken"))
    for operation in operations[:2]:
        await wait_until(lambda o=operation: stage.others(o, "requeued"), "it is judged again", timeout_s=30)  # type: ignore[misc]
        [again] = await stage.others(operation, "requeued")

        assert json.loads(base64.b64decode(again["effective"]))["spec"]["gang"]["members"] == 2
    for operation, name in zip(operations[:2], SITES[:2], strict=True):
        await stage.decide([operation], name, 2)
    refs = [await site.offered(o, 2) for site, o in zip(sites[:2], operations[:2], strict=True)]
    assert reasons(await sites[0].claim(refs[0])) == ["gang-incomplete"]
    assert (await sites[1].claim(refs[1])).granted
    assert (await sites[0].claim(refs[0])).granted


_POINTS = [
    "loop.before-commit=kill@2",
    "loop.after-commit=kill@2",
    "loop.after-publish=kill@3",
    "coordinator.claim.before-commit=kill@1",
    "coordinator.claim.after-commit=kill@2",
    "coordinator.claim.before-commit=kill@3",
    "coordinator.claim.after-commit=kill@3",
    "coordinator.claim.after-commit=kill@4",
]


@pytest.mark.parametrize("point", _POINTS)
async def test_a_coordinator_killed_at_any_step_grants_all_members_or_none_and_all_end(
    point: str, start_child: StartChild, stage: Stage, dispatch_db: Database
) -> None:
    child = await start_child(LANDBRIDGE_FAILPOINTS=point)
    restarting = asyncio.create_task(_restart_when_it_dies(child, start_child))
    try:
        sites = [await ScriptedEnvironment(stage, name).join() for name in SITES]
        operations = await accept_all(stage)
        await decide_all(stage, operations)
        refs = [await site.offered(o) for site, o in zip(sites, operations, strict=True)]
        for site, ref in list(zip(sites, refs, strict=True))[:2]:
            assert reasons(await site.claim(ref)) == ["gang-incomplete"]
        for site, ref in reversed(list(zip(sites, refs, strict=True))):
            await ask_until_granted(site, ref)
        for site, ref in zip(sites, refs, strict=True):
            await site.tell(site.report(ref, "started"))
            await site.tell(site.report(ref, "finished", "completed"))
        for operation in operations:
            told = await stage.until(operation, "running", "completed")
            assert [event.op_seq for event in told] == list(range(2, 2 + len(told)))
        await asyncio.wait_for(restarting, 90)
    finally:
        restarting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await restarting
    assert await dispatch_db.fetchval("select count(*) from gang_member") == 3


async def _restart_when_it_dies(child: Child, start_child: StartChild) -> None:
    await wait_until(lambda: child.exit_code is not None, "the failpoint kills it", timeout_s=60)
    await start_child()


async def test_two_replicas_share_the_members_of_one_gang(start_child: StartChild, stage: Stage) -> None:
    await start_child()
    await start_child()
    sites = [await ScriptedEnvironment(stage, name).join() for name in SITES]
    operations = await accept_all(stage)
    await decide_all(stage, operations)
    refs = [await site.offered(o) for site, o in zip(sites, operations, strict=True)]
    await asyncio.wait_for(
        asyncio.gather(*(ask_until_granted(site, ref) for site, ref in zip(sites, refs, strict=True))), 60
    )
