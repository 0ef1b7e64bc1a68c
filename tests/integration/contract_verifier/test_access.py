"""Who may connect: environments that join, people and applications that are let in, and how all of them are put out."""

import hashlib
import json

import httpx2
import msgspec
import pytest

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Outbound
from landbridge.bus.errors import BusError, Unavailable
from landbridge.bus.publish import publish_batch
from landbridge.schema.wire.event_v1 import CatalogueEntry
from support.verifier_service import Verifier, contract
from support.wait import wait_until


async def submits(bus: Bus, project: str) -> bool:
    try:
        message = Outbound(subjects.submit(project), "t", b"{}")
        await publish_batch(bus, streams.SUBMISSIONS, [message], deadline_s=0.5)
    except BusError:
        return False
    return True


async def allowed_in(verifier: Verifier, creds: str, name: str = "late") -> bool:
    try:
        await verifier.secured.open_text(creds, name, within_s=0.7)
    except Unavailable:
        return False
    return True


async def test_an_environment_joins_and_works_at_once(verifier: Verifier) -> None:
    site = await verifier.site()
    assert (await site.plan()).contract_version == 1
    assert site.bus.denied == []


async def test_credentials_are_shown_once_and_only_their_digest_is_kept(verifier: Verifier) -> None:
    await verifier.registered()
    answer = await verifier.join()
    assert answer["natsUrl"] == verifier.secured.server.url
    rows = await verifier.service.database.fetch("select * from account_user")
    kept = json.dumps([dict(row) for row in rows], default=str)
    seed = answer["creds"].split("-----BEGIN USER NKEY SEED-----\n")[1].splitlines()[0]
    assert seed not in kept
    assert [row["sha256"] for row in rows] == [hashlib.sha256(answer["creds"].encode()).hexdigest()]
    assert [row["public"] for row in rows] == [answer["user"]]


async def test_joining_an_unknown_environment_says_what_to_do(verifier: Verifier) -> None:
    answer = await verifier.http.post("/v1/environments/nowhere/join")
    assert answer.status_code == 404
    assert "register its contract first" in answer.json()["detail"]


async def test_joining_anew_with_replace_ends_the_earlier_credentials(verifier: Verifier) -> None:
    await verifier.registered()
    old = await verifier.join()
    bus = await verifier.secured.open_text(old["creds"], "old")
    new = await verifier.join(replace=True)
    await wait_until(lambda: not bus.healthy(), "the old connection is cut")
    assert not await allowed_in(verifier, old["creds"])
    assert await allowed_in(verifier, new["creds"])


async def test_a_removed_environment_is_put_out_and_may_come_back_as_another(verifier: Verifier) -> None:
    site = await verifier.site()
    await site.plan()
    old = await verifier.join()
    await verifier.remove("onprem-a")
    await wait_until(lambda: not verifier.told_contract(), "it is told that it has no contract")
    await wait_until(lambda: not site.bus.healthy(), "its connection is cut")
    assert (await verifier.http.post("/v1/environments/onprem-a/join")).status_code == 404
    await verifier.submit(contract(version=1, cpu=4))
    await wait_until(lambda: verifier.told_contract() == {1: "active"}, "it is registered anew")
    assert not await allowed_in(verifier, old["creds"])
    again = await verifier.site()
    plan = await again.plan()  # the commands of its earlier life are not delivered
    assert b'"cpu":"4"' in plan.contract
    assert await again.commands.take(0.5) == []


async def test_an_access_entry_works_everywhere_and_is_told_without_its_token(verifier: Verifier) -> None:
    await verifier.project("retail")
    answer = await verifier.http.post("/v1/access", json={"name": "shop", "project": "retail", "role": "submitter"})
    assert answer.status_code == 201, answer.text
    granted = answer.json()
    subject = subjects.catalogue("access", "shop")
    await wait_until(lambda: subject in verifier.latest, "the entry is told")
    entry = msgspec.json.decode(verifier.latest[subject][-1].body, type=CatalogueEntry)
    assert granted["token"] not in entry.document.decode()
    assert json.loads(entry.document) == {
        "name": "shop",
        "role": "submitter",
        "projects": ["retail"],
        "tokenSha256": hashlib.sha256(granted["token"].encode()).hexdigest(),
    }
    application = await verifier.secured.open_text(granted["creds"], "shop")
    assert await submits(application, "retail")
    assert not await submits(application, "search")
    await wait_until(lambda: verifier.service.auth.principal_of(granted["token"]), "the token is known")


async def test_a_viewer_cannot_submit_over_the_broker(verifier: Verifier) -> None:
    await verifier.project("retail")
    answer = await verifier.http.post("/v1/access", json={"name": "eye", "project": "retail", "role": "viewer"})
    assert not await submits(await verifier.secured.open_text(answer.json()["creds"], "eye"), "retail")


async def test_revoked_access_ends_the_token_and_the_connection(verifier: Verifier) -> None:
    await verifier.project("retail")
    one, two = [
        (await verifier.http.post("/v1/access", json={"name": name, "project": "retail"})).json()
        for name in ("one", "two")
    ]
    bus_one = await verifier.secured.open_text(one["creds"], "one")
    bus_two = await verifier.secured.open_text(two["creds"], "two")
    await wait_until(lambda: verifier.service.auth.principal_of(one["token"]), "the token is known")
    assert (await verifier.http.delete("/v1/access/one")).status_code == 200
    await wait_until(lambda: not bus_one.healthy(), "the connection is cut")
    await wait_until(lambda: not verifier.service.auth.principal_of(one["token"]), "the token is forgotten")
    assert await submits(bus_two, "retail")
    assert (await verifier.http.delete("/v1/access/one")).status_code == 404
    listed = (await verifier.http.get("/v1/access")).json()["items"]
    assert [item["name"] for item in listed] == ["two"]
    assert "token" not in json.dumps(listed)


async def test_a_name_is_not_given_twice_unless_it_is_replaced(verifier: Verifier) -> None:
    await verifier.project("retail")
    body = {"name": "shop", "project": "retail"}
    first = (await verifier.http.post("/v1/access", json=body)).json()
    assert (await verifier.http.post("/v1/access", json=body)).status_code == 409
    second = (await verifier.http.post("/v1/access", json={**body, "replace": True})).json()
    assert second["token"] != first["token"]
    await wait_until(lambda: verifier.service.auth.principal_of(second["token"]), "the new token is known")
    assert verifier.service.auth.principal_of(first["token"]) is None


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"name": "a b", "project": "retail"}, "name"),
        ({"name": "x"}, "project"),
        ({"name": "x", "project": "unknown"}, "no project 'unknown'"),
        ({"name": "x", "project": "retail", "role": "king"}, "viewer"),
        ({"name": "x", "projekt": "retail"}, "projekt"),
    ],
)
async def test_what_cannot_be_granted_is_refused_in_plain_words(
    verifier: Verifier, body: dict[str, str], told: str
) -> None:
    await verifier.project("retail")
    answer = await verifier.http.post("/v1/access", json=body)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]


async def test_only_administrators_let_in(verifier: Verifier) -> None:
    await verifier.project("retail")
    await verifier.registered()
    answer = await verifier.http.post("/v1/access", json={"name": "op", "project": "retail", "role": "operator"})
    await wait_until(lambda: verifier.service.auth.principal_of(answer.json()["token"]), "the token is known")
    async with verifier.client(answer.json()["token"]) as operator:
        for call in (
            operator.post("/v1/environments/onprem-a/join"),
            operator.post("/v1/access", json={"name": "x", "project": "retail"}),
            operator.get("/v1/access"),
            operator.delete("/v1/access/op"),
        ):
            assert (await call).status_code == 403
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{verifier.service.port}") as nobody:
        assert (await nobody.post("/v1/environments/onprem-a/join")).status_code == 401


async def test_a_broker_that_lost_its_accounts_gets_them_back(verifier: Verifier) -> None:
    """The directory of accounts is gone after a restart; whoever has credentials must still be able to connect."""
    import shutil

    site = await verifier.site()
    await site.plan()
    await verifier.secured.server.stop()
    shutil.rmtree(verifier.secured.root / "resolver")
    await verifier.secured.server.start()
    await wait_until(site.bus.healthy, "the dispatcher is back")
    await verifier.control("onprem-a", "verify")
    assert (await site.command()).subject.endswith(".verify")


async def test_an_ended_account_stays_out_when_the_broker_lost_it(verifier: Verifier) -> None:
    import shutil

    await verifier.registered()
    old = await verifier.join()
    await verifier.remove("onprem-a")
    await wait_until(lambda: not verifier.told_contract(), "it is removed")
    await verifier.secured.server.stop()
    shutil.rmtree(verifier.secured.root / "resolver")
    await verifier.secured.server.start()
    await wait_until(verifier.service.bus.healthy, "the verifier is back")
    assert not await allowed_in(verifier, old["creds"])
