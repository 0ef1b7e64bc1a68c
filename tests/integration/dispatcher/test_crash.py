"""kill -9 of the dispatcher at the worst moments: nothing is lost, nothing runs twice."""

import json
from pathlib import Path

from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState, SlotPhase
from support.wait import happens_within, wait_until

KILLED = -9


def starts(site: Site) -> list[str]:
    """What really started, from the record that the control plane never reads."""
    audit = site.home / "audit.jsonl"
    entries = [json.loads(line) for line in audit.read_text().splitlines()] if audit.exists() else []
    return [entry["operation"] for entry in entries if entry["event"] == "start"]


async def restarted(centre: Centre, site: Site) -> None:
    """The dispatcher has died at its failpoint; start another one and wait until it may start work."""
    assert await site.ended() == KILLED
    centre.may_start = False
    await site.start()
    await centre.until_connected()


async def test_killed_between_grant_and_slot_the_inventory_shows_nothing(centre: Centre, process_site: Site) -> None:
    await process_site.start(LANDBRIDGE_FAILPOINTS="dispatcher.after-grant=kill")
    await centre.until_connected()
    offer = await centre.offer(work(process_site))

    await restarted(centre, process_site)

    assert centre.inventories[-1].slots == ()
    again = await centre.offer(work(process_site), operation=offer.operation, counter=2)
    await centre.until(again, AttemptState.FINISHED)
    assert centre.of(offer) == []


async def test_killed_between_slot_and_start_it_starts_only_after_a_new_grant(centre: Centre, site: Site) -> None:
    await site.start(LANDBRIDGE_FAILPOINTS="dispatcher.after-occupy=kill")
    await centre.until_connected()
    offer = await centre.offer(work(site))
    await restarted(centre, site)

    finished = await centre.until(offer, AttemptState.FINISHED)

    assert [slot.state for slot in centre.inventories[-1].slots] == [SlotPhase.CREATED]
    assert centre.granted[offer.operation, "1.1"] == centre.row.held_term == finished.term
    assert finished.outcome is AttemptOutcome.COMPLETED


async def test_a_slot_that_is_not_granted_again_never_starts(centre: Centre, process_site: Site) -> None:
    await process_site.start(LANDBRIDGE_FAILPOINTS="dispatcher.after-occupy=kill")
    await centre.until_connected()
    offer = await centre.offer(work(process_site))
    await wait_until(lambda: centre.granted, "it was granted")
    centre.refuse[offer.operation, "1.1"] = "superseded"
    await restarted(centre, process_site)

    relinquished = await centre.until(offer, AttemptState.RELINQUISHED)

    assert relinquished.reason == "not-granted"
    assert centre.of(offer, AttemptState.STARTED, AttemptState.FINISHED) == []
    assert starts(process_site) == []


async def test_killed_after_the_start_running_work_is_adopted(centre: Centre, process_site: Site) -> None:
    site = process_site
    await site.start(LANDBRIDGE_FAILPOINTS="dispatcher.after-start=kill")
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=600))
    await restarted(centre, site)

    assert [slot.state for slot in centre.inventories[-1].slots] == [SlotPhase.RUNNING]
    await centre.stop(offer)
    finished = await centre.until(offer, AttemptState.FINISHED)
    assert finished.outcome is AttemptOutcome.CANCELLED
    assert starts(site) == [offer.operation]


async def test_killed_between_exit_and_report_the_end_is_reported_once_more(centre: Centre, site: Site) -> None:
    exit_code = 3
    await site.start(LANDBRIDGE_FAILPOINTS="dispatcher.before-final-report=kill")
    await centre.until_connected()
    offer = await centre.offer(work(site, exit_code=exit_code))
    await restarted(centre, site)

    finished = await centre.until(offer, AttemptState.FINISHED)

    assert finished.exit_code == exit_code
    assert finished.term == centre.row.held_term
    shown = centre.inventories[-1].slots[0]
    assert shown.state is SlotPhase.FINISHED
    assert shown.report is not None
    assert (shown.report.state, shown.report.exit_code) == (AttemptState.FINISHED, exit_code)


async def test_an_unsettled_end_is_reported_again_in_every_term_and_a_settled_one_is_removed(
    centre: Centre, simulated_site: Site
) -> None:
    await simulated_site.start()
    await centre.until_connected()
    offer = await centre.offer(work(simulated_site))
    await centre.until(offer, AttemptState.FINISHED)

    centre.raise_term()
    await wait_until(lambda: len(centre.of(offer, AttemptState.FINISHED)) == 2, "it is reported again")
    assert [each.term for each in centre.of(offer, AttemptState.FINISHED)] == [1, 2]
    await centre.settle(offer)
    other = await centre.offer(work(simulated_site))
    await centre.until(other, AttemptState.FINISHED)
    centre.raise_term()

    async def removed() -> bool:
        found = await simulated_site.ask(do="operations", all=True)
        return [each["operation"] for each in found["operations"]] == [other.operation]

    await wait_until(removed, "the settled slot is gone, the other one is not")


async def test_two_dispatchers_in_one_directory_are_one_too_many(centre: Centre, simulated_site: Site) -> None:
    await simulated_site.start()
    await centre.until_connected()
    second = Site.__new__(Site)
    second.__dict__.update(simulated_site.__dict__)

    await second.start()

    assert await second.ended() == 1
    assert "another dispatcher runs" in simulated_site.log()


async def test_a_copy_of_a_site_is_told_apart_by_the_chain(
    centre: Centre, simulated_site: Site, tmp_path: Path
) -> None:
    await simulated_site.start()
    await centre.until_connected()
    copy = Site(tmp_path / "copy", simulated_site.url, executor="simulated")
    try:
        await copy.start()
        await copy.until_started()
        displaced = '"reason":"displaced"'
        await wait_until(
            lambda: displaced in simulated_site.log() or displaced in copy.log(), "one of them is displaced"
        )
        assert centre.row.restored or centre.row.displaced
    finally:
        await copy.close()


async def test_commands_of_before_a_return_wait_until_the_centre_has_compared_what_is_there(
    centre: Centre, site: Site
) -> None:
    await site.start()
    await centre.until_connected()
    running = await centre.offer(work(site, seconds=60))
    await centre.until(running, AttemptState.STARTED)
    await site.kill()
    centre.lose()
    centre.compares = False
    await centre.stop(running)
    before = len(centre.inventories)
    await site.start()
    shown = await wait_until(lambda: centre.inventories[before:], "the inventory is shown", timeout_s=30)

    assert [slot.state for slot in shown[-1].slots] == [SlotPhase.RUNNING]
    # A stop is carried out within milliseconds where nothing holds it up.
    assert not await happens_within(1.5, lambda: centre.of(running, AttemptState.FINISHED))
    centre.compare(shown[-1])
    stopped = await centre.until(running, AttemptState.FINISHED)
    assert stopped.outcome is AttemptOutcome.CANCELLED
