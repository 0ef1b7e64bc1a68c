"""The query API of a running service, asked over HTTP."""

from collections.abc import Awaitable, Callable

import pytest

from landbridge.schema.wire import event_v1 as events
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from support.lineage_messages import (
    START,
    a_decision,
    a_verdict,
    a_whole_life,
    accepted,
    an_assessment,
    an_operation,
    assessed,
    at,
    changed,
    decided,
    message,
    placed,
    waiting,
)
from support.lineage_service import Lineage
from support.wait import wait_until

OPERATION = an_operation()
GOOD = an_assessment("a-1", a_verdict("quay"), a_verdict("delta"), a_verdict("reef", "never", "not-now"))
BAD = an_assessment(
    "a-9", a_verdict("quay", "not-now", "misconfigured"), a_verdict("reef", "never"), requirement_class="c-9"
)


async def test_an_operation_is_told_in_full(lineage: Lineage) -> None:
    decision = a_decision("d-1", "a-1", "quay", "delta")
    start = [accepted(OPERATION), assessed(GOOD, OPERATION), decided(decision, "quay", OPERATION)]
    await lineage.publish(*start, *a_whole_life(OPERATION)[1:])
    found = await lineage.get(f"/v1/operations/{OPERATION}")
    assert (found["operation"], found["phase"], found["project"]) == (OPERATION, "completed", "coast")
    assert found["effective"]["spec"]["command"] == ["python3", "tides.py"]
    assert [each["attempt"] for each in found["attempts"]] == [1, 2]
    assert found["attempts"][0]["outcome"] == "failed"
    assert found["attempts"][1]["resolved"]["principal"] == "uid:2001"
    assert found["attempts"][1]["outputs"]["forecast"]["bytes"] == 2048
    assert found["rounds"] == [
        {"round": 1, "assessmentId": "a-1", "decisionId": "d-1", "environment": "quay", "servedBy": ""},
    ]
    events_ = (await lineage.get(f"/v1/operations/{OPERATION}/events"))["items"]
    assert [each["event"] for each in events_][:4] == ["accepted", "assessed", "decided", "pending"]
    assert [each["opSeq"] for each in events_ if each["opSeq"]] == [1, 2, 3, 4, 5, 6, 7]
    assert "effective" not in events_[0]["data"]
    later = (await lineage.get(f"/v1/operations/{OPERATION}/events", after=5))["items"]
    assert [each["opSeq"] for each in later if each["opSeq"]] == [6, 7]


async def test_a_decision_is_explained_for_every_environment(lineage: Lineage) -> None:
    decision = a_decision("d-1", "a-1", "delta", "quay")
    await lineage.publish(
        accepted(OPERATION),
        assessed(GOOD, OPERATION),
        decided(decision, "delta", OPERATION),
        placed(OPERATION, 2, "pending", environment="delta", decision_id="d-1"),
    )
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert found["decision"]["route"] == "preferred"
    assert found["decision"]["environment"] == "delta"
    rows = found["environments"]
    assert [each["environment"] for each in rows] == ["delta", "quay", "reef"]
    assert [each["eligible"] for each in rows] == [True, True, False]
    assert [each["chosen"] for each in rows] == [True, False, False]
    assert rows[0]["rank"] == 1
    assert rows[0]["score"] == pytest.approx(1.0)
    cost, carbon = rows[0]["measurements"]
    assert cost == {
        "preference": "cost",
        "value": 0.1,
        "unit": "EUR/h",
        "source": "contract",
        "normalised": 0.5,
        "weight": 2.0,
        "unknown": False,
    }
    assert (carbon["value"], carbon["unknown"]) == (None, True)
    assert rows[2]["violations"][0] == {
        "constraint": "rule-0",
        "reason": "r",
        "kind": "never",
        "wanted": "w",
        "found": "f",
    }
    assert rows[2]["contractVersion"] == 3
    assert found["nearestMiss"] is None
    assert found["waiting"] is None


async def test_what_cannot_be_placed_is_explained_with_its_nearest_miss(lineage: Lineage) -> None:
    await lineage.publish(
        accepted(OPERATION),
        assessed(BAD, OPERATION),
        waiting(OPERATION, reason="no-eligible-environment", assessment_id="a-9", condition="unplaceable"),
        changed(OPERATION, 2, "queued"),
    )
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert found["phase"] == "queued"
    assert (found["waiting"]["reason"], found["waiting"]["condition"]) == ("no-eligible-environment", "unplaceable")
    assert (found["nearestMiss"]["environment"], found["nearestMiss"]["hope"]) == ("quay", "misconfigured")
    assert found["assessment"]["condition"] == "unplaceable"
    newer = an_assessment("a-10", a_verdict("quay", "not-now"), a_verdict("reef", "never"), requirement_class="c-9")
    await lineage.publish(assessed(newer))
    found = await lineage.get(f"/v1/operations/{OPERATION}/explanation")
    assert (found["assessment"]["id"], found["nearestMiss"]["hope"]) == ("a-10", "not-now")
    listed = (await lineage.get("/v1/operations"))["items"][0]
    assert listed["waiting"]["reason"] == "no-eligible-environment"


async def test_lists_are_narrowed_and_paged_newest_first(lineage: Lineage) -> None:
    operations = [an_operation(f"n-{n}") for n in range(7)]
    messages = []
    for number, operation in enumerate(operations):
        first = accepted(operation, queue="nightly" if number % 2 else "batch")
        body = events.OperationAccepted(
            operation=operation,
            project="coast",
            queue="nightly" if number % 2 else "batch",
            op_seq=1,
            at=at(number * 60),
            effective=b"{}",
        )
        messages.append(message("accepted", body) if number else first)
    await lineage.publish(*messages)
    await lineage.publish(
        placed(operations[6], 2, "pending"), placed(operations[5], 2, "pending"), placed(operations[5], 3, "completed")
    )
    page = await lineage.get("/v1/operations", limit=3)
    rest = await lineage.get("/v1/operations", limit=100, cursor=page["cursor"])
    names = [each["operation"] for each in page["items"] + rest["items"]]
    assert names == operations[::-1]
    assert rest["cursor"] == ""

    async def matching(**wanted: str) -> list[str]:
        answer = await lineage.http.get("/v1/operations", params=wanted)
        return [each["operation"] for each in answer.json()["items"]]

    assert await matching(phase="pending") == [operations[6]]
    assert await matching(phase="pending,completed") == [operations[6], operations[5]]
    assert await matching(environment="quay") == [operations[6], operations[5]]
    assert await matching(queue="nightly", phase="accepted") == [operations[3], operations[1]]
    assert await matching(since=at(4 * 60).isoformat()) == operations[6:3:-1]
    assert await matching(project="elsewhere") == []


async def test_questions_that_make_no_sense_are_answered_in_plain_words(lineage: Lineage) -> None:
    for path, expected in (
        ("/v1/operations?phase=dreaming", "phase: expected some of accepted"),
        ("/v1/operations?since=yesterday", "since: expected a time such as"),
        ("/v1/operations?cursor=xyz", "cursor: expected one from an earlier answer"),
        ("/v1/operations?limit=0", "limit"),
    ):
        answer = await lineage.http.get(path)
        assert answer.status_code == 422
        assert expected in answer.json()["detail"]


async def test_another_project_does_not_exist_for_a_caller(lineage: Lineage) -> None:
    theirs = an_operation("other", "harbour")
    await lineage.publish(accepted(OPERATION), accepted(theirs, project="harbour", queue="fast"))
    mo = await lineage.access("mo", "viewer", "coast")
    assert [each["operation"] for each in (await lineage.get("/v1/operations", mo))["items"]] == [OPERATION]
    for path in ("", "/events", "/explanation", "/logs", "/outputs"):
        assert (await mo.get(f"/v1/operations/{theirs}{path}")).status_code == 404
    assert (await mo.get(f"/v1/lineage/{theirs}")).status_code == 404
    assert (await mo.get("/v1/operations", params={"project": "harbour"})).status_code == 404
    overview = await lineage.get("/v1/overview", mo)
    assert (overview["total"], list(overview["projects"])) == (1, ["coast"])
    assert [each["queue"] for each in (await lineage.get("/v1/queues", mo))["items"]] == ["batch"]
    everything = await lineage.get("/v1/overview")
    assert everything["total"] == 2


async def test_nobody_is_told_anything_without_a_token(lineage: Lineage) -> None:
    for path in ("/v1/operations", f"/v1/operations/{OPERATION}", "/v1/environments", "/v1/overview", "/v1/queues"):
        answer = await lineage.http.get(path, headers={"Authorization": "Bearer nobody-knows-this-token"})
        assert answer.status_code == 401


async def test_an_unknown_operation_is_not_found(lineage: Lineage) -> None:
    for key in (an_operation("never"), "not-an-id"):
        answer = await lineage.http.get(f"/v1/operations/{key}")
        assert answer.status_code == 404
        assert key in answer.json()["detail"]


async def test_refused_submissions_are_listed_with_everything_that_was_wrong(lineage: Lineage) -> None:
    problem = events.Problem(path="spec.type", line=3, message="expected job, found 'jbo'", suggestion="job")
    body = events.OperationRefused(
        project="coast", source="/applications/harbour", submission="s-1", at=START, problems=(problem,)
    )
    await lineage.publish(message("refused", body), message("refused", body, "harbour"))
    mo = await lineage.access("mo", "viewer", "coast")
    items = (await lineage.get("/v1/refusals", mo))["items"]
    assert len(items) == 2  # the project in the message counts, not the one in its subject
    assert items[0]["problems"][0]["message"] == "expected job, found 'jbo'"


async def test_environments_are_told_as_they_are_now(lineage: Lineage) -> None:
    assert (await lineage.get("/v1/environments"))["items"] == []
    version = events.ContractVersion(version=3, phase="active", document=b"kind: EnvironmentContract\n", sha256="x")
    await lineage.state(
        "contract", "quay", events.EnvironmentContractChanged(environment="quay", at=START, versions=(version,))
    )
    proof = Evidence(claim="runtime", result=EvidenceResult.PROVEN, at=START, expires=at(60))
    broken = Evidence(claim="connections.results", result=EvidenceResult.FAILED, at=START, expires=at(60))
    await lineage.state(
        "evidence", "quay", events.EnvironmentEvidence(environment="quay", at=START, items=(proof, broken))
    )
    await lineage.state(
        "link", "quay", events.EnvironmentLink(environment="quay", state=events.LinkState.CONNECTED, executor="process")
    )
    await lineage.publish(accepted(OPERATION), placed(OPERATION, 2, "pending"), placed(OPERATION, 3, "running"))

    async def complete() -> bool:
        items = (await lineage.get("/v1/environments"))["items"]
        return bool(items and items[0]["link"] and items[0]["evidence"]["failed"])

    await wait_until(complete, "the environment is known")
    row = (await lineage.get("/v1/environments"))["items"][0]
    assert row["evidence"] == {"proven": 1, "failed": 1, "unknown": 0}
    assert (row["link"]["state"], row["executor"]) == ("connected", "process")
    assert row["versions"] == [{"version": 3, "phase": "active", "sha256": "x"}]
    assert row["phases"] == {"running": 1}
    detail = await lineage.get("/v1/environments/quay")
    assert detail["versions"][0]["document"] == "kind: EnvironmentContract\n"
    assert [each["claim"] for each in detail["claims"]] == ["runtime", "connections.results"]
    assert (await lineage.http.get("/v1/environments/atlantis")).status_code == 404
    assert (await lineage.get("/v1/overview"))["environmentLinks"] == {"quay": "connected"}


async def test_an_environment_is_where_the_contract_in_force_says_not_where_a_draft_says(lineage: Lineage) -> None:
    versions = tuple(
        events.ContractVersion(
            version=number,
            phase=phase,
            document=b'{"spec": {"location": {"regions": ["%s"]}}}' % region,
            sha256=str(number),
        )
        for number, phase, region in ((3, "active", b"north"), (4, "draft", b"south"))
    )
    told = events.EnvironmentContractChanged(environment="quay", at=START, versions=versions)
    await lineage.state("contract", "quay", told)

    async def known() -> bool:
        return bool((await lineage.get("/v1/environments"))["items"])

    await wait_until(known, "the environment is known")
    [row] = (await lineage.get("/v1/environments"))["items"]
    assert row["location"] == {"regions": ["north"]}
    assert [(each["version"], each["phase"]) for each in row["versions"]] == [(3, "active"), (4, "draft")]


async def test_queues_show_their_documents_and_what_is_in_them(lineage: Lineage) -> None:
    await lineage.document("queue", "batch", {"kind": "Queue", "spec": {"priority": 5, "concurrency": 2}})
    await lineage.document("queue", "empty", {"kind": "Queue", "metadata": {"name": "empty"}})
    await lineage.publish(accepted(OPERATION), changed(OPERATION, 2, "queued"))
    await wait_until(lambda: lineage.service.documents.names("queue") == ["batch", "empty"], "both queues are known")
    batch, empty = (await lineage.get("/v1/queues"))["items"]
    assert (batch["spec"]["priority"], batch["waiting"], batch["active"]) == (5, 1, 0)
    assert batch["oldestWaiting"]["since"].startswith("2026-11-30T09:00:01")
    assert (empty["waiting"], empty["oldestWaiting"]) == (0, None)


async def test_counts_come_from_redis_and_without_it_from_postgres(
    start_lineage: Callable[..., Awaitable[Lineage]], redis_url: str
) -> None:
    lineage = await start_lineage(redis_url)
    await lineage.publish(accepted(OPERATION))

    async def told() -> bool:
        found = await lineage.get("/v1/overview")
        return bool(found["source"] == "redis" and found["total"] == 1)

    await wait_until(told, "the counts are in Redis")
    await lineage.service.redis.drop(["lineage:counts"])
    without = await lineage.get("/v1/overview")
    assert without["total"] == 1


async def test_a_dead_redis_is_degraded_but_ready(start_lineage: Callable[..., Awaitable[Lineage]]) -> None:
    lineage = await start_lineage("redis://127.0.0.1:1/0")
    await lineage.publish(accepted(OPERATION))
    found = await lineage.get("/v1/overview")
    assert (found["source"], found["phases"]) == ("postgres", {"accepted": 1})
    ready = await lineage.http.get("/readyz?verbose")
    assert ready.status_code == 200
    assert "redis degraded" in ready.text
