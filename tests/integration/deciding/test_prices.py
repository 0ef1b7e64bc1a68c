"""Prices that are missing, zero or withdrawn: unknown is not zero, and what was decided stays what it was."""

import hashlib
from typing import Any

import httpx2
import pytest

from landbridge_ranking.service import RankingService
from support.deciding_world import World
from support.wait import wait_until

TOKEN = "lb_" + "let-me-in-" * 4
GPU: dict[str, Any] = {"gpu-80gb": {"count": 64, "memory": "80Gi"}}
NEED: dict[str, Any] = {"resources": {"accelerator": {"class": "gpu-80gb", "count": 1}}}


@pytest.fixture
async def ranking(start: Any, monkeypatch: pytest.MonkeyPatch) -> RankingService:
    monkeypatch.setenv("LANDBRIDGE_ADMIN_TOKEN_SHA256", hashlib.sha256(TOKEN.encode()).hexdigest())
    await start("eligibility")
    found: RankingService = await start("ranking")
    await wait_until(lambda: found.admits, "ranking is elected")
    return found


async def decision(ranking: RankingService, id_: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{ranking.port}", headers=headers) as client:
        found: dict[str, Any] = (await client.get(f"/v1/ranking/decisions/{id_}")).json()
    return found


async def placed_at(world: World) -> tuple[str, str]:
    """Place one more; return where, and by which decision."""
    [operation] = await world.accept(**NEED)
    await world.until_placed([operation])
    [event] = [event for event in world.events("decided") if event.operations[0].operation == operation]
    return world.placed()[operation], event.decision.id


async def test_a_price_that_is_withdrawn_changes_no_decision_that_was_made_by_it(
    world: World, ranking: RankingService
) -> None:
    await world.document("queue", "training")
    await world.document("policy", "cheapest", preferences={"cost": 1})
    await world.environment("unpriced", classes=GPU)
    await world.environment("dear", classes=GPU, cost={"perHour": {"gpu-80gb": 9.0}})
    await world.environment("prepaid", classes=GPU, cost={"perHour": {"gpu-80gb": 0}})
    where, first = await placed_at(world)
    assert where == "prepaid", "a stated zero is paid for in advance; no price at all is not"
    before = await decision(ranking, first)

    await world.environment("prepaid", version=2, classes={"gpu-80gb": None})
    where, second = await placed_at(world)
    assert where == "dear", "what is unknown never wins against what is known"
    after = await decision(ranking, first)

    assert after == before
    assert after["replays"] is True
    assert second != first
    assert (await decision(ranking, second))["replays"] is True
