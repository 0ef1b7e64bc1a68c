"""Poison, bugs, temporary failures, duplicates and replicas."""

import asyncio

from landbridge.bus import subjects
from landbridge.bus.declare import api, declare
from landbridge.bus.envelope import Outbound
from landbridge.bus.publish import publish_batch
from support.wait import wait_until
from support.world import World


async def settled(world: World) -> bool:
    return await world.unacknowledged() == 0 and await world.pending() == 0


async def test_one_poison_in_a_hundred_is_dead_lettered_exactly_and_all_others_flow(world: World) -> None:
    bodies = [(b"poison" if n % 200 == 7 else b"boom") if n % 100 == 7 else b"good" for n in range(1000)]
    ids = await world.submit(bodies)
    child = world.child()
    child.start()
    await wait_until(lambda: settled(world), "all messages came to an end", timeout_s=60)
    bad = {i for i, body in zip(ids, bodies, strict=True) if body != b"good"}
    assert await world.effects() == sorted(set(ids) - bad)
    letters = await world.db.fetch("select message_id, error, body from dead_letter")
    assert {row["message_id"] for row in letters} == bad
    assert len(letters) == 10
    assert {row["error"] for row in letters} == {"PermanentFailure: this is poison", "KeyError: 'a bug'"}
    assert await world.stored("DEADLETTERS") == 10


async def test_a_message_that_fails_for_now_is_delivered_again_and_delays_no_other(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    ids = await world.submit([b"later:3" if n == 4 else b"good" for n in range(10)])
    await wait_until(lambda: settled(world), "the late message is handled too")
    assert await world.effects() == sorted(ids)
    assert await world.db.fetchval("select count(*) from dead_letter") == 0


async def test_what_is_no_cloud_event_is_dead_lettered_whole(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    await world.bus.write(b"PUB lb.v1.submit.p 9\r\n\xff\x00garbage\r\n")
    await wait_until(lambda: world.db.fetchval("select count(*) from dead_letter"), "the letter is kept")
    row = await world.db.fetchrow("select body, error, subject from dead_letter")
    assert row is not None
    assert bytes(row["body"]) == b"\xff\x00garbage"
    assert "CloudEvent" in row["error"]


async def test_the_same_event_published_twice_has_one_effect(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    twice = Outbound(subjects.submit("p"), "T", b"x", id="my-own-id")
    for _ in range(2):
        await publish_batch(world.bus, "SUBMISSIONS", [twice])
    await wait_until(lambda: settled(world), "both deliveries are handled")
    assert await world.effects() == ["my-own-id"]


async def test_the_same_id_from_two_applications_is_two_messages(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    messages = [Outbound(subjects.submit("p"), "T", b"x", id="1", source=f"/applications/{app}") for app in "ab"]
    await publish_batch(world.bus, "SUBMISSIONS", messages)
    await wait_until(lambda: settled(world), "both are handled")
    assert await world.effects() == ["1", "1"]


async def test_replicas_share_a_durable_and_every_effect_happens_once(world: World) -> None:
    replicas = [world.child(f"replica-{n}") for n in range(3)]
    for replica in replicas:
        replica.start()
    for replica in replicas:
        await replica.ready()
    ids: list[str] = []
    for _ in range(10):
        ids += await world.submit([b"good"] * 300)
    await wait_until(lambda: settled(world), "all are handled", timeout_s=30)
    assert await world.effects() == sorted(ids)
    shares = [(await replica.get("/handled"))[1] for replica in replicas]
    assert sum(share != '{"handled":0}' for share in shares) >= 2, shares


async def test_a_replica_that_dies_leaves_its_work_to_the_others(world: World) -> None:
    doomed, survivor = world.child("doomed"), world.child("survivor")
    ids = await world.submit([b"good"] * 500)
    doomed.start(LANDBRIDGE_FAILPOINTS="loop.before-commit=kill")
    await doomed.ended()
    survivor.start()
    ids += await world.submit([b"good"] * 500)
    await wait_until(lambda: settled(world), "the survivor handled all", timeout_s=30)
    assert await world.effects() == sorted(ids)


async def test_a_durable_that_begins_again_has_no_second_effect(world: World) -> None:
    """The broker forgets how far a consumer was, or somebody makes it anew: everything comes once more."""
    child = world.child()
    child.start()
    await child.ready()
    ids = await world.submit([b"good"] * 3000)
    await wait_until(lambda: settled(world), "all are handled", timeout_s=60)
    told = await world.stored("OPERATIONS")
    await api(world.bus, "CONSUMER.DELETE.SUBMISSIONS.intake")
    await declare(world.bus, budget_bytes=256 * 1024 * 1024)
    began = asyncio.get_running_loop().time()

    async def caught_up() -> bool:
        info = await api(world.bus, "CONSUMER.INFO.SUBMISSIONS.intake")
        return bool(info["delivered"]["stream_seq"] == len(ids) and await settled(world))

    await wait_until(caught_up, "the durable has caught up", timeout_s=60)
    assert asyncio.get_running_loop().time() - began < 60
    assert await world.effects() == sorted(ids)
    assert await world.stored("OPERATIONS") == told
