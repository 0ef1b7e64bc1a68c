"""Offer, claim, grant, start, report, settle: on a real broker, with a dispatcher in a process of its own."""

import hashlib
import shutil

from integration.dispatcher.centre import Centre, key_of
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.bus import streams
from landbridge.bus.connection import Bus
from landbridge.bus.declare import api, declare_durable
from landbridge.schema.wire import command_v1 as command
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState, SlotPhase
from landbridge.schema.wire.request_v1 import LeaseKind
from support.wait import wait_until


async def test_an_offer_is_claimed_granted_started_reported_and_settled(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=0.3))

    started = await centre.until(offer, AttemptState.STARTED)
    finished = await centre.until(offer, AttemptState.FINISHED)
    await centre.settle(offer)

    assert (started.term, finished.term) == (centre.row.held_term, centre.row.held_term)
    assert (finished.outcome, finished.exit_code) == (AttemptOutcome.COMPLETED, 0)
    assert finished.resolved is not None
    assert len(centre.granted) == 1

    async def settled() -> bool:
        found = await site.ask(do="operations", all=True)
        return bool(found["operations"][0]["settled"])

    await wait_until(settled, "the slot is settled")


async def test_what_presets_set_for_this_environment_holds_here_and_not_what_they_set_for_others(
    centre: Centre, process_site: Site
) -> None:
    await process_site.start()
    await centre.until_connected()
    offer = await centre.offer(
        ["bash", "-c", 'echo "$CACHE|$MODE|$PATH_OF_CACHE"'],
        env={"CACHE": "/nowhere", "MODE": "night", "PATH_OF_CACHE": "$(CACHE)/x"},
        environment_settings={centre.environment: {"env": {"CACHE": "/here"}}, "elsewhere": {"env": {"MODE": "day"}}},
        features=("environment-settings",),
    )

    await centre.until(offer, AttemptState.FINISHED)

    log = await centre.ask("logs", offer)
    assert b"/here|night|/here/x\n" in log.data


async def test_first_contact_is_hello_then_inventory_then_starting_is_allowed(
    centre: Centre, simulated_site: Site
) -> None:
    await simulated_site.start()
    await centre.until_connected()

    kinds = [asked.kind for asked in centre.lease_requests]
    assert kinds[0] is LeaseKind.HELLO
    assert set(kinds[1:]) == {LeaseKind.RENEW}
    assert [(each.part, each.parts, len(each.slots)) for each in centre.inventories] == [(1, 1, 0)]
    links = [(asked.term, asked.n) for asked in centre.lease_requests]
    assert links[:2] == [(0, 1), (1, 2)]


async def test_many_offers_become_few_messages(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    offers = [centre.an_offer(work(simulated_site)) for _ in range(50)]
    before = centre.messages
    await centre.send("offer", command.Offers(offers=tuple(offers)))

    for offer in offers:
        await centre.until(offer, AttemptState.FINISHED, timeout_s=60)

    assert centre.messages - before < 60
    assert len(centre.granted) == 50


async def test_a_duplicate_offer_starts_nothing_twice_and_repeats_the_answer(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site))
    await centre.until(offer, AttemptState.FINISHED)

    await centre.send("offer", command.Offers(offers=(offer,)), command.Offers(offers=(offer,)))

    await wait_until(lambda: len(centre.of(offer, AttemptState.FINISHED)) >= 2, "the answer is repeated")
    assert len(centre.of(offer, AttemptState.STARTED)) <= 1
    log = await centre.ask("logs", offer)
    assert log.data.count(b"ran") == 1


async def test_a_stale_offer_is_refused(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    newer = await centre.offer(work(simulated_site), counter=5)
    await centre.until(newer, AttemptState.FINISHED)

    older = await centre.offer(work(simulated_site), operation=newer.operation, counter=4)

    refused = await centre.until(older, AttemptState.REFUSED)
    assert refused.reason == "stale-epoch"
    assert all(key[1] != "1.4" for key in centre.claims)


async def test_a_higher_epoch_stops_the_lower_one_before_it_starts(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    lower = await centre.offer(work(site, seconds=60))
    await centre.until(lower, AttemptState.STARTED)

    higher = await centre.offer(work(site, seconds=60), operation=lower.operation, counter=2)

    await centre.until(higher, AttemptState.STARTED)
    order = [(each.epoch.counter, each.state) for each in centre.reports if each.operation == lower.operation]
    gone = order.index((1, AttemptState.RELINQUISHED))
    assert gone < order.index((2, AttemptState.STARTED))
    assert centre.of(lower, AttemptState.RELINQUISHED)[0].reason == "superseded"


async def test_a_command_with_an_unknown_field_is_refused_as_too_new(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    offer = centre.an_offer(work(simulated_site))
    body = (
        b'{"offers":[{"operation":"%s","epoch":{"generation":1,"counter":1},"onlyIf":"x"}]}' % offer.operation.encode()
    )
    await centre.send("offer", body)

    refused = await centre.until(offer, AttemptState.REFUSED)

    assert refused.reason == "dispatcher-too-old"
    assert centre.claims == []


async def test_an_offer_that_needs_an_unknown_feature_is_refused(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()

    offer = await centre.offer(work(simulated_site), features=("type.job", "teleport"))

    refused = await centre.until(offer, AttemptState.REFUSED)
    assert refused.reason == "dispatcher-too-old"
    assert "teleport" in refused.message


async def test_the_sites_own_policy_refuses_before_claiming(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    bad = {
        "connection-not-bound": centre.an_offer(work(process_site), inputs={"a": {"connection": "nowhere"}}),
        "specification": centre.an_offer(work(process_site)),
    }
    damaged = command.Offer(
        **{name: getattr(bad["specification"], name) for name in command.Offer.__struct_fields__}
        | {"spec_sha256": "00" * 32}
    )
    await centre.send("offer", command.Offers(offers=(bad["connection-not-bound"], damaged)))

    unbound = await centre.until(bad["connection-not-bound"], AttemptState.REFUSED)
    unreadable = await centre.until(damaged, AttemptState.REFUSED)

    assert unbound.reason == "connection-not-bound"
    assert "nowhere" in unbound.message
    assert unreadable.reason == "unreadable-specification"
    assert centre.claims == []


async def test_a_refused_claim_starts_nothing(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    centre.grants_claims = False
    refused = await centre.offer(work(simulated_site))
    await wait_until(lambda: centre.claims, "it was claimed")
    centre.grants_claims = True

    other = await centre.offer(work(simulated_site))

    await centre.until(other, AttemptState.FINISHED)
    assert centre.of(refused) == []


async def test_a_withdrawn_offer_is_forgotten(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    centre.grants_claims = False
    offer = await centre.offer(work(simulated_site))
    await wait_until(lambda: centre.claims, "it was claimed")
    centre.grants_claims = True
    await centre.withdraw(offer)
    other = await centre.offer(work(simulated_site))
    await centre.until(other, AttemptState.FINISHED)

    found = await simulated_site.ask(do="operations", all=True)

    assert [each["operation"] for each in found["operations"]] == [other.operation]


async def test_cancelling_running_work_is_reported_as_cancelled(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=60))
    await centre.until(offer, AttemptState.STARTED)

    await centre.stop(offer)

    finished = await centre.until(offer, AttemptState.FINISHED)
    assert (finished.outcome, finished.reason) == (AttemptOutcome.CANCELLED, "cancelled")


async def test_stopping_what_is_not_here_is_answered_by_a_tombstone(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    absent = centre.an_offer(work(process_site))
    await centre.stop(absent)

    relinquished = await centre.until(absent, AttemptState.RELINQUISHED)
    await centre.send("offer", command.Offers(offers=(absent,)))
    await wait_until(lambda: len(centre.of(absent, AttemptState.RELINQUISHED)) >= 2, "it says so again")

    assert relinquished.reason == "not-here"
    assert centre.claims == []


async def test_offers_wait_for_room_and_are_let_in_as_it_appears(centre: Centre, process_site: Site) -> None:
    text = (process_site.home / "bindings.yaml").read_text()
    (process_site.home / "bindings.yaml").write_text(text.replace("name: process", "name: process\n  slots: 2"))
    await process_site.start()
    await centre.until_connected()
    offers = [centre.an_offer(work(process_site, seconds=0.3)) for _ in range(6)]
    await centre.send("offer", command.Offers(offers=tuple(offers)))

    reports = [await centre.until(offer, AttemptState.FINISHED, timeout_s=60) for offer in offers]
    ran = [(each.started_at, each.finished_at) for each in reports if each.started_at and each.finished_at]
    assert len(ran) == len(offers)
    # The site's own times: what the centre has heard so far lags behind what has room again.
    assert max(sum(start <= at < end for start, end in ran) for at, _ in ran) <= 2


async def test_queries_are_answered_with_logs_outputs_and_detail(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    command_ = work(site, log="hello")
    if command_[0] != "simulate":
        command_[-1] += ""
        command_[3] = (
            "import os; print('hello', flush=True); "
            "open(os.environ['LANDBRIDGE_OUTPUT_MODEL'] + '/weights', 'wb').write(b'0123456789')"
        )
    offer = await centre.offer(command_, outputs={"model": {"connection": "models"}})
    finished = await centre.until(offer, AttemptState.FINISHED)

    log = await centre.ask("logs", offer)
    listed = await centre.ask("outputs", offer)
    chunk = await centre.ask("output-chunk", offer, name="model", limit=1 << 20)
    detail = await centre.ask("detail", offer)
    missing = await centre.ask("logs", centre.an_offer(["x"]))

    assert (log.found, log.data.splitlines()[0], log.end) == (True, b"hello", True)
    assert b'"model"' in listed.json
    assert (chunk.found, chunk.end, len(chunk.data)) == (True, True, finished.outputs["model"].bytes)
    assert b'"finished"' in detail.json
    assert (missing.found, missing.end) == (False, True)
    if not log.data.startswith(b"simulated"):
        assert len(hashlib.sha256(chunk.data).hexdigest()) == len(finished.outputs["model"].sha256)


async def test_draining_stores_reports_and_leaves_work_running(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=600))
    await centre.until(offer, AttemptState.STARTED)

    assert await site.terminate() == 0
    assert not (site.home / "site.sock").exists()
    await site.start()

    await wait_until(lambda: len(centre.inventories) == 2, "what it holds is shown again")
    assert [slot.state for slot in centre.inventories[-1].slots] == [SlotPhase.RUNNING]
    await centre.stop(offer)
    finished = await centre.until(offer, AttemptState.FINISHED)
    assert finished.outcome is AttemptOutcome.CANCELLED


async def test_what_is_here_is_told_now_and_then_with_what_has_ended(centre: Centre, site: Site) -> None:
    await site.start(LANDBRIDGE_SURVEY_SECONDS="0.2")
    await centre.until_connected()
    long, short = await centre.offer(work(site, seconds=600)), await centre.offer(work(site, seconds=0.1))
    await centre.until(long, AttemptState.STARTED)
    await centre.until(short, AttemptState.FINISHED)
    wanted = {(long.operation, False), (short.operation, True)}

    def shown() -> bool:
        told = centre.surveys[-1] if centre.surveys else None
        return told is not None and {(slot.operation, slot.over) for slot in told.slots} == wanted

    await wait_until(shown, "both are listed")
    assert (centre.surveys[-1].term, centre.surveys[-1].complete) == (centre.row.held_term, True)
    await centre.stop(long)


async def test_work_that_somebody_removed_by_hand_is_told_as_such_and_not_as_stopped(
    centre: Centre, process_site: Site
) -> None:
    await process_site.start()
    await centre.until_connected()
    offer = await centre.offer(work(process_site, seconds=60))
    await centre.until(offer, AttemptState.STARTED)
    [slot] = [path for path in (process_site.home / "slots").iterdir() if path.is_dir() and path.name.startswith("op-")]
    shutil.rmtree(slot)

    told = await centre.until(offer, AttemptState.FINISHED, AttemptState.RELINQUISHED)
    assert (told.state, told.outcome) == (AttemptState.FINISHED, AttemptOutcome.FAILED)
    assert told.reason == "removed-externally"


async def test_all_commands_delivered_once_more_start_nothing(centre: Centre, bus: Bus, simulated_site: Site) -> None:
    """The broker forgets how far the dispatcher was: what ended, was cancelled or withdrawn long ago comes again."""
    await simulated_site.start()
    await centre.until_connected()
    offers = [centre.an_offer(work(simulated_site)) for _ in range(100)]
    await centre.send("offer", command.Offers(offers=tuple(offers)))
    for offer in offers:
        await centre.until(offer, AttemptState.FINISHED)
    await centre.settle(*offers)
    running = await centre.offer(work(simulated_site, seconds=600))
    await centre.until(running, AttemptState.STARTED)
    claimed, told = len(centre.claims), len(centre.reports)
    centre.refuse = {key_of(offer): "ended" for offer in offers}  # as the centre's row says

    durable = streams.environment_durable(centre.environment)
    await api(bus, f"CONSUMER.DELETE.{durable.stream}.{durable.name}")
    await declare_durable(bus, durable)

    async def read_again() -> bool:
        info = await api(bus, f"CONSUMER.INFO.{durable.stream}.{durable.name}")
        return bool(info["delivered"]["consumer_seq"] and not info["num_pending"] and not info["num_ack_pending"])

    await wait_until(read_again, "all commands came once more", timeout_s=60)
    starts = {key_of(report) for report in centre.reports[told:] if report.state is AttemptState.STARTED}
    assert starts <= {key_of(running)}, "what runs repeats its answer, nothing else has started"
    assert set(centre.claims[claimed:]).isdisjoint({key_of(running)})
    marker = await centre.offer(work(simulated_site))
    await centre.until(marker, AttemptState.FINISHED)
    assert len({report.started_at for report in centre.of(running, AttemptState.STARTED)}) == 1
    assert not centre.of(running, AttemptState.FINISHED)
