"""What must NOT work: every attack of an environment, a service or an application on what is not its own."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest

from fixtures.bus import SecuredNats
from landbridge.bus import permissions, streams, subjects
from landbridge.bus.connection import Bus, frame
from landbridge.bus.consume import Consumer
from landbridge.bus.declare import api
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError, NotPermitted
from landbridge.bus.publish import publish_batch
from support.wait import wait_until

X, Y = "onprem-a", "cloud-b"
NEXT = "$JS.API.CONSUMER.MSG.NEXT"
PULL = json.dumps({"batch": 10, "expires": 300_000_000}).encode()


async def refused(attempt: Awaitable[Any]) -> bool:
    """Whether an attempt fails on the bus; silence counts, the server does not always say why."""
    try:
        await attempt
    except BusError:
        return True
    return False


async def ignore(_: object) -> None:
    """Hear and forget."""


async def ask(bus: Bus, subject: str, body: bytes = b"", headers: str = "") -> Any:
    """Publish with our inbox as reply; raises if nothing but an error comes back."""
    message = await bus.request_message(subject, body, 0.4, headers)
    if message.data and "error" in json.loads(message.data):
        raise BusError(message.data)
    return message


async def count(secured: SecuredNats, stream: str) -> int:
    found: int = (await api(await secured.service("streams"), f"STREAM.INFO.{stream}"))["state"]["messages"]
    return found


@pytest.fixture
async def sites(secured: SecuredNats) -> tuple[Bus, Bus]:
    """X, the attacker, and Y; a command waits for Y."""
    pair = await secured.register(X), await secured.register(Y)
    coordinator = await secured.service("coordinator")
    await publish_batch(coordinator, "COMMANDS", [Outbound(subjects.command(Y, "offer"), "t", b"for Y only")])
    return pair


# -- an environment against another -----------------------------------------------------------------------------------


async def test_x_cannot_read_the_commands_of_y(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, y = sites
    heard: list[bytes] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.data)

    for subject in (
        subjects.every("command", Y),
        "lb.v1.command.>",
        ">",
        "$JS.>",
        "lb.v1.>",
        subjects.every("query", Y),
    ):
        await x.subscribe(subject, hear)
    await x.settle()
    assert await refused(ask(x, f"{NEXT}.COMMANDS.env-{Y}", PULL))
    assert await refused(ask(x, f"{NEXT}.COMMANDS.env-*", PULL))
    assert await refused(ask(x, "$JS.API.STREAM.MSG.GET.COMMANDS", b'{"seq":1}'))
    assert await refused(ask(x, "$JS.API.DIRECT.GET.COMMANDS", b'{"seq":1}'))
    assert await refused(ask(x, f"$JS.API.DIRECT.GET.COMMANDS.{subjects.command(Y, 'offer')}"))
    consumer = Consumer(y, "COMMANDS", f"env-{Y}")
    [message] = await consumer.take(10)
    assert message.body == b"for Y only"
    await consumer.stop()
    assert heard == []


async def test_x_cannot_acknowledge_or_end_the_commands_of_y(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, y = sites
    consumer = Consumer(y, "COMMANDS", f"env-{Y}")
    [message] = await consumer.take(10)
    for body in (b"+ACK", b"+TERM"):
        await x.write(frame(message.reply, "", "", body))
        assert await refused(ask(x, message.reply, body))
    await consumer.nak([message])
    [again] = await consumer.take(10)
    assert again.body == b"for Y only"
    await consumer.stop()


async def test_x_cannot_speak_for_y(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, _ = sites
    coordinator = await secured.service("coordinator")
    asked: list[str] = []

    async def note(subject: str, body: bytes) -> bytes:
        asked.append(subject)
        return body

    await coordinator.respond(subjects.lease("*"), note)
    await coordinator.respond(subjects.claim("*"), note)
    forged = [
        subjects.report(Y, "attempts"),
        subjects.lease(Y),
        subjects.claim(Y),
        subjects.answer(Y, "token"),
        subjects.command(Y, "stop"),
        subjects.command(X, "stop"),
        subjects.environment("link", Y),
        subjects.environment("link", X),
        subjects.operation("completed", "retail"),
        subjects.catalogue("access", "me"),
        subjects.submit("retail"),
        subjects.alert("any"),
        subjects.deadletter("intake"),
    ]
    before = {spec.name: await count(secured, spec.name) for spec in streams.STREAMS}
    for subject in forged:
        assert await refused(ask(x, subject, b"{}")), subject
    assert {name: await count(secured, name) for name in before} == before
    assert asked == []


async def test_x_cannot_answer_a_question_to_y(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    """Even knowing the random token of the answer."""
    x, y = sites
    lineage = await secured.service("lineage")
    asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    answers: list[bytes] = []

    async def on_query(msg: Any) -> None:
        asked.set_result(msg.reply)

    async def on_answer(msg: Any) -> None:
        answers.append(msg.data)

    await y.subscribe(subjects.every("query", Y), on_query)
    await y.settle()
    reply = subjects.answer(Y, "known")
    await lineage.subscribe(reply, on_answer)
    await lineage.write(frame(subjects.query(Y, "logs"), reply, "", b""))
    assert await asyncio.wait_for(asked, 5)
    for target in (reply, await asked):
        await x.write(frame(target, "", "", b"forged"))
    await x.settle()
    await y.write(frame(await asked, "", "", b"genuine"))
    await wait_until(lambda: answers, "the answer arrives")
    assert answers == [b"genuine"]


@pytest.mark.parametrize("carrier", ["report", "lease", "claim", "next", "ack", "answer"])
async def test_no_reply_subject_speaks_for_another(secured: SecuredNats, sites: tuple[Bus, Bus], carrier: str) -> None:
    """The server does not check reply subjects: an answer to X must not land on a subject of anybody else."""
    x, _ = sites
    coordinator = await secured.service("coordinator")

    async def answer(_: str, body: bytes) -> bytes:
        return body

    await coordinator.respond(subjects.lease("*"), answer)
    await coordinator.respond(subjects.claim("*"), answer)
    await publish_batch(coordinator, "COMMANDS", [Outbound(subjects.command(X, "offer"), "t", b"bait")])
    through = {
        "report": subjects.report(X, "attempts"),
        "lease": subjects.lease(X),
        "claim": subjects.claim(X),
        "next": f"{NEXT}.COMMANDS.env-{X}",
        "ack": f"$JS.ACK.COMMANDS.env-{X}.1.2.1.1796035474265192121.0",
        "answer": subjects.answer(X, "t"),
    }[carrier]
    victims = [
        subjects.report(Y, "attempts"),
        subjects.lease(Y),
        subjects.answer(Y, "t"),
        subjects.command(Y, "stop"),
        subjects.operation("completed", "retail"),
        subjects.environment("contract", Y),
        "$JS.API.STREAM.DELETE.OPERATIONS",
    ]
    before = {spec.name: await count(secured, spec.name) for spec in streams.STREAMS}
    for victim in victims:
        await x.write(frame(through, victim, "", PULL))
        await x.settle()
    await coordinator.settle()
    own_reports = len(victims) if carrier == "report" else 0
    stored = before["REPORTS"] + own_reports
    await wait_until(lambda: _has(secured, "REPORTS", stored), "X's own reports are stored")
    after = {spec.name: await count(secured, spec.name) for spec in streams.STREAMS}
    assert after == {**before, "REPORTS": before["REPORTS"] + own_reports}


async def test_x_cannot_touch_streams_or_consumers(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, _ = sites
    config = {"name": "MINE", "subjects": ["mine.>"]}
    consumer = {"stream_name": "COMMANDS", "config": {"durable_name": f"env-{Y}", "filter_subject": "lb.v1.command.>"}}
    attempts: list[tuple[str, Any]] = [
        ("STREAM.CREATE.MINE", config),
        ("STREAM.UPDATE.COMMANDS", {"name": "COMMANDS", "subjects": ["lb.v1.>"]}),
        ("STREAM.DELETE.COMMANDS", None),
        ("STREAM.PURGE.COMMANDS", None),
        ("STREAM.INFO.COMMANDS", None),
        ("STREAM.NAMES", None),
        ("STREAM.LIST", None),
        ("STREAM.MSG.DELETE.COMMANDS", {"seq": 1}),
        ("STREAM.SNAPSHOT.COMMANDS", {"deliver_subject": "x"}),
        (f"CONSUMER.CREATE.COMMANDS.env-{Y}.lb.v1.command.>", consumer),
        (f"CONSUMER.CREATE.COMMANDS.env-{X}", consumer),
        (f"CONSUMER.DURABLE.CREATE.COMMANDS.env-{X}", consumer),
        (f"CONSUMER.DELETE.COMMANDS.env-{Y}", None),
        (f"CONSUMER.DELETE.COMMANDS.env-{X}", None),
        (f"CONSUMER.INFO.COMMANDS.env-{Y}", None),
        ("CONSUMER.NAMES.COMMANDS", None),
        (f"CONSUMER.PAUSE.COMMANDS.env-{Y}", {"pause_until": "2099-01-01T00:00:00Z"}),
        (f"CONSUMER.RESET.COMMANDS.env-{Y}", None),
        ("INFO", None),
    ]
    for prefix in ("$JS.API", "$JS.hub.API"):
        for path, body in attempts:
            assert await refused(ask(x, f"{prefix}.{path}", json.dumps(body).encode() if body else b"")), path
    assert await count(secured, "COMMANDS") == 1
    names = (await api(await secured.service("streams"), "STREAM.NAMES"))["streams"]
    assert sorted(names) == sorted(spec.name for spec in streams.STREAMS)


async def test_x_cannot_touch_the_system_account(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, _ = sites
    hub = secured.keys.hub.public
    for subject in (
        "$SYS.REQ.CLAIMS.UPDATE",
        "$SYS.REQ.CLAIMS.DELETE",
        "$SYS.REQ.CLAIMS.LIST",
        "$SYS.REQ.SERVER.PING.CONNZ",
        f"$SYS.REQ.ACCOUNT.{hub}.CONNZ",
        f"$SYS.REQ.ACCOUNT.{hub}.CLAIMS.LOOKUP",
    ):
        assert await refused(ask(x, subject, b"{}")), subject


async def test_headers_of_x_change_nothing_of_y(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    """Roll-ups, expiry and schedules are off; ids are random, so that a guessed one swallows or joins nothing."""
    x, y = sites
    await publish_batch(y, "REPORTS", [Outbound(subjects.report(Y, "attempts"), "t", b"1", id="guessed")])
    mine = subjects.report(X, "attempts")
    for header in ("Nats-Rollup: all", "Nats-TTL: 1s", "Nats-Schedule: @at 2026-01-01T00:00:00Z"):
        assert await refused(ask(x, mine, b"", f"NATS/1.0\r\n{header}\r\n")), header
    await ask(x, mine, b"", "NATS/1.0\r\nNats-Msg-Id: guessed-2\r\n")
    await publish_batch(y, "REPORTS", [Outbound(subjects.report(Y, "attempts"), "t", b"2", id="guessed-2")])
    assert await count(secured, "REPORTS") == 3


async def test_a_flood_of_pulls_is_bounded_and_harms_only_x(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    x, y = sites
    await x.write(b"".join(frame(f"{NEXT}.COMMANDS.env-{X}", f"{x.new_inbox()}.1", "", PULL) for _ in range(2000)))
    await x.settle()
    info = await api(await secured.service("streams"), f"CONSUMER.INFO.COMMANDS.env-{X}")
    assert info["num_waiting"] <= streams.MAX_WAITING
    consumer = Consumer(y, "COMMANDS", f"env-{Y}")
    assert len(await consumer.take(10)) == 1
    await consumer.stop()


async def test_x_cannot_use_the_inbox_of_others_in_its_own_account(secured: SecuredNats) -> None:
    x = await secured.register(X)
    await x.subscribe("_INBOX_other.>", ignore)
    await x.settle()
    await wait_until(lambda: any("_inbox_other" in text for text in x.denied), "the subscription is refused")


# -- services ---------------------------------------------------------------------------------------------------------

ALL_WRITES = sorted(
    {
        subject.replace("*", "any").replace(">", "any")
        for grant in permissions.SERVICES.values()
        for subject in grant.writes
    }
)
SERVICES = sorted(set(permissions.SERVICES) - {"streams"})


def allowed(service: str, subject: str) -> bool:
    """The table, read independently of how users are made."""

    def covers(pattern: str) -> bool:
        want, have = pattern.split("."), subject.split(".")
        for i, part in enumerate(want):
            if part == ">":
                return len(have) > i
            if i >= len(have) or part not in ("*", have[i]):
                return False
        return len(want) == len(have)

    return any(covers(pattern) for pattern in permissions.SERVICES[service].writes)


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_writes_only_its_own_subjects(secured: SecuredNats, service: str) -> None:
    bus = await secured.service(service)
    for subject in [
        *ALL_WRITES,
        subjects.report(X, "attempts"),
        subjects.submit("retail"),
        subjects.deadletter("other"),
    ]:
        outcome = publish_batch(bus, streams.stream_of(subject), [Outbound(subject, "t", b"{}")], deadline_s=0.5)
        assert await refused(outcome) != allowed(service, subject), subject


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_reads_only_its_own_durables(secured: SecuredNats, service: str) -> None:
    bus = await secured.service(service)
    own = {(spec.stream, spec.name) for spec in streams.DURABLES if spec.name == service}
    for spec in streams.DURABLES:
        if (spec.stream, spec.name) not in own:
            with pytest.raises(NotPermitted):
                await bus.request(f"{NEXT}.{spec.stream}.{spec.name}", PULL, 2)
            with pytest.raises(NotPermitted):
                await bus.request(f"$JS.ACK.{spec.stream}.{spec.name}.1.1.1.1.1", b"+ACK", 2)
    for family in ("command", "report", "submit", "intent", "deadletter", "lease", "claim"):
        if not any(family == subjects.family(subject) for subject in permissions.SERVICES[service].answers):
            await bus.subscribe(subjects.every(family), ignore)
            await wait_until(lambda: any(f"lb.v1.{family}.>" in text for text in bus.denied), f"{family} is refused")  # noqa: B023


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_creates_and_deletes_nothing(secured: SecuredNats, service: str) -> None:
    bus = await secured.service(service)
    consumer = json.dumps(
        {"stream_name": "OPERATIONS", "config": {"durable_name": "spy", "ack_policy": "none"}}
    ).encode()
    for path in (
        "STREAM.CREATE.MINE",
        "STREAM.DELETE.OPERATIONS",
        "STREAM.PURGE.OPERATIONS",
        "STREAM.UPDATE.OPERATIONS",
        "STREAM.MSG.GET.COMMANDS",
        "STREAM.MSG.DELETE.OPERATIONS",
        "CONSUMER.CREATE.OPERATIONS.spy",
        "CONSUMER.CREATE.OPERATIONS.spy.lb.v1.operation.>",
        "CONSUMER.DURABLE.CREATE.OPERATIONS.spy",
        "CONSUMER.DELETE.OPERATIONS.lineage",
        "DIRECT.GET.COMMANDS",
        "DIRECT.GET.SUBMISSIONS",
    ):
        with pytest.raises(NotPermitted):
            await bus.request(f"$JS.API.{path}", consumer, 2)
    with pytest.raises(NotPermitted):
        await bus.request("$SYS.REQ.CLAIMS.UPDATE", b"", 2)


async def test_the_verifier_makes_consumers_of_commands_for_one_environment_only(secured: SecuredNats) -> None:
    verifier = await secured.service("contract-verifier")
    for path in (
        "CONSUMER.CREATE.COMMANDS.spy.lb.v1.command.>",
        "CONSUMER.CREATE.COMMANDS.spy",
        "CONSUMER.DURABLE.CREATE.COMMANDS.spy",
        "CONSUMER.CREATE.REPORTS.spy.lb.v1.report.x.>",
    ):
        with pytest.raises(NotPermitted):
            await verifier.request(f"$JS.API.{path}", b"{}", 2)


# -- applications -----------------------------------------------------------------------------------------------------


async def test_an_application_is_confined_to_its_project(secured: SecuredNats, sites: tuple[Bus, Bus]) -> None:
    application = await secured.application("retail")
    heard: list[str] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.subject)

    for subject in (subjects.operation("*", "search"), "lb.v1.operation.>", ">", "lb.v1.>", subjects.submit("retail")):
        await application.subscribe(subject, hear)
    await application.settle()
    for subject in (
        subjects.submit("search"),
        subjects.intent("cancel", "search"),
        subjects.intent("control", "retail"),
        subjects.intent("contract"),
        subjects.operation("completed", "retail"),
        subjects.command(X, "stop"),
        subjects.report(X, "attempts"),
        subjects.lease(X),
        subjects.query(X, "logs"),
        subjects.catalogue("project", "retail"),
        f"{NEXT}.SUBMISSIONS.intake",
        "$JS.API.STREAM.NAMES",
        "$JS.API.DIRECT.GET.CATALOGUE",
        "$SYS.REQ.CLAIMS.UPDATE",
    ):
        assert await refused(ask(application, subject, b"{}")), subject
    coordinator = await secured.service("coordinator")
    events = [Outbound(subjects.operation("running", project), "t", b"{}") for project in ("search", "retail")]
    await publish_batch(coordinator, "OPERATIONS", events)
    await application.settle()
    assert heard == []


async def test_an_application_cannot_speak_through_reply_subjects(secured: SecuredNats) -> None:
    application = await secured.application("retail")
    for victim in (subjects.command(X, "stop"), subjects.operation("completed", "retail"), subjects.submit("search")):
        await application.write(frame(subjects.submit("retail"), victim, "", b"{}"))
        await application.settle()
    assert [await count(secured, name) for name in ("COMMANDS", "OPERATIONS")] == [0, 0]
    await wait_until(lambda: _has(secured, "SUBMISSIONS", 3), "its own submissions are stored, and nothing else")


async def _has(secured: SecuredNats, stream: str, number: int) -> bool:
    return await count(secured, stream) == number


async def test_two_projects_have_accounts_of_their_own(secured: SecuredNats) -> None:
    retail, search = await secured.application("retail"), await secured.application("search")
    heard: list[bytes] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.data)

    await search.subscribe(search.inbox_prefix + ".>", hear)
    await search.settle()
    await retail.write(frame(f"{search.inbox_prefix}.spam", "", "", b"spam"))
    await retail.settle()
    await search.settle()
    assert heard == []


async def test_without_credentials_nobody_connects(secured: SecuredNats) -> None:
    from landbridge.bus.connection import BusSettings, connect
    from landbridge.bus.errors import Unavailable

    with pytest.raises(Unavailable, match="Authorization"):
        await connect(BusSettings(url=secured.server.url, connect_within_s=0.7), name="nobody")
