"""Intake and an application with the credentials that they have in production."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from fixtures.bus import SecuredNats
from landbridge.bus import accounts, streams, subjects
from landbridge.bus.envelope import Outbound
from landbridge.bus.publish import publish_batch
from landbridge_intake.service import IntakeService
from landbridge_intake.settings import IntakeSettings
from support.intake_service import ADMIN_SHA256, SUBMISSION, Intake, an_operation
from support.wait import wait_until


async def test_an_application_submits_and_hears_what_became_of_it(
    secured: SecuredNats, migrated_dsn: Callable[..., Awaitable[str]]
) -> None:
    creds = secured.root / "intake.creds"
    creds.write_text(accounts.service_user(secured.keys, "intake").credentials)
    service = IntakeService(
        IntakeSettings(
            nats_url=secured.server.url,
            nats_creds=creds,
            postgres_dsn=await migrated_dsn("intake"),
            admin_token_sha256=ADMIN_SHA256,
        )
    )
    task = asyncio.create_task(service.run())
    await wait_until(lambda: service.health.started or task.done(), "intake has started")
    application = await secured.application("retail-eu")
    heard: list[tuple[str, str]] = []

    async def hear(message: object) -> None:
        body = json.loads(message.data)  # type: ignore[attr-defined]
        heard.append((subjects.token(message.subject, 3), body.get("submission") or body["name"]))  # type: ignore[attr-defined]

    subscription = await application.subscribe(subjects.operation("*", "retail-eu"), hear)
    intake = Intake(service.port, application)
    await intake.settle()
    submissions = [
        Outbound(subjects.submit("retail-eu"), SUBMISSION, body, id=name)
        for name, body in (("good", an_operation()), ("bad", b"nonsense"))
    ]
    await publish_batch(application, streams.SUBMISSIONS, submissions)
    await wait_until(lambda: len(heard) == 2, "both are answered")

    assert sorted(heard) == [("accepted", "churn-train"), ("refused", "bad")]
    await subscription.close()
    await intake.close()
    service.stop()
    assert await asyncio.wait_for(task, 30) == 0
