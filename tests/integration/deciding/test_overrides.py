"""Emergency overrides: recorded, named, past rules and queue, and never past what may not be broken."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from landbridge.store import Database
from landbridge_eligibility.service import EligibilityService
from landbridge_ranking.service import RankingService
from support.deciding_world import World
from support.wait import wait_until

TOKEN = "lb_" + "let-me-in-" * 4
WHY = "the plant stands still"


@pytest.fixture
async def deciders(start: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[EligibilityService, RankingService]:
    monkeypatch.setenv("LANDBRIDGE_ADMIN_TOKEN_SHA256", hashlib.sha256(TOKEN.encode()).hexdigest())
    eligibility, ranking = await start("eligibility"), await start("ranking")
    await wait_until(lambda: ranking.admits, "ranking is elected")
    return eligibility, ranking


@pytest.fixture
async def client(deciders: tuple[EligibilityService, RankingService]) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    base = f"http://127.0.0.1:{deciders[1].port}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30) as made:
        yield made


async def override(
    client: httpx2.AsyncClient, operation: str, to: str, status: int = 200, *, dry: bool = False, reason: str = WHY
) -> Any:
    path, params = f"/v1/ranking/operations/{operation}/override", {"dryRun": "true"} if dry else {}
    answer = await client.post(path, json={"environment": to, "reason": reason}, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


async def arrived(deciders: tuple[EligibilityService, RankingService], operation: str) -> None:
    """Eligibility tells what waits; ranking hears of it a moment later."""
    waiting = deciders[1].desk.admission.waiting
    await wait_until(lambda: waiting(operation) is not None, "ranking knows that it waits")


async def test_work_that_no_rule_lets_in_is_placed_by_a_person_and_the_record_says_what_was_broken(
    world: World,
    client: httpx2.AsyncClient,
    deciders: tuple[EligibilityService, RankingService],
    ledger: Database,
) -> None:
    await world.document("queue", "training", environments={"allow": ["cloud-b"]})
    await world.environment("onprem-a")
    await world.environment("us-east", location={"regions": ["us-east-1"], "jurisdictions": ["US"]})
    [stuck] = await world.accept(constraints={"jurisdictions": ["EU"]})
    await world.until_waiting([stuck], "incompatible")
    await arrived(deciders, stuck)

    preview = await override(client, stuck, "onprem-a", dry=True)
    assert [(v["constraint"], v["reason"]) for v in preview["overridden"]] == [("queue", "not-routed")]
    assert not world.placed()
    refused = await override(client, stuck, "us-east", 409)
    assert refused["title"] == "Not to be overridden"
    assert {v["constraint"] for v in refused["violations"]} == {"residency"}
    assert "residency: where work and data may be is not overridden: wanted jurisdictions EU" in refused["detail"]
    assert "did you mean onprem-a?" in (await override(client, stuck, "onprem", 404))["detail"]
    await override(client, stuck, "onprem-a", 422, reason="")
    await override(client, stuck, "onprem-a")
    await world.until_placed([stuck])

    assert world.placed() == {stuck: "onprem-a"}
    [decided] = [event.decision for event in world.events("decided")]
    assert (decided.route.value, decided.override.by, decided.override.reason) == ("emergency-override", "admin", WHY)
    assert [v.reason for v in decided.override.overridden] == ["not-routed"]
    record = (await client.get(f"/v1/ranking/decisions/{decided.id}")).json()
    assert (record["route"], record["replays"], record["override"]["reason"]) == ("emergency-override", True, WHY)
    [row] = (await client.get("/v1/ranking/audit")).json()["items"]
    assert (row["action"], row["by"], row["reason"], row["operation"]) == ("override", "admin", WHY, stuck)
    assert await ledger.fetchval("select count(*) from charge where held and not evictable") == 1
    again = await override(client, stuck, "onprem-a", 409)
    assert "is placed in onprem-a: move it" in again["detail"]


async def test_a_turn_in_the_queue_is_overridden_and_what_it_takes_counts_against_all(
    world: World, client: httpx2.AsyncClient
) -> None:
    await world.document("queue", "training", concurrency=1)
    await world.environment("onprem-a")
    first, second, third = await world.accept(3)
    await wait_until(lambda: len(world.placed()) == 1 and len(world.waits()) == 2, "one runs, two wait")
    waiting = sorted({first, second, third} - set(world.placed()))
    done = await override(client, waiting[1], "onprem-a")
    assert done["waited"].startswith("concurrency: queue training runs 1 of at most 1 operations")
    assert done["overridden"] == []
    await world.until_placed([waiting[1]])
    [running] = set(world.placed()) - {waiting[1]}
    await world.end([running])
    await override(client, waiting[0], "onprem-a", dry=True)  # another turn was taken by now, and it still waits
    assert waiting[0] not in world.placed()
    await world.end([waiting[1]])
    await world.until_placed([waiting[0]])


async def test_an_environment_that_takes_nothing_cannot_be_made_to(
    world: World, client: httpx2.AsyncClient, deciders: tuple[EligibilityService, RankingService]
) -> None:
    await world.document("queue", "training")
    await world.environment("onprem-a")
    await world.control("onprem-a", paused=True)
    [stuck] = await world.accept()
    await world.until_waiting([stuck], "unavailable")
    await arrived(deciders, stuck)
    refused = await override(client, stuck, "onprem-a", 409)
    assert "control: it takes nothing new until it is resumed" in refused["detail"]
    await world.control("onprem-a", classes=["cpu-general"])
    await world.until_waiting([stuck], "unavailable")
    await wait_until(lambda: "class-control" in world.waits()[stuck].message, "only the class is paused")
    await override(client, stuck, "onprem-a")
    await world.until_placed([stuck])
