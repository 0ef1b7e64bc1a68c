"""From facts on the streams to alerts, over the whole life of each."""

import asyncio

import msgspec
import pytest

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import api
from landbridge.bus.requests import respond
from landbridge.schema.wire.event_v1 import AlertState, LinkState
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge.schema.wire.request_v1 import AskReply
from support.alerting_service import Alerting
from support.receiver import Receiver
from support.wait import wait_until


async def fires(alerting: Alerting, rule: str) -> dict[str, object]:
    found: dict[str, object] = await wait_until(lambda: alerting.firing(rule), f"{rule} fires")
    return found


async def ends(alerting: Alerting, rule: str) -> None:
    async def gone() -> bool:
        return await alerting.firing(rule) is None

    await wait_until(gone, f"{rule} ends")


async def test_an_aged_queue_fires_and_ends_when_its_operations_are_placed(alerting: Alerting) -> None:
    await alerting.assessed("a-1", "batch")
    await alerting.waiting(1, 2, 3)
    alert = await fires(alerting, "aged-queue")
    assert alert["labels"] == {"project": "retail", "queue": "batch"}
    assert (await alerting.told("aged-queue")).state is AlertState.FIRING
    await alerting.decided(1, 2, 3)
    await ends(alerting, "aged-queue")
    told = await alerting.told("aged-queue")
    assert told.state is AlertState.RESOLVED
    assert told.ends_at is not None
    assert [item["rule"] for item in await alerting.alerts("resolved")] == ["aged-queue"]


async def test_operations_that_go_at_once_are_no_alert(alerting: Alerting) -> None:
    for number in range(20):
        await alerting.waiting(number)
        await alerting.decided(number)
    await alerting.waiting(100)
    await fires(alerting, "aged-queue")
    [alert] = await alerting.alerts()
    assert "1 operation could run" in alert["description"]


async def test_a_cancelled_operation_waits_no_more(alerting: Alerting) -> None:
    await alerting.waiting(1)
    await fires(alerting, "aged-queue")
    await alerting.ended(1)
    await ends(alerting, "aged-queue")


async def test_unplaced_operations_are_told_by_reason(alerting: Alerting) -> None:
    await alerting.waiting(1, 2, by="eligibility", reason="incompatible")
    alert = await fires(alerting, "no-eligible-environment")
    assert alert["labels"] == {"project": "retail", "reason": "incompatible"}


async def test_what_is_said_again_does_not_start_the_wait_anew(alerting: Alerting) -> None:
    await alerting.waiting(1)
    await fires(alerting, "aged-queue")
    await alerting.waiting(1, reason="quota")
    await fires(alerting, "quota-exhausted")
    assert await alerting.firing("aged-queue") is not None


async def test_a_lost_environment_fires_and_ends_when_it_is_heard(alerting: Alerting) -> None:
    await alerting.contract()
    await alerting.link(LinkState.LOST, since_s=60)
    alert = await fires(alerting, "lost-environment")
    assert (alert["labels"], alert["severity"]) == ({"environment": "onprem-a"}, "critical")
    await alerting.link(LinkState.CONNECTED)
    await ends(alerting, "lost-environment")


async def test_a_removed_environment_is_not_missed(alerting: Alerting) -> None:
    await alerting.contract()
    await alerting.link(LinkState.LOST, since_s=60)
    await fires(alerting, "lost-environment")
    await alerting.contract(removed=True)
    await ends(alerting, "lost-environment")


async def test_failed_starts_fire(alerting: Alerting) -> None:
    await alerting.decided(1, 2, 3, 4)
    for number in range(1, 4):
        await alerting.not_started(number)
    alert = await fires(alerting, "failed-dispatch")
    assert alert["labels"] == {"environment": "onprem-a"}
    assert "image-not-found (3)" in str(alert["description"])


async def test_a_workload_that_failed_by_itself_is_no_failed_dispatch(alerting: Alerting) -> None:
    await alerting.decided(*range(5))
    for number in range(5):
        await alerting.ended(number, "failed")
    await alerting.dead_letter("ranking")  # something that fires, so that there is an end to wait for
    await fires(alerting, "dead-letters")
    assert [item["rule"] for item in await alerting.alerts()] == ["dead-letters"]


async def test_dead_letters_fire_with_their_reason(alerting: Alerting) -> None:
    await alerting.dead_letter("ranking", "PermanentFailure: not a decision")
    alert = await fires(alerting, "dead-letters")
    assert alert["labels"] == {"service": "ranking"}
    assert "not a decision" in str(alert["description"])


async def test_expired_and_failed_evidence_fire(alerting: Alerting) -> None:
    await alerting.contract()
    await alerting.link(LinkState.CONNECTED)
    await alerting.evidence("runtime", expires_s=-5)
    assert (await fires(alerting, "expired-evidence"))["labels"] == {"environment": "onprem-a"}
    await alerting.evidence("connections.models", result=EvidenceResult.FAILED, detail="no such bucket")
    await ends(alerting, "expired-evidence")
    alert = await fires(alerting, "unavailable-connection")
    assert (alert["labels"], alert["severity"]) == ({"connection": "models"}, "critical")


async def test_a_deleted_consumer_is_told_by_the_broker(alerting: Alerting, bus: Bus) -> None:
    await api(bus, "CONSUMER.DELETE.OPERATIONS.lineage")
    alert = await fires(alerting, "broker-advisory")
    assert alert["labels"] == {"about": "OPERATIONS/lineage"}


async def test_a_server_that_syncs_late_is_alerted_until_it_is_mended(start_alerting, bus: Bus) -> None:  # type: ignore[no-untyped-def]
    """As the contract-verifier tells it; where that does not answer, what was told last stands."""
    answer = AskReply(found=True, json=b'["nats-b"]')

    async def told(_: str, __: bytes) -> bytes:
        return msgspec.json.encode(answer)

    subscription = await respond(bus, subjects.ask("contract-verifier", "broker"), told)
    alerting: Alerting = await start_alerting(broker_seconds=0.1)
    alert = await fires(alerting, "broker-sync")
    assert (alert["labels"], alert["severity"]) == ({"server": "nats-b"}, "critical")
    answer = AskReply(found=False, message="no server has said yet")
    await asyncio.sleep(1)
    assert await alerting.firing("broker-sync") is not None
    await subscription.close()
    await asyncio.sleep(1)
    assert await alerting.firing("broker-sync") is not None
    answer = AskReply(found=True, json=b"[]")
    subscription = await respond(bus, subjects.ask("contract-verifier", "broker"), told)
    await ends(alerting, "broker-sync")
    await subscription.close()


async def test_an_alert_outlives_the_process_that_found_it(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    first: Alerting = await start_alerting()
    await first.dead_letter("ranking")
    before = await fires(first, "dead-letters")
    second: Alerting = await start_alerting()  # both run now, and take turns
    again = await fires(second, "dead-letters")
    assert again["startsAt"] == before["startsAt"]
    assert len(receiver.bodies) == 1


async def test_redelivered_waiting_does_not_bring_back_what_was_placed(alerting: Alerting) -> None:
    """After a crash, what was not acknowledged is delivered again, behind newer messages."""
    from landbridge.bus.envelope import Inbound
    from landbridge_alerting.handlers import OperationsHandler
    from support.alerting_service import operation

    handler = OperationsHandler(alerting.service.clock)
    await alerting.decided(1)
    await wait_until(lambda: alerting.service.loops[0].handled >= 1, "the decision was handled")
    body = msgspec.json.encode({"by": "ranking", "operations": [{"operation": operation(1)}], "reason": "quota"})
    late = Inbound("lb.v1.operation.waiting.retail", "id", "/r", "t", "", "", body, deliveries=2)
    async with alerting.service.database.transaction() as tx:
        await handler(tx, [late])
    assert await alerting.service.database.fetchval("select count(*) from waiting") == 0


# -- HTTP -------------------------------------------------------------------------------------------------------------


async def test_alerts_are_seen_by_those_who_see_the_project(alerting: Alerting) -> None:
    from landbridge.runtime.auth import digest

    tokens = {"shop": ("viewer", "retail"), "other": ("viewer", "search")}
    for name, (role, project) in tokens.items():
        entry = {"name": name, "role": role, "projects": [project], "tokenSha256": digest(f"token-of-{name}-0123")}
        assert alerting.service.auth.apply(name, entry)
    await alerting.waiting(1)
    await alerting.dead_letter("ranking")
    await fires(alerting, "aged-queue")
    await fires(alerting, "dead-letters")
    async with alerting.client("token-of-shop-0123") as shop, alerting.client("token-of-other-0123") as other:
        assert {item["rule"] for item in await alerting.alerts(client=shop)} == {"aged-queue", "dead-letters"}
        assert {item["rule"] for item in await alerting.alerts(client=other)} == {"dead-letters"}
        body = {"matchers": {"rule": "dead-letters"}, "duration": "1h"}
        assert (await shop.post("/v1/silences", json=body)).status_code == 403
    async with alerting.client("a-wrong-token-0123456789") as nobody:
        assert (await nobody.get("/v1/alerts")).status_code == 401


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"matchers": {}, "duration": "1h"}, "at least one label"),
        ({"matchers": {"rule": "x"}, "duration": "1000d"}, "90d"),
        ({"matchers": {"rule": "x"}, "duration": "soon"}, "such as 1h30m"),
        ({"matchers": {"rule": "x"}}, "duration"),
    ],
)
async def test_silences_that_make_no_sense_are_refused(alerting: Alerting, body: dict[str, object], told: str) -> None:
    answer = await alerting.http.post("/v1/silences", json=body)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]


async def test_an_unknown_state_is_refused(alerting: Alerting) -> None:
    answer = await alerting.http.get("/v1/alerts", params={"state": "burning"})
    assert answer.status_code == 422
