"""An explanation says how it stands now, as ranking answers; a decision is made again, eligibility's part checked."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.requests import respond
from landbridge.domain.requirements import Requirements, requirement_class
from landbridge.domain.verdict import EligibilityVerdict, assessment_id
from landbridge.domain.violation import Kind, Violation
from landbridge.schema.wire.request_v1 import AskReply, PlanRequest, ReplayRequest
from support.lineage_messages import (
    a_decision,
    a_verdict,
    accepted,
    an_assessment,
    an_operation,
    assessed,
    changed,
    decided,
    placed,
    waiting,
)
from support.lineage_service import Lineage

OPERATION = an_operation()
CLASS = requirement_class(Requirements(project="coast", queue="batch"))
CHECKS = ("scores", "order", "environment", "route", "id")


class Ranking:
    """A stand-in: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.plans: list[PlanRequest] = []
        self.replays: list[ReplayRequest] = []
        self.replay: AskReply = AskReply(found=False, message="there is no decision")

    async def plan(self, _: str, body: bytes) -> bytes:
        self.plans.append(msgspec.json.decode(body, type=PlanRequest))
        return msgspec.json.encode(AskReply(found=True, json=b'{"place":{"place":2,"length":3}}'))

    async def again(self, _: str, body: bytes) -> bytes:
        self.replays.append(msgspec.json.decode(body, type=ReplayRequest))
        return msgspec.json.encode(self.replay)


@pytest.fixture
async def ranking(bus: Bus) -> Any:
    made = Ranking()
    subscriptions = [
        await respond(bus, subjects.ask("ranking", "plan"), made.plan),
        await respond(bus, subjects.ask("ranking", "replay"), made.again),
    ]
    yield made
    for subscription in subscriptions:
        await subscription.close()


def true_assessment() -> Any:
    """An assessment whose ids are what its content gives."""
    found = replace(
        an_assessment("?", a_verdict("delta"), a_verdict("reef", "never"), requirement_class=CLASS.key),
        requirements=CLASS.body,
    )
    verdicts = tuple(
        EligibilityVerdict(
            each.environment,
            each.contract_version,
            tuple(Violation(v.constraint, v.reason, Kind(v.kind.value), v.wanted, v.found) for v in each.violations),
            None,
        )
        for each in found.environments
    )
    return replace(found, id=assessment_id(CLASS.key, verdicts))


def again(assessment: str, *, differs: str = "") -> AskReply:
    checks = [
        {"what": what, "recorded": 1, "again": 2 if what == differs else 1, "same": what != differs} for what in CHECKS
    ]
    found = {
        "decision": "d-1",
        "at": "2026-11-30T10:00:00Z",
        "assessmentId": assessment,
        "policyVersion": "p@1",
        "environment": "delta",
        "route": "preferred",
        "inputs": {"catalogue": "4"},
        "ranked": [{"environment": "delta", "eligible": True}],
        "checks": checks,
    }
    return AskReply(found=True, json=msgspec.json.encode(found))


async def test_waiting_work_is_explained_as_it_stands_now(lineage: Lineage, ranking: Ranking) -> None:
    await lineage.publish(
        accepted(OPERATION), assessed(true_assessment(), OPERATION), waiting(OPERATION), changed(OPERATION, 2, "queued")
    )
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert found["now"] == {"place": {"place": 2, "length": 3}}
    assert (ranking.plans[0].operation, ranking.plans[0].requirements) == (OPERATION, CLASS.body)
    past = await lineage.get(f"/v1/operations/{OPERATION}/explanation", round=1)
    assert "now" not in past


async def test_what_has_ended_has_no_now(lineage: Lineage, ranking: Ranking) -> None:
    await lineage.publish(accepted(OPERATION), changed(OPERATION, 2, "cancelled"))
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert (found["now"], found["nowMissing"]) == (None, "it is cancelled")
    assert ranking.plans == []


async def test_what_failed_without_a_place_still_says_what_would_help(lineage: Lineage, ranking: Ranking) -> None:
    await lineage.publish(accepted(OPERATION), assessed(true_assessment(), OPERATION), changed(OPERATION, 2, "failed"))
    assert (await lineage.get(f"/v1/operations/{OPERATION}/explanation"))["now"] is not None


async def test_without_ranking_what_is_recorded_is_told_and_why_no_more(lineage: Lineage) -> None:
    await lineage.publish(accepted(OPERATION), assessed(true_assessment(), OPERATION), waiting(OPERATION))
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert found["now"] is None
    assert "ranking" in found["nowMissing"]
    assert [each["environment"] for each in found["environments"]] == ["delta", "reef"]


async def test_a_replay_checks_what_eligibility_recorded_as_well(lineage: Lineage, ranking: Ranking) -> None:
    assessment = true_assessment()
    await lineage.publish(
        accepted(OPERATION),
        assessed(assessment, OPERATION),
        decided(a_decision("d-1", assessment.id, "delta"), "delta", OPERATION),
        placed(OPERATION, 2, "pending", environment="delta", decision_id="d-1"),
    )
    ranking.replay = again(assessment.id)
    found = await lineage.get(f"/v1/operations/{OPERATION}/replay")
    assert [check["what"].partition(":")[0] for check in found["checks"]] == ["eligibility"] * 3 + ["ranking"] * 5
    assert [check["same"] for check in found["checks"]] == [True] * 8
    assert (found["same"], found["complete"]) == (True, True)
    assert "evidence" in found["notRecorded"][0]
    assert (ranking.replays[0].decision, ranking.replays[0].operation) == ("d-1", OPERATION)
    ranking.replay = again(assessment.id, differs="order")
    assert (await lineage.get(f"/v1/operations/{OPERATION}/replay"))["same"] is False
    ranking.replay = again("another")
    lost = await lineage.get(f"/v1/operations/{OPERATION}/replay")
    assert (lost["same"], lost["complete"]) == (True, False)


async def test_a_verdict_that_was_tampered_with_shows(lineage: Lineage, ranking: Ranking) -> None:
    good = true_assessment()
    bad = replace(good, environments=(a_verdict("delta"), a_verdict("reef", "not-now")))
    await lineage.publish(
        accepted(OPERATION),
        assessed(bad, OPERATION),
        decided(a_decision("d-1", bad.id, "delta"), "delta", OPERATION),
    )
    ranking.replay = again(bad.id)
    found = await lineage.get(f"/v1/operations/{OPERATION}/replay")
    differing = [check["what"] for check in found["checks"] if check["same"] is False]
    assert differing == ["eligibility: verdicts"]


async def test_what_was_never_decided_cannot_be_made_again(lineage: Lineage, ranking: Ranking) -> None:
    await lineage.publish(accepted(OPERATION))
    answer = await lineage.http.get(f"/v1/operations/{OPERATION}/replay")
    assert answer.status_code == 404
    assert "nothing was decided yet" in answer.json()["detail"]
