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
