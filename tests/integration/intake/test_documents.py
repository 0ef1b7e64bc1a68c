"""The catalogue: versions that never change, deletions, who refers to whom, and what belongs to the verifier."""

import asyncio
from typing import Any

import pytest

from integration.intake.conftest import StartIntake
from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import api
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from support.intake_service import Intake, an_operation, current
from support.wait import wait_until
from unit.documents.documents import GOOD, a_document, as_json

CATALOGUE = subjects.catalogue("*", "*")


async def _entry(bus: Bus, kind: str, name: str, version: int) -> dict[str, Any]:
    async def told() -> dict[str, Any]:
        entry = (await current(bus, streams.CATALOGUE, CATALOGUE)).get(subjects.catalogue(kind, name), {})
        return entry if entry.get("version") == version else {}

    found: dict[str, Any] = await wait_until(told, f"{kind} {name} is told as version {version}")
    return found


@pytest.mark.parametrize("base", sorted(set(GOOD) - {"operation", "contract"}))
async def test_a_document_is_kept_told_read_and_removed(intake: Intake, bus: Bus, base: str) -> None:
    document = a_document(base, {"metadata.name": "mine"})
    version = document["metadata"].get("version", 1)
    applied = (await intake.http.post("/v1/documents", content=as_json(document))).json()
    again = (await intake.http.post("/v1/documents", content=as_json(document))).json()

    assert applied == {"kind": base, "name": "mine", "version": version, "changed": True}
    assert again == {**applied, "changed": False}
    assert (await _entry(bus, base, "mine", version))["document"]
    read = (await intake.http.get(f"/v1/documents/{base}/mine")).json()
    assert read["document"] == document
    listed = (await intake.http.get(f"/v1/documents/{base}")).json()["items"]
    assert "mine" in [item["name"] for item in listed]

    assert (await intake.http.delete(f"/v1/documents/{base}/mine")).status_code == 204
    assert (await intake.http.delete(f"/v1/documents/{base}/mine")).status_code == 404
    assert (await intake.http.get(f"/v1/documents/{base}/mine")).status_code == 404

    async def deleted() -> bool:
        found = await current(bus, streams.CATALOGUE, CATALOGUE)
        return bool(found[subjects.catalogue(base, "mine")].get("deleted"))

    await wait_until(deleted, "the deletion is told")
    back = (await intake.http.post("/v1/documents", content=as_json(document))).json()
    assert back["changed"] is True


async def test_a_queue_counts_its_changes(intake: Intake, bus: Bus) -> None:
    await intake.apply(a_document("queue", {"spec.priority": 2}), a_document("queue", {"spec.priority": 3}))

    assert (await _entry(bus, "queue", "training", 3))["name"] == "training"
    read = (await intake.http.get("/v1/documents/queues/training")).json()
    assert (read["version"], read["document"]["spec"]["priority"], read["versions"]) == (3, 3, [1, 2, 3])
    old = (await intake.http.get("/v1/documents/queues/training?version=1")).json()
    assert old["document"]["spec"]["priority"] == 1


async def test_a_version_of_a_preset_never_changes(intake: Intake) -> None:
    await intake.apply(a_document("preset"))
    answer = await intake.http.post(
        "/v1/documents", content=as_json(a_document("preset", {"spec.patch.env": {"A": "b"}}))
    )

    assert answer.status_code == 409
    assert answer.json()["problems"][0]["suggestion"] == "a version never changes: write 3"


async def test_a_new_version_of_a_preset_applies_at_once_and_the_old_one_can_be_named(intake: Intake) -> None:
    await intake.apply(
        a_document("preset"), a_document("preset", {"metadata.version": 3, "spec.patch.env": {"A": "3"}})
    )

    async def env(reference: str) -> dict[str, str]:
        answer = await intake.http.post("/v1/validate", content=an_operation(spec__presets=[reference]))
        found: dict[str, str] = answer.json()["effective"]["spec"]["env"]
        return found

    assert await env("overnight") == {"A": "3"}
    assert await env("overnight@2") == {"MODE": "night"}
    assert (await intake.http.delete("/v1/documents/preset/overnight?version=3")).status_code == 204
    assert await env("overnight") == {"MODE": "night"}


async def test_several_documents_are_applied_together_or_not_at_all(intake: Intake) -> None:
    good = as_json(a_document("queue", {"metadata.name": "one"}))
    bad = as_json(a_document("queue", {"metadata.name": "two", "spec.prioriti": 1}))
    refused = await intake.http.post("/v1/documents", content=good + b"\n---\n" + bad)
    none = await intake.http.get("/v1/documents/queue/one")
    both = await intake.http.post(
        "/v1/documents", content=good + b"\n---\n" + as_json(a_document("queue", {"metadata.name": "two"}))
    )

    assert refused.status_code == 422
    assert [problem["path"] for problem in refused.json()["problems"]] == ["spec.prioriti"]
    assert none.status_code == 404
    assert [item["name"] for item in both.json()["items"]] == ["one", "two"]


async def test_operations_are_submitted_not_applied(intake: Intake) -> None:
    answer = await intake.http.post("/v1/documents", content=an_operation())

    assert [problem["code"] for problem in answer.json()["problems"]] == ["wrong-kind"]


async def test_what_others_refer_to_is_not_removed(intake: Intake) -> None:
    answer = await intake.http.delete("/v1/documents/queue/training")

    assert answer.status_code == 409
    assert "project retail-eu" in answer.json()["detail"]


async def test_a_contract_goes_to_the_verifier_with_its_bytes(intake: Intake) -> None:
    body = b"# ours\n" + as_json(GOOD["contract"])
    answer = await intake.http.post("/v1/documents", content=body)
    removed = await intake.http.delete("/v1/documents/environment-contract/onprem-a")
    refused = await intake.http.post(
        "/v1/documents", content=as_json(a_document("contract", {"status": {"phase": "active"}}))
    )

    assert (answer.status_code, answer.json()["forwarded"]) == (202, True)
    assert removed.status_code == 202
    assert [problem["code"] for problem in refused.json()["problems"]] == ["status-refused"]

    async def told() -> bool:
        return len(await intake.messages(streams.INTENTS)) == 2

    await wait_until(told, "both wishes are told")
    from base64 import b64decode

    wishes = await intake.told(subjects.intent("contract")[:-2], streams.INTENTS)
    assert b64decode(wishes[0]["document"]) == body
    removals = await intake.told(subjects.intent("remove")[:-2], streams.INTENTS)
    assert removals == [{"kind": "environment-contract", "name": "onprem-a", "by": "admin"}]


async def test_a_draft_is_sent_as_one_and_only_a_contract_can_be_one(intake: Intake) -> None:
    answer = await intake.http.post("/v1/documents?draft=true", content=as_json(GOOD["contract"]))
    queue = await intake.http.post("/v1/documents?draft=true", content=as_json(a_document("queue")))

    assert (answer.status_code, answer.json()["draft"]) == (202, True)
    assert (queue.status_code, queue.json()["detail"]) == (
        422,
        f"draft: expected environment contracts, found Queue {GOOD['queue']['metadata']['name']}",
    )
    wishes = await wait_until(lambda: intake.told(subjects.intent("contract")[:-2], streams.INTENTS), "it is told")
    assert [wish["draft"] for wish in wishes] == [True]
    [message] = await intake.messages(streams.INTENTS)
    assert message.id == answer.json()["submission"]  # what a refusal will name


async def test_environments_are_steered_by_name(intake: Intake, bus: Bus) -> None:
    body = b'{"environment":"onprem-a","at":"2026-11-30T00:00:00Z","versions":[{"version":1,"phase":"active"}]}'
    kind = event_type("environment", "EnvironmentContractChanged")
    await publish_batch(bus, streams.ENVIRONMENTS, [Outbound(subjects.environment("contract", "onprem-a"), kind, body)])
    await wait_until(lambda: "onprem-a" in intake.service.environments, "the environment is known")
    paused = await intake.post(b'{"reason": "new driver"}', path="/v1/environments/onprem-a/pause")
    mistyped = await intake.post(b"", path="/v1/environments/onprem-b/pause")
    unknown = await intake.post(b"", path="/v1/environments/onprem-a/stop")

    assert (paused[0], mistyped[0], unknown[0]) == (202, 404, 404)
    assert 'did you mean "onprem-a"?' in mistyped[1]["detail"]
    told = await wait_until(lambda: intake.told(subjects.intent("control")[:-2], streams.INTENTS), "it is told")
    assert told == [{"environment": "onprem-a", "action": "pause", "by": "admin", "reason": "new driver"}]


async def test_a_replica_knows_at_once_what_was_applied_at_another(start_intake: StartIntake) -> None:
    one, other = await start_intake(), await start_intake()
    await one.settle()
    for number in range(5):
        name = f"queue-{number}"
        await one.apply(a_document("queue", {"metadata.name": name}))
        status, answer = await other.post(an_operation(spec__queue=name))
        assert status == 201, answer
    answers = await asyncio.gather(*(each.post(an_operation(), "same") for each in (one, other) for _ in range(20)))
    assert sorted(status for status, _ in answers) == [200] * 39 + [201]


async def test_unknown_kinds_and_names_say_what_is_near(intake: Intake) -> None:
    kind = (await intake.http.get("/v1/documents/qeue")).json()
    name = (await intake.http.get("/v1/documents/queue/trainng")).json()
    contract = (await intake.http.get("/v1/documents/environment-contract")).json()

    assert 'did you mean "queue"?' in kind["detail"]
    assert 'did you mean "training"?' in name["detail"]
    assert "/v1/environments" in contract["detail"]


async def test_documents_that_the_stream_lost_are_told_again_at_the_next_start(
    start_intake: StartIntake, bus: Bus
) -> None:
    intake = await start_intake()
    await intake.settle()
    await _entry(bus, "project", "retail-eu", 1)
    await intake.stop()
    await api(bus, f"STREAM.PURGE.{streams.CATALOGUE}", {"filter": subjects.catalogue("queue", "training")})
    await start_intake()

    assert (await _entry(bus, "queue", "training", 1))["document"]
    found = [message.subject for message in await intake.messages(streams.CATALOGUE)]
    assert found.count(subjects.catalogue("project", "retail-eu")) == 1
