"""Submissions: one operation per key for ever, refusals in the same words everywhere, poison that keeps nobody back."""

import asyncio
import contextlib
import hashlib
import json
import signal
from base64 import b64decode
from typing import Any

import httpx2
import pytest

from integration.intake.conftest import StartChild, StartIntake
from landbridge.bus import subjects
from landbridge.bus.connection import Bus, frame
from landbridge.bus.publish import publish_batch
from landbridge.domain.documents import Refusal, canonical_json, read_document
from landbridge.domain.errors import Problem, render_problems
from landbridge.domain.ids import cloud_event_key, operation_id
from landbridge.runtime.clock import SystemClock
from landbridge.store import Database
from landbridge_embedded.nats import NatsServer
from landbridge_intake import messages
from support.intake_service import ADMIN, Intake, an_operation, current, stored
from support.wait import wait_until
from unit.documents.documents import a_document, as_json
from unit.documents.test_reading import WRONG


async def test_acknowledged_means_committed_and_told(intake: Intake, intake_db: Database) -> None:
    status, answer = await intake.post(an_operation(), "order-1")

    assert status == 201
    assert answer["operation"] == operation_id("retail-eu", "order-1")
    assert answer["existing"] is False
    assert await intake_db.fetchval("select count(*) from operation") == 1
    told = await wait_until(lambda: intake.told("accepted"), "it is told")
    assert told[0]["operation"] == answer["operation"]
    assert told[0]["opSeq"] == 1
    assert told[0]["queue"] == "training"
    body = await intake_db.fetchval("select body from content c join operation o on o.written_sha256 = c.sha256")
    assert body == an_operation()


async def test_the_same_key_and_content_is_the_same_operation_over_every_way_and_after_a_restart(
    intake: Intake, start_intake: StartIntake, intake_db: Database
) -> None:
    key = cloud_event_key("app", "e-1")
    body = an_operation()
    first = await intake.post(body, key)
    again = await intake.post(body, key)
    pretty = await intake.post(json.dumps(json.loads(body), indent=7, sort_keys=True).encode(), key)
    await intake.send([body], ids=["e-1"])
    await intake.quiet()
    await intake.stop()
    restarted = await start_intake()
    after = await restarted.post(body, key)
    await restarted.send([body], ids=["e-1"], source="app")
    await restarted.quiet()

    assert [first[0], again[0], pretty[0], after[0]] == [201, 200, 200, 200]
    assert len({answer["operation"] for _, answer in (first, again, pretty, after)}) == 1
    assert await intake_db.fetchval("select count(*) from operation") == 1
    assert len(await restarted.told("accepted")) == 1
    assert await restarted.told("refused") == []


async def test_the_same_key_with_other_content_is_a_conflict_that_names_the_first(intake: Intake) -> None:
    first = (await intake.post(an_operation(), "k"))[1]["operation"]
    status, answer = await intake.post(an_operation("other"), "k")

    assert status == 409
    assert answer["operation"] == first
    assert first in answer["problems"][0]["message"]


async def test_a_conflict_in_the_stream_is_told_in_the_stream(intake: Intake) -> None:
    await intake.send([an_operation()], ids=["e-1"])
    await intake.quiet()
    await intake.send([an_operation("other")], ids=["e-1"])
    await intake.quiet()
    first = operation_id("retail-eu", cloud_event_key("app", "e-1"))

    accepted, refused = await intake.told("accepted"), await intake.told("refused")
    assert [event["operation"] for event in accepted] == [first]
    assert [(event["source"], event["submission"], event["conflictsWith"]) for event in refused] == [
        ("app", "e-1", first)
    ]


async def test_a_hundred_callers_with_one_key_get_one_operation(intake: Intake, intake_db: Database) -> None:
    answers = await asyncio.gather(*(intake.post(an_operation(), "same") for _ in range(100)))

    assert sorted(status for status, _ in answers) == [200] * 99 + [201]
    assert len({answer["operation"] for _, answer in answers}) == 1
    assert await intake_db.fetchval("select count(*) from operation") == 1


async def test_what_was_accepted_stays_accepted_when_the_catalogue_no_longer_allows_it(intake: Intake) -> None:
    await intake.apply(a_document("queue", {"metadata.name": "vip"}))
    body = an_operation(spec__queue="vip")
    first = await intake.post(body, "k")
    assert (await intake.http.delete("/v1/documents/queue/vip")).status_code == 204

    assert (await intake.post(body, "k"))[0] == 200
    status, answer = await intake.post(body, "k2")
    assert first[0] == 201
    assert status == 422
    assert answer["problems"][0]["code"] == "unknown-queue"


async def test_the_problems_are_the_same_in_http_event_and_command_line(intake: Intake) -> None:
    read = read_document(WRONG)
    assert isinstance(read, Refusal)
    status, answer = await intake.post(WRONG, "k")
    await intake.send([WRONG], ids=["bad-1"])
    await intake.quiet()

    assert status == 422
    assert answer["text"] == read.text()
    told = [event for event in await intake.told("refused") if event["submission"] == "bad-1"]
    assert render_problems(Problem(**{"suggestion": "", **each}) for each in told[0]["problems"]) == read.text()
    assert len(answer["problems"]) == len(read.problems)


async def test_poison_is_refused_and_the_rest_flow(intake: Intake) -> None:
    poison = [b"", b"\x00\xff", b"[" * 200_000, b"{", b"a: &a [*a]", b"null", WRONG]
    bodies = [poison[n // 10 % len(poison)] if n % 10 == 5 else an_operation(f"op-{n}") for n in range(100)]
    names = await intake.send(bodies)
    await intake.quiet()

    accepted, refused = await intake.told("accepted"), await intake.told("refused")
    assert {event["submission"] for event in refused} == {n for n, b in zip(names, bodies, strict=True) if b in poison}
    assert len(accepted) == 90
    assert all(event["problems"] for event in refused)


async def test_a_message_that_is_no_event_is_told_to_its_project_and_kept(
    intake: Intake, bus: Bus, intake_db: Database
) -> None:
    subject = subjects.submit("retail-eu")
    await intake.bus.write(frame(subject, "", "", an_operation()))
    await wait_until(lambda: stored(bus, "SUBMISSIONS"), "it is stored")
    await intake.quiet()

    told = await wait_until(lambda: intake.told("refused"), "it is refused")
    assert told[0]["problems"][0]["code"] == "not-a-submission"
    assert await intake_db.fetchval("select count(*) from dead_letter") == 1


async def test_a_document_of_another_project_than_its_subject_is_refused(intake: Intake) -> None:
    await intake.apply(a_document("project", {"metadata.name": "search"}))
    await intake.send([an_operation(project="search")], ids=["x"], project="retail-eu")
    await intake.quiet()

    refused = await intake.told("refused")
    assert [problem["code"] for problem in refused[0]["problems"]] == ["wrong-project"]
    assert refused[0]["project"] == "retail-eu"
    assert await intake.told("accepted") == []


async def test_without_any_project_the_next_step_is_named(start_intake: StartIntake) -> None:
    intake = await start_intake()
    status, answer = await intake.post(an_operation(), "k")

    assert status == 422
    assert answer["text"].endswith("metadata.project: there is no project retail-eu; apply a Project first")


async def test_a_missing_key_is_minted_and_returned(intake: Intake) -> None:
    answer = await intake.http.post("/v1/operations", content=an_operation())

    key = answer.headers["Idempotency-Key"]
    assert answer.json()["idempotencyKey"] == key
    assert answer.headers["Location"] == f"/v1/operations/{operation_id('retail-eu', key)}"


@pytest.mark.parametrize("key", ["x" * 600, "\u00fc" * 600])
async def test_keys_that_cannot_be_kept_are_refused(intake: Intake, key: str) -> None:
    items = {"items": [{"document": json.loads(an_operation()), "idempotencyKey": key}]}
    answer = await intake.http.post("/v1/operations:bulk", json=items)

    assert answer.json()["items"][0]["problems"][0]["code"] == "bad-key"


async def test_bulk_answers_each_item_for_itself(intake: Intake) -> None:
    good = json.loads(an_operation())
    items = [
        {"document": good, "idempotencyKey": "a"},
        {"document": an_operation().decode(), "idempotencyKey": "a"},
        {"document": {**good, "kind": "Job"}},
        {"document": json.loads(an_operation("other")), "idempotencyKey": "a"},
        {"document": json.loads(an_operation("third"))},
        {"document": 42},
    ]
    answer = (await intake.http.post("/v1/operations:bulk", json={"items": items})).json()["items"]

    assert [item["status"] for item in answer] == [201, 200, 422, 409, 201, 422]
    assert answer[0]["operation"] == answer[1]["operation"] == answer[3]["operation"]
    assert len(await wait_until(lambda: intake.told("accepted"), "told")) == 2


async def test_bulk_takes_yaml_documents_and_json_lines(intake: Intake) -> None:
    stream = b"---\n" + an_operation("one") + b"\n---\n" + an_operation("two") + b"\n"
    lines = b"\n".join(json.dumps(json.loads(an_operation(name))).encode() for name in ("three", "four"))
    yaml = await intake.http.post(
        "/v1/operations:bulk", content=stream, headers={"Content-Type": "application/yaml", "Idempotency-Key": "y"}
    )
    ndjson = await intake.http.post(
        "/v1/operations:bulk", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    bare = await intake.http.post("/v1/operations:bulk", content=lines)

    for answer in (yaml, ndjson, bare):
        assert [item["status"] for item in answer.json()["items"]] == [201, 201], answer.text
    assert [item["idempotencyKey"] for item in yaml.json()["items"]] == ["y/0", "y/1"]


async def test_cloud_events_come_in_all_three_modes_and_are_one_by_source_and_id(intake: Intake) -> None:
    document = json.loads(an_operation())
    attributes = {"specversion": "1.0", "id": "e-1", "source": "/app", "type": "x"}
    binary = await intake.http.post(
        "/v1/events",
        content=an_operation(),
        headers={**{f"ce-{name}": value for name, value in attributes.items()}, "Content-Type": "application/json"},
    )
    structured = await intake.http.post(
        "/v1/events",
        content=json.dumps({**attributes, "data": document}),
        headers={"Content-Type": "application/cloudevents+json"},
    )
    batch = await intake.http.post(
        "/v1/events",
        content=json.dumps([{**attributes, "data": document}, {**attributes, "id": "e-2", "data": document}]),
        headers={"Content-Type": "application/cloudevents-batch+json; charset=utf-8"},
    )

    assert binary.status_code == 201, binary.text
    assert structured.status_code == 200, structured.text
    assert [item["status"] for item in batch.json()["items"]] == [200, 201], batch.text
    assert binary.json()["operation"] == operation_id("retail-eu", "/app#e-1")


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, b"{}", 422),
        ({"ce-id": "1"}, b"{}", 422),
        ({"Content-Type": "application/cloudevents+json"}, b"{", 422),
        ({"Content-Type": "application/cloudevents+json"}, b'{"id": "1"}', 422),
        ({"Content-Type": "application/cloudevents-batch+json"}, b"{}", 422),
        ({"Content-Type": "application/cloudevents-batch+json"}, b"[1]", 422),
        ({"Content-Type": "application/cloudevents+xml"}, b"<a/>", 415),
        ({"Content-Type": "application/cloudevents+json"}, b"[" * 100_000, 422),
    ],
)
async def test_what_is_no_cloud_event_is_refused(
    intake: Intake, headers: dict[str, str], body: bytes, status: int
) -> None:
    answer = await intake.http.post("/v1/events", content=body, headers=headers)

    assert answer.status_code == status, answer.text


async def test_validating_tells_the_effective_operation_and_stores_nothing(intake: Intake, intake_db: Database) -> None:
    preset = a_document("preset", {"spec.patch.env": {"MODE": "night"}})
    await intake.apply(preset)
    good = (await intake.http.post("/v1/validate", content=an_operation(spec__presets=["overnight"]))).json()
    bad = (await intake.http.post("/v1/validate", content=an_operation(spec__presets=["overnigt"]))).json()

    assert good["valid"] is True
    assert good["effective"]["spec"]["env"] == {"MODE": "night"}
    assert good["provenance"]["spec.env.MODE"] == "preset overnight@2"
    assert bad["valid"] is False
    assert bad["problems"][0]["suggestion"] == 'did you mean "overnight"?'
    assert await intake_db.fetchval("select count(*) from operation") == 0


async def test_what_validating_shows_is_what_is_accepted_byte_for_byte(intake: Intake) -> None:
    patch = {"spec.patch.env": {"MODE": "night"}, "spec.environments": {"quay": {"env": {"CACHE": "/here"}}}}
    await intake.apply(a_document("preset", patch), a_document("component"))
    body = an_operation(spec__presets=["overnight"], spec__component="trainer", spec__parameters={"lr": "0.5"})
    shown = (await intake.http.post("/v1/validate", content=body)).json()
    assert (await intake.post(body, "k"))[0] == 201

    (accepted,) = await wait_until(lambda: intake.told("accepted"), "it is told")
    assert b64decode(accepted["effective"]) == canonical_json(shown["effective"])
    assert shown["effective"]["environmentSettings"] == {"quay": {"env": {"CACHE": "/here"}}}
    assert accepted["effectiveSha256"] == hashlib.sha256(canonical_json(shown["effective"])).hexdigest()


async def test_a_retry_repeats_the_first_submission_and_says_so(intake: Intake) -> None:
    first = (await intake.post(an_operation(), "k"))[1]["operation"]
    status, answer = await intake.post(b"", "again", f"/v1/operations/{first}/retry")
    repeated = await intake.post(b"", "again", f"/v1/operations/{first}/retry")

    assert (status, repeated[0]) == (201, 200)

    async def retries() -> list[str]:
        return [event["operation"] for event in await intake.told("accepted") if event.get("retryOf") == first]

    assert await wait_until(retries, "the retry is told") == [answer["operation"]]
    assert answer["operation"] != first


async def test_cancelling_is_a_wish_for_the_coordinator(intake: Intake) -> None:
    operation = (await intake.post(an_operation(), "k"))[1]["operation"]
    status, _ = await intake.post(b'{"reason": "wrong data"}', path=f"/v1/operations/{operation}/cancel")
    unknown, _ = await intake.post(b"", path="/v1/operations/6b0c6b0e-6f0a-5d0e-9d0b-7a4c1b9c2e61/cancel")
    nonsense, _ = await intake.post(b"", path="/v1/operations/x/cancel")

    assert (status, unknown, nonsense) == (202, 404, 404)
    told = await wait_until(lambda: intake.told(subjects.intent("cancel", "x")[:-2], "INTENTS"), "the wish is told")
    assert told == [{"operation": operation, "by": "admin", "reason": "wrong data"}]


async def test_roles_and_projects_decide_who_may_submit(intake: Intake, bus: Bus) -> None:
    at = SystemClock().wall()
    for name, role, project in (
        ("v", "viewer", "retail-eu"),
        ("s", "submitter", "search"),
        ("ok", "submitter", "retail-eu"),
    ):
        token = hashlib.sha256(f"token-of-{name}-for-tests".encode()).hexdigest()
        document = json.dumps({"name": name, "role": role, "projects": [project], "tokenSha256": token}).encode()
        entry = messages.catalogue_entry("access", name, 1, document, "", at)
        await publish_batch(bus, "CATALOGUE", [entry])
    await wait_until(lambda: len(intake.service.auth._by_digest) == 3, "the entries are known")

    async def submit(token: str) -> int:
        async with intake.client(token) as client:
            return (await client.post("/v1/operations", content=an_operation())).status_code

    assert await submit("token-of-v-for-tests") == 403
    assert await submit("token-of-s-for-tests") == 404
    assert await submit("token-of-ok-for-tests") == 201
    assert await submit("nobody-knows-this-token") == 401
    async with intake.client("token-of-ok-for-tests") as client:
        assert (await client.post("/v1/documents", content=as_json(a_document("queue")))).status_code == 403
        assert (await client.post("/v1/environments/x/pause")).status_code == 403
    async with httpx2.AsyncClient(base_url=intake.http.base_url) as nobody:
        for method, path in (
            ("POST", "/v1/operations"),
            ("POST", "/v1/operations:bulk"),
            ("POST", "/v1/events"),
            ("POST", "/v1/validate"),
            ("POST", "/v1/documents"),
            ("GET", "/v1/documents/queue"),
            ("GET", "/v1/documents/queue/x"),
            ("DELETE", "/v1/documents/queue/x"),
            ("POST", "/v1/operations/x/cancel"),
            ("POST", "/v1/operations/x/retry"),
            ("POST", "/v1/environments/x/pause"),
        ):
            assert (await nobody.request(method, path)).status_code == 401, path


async def test_too_much_waiting_to_be_published_is_answered_with_429(start_intake: StartIntake) -> None:
    intake = await start_intake(outbox_events_limit=5)
    await intake.settle()
    intake.service.committer.lane.events = 6  # as if the broker had been away
    answer = await intake.http.post("/v1/operations", content=an_operation())

    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    intake.service.committer.lane.events = 0
    assert (await intake.post(an_operation()))[0] == 201


async def test_callers_are_answered_while_the_broker_is_away_and_nothing_is_lost(
    intake: Intake, nats_server: NatsServer, bus: Bus
) -> None:
    await wait_until(lambda: intake.service.outbox.backlog.events == 0, "all is published")
    await nats_server.stop()
    answers = [await intake.post(an_operation(f"op-{n}"), f"k-{n}") for n in range(3)]
    await nats_server.start()
    await bus.wait_connected(15)

    assert [status for status, _ in answers] == [201] * 3

    async def all_told() -> bool:
        return len(await intake.told("accepted")) == 3

    await wait_until(all_told, "they are told once the broker is back", timeout_s=30)


@pytest.mark.parametrize("point", ["intake.after-commit", "intake.before-publish"])
async def test_killed_between_commit_and_publication_the_event_is_published_at_the_next_start(
    start_child: StartChild, intake: Intake, point: str
) -> None:
    child = await start_child(LANDBRIDGE_FAILPOINTS=f"{point}=kill")
    async with intake.client(ADMIN) as client:
        with contextlib.suppress(httpx2.HTTPError):  # it may have answered just before
            await client.post(
                f"http://127.0.0.1:{child.port}/v1/operations",
                content=an_operation(),
                headers={"Idempotency-Key": "k"},
            )
    assert await child.ended() == -signal.SIGKILL
    assert await intake.told("accepted") == []
    await start_child()

    told = await wait_until(lambda: intake.told("accepted"), "the event is published")
    assert [event["operation"] for event in told] == [operation_id("retail-eu", "k")]
    assert (await intake.post(an_operation(), "k"))[0] == 200


@pytest.mark.parametrize("point", ["loop.before-commit", "loop.after-commit", "loop.after-publish"])
async def test_killed_anywhere_in_the_loop_every_submission_becomes_one_operation(
    start_child: StartChild, intake: Intake, intake_db: Database, point: str
) -> None:
    await intake.stop()
    child = await start_child(LANDBRIDGE_FAILPOINTS=f"{point}=kill")
    names = await intake.send([an_operation(f"op-{n}") for n in range(50)])
    assert await child.ended() == -signal.SIGKILL
    await start_child()
    await intake.quiet()

    wanted = {operation_id("retail-eu", cloud_event_key("app", name)) for name in names}
    assert {event["operation"] for event in await intake.told("accepted")} == wanted
    assert await intake_db.fetchval("select count(*) from operation") == 50


async def test_every_catalogue_document_is_told_with_its_version(intake: Intake, bus: Bus) -> None:
    subject = subjects.catalogue("queue", "training")

    async def told() -> dict[str, Any]:
        return (await current(bus, "CATALOGUE", subjects.catalogue("*", "*"))).get(subject, {})

    entry = await wait_until(told, "the queue is told")
    assert (entry["kind"], entry["name"], entry["version"]) == ("queue", "training", 1)


async def test_only_operators_may_force_a_cancel(intake: Intake, bus: Bus) -> None:
    token = hashlib.sha256(b"token-of-a-submitter").hexdigest()
    document = json.dumps({"name": "s", "role": "submitter", "projects": ["*"], "tokenSha256": token}).encode()
    entry = messages.catalogue_entry("access", "s", 1, document, "", SystemClock().wall())
    await publish_batch(bus, "CATALOGUE", [entry])
    await wait_until(lambda: intake.service.auth.principal_of("token-of-a-submitter"), "the entry is known")
    operation = (await intake.post(an_operation(), "k"))[1]["operation"]
    path = f"/v1/operations/{operation}/cancel"
    async with intake.client("token-of-a-submitter") as client:
        forced = await client.post(path, json={"force": True})
        plain = await client.post(path, json={})
        wrong = await client.post(path, json={"reason": "x" * 2000})

    assert (forced.status_code, plain.status_code, wrong.status_code) == (403, 202, 422)
    assert (await intake.post(b'{"force": true}', path=path))[0] == 202


async def test_a_project_submits_no_more_a_minute_than_it_may(start_intake: StartIntake, redis_url: str) -> None:
    intake = await start_intake(redis_url=redis_url)
    await intake.apply(a_document("queue"), a_document("project", {"spec.limits": {"submissionsPerMinute": 5}}))
    await intake.post(an_operation(), "first")  # brings the catalogue up to date
    statuses = [(await intake.post(an_operation(), f"k-{n}"))[0] for n in range(12)]

    assert statuses.count(429) >= 2  # 12 in at most two windows of a minute
    assert statuses[0] == 201
