"""Webhooks over real HTTP: what receivers are told, how often, and where nothing is sent to."""

from landbridge.store import Database
from support.alerting_service import Alerting
from support.receiver import Receiver
from support.wait import wait_until


async def pending_notifications(database: Database) -> list[str]:
    return [row["last_error"] for row in await database.fetch("select last_error from notification")]


async def test_a_receiver_is_told_of_the_beginning_and_of_the_end(alerting: Alerting, receiver: Receiver) -> None:
    await alerting.waiting(1)
    await wait_until(lambda: receiver.alerts("aged-queue"), "the receiver is told")
    body = receiver.bodies[0]
    assert (body["version"], body["status"], body["receiver"]) == ("4", "firing", "ops")
    labels = {"alertname": "aged-queue", "severity": "warning", "project": "retail", "queue": "default"}
    assert receiver.alerts("aged-queue") == [("firing", labels)]
    await alerting.decided(1)
    await wait_until(lambda: receiver.alerts("aged-queue") == [("resolved", labels)], "the receiver is told of the end")
    assert len(receiver.bodies) == 2
    assert receiver.hosts[0] == f"127.0.0.1:{receiver.port}"


async def test_a_receiver_that_fails_is_told_later_and_once(alerting: Alerting, receiver: Receiver) -> None:
    receiver.answers = [500, 503, 429]
    await alerting.dead_letter("ranking")
    await wait_until(receiver.alerts, "the receiver is told in the end", timeout_s=40)
    assert len(receiver.bodies) == 1
    assert len(receiver.hosts) == 4


async def test_a_receiver_that_was_down_hears_of_the_present(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    alerting: Alerting = await start_alerting()
    receiver.answers = [500]
    await alerting.dead_letter("ranking")
    await wait_until(lambda: receiver.hosts, "the first attempt was made")
    await alerting.dead_letter("intake")
    await wait_until(lambda: len(receiver.alerts("dead-letters")) == 2, "both are in one notification")


async def test_an_alert_that_came_and_went_unheard_is_not_told(alerting: Alerting, receiver: Receiver) -> None:
    receiver.answers = [500]
    await alerting.waiting(1)
    await wait_until(lambda: receiver.hosts, "the first attempt was made")
    await alerting.decided(1)

    async def nothing_left() -> bool:
        return not await alerting.alerts() and not await pending_notifications(alerting.service.database)

    await wait_until(nothing_left, "nothing is left to tell")
    assert receiver.bodies == []


async def test_a_redirect_is_not_followed(alerting: Alerting, receiver: Receiver) -> None:
    receiver.answers = [302]
    await alerting.dead_letter("ranking")

    async def told() -> bool:
        return any("redirect" in error for error in await pending_notifications(alerting.service.database))

    await wait_until(told, "the redirect is noted")
    assert receiver.bodies == []


async def test_a_private_target_is_refused_unless_allowed(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    alerting: Alerting = await start_alerting(webhook_allow="")
    await alerting.dead_letter("ranking")

    async def refused() -> bool:
        return any("not public" in error for error in await pending_notifications(alerting.service.database))

    await wait_until(refused, "the target is refused")
    assert receiver.hosts == []
    await wait_until(lambda: _degraded(alerting), "the failing receiver is named")
    assert (await alerting.http.get("/readyz")).status_code == 200


async def _degraded(alerting: Alerting) -> bool:
    return "ops" in (await alerting.http.get("/readyz?verbose")).text


async def test_secrets_in_urls_are_not_kept(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    alerting: Alerting = await start_alerting()
    receiver.answers = [404]
    await alerting.dead_letter("ranking")

    async def noted() -> list[str]:
        return [error for error in await pending_notifications(alerting.service.database) if error]

    [error] = await wait_until(noted, "the failure is noted")
    assert "404" in error
    assert "SECRET" not in error


async def test_what_goes_on_is_told_again_after_a_while(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    alerting: Alerting = await start_alerting(repeat_seconds=1)
    await alerting.dead_letter("ranking")
    await wait_until(lambda: len(receiver.bodies) >= 3, "it was told again, and again")


async def test_a_silenced_alert_is_shown_and_not_sent(alerting: Alerting, receiver: Receiver) -> None:
    body = {"matchers": {"rule": "dead-letters", "service": "ranking"}, "duration": "1h", "comment": "known"}
    silence = (await alerting.http.post("/v1/silences", json=body)).json()
    await alerting.dead_letter("ranking")
    await alerting.dead_letter("intake")
    await wait_until(lambda: receiver.alerts("dead-letters"), "the other one is told")
    assert [labels["service"] for _, labels in receiver.alerts("dead-letters")] == ["intake"]
    shown = {item["labels"]["service"]: item["silenced"] for item in await alerting.alerts()}
    assert shown == {"ranking": True, "intake": False}
    assert (await alerting.http.get("/v1/silences")).json()["items"][0]["comment"] == "known"
    assert (await alerting.http.delete(f"/v1/silences/{silence['id']}")).status_code == 200
    assert (await alerting.http.delete(f"/v1/silences/{silence['id']}")).status_code == 404
    await alerting.dead_letter("lineage")
    await wait_until(lambda: len(receiver.alerts("dead-letters")) == 3, "all are told")


async def test_replicas_do_not_tell_twice(start_alerting, receiver: Receiver) -> None:  # type: ignore[no-untyped-def]
    alerting: Alerting = await start_alerting()
    await start_alerting()
    receiver.delay_s = 0.3
    await alerting.dead_letter("ranking")
    await wait_until(lambda: receiver.bodies, "the receiver is told")
    await alerting.waiting(1)
    await wait_until(lambda: receiver.alerts("aged-queue"), "the receiver is told of the next")
    rules = [body["groupLabels"]["alertname"] for body in receiver.bodies]
    assert sorted(rules) == ["aged-queue", "dead-letters"]
