"""What people may ask ranking over HTTP."""

import hashlib
from typing import Any

import httpx2
import pytest

from landbridge.runtime.settings import Settings
from landbridge_eligibility.service import EligibilityService
from landbridge_ranking.service import RankingService
from support.deciding_world import World
from support.wait import wait_until

TOKEN = "lb_" + "let-me-in-" * 4


@pytest.fixture
async def deciders(start: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[EligibilityService, RankingService]:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    monkeypatch.setenv("LANDBRIDGE_ADMIN_TOKEN_SHA256", digest)
    assert Settings().admin_token_sha256 == digest
    eligibility, ranking = await start("eligibility"), await start("ranking")
    await wait_until(lambda: ranking.admits, "ranking is elected")
    return eligibility, ranking


async def test_a_queue_is_paused_drained_and_resumed_by_people_with_name_and_reason(
    world: World, deciders: tuple[EligibilityService, RankingService]
) -> None:
    await world.document("queue", "training", concurrency=9)
    await world.environment()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{deciders[1].port}", headers=headers) as client:

        async def act(action: str, status: int = 200, *, dry: bool = False, reason: str = "disk swap") -> Any:
            path = f"/v1/ranking/queues/training/{action}"
            answer = await client.post(path, params={"dryRun": "true"} if dry else {}, json={"reason": reason})
            assert answer.status_code == status, answer.text
            return answer.json()

        async def known() -> bool:
            path = "/v1/ranking/queues/training/pause"
            answer = await client.post(path, params={"dryRun": "true"}, json={"reason": "is it there?"})
            return answer.status_code == 200

        await wait_until(known, "the queue is known")
        assert (await client.post("/v1/ranking/queues/nowhere/pause", json={"reason": "x"})).status_code == 404
        await act("pause", 422, reason="")
        assert (await act("pause", dry=True))["dryRun"] is True
        [first] = await world.accept()
        await world.until_placed([first])  # the preview has paused nothing
        assert (await act("pause"))["state"] == "paused"
        await act("pause", 409)
        [second] = await world.accept()
        await world.until_waiting([second], "queue-paused")
        assert (await act("drain"))["state"] == "paused and drained"
        [third] = await world.accept()
        await world.until_waiting([third], "queue-paused")
        await act("resume")
        await world.until_placed([second, third])
        told = (await act("drain"))["text"]
        assert "3 are placed or run" in told[0]
        [fourth] = await world.accept()
        await world.until_waiting([fourth], "queue-draining")
        [queue] = (await client.get("/v1/ranking/queues")).json()
        assert (queue["paused"], queue["draining"]) == (False, True)
        await world.end([first])
        await world.requeue(second, 2, free_from="onprem-a")  # it had been let in before
        await wait_until(lambda: (second, 2, "onprem-a") in world.decided(), "a retry is let out")
        assert fourth not in world.placed()
        await act("resume")
        await world.until_placed([fourth])
        items = (await client.get("/v1/ranking/audit")).json()["items"]
        assert [item["action"] for item in items] == [
            "queue-resume", "queue-drain", "queue-resume", "queue-drain", "queue-pause"
        ]  # fmt: skip
        assert {(item["queue"], item["reason"]) for item in items} == {("training", "disk swap")}


async def test_places_limits_and_decisions_can_be_asked_for(
    world: World, deciders: tuple[EligibilityService, RankingService]
) -> None:
    await world.document("queue", "training", concurrency=1, quota={"cpu": "10"})
    await world.environment()
    operations = await world.accept(3)
    await wait_until(lambda: len(world.placed()) == 1 and len(world.waits()) == 2, "one runs, two wait")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{deciders[1].port}", headers=headers) as client:
        held, first, second = [(await client.get(f"/v1/ranking/operations/{o}")).json() for o in operations]
        assert (held["state"], held["environment"], held["amounts"]["running"]) == ("held", "onprem-a", 1)
        assert [(o["state"], o["place"], o["length"], o["reason"]) for o in (first, second)] == [
            ("waiting", 1, 2, "concurrency"),
            ("waiting", 2, 2, "concurrency"),
        ]
        [queue] = (await client.get("/v1/ranking/queues")).json()
        assert (queue["name"], queue["waiting"], queue["running"], queue["concurrency"]) == ("training", 2, 1, 1)
        assert (queue["held"]["cpu"], queue["quota"]["cpu"]) == ("2", "10")
        record = (await client.get(f"/v1/ranking/decisions/{held['decision']}")).json()
        assert record["replays"] is True
        assert [placed["operation"] for placed in record["operations"]] == [operations[0]]
        assert (await client.get("/v1/ranking/operations/nobody")).status_code == 404
        assert (await client.get("/v1/ranking/decisions/none")).status_code == 404
        client.headers.pop("Authorization")
        assert (await client.get("/v1/ranking/queues")).status_code == 401
