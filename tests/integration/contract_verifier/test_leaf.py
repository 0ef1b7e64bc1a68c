"""Environments whose sites have their own NATS: how they join, and how they change from one way to the other."""

from pathlib import Path

import pytest

from integration.contract_verifier.conftest import StartVerifier
from landbridge.bus.accounts import Kind
from landbridge.bus.declare import api
from landbridge.bus.errors import BusError
from landbridge.cli.leaf_site import write_leaf_site
from landbridge_contract_verifier import accounts_table
from landbridge_contract_verifier.accounts_table import Account
from landbridge_embedded.ports import free_port
from support.own_nats import SiteNats
from support.verifier_service import Verifier, contract
from support.wait import wait_until

X = "onprem-a"


@pytest.fixture
async def verifier(start_verifier: StartVerifier) -> Verifier:
    """A verifier of a centre that takes leaf nodes."""
    made = await start_verifier(nats_leaf_url="nats-leaf://hub.example.org:7422")
    server = made.secured.server
    server.leaf_port = free_port()
    await server.stop()
    await server.start()
    await made.registered()
    return made


async def durables(verifier: Verifier) -> list[str]:
    bus = await verifier.secured.service("streams")
    return sorted((await api(bus, "CONSUMER.NAMES.COMMANDS")).get("consumers") or [])


async def links(verifier: Verifier, creds: str, root: Path) -> SiteNats:
    site = SiteNats(root, X, creds, verifier.secured.server.leaf_port)
    await site.start()
    return site


async def test_a_sites_own_nats_joins_and_connects_at_once(verifier: Verifier, tmp_path: Path) -> None:
    answer = await verifier.join(leaf=True)
    assert answer["leafUrl"] == "nats-leaf://hub.example.org:7422"
    site = await links(verifier, answer["creds"], tmp_path / "site")
    try:
        await wait_until(site.linked, "the site is linked")
    finally:
        await site.stop()
    assert await durables(verifier) == ["leaf-onprem-a"]


async def test_the_way_of_joining_is_not_changed_by_accident(verifier: Verifier, tmp_path: Path) -> None:
    first = await verifier.join()
    bus = await verifier.secured.open_text(first["creds"], "dispatcher")
    refused = await verifier.http.post(f"/v1/environments/{X}/join", json={"leaf": True})
    assert refused.status_code == 409
    assert "--replace" in refused.json()["detail"]
    assert await durables(verifier) == ["env-onprem-a"]

    answer = await verifier.join(leaf=True, replace=True)
    await wait_until(lambda: not bus.healthy(), "the dispatcher's own connection is cut")
    site = await links(verifier, answer["creds"], tmp_path / "site")
    try:
        await wait_until(site.linked, "the site is linked")
        assert await durables(verifier) == ["leaf-onprem-a"]
        back = await verifier.join(replace=True)

        async def unlinked() -> bool:
            return not await site.linked()

        await wait_until(unlinked, "the site's NATS is put out")
        again = await verifier.secured.open_text(back["creds"], "dispatcher")
        assert again.healthy()
        assert await durables(verifier) == ["env-onprem-a"]
    finally:
        await site.stop()


async def test_a_name_used_again_begins_without_a_nats_of_its_own(verifier: Verifier) -> None:
    await verifier.join(leaf=True)
    await verifier.remove(X)
    await wait_until(lambda: not verifier.told_contract(), "it is gone")

    async def none() -> bool:
        return await durables(verifier) == []

    await wait_until(none, "its durable is gone")
    await verifier.submit(contract())
    await wait_until(lambda: verifier.told_contract() == {1: "active"}, "it is registered anew")
    await verifier.join()
    assert await durables(verifier) == ["env-onprem-a"]


async def test_who_joins_before_the_environment_is_known_is_told_so_even_if_it_is_known_a_moment_later(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its account is made for a dispatcher's own connections, and the site's NATS is refused for ever."""
    provisioner = verifier.service.provisioner
    ensure = provisioner.ensure

    async def registered_meanwhile(kind: Kind, name: str) -> Account | None:
        async with verifier.service.database.transaction() as tx:
            await accounts_table.want(tx, kind, name, verifier.service.clock.wall())
        return await ensure(kind, name)

    monkeypatch.setattr(provisioner, "ensure", registered_meanwhile)
    refused = await verifier.http.post("/v1/environments/onprem-b/join", json={"leaf": True})
    assert refused.status_code == 404, refused.text
    assert "register its contract first" in refused.json()["detail"]


async def test_of_two_ways_of_joining_at_once_one_is_refused(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    provisioner = verifier.service.provisioner
    ensure = provisioner.ensure

    async def changed_meanwhile(kind: Kind, name: str) -> Account | None:
        account = await ensure(kind, name)
        if account is not None and account.leaf:
            async with verifier.service.database.transaction() as tx:
                await accounts_table.set_leaf(tx, account, leaf=False)
                await accounts_table.set_state(tx, account, "ready")
        return account

    monkeypatch.setattr(provisioner, "ensure", changed_meanwhile)
    refused = await verifier.http.post(f"/v1/environments/{X}/join", json={"leaf": True})
    assert refused.status_code == 409, refused.text
    assert "joined in another way just now; try again" in refused.json()["detail"]


async def test_joining_does_not_bring_back_what_was_removed(verifier: Verifier) -> None:
    await verifier.join()
    await verifier.remove(X)
    await wait_until(lambda: not verifier.told_contract(), "it is gone")
    refused = await verifier.http.post(f"/v1/environments/{X}/join", json={"leaf": True})
    assert refused.status_code == 404, refused.text

    async def states() -> bool:
        async with verifier.service.database.transaction(readonly=True) as tx:
            return ("environment", X) in await accounts_table.every(tx, "ended")

    await wait_until(states, "its account has ended and stays so")


async def test_without_a_place_for_leaf_nodes_it_is_not_offered(start_verifier: StartVerifier) -> None:
    plain = await start_verifier()
    await plain.registered()
    refused = await plain.http.post(f"/v1/environments/{X}/join", json={"leaf": True})
    assert refused.status_code == 409
    assert "LANDBRIDGE_NATS_LEAF_URL" in refused.json()["detail"]


async def test_the_written_files_make_a_site(verifier: Verifier, tmp_path: Path) -> None:
    """What `env join --leaf` writes is what works, as it was written."""
    answer = await verifier.join(leaf=True)
    answer["leafUrl"] = f"nats-leaf://127.0.0.1:{verifier.secured.server.leaf_port}"
    place = tmp_path / "written"
    write_leaf_site(X, answer, "", place)
    seed = (place / "dispatcher.nkey").read_text()
    config = place / "nats.conf"
    ports = free_port(), free_port()
    edited = config.read_text().replace("127.0.0.1:4222", f"127.0.0.1:{ports[0]}")
    config.write_text(edited.replace("127.0.0.1:8222", f"127.0.0.1:{ports[1]}"))
    write_leaf_site(X, answer, "", place)
    assert (place / "dispatcher.nkey").read_text() == seed, "a key that exists stays"
    assert f":{ports[0]}" in config.read_text(), "what people changed stays"

    site = SiteNats.of_files(place, X, *ports)
    await site.start()
    try:
        await wait_until(site.linked, "the site is linked")
        bus = await site.bus()
        from landbridge.bus.site_streams import declare_site

        try:
            await declare_site(bus, X, budget_bytes=64 * 1024 * 1024)
        except BusError as error:
            pytest.fail(f"the dispatcher may not do its work: {error}")
        finally:
            await bus.drain()
    finally:
        await site.stop()
