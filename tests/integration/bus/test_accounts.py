"""Accounts on a real server in operator mode: what works. What must not work is in test_confinement.py."""

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from fixtures.bus import SecuredNats
from landbridge.bus import accounts, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError, NoResponder, Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.bus.requests import query
from landbridge.bus.state import LastPerSubject
from support.wait import wait_until


def command(environment: str, number: int = 0) -> Outbound:
    return Outbound(subjects.command(environment, "offer"), "io.landbridge.command.v1.Offers", b"%d" % number)


def report(environment: str, number: int = 0) -> Outbound:
    return Outbound(subjects.report(environment, "attempts"), "io.landbridge.report.v1.AttemptReports", b"%d" % number)


async def take(consumer: Consumer, count: int) -> list[Inbound]:
    found: list[Inbound] = []
    while len(found) < count:
        batch = await consumer.take(15)
        assert batch, f"expected {count} messages, got {len(found)}"
        await consumer.ack(batch)
        found += batch
    await consumer.stop()
    return found


async def echo(subject: str, body: bytes) -> bytes:
    return subject.encode() + b" " + body


async def test_an_environment_registered_at_run_time_works_on_first_use(secured: SecuredNats) -> None:
    coordinator = await secured.service("coordinator")
    await coordinator.respond(subjects.lease("*"), echo, queue="coordinator")
    await coordinator.respond(subjects.claim("*"), echo, queue="coordinator")
    site = await secured.register("onprem-a")
    assert await site.request(subjects.lease("onprem-a"), b"hello") == b"lb.v1.lease.onprem-a hello"
    assert await site.request(subjects.claim("onprem-a"), b"mine") == b"lb.v1.claim.onprem-a mine"
    await publish_batch(coordinator, "COMMANDS", [command("onprem-a", i) for i in range(5)])
    found = await take(Consumer(site, "COMMANDS", "env-onprem-a"), 5)
    assert [message.body for message in found] == [b"0", b"1", b"2", b"3", b"4"]
    await publish_batch(site, "REPORTS", [report("onprem-a", i) for i in range(1500)])
    assert len(await take(Consumer(coordinator, "REPORTS", "coordinator"), 1500)) == 1500
    assert site.denied == []


async def test_an_environment_can_nak_and_term_its_commands(secured: SecuredNats) -> None:
    coordinator = await secured.service("coordinator")
    site = await secured.register("onprem-a")
    await publish_batch(coordinator, "COMMANDS", [command("onprem-a")])
    consumer = Consumer(site, "COMMANDS", "env-onprem-a")
    [first] = await consumer.take(5)
    await consumer.nak([first], 0.1)
    [again] = await consumer.take(5)
    assert again.deliveries == 2
    await consumer.term(again)
    assert await consumer.take(0.5) == []
    await consumer.stop()


async def test_an_environment_answers_queries_and_its_absence_is_told_at_once(secured: SecuredNats) -> None:
    site = await secured.register("onprem-a")
    lineage = await secured.service("lineage")
    await site.respond(subjects.every("query", "onprem-a"), echo)
    assert await query(lineage, "onprem-a", "logs", b"op") == b"lb.v1.query.onprem-a.logs op"
    await secured.register("cloud-b")
    with pytest.raises(NoResponder):
        await query(lineage, "cloud-b", "logs", b"op")


async def test_a_dispatcher_carries_on_after_a_killed_broker(secured: SecuredNats) -> None:
    coordinator = await secured.service("coordinator")
    site = await secured.register("onprem-a")
    consumer = Consumer(site, "COMMANDS", "env-onprem-a")
    await consumer.start()
    os.kill(secured.server.child.pid, signal.SIGKILL)
    await secured.server.child.wait()
    await secured.server.start()
    started = time.monotonic()
    await publish_batch(coordinator, "COMMANDS", [command("onprem-a")])
    assert len(await take(consumer, 1)) == 1
    assert time.monotonic() - started < 5


async def test_services_publish_consume_and_read_state_with_their_own_users(secured: SecuredNats) -> None:
    intake, eligibility = await secured.service("intake"), await secured.service("eligibility")
    verifier = await secured.service("contract-verifier")
    accepted = Outbound(subjects.operation("accepted", "retail"), "t", b"{}")
    await publish_batch(intake, "OPERATIONS", [accepted, accepted])
    await take(Consumer(eligibility, "OPERATIONS", "eligibility"), 2)
    await publish_batch(verifier, "ENVIRONMENTS", [Outbound(subjects.environment("evidence", "onprem-a"), "t", b"e")])
    await publish_batch(verifier, "CATALOGUE", [Outbound(subjects.catalogue("access", "ann"), "t", b"a")])
    for stream, family in (("ENVIRONMENTS", "environment"), ("CATALOGUE", "catalogue")):
        async for message in LastPerSubject(eligibility, stream, subjects.every(family)):
            assert message.body
            break
    for bus in (intake, eligibility, verifier):
        assert bus.denied == []


async def test_an_application_submits_cancels_and_follows_its_project(secured: SecuredNats) -> None:
    application = await secured.application("retail")
    intake, coordinator = await secured.service("intake"), await secured.service("coordinator")
    await publish_batch(application, "SUBMISSIONS", [Outbound(subjects.submit("retail"), "t", b"{}", id="app-1")])
    [message] = await take(Consumer(intake, "SUBMISSIONS", "intake"), 1)
    assert (message.id, subjects.project_of(message.subject)) == ("app-1", "retail")
    await publish_batch(application, "INTENTS", [Outbound(subjects.intent("cancel", "retail"), "t", b"{}")])
    await take(Consumer(coordinator, "INTENTS", "coordinator"), 1)
    heard: list[str] = []

    async def hear(msg: object) -> None:
        heard.append(msg.subject)  # type: ignore[attr-defined]

    await application.subscribe(subjects.operation("*", "retail"), hear)
    await application.settle()
    events = [Outbound(subjects.operation("running", project), "t", b"{}") for project in ("search", "retail")]
    await publish_batch(coordinator, "OPERATIONS", events)
    await wait_until(lambda: heard, "the application hears of its operation")
    assert heard == ["lb.v1.operation.running.retail"]


async def test_registering_disturbs_no_other_environment(secured: SecuredNats) -> None:
    """Publishing and registering at the same time; HUB's own account is never pushed again."""
    import asyncio

    site = await secured.register("onprem-a")
    done = asyncio.Event()

    async def publish() -> int:
        count = 0
        while not done.is_set():
            await publish_batch(site, "REPORTS", [report("onprem-a")], deadline_s=1)
            count += 1
        return count

    publishing = asyncio.create_task(publish())
    issuer = await secured.issuer()
    for number in range(30):
        await issuer.push(accounts.environment_account(secured.keys, f"env-{number}"))
    done.set()
    assert await publishing > 5


# -- revocation, rotation, removal ------------------------------------------------------------------------------------


async def refused(secured: SecuredNats, user: accounts.IssuedUser) -> bool:
    try:
        await secured.open(user, within_s=0.7)
    except Unavailable as error:
        return "Authorization" in str(error)
    return False


async def test_a_revoked_user_is_thrown_out_and_its_sibling_stays(secured: SecuredNats) -> None:
    sibling = await secured.register("onprem-a")
    stolen = accounts.environment_user(secured.keys, "onprem-a")
    bus = await secured.open(stolen)
    issuer = await secured.issuer()
    revoked = {stolen.public: int(time.time()) + 1}
    await issuer.push(accounts.environment_account(secured.keys, "onprem-a", revoked=revoked))
    await wait_until(lambda: not bus.healthy(), "the revoked user is cut off")
    assert await refused(secured, stolen)
    await publish_batch(sibling, "REPORTS", [report("onprem-a")])


async def test_keys_rotate_by_an_overlapping_connection_without_loss(secured: SecuredNats) -> None:
    old = await secured.register("onprem-a")
    await publish_batch(old, "REPORTS", [report("onprem-a", 1)])
    new = await secured.open(accounts.environment_user(secured.keys, "onprem-a"))
    await publish_batch(new, "REPORTS", [report("onprem-a", 2)])
    await old.drain()
    await publish_batch(new, "REPORTS", [report("onprem-a", 3)])
    coordinator = await secured.service("coordinator")
    found = await take(Consumer(coordinator, "REPORTS", "coordinator"), 3)
    assert [message.body for message in found] == [b"1", b"2", b"3"]


async def test_a_removed_environment_is_cut_off_and_stays_out_after_a_restart(secured: SecuredNats) -> None:
    site = await secured.register("onprem-a")
    late = accounts.environment_user(secured.keys, "onprem-a")
    issuer = await secured.issuer()
    await issuer.push(accounts.tombstone(secured.keys, "environment", "onprem-a"))
    await wait_until(lambda: not site.healthy(), "the removed environment is cut off")
    assert await refused(secured, late)
    await secured.server.stop()
    await secured.server.start()
    assert await refused(secured, late)


async def test_a_name_used_again_after_a_removal_is_another_account(secured: SecuredNats) -> None:
    await secured.register("onprem-a")
    issuer = await secured.issuer()
    await issuer.push(accounts.tombstone(secured.keys, "environment", "onprem-a"))
    await issuer.push(accounts.environment_account(secured.keys, "onprem-a", generation=2))
    again = await secured.open(accounts.environment_user(secured.keys, "onprem-a", generation=2))
    await publish_batch(again, "REPORTS", [report("onprem-a")])


async def test_a_bus_whose_user_was_renewed_opens_a_new_client_by_itself(secured: SecuredNats) -> None:
    """nats-py gives up for good when its user is revoked; the credentials file may hold a new one by then."""
    await secured.register("onprem-a")
    coordinator = await secured.service("coordinator")
    old = accounts.environment_user(secured.keys, "onprem-a")
    bus = await secured.open(old)
    consumer = Consumer(bus, "COMMANDS", "env-onprem-a")
    await consumer.start()
    assert bus.settings.creds is not None
    bus.settings.creds.write_text(accounts.environment_user(secured.keys, "onprem-a").credentials)
    issuer = await secured.issuer()
    revoked = {old.public: int(time.time()) + 1}
    await issuer.push(accounts.environment_account(secured.keys, "onprem-a", revoked=revoked))
    await wait_until(lambda: bus.reconnects > 0 and bus.healthy(), "the bus is back with its new user")
    await publish_batch(bus, "REPORTS", [report("onprem-a")])
    await publish_batch(coordinator, "COMMANDS", [command("onprem-a")])
    assert len(await take(consumer, 1)) == 1


# -- keys and configuration -------------------------------------------------------------------------------------------


def test_keys_are_made_once_private_and_loaded_again(tmp_path: Path) -> None:
    first = accounts.load_or_create_keys(tmp_path / "keys")
    assert accounts.load_or_create_keys(tmp_path / "keys") == first == accounts.load_keys(tmp_path / "keys")
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    for file in (tmp_path / "keys").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first.hub.seed not in repr(first)


@pytest.mark.parametrize("name", ["hub.seed", "accounts.secret"])
def test_a_damaged_key_file_is_named_and_never_replaced(tmp_path: Path, name: str) -> None:
    accounts.load_or_create_keys(tmp_path)
    (tmp_path / name).write_text("damaged")
    with pytest.raises(ValueError, match=name):
        accounts.load_or_create_keys(tmp_path)


def test_the_servers_configuration_holds_no_secret(tmp_path: Path) -> None:
    keys = accounts.load_or_create_keys(tmp_path)
    config = accounts.server_config(keys, tmp_path / "resolver")
    for key in (keys.operator, keys.signing, keys.system, keys.hub):
        assert key.seed not in config
    assert keys.secret.hex() not in config


async def test_an_account_that_the_server_cannot_read_is_an_error(secured: SecuredNats) -> None:
    issuer = await secured.issuer()
    with pytest.raises(BusError, match="refused an account"):
        await issuer.push("not.a.token")


async def test_accounts_of_a_foreign_operator_are_worthless(secured: SecuredNats, tmp_path: Path) -> None:
    foreign = accounts.load_or_create_keys(tmp_path / "foreign")
    issuer = await secured.issuer()
    await issuer.push(accounts.environment_account(foreign, "onprem-a"))
    assert await refused(secured, accounts.environment_user(foreign, "onprem-a"))


async def test_only_the_issuer_pushes_accounts(secured: SecuredNats) -> None:
    site: Bus = await secured.register("onprem-a")
    with pytest.raises(BusError):
        await accounts.Issuer(site).push(accounts.environment_account(secured.keys, "onprem-a"), timeout_s=0.5)
    hub = await secured.service("streams")
    with pytest.raises(BusError):
        await accounts.Issuer(hub).push(accounts.environment_account(secured.keys, "onprem-a"), timeout_s=0.5)
