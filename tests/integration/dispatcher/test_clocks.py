"""Clocks of a site that are not the centre's: durations on the boot clock count, the wall clock decides nothing."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from integration.dispatcher.centre import Centre
from integration.dispatcher.link import Link
from integration.dispatcher.site import Site
from integration.dispatcher.work import work
from landbridge.schema.wire.report_v1 import AttemptOutcome, AttemptState
from landbridge_embedded.nats import NatsServer
from support.wait import wait_until

_HOUR_MS = 3_600_000
_BOOT_OFFSET_S = 5_000_000
_TTL_MS = 3000
_STOPS = {"disconnection": {"policy": "stop-after-grace", "grace": "1s"}}


@pytest.fixture
async def link(nats_server: NatsServer) -> AsyncIterator[Link]:
    wire = Link(int(nats_server.url.rsplit(":", 1)[1]))
    await wire.open()
    yield wire
    await wire.close()


def entries(site: Site, event: str) -> list[dict[str, float | str]]:
    file = site.home / "audit.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [entry for entry in found if entry["event"] == event]


async def test_a_jump_of_the_wall_clock_costs_no_lease_and_stops_no_work(
    centre: Centre, process_site: Site, tmp_path: Path
) -> None:
    centre.ttl_ms = _TTL_MS
    site, clock = process_site, tmp_path / "clock.json"
    await site.start("env", LANDBRIDGE_TEST_CLOCK=str(clock))  # an interpreter of its own: it is read at import
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=60), lifecycle=_STOPS)
    await centre.until(offer, AttemptState.STARTED)
    term = centre.row.held_term

    for jumps, jump_ms in enumerate((_HOUR_MS, -_HOUR_MS), start=1):
        renewals = centre.row.grants
        clock.write_text(json.dumps({"wallOffsetMs": jump_ms}))

        def noticed(jumps: int = jumps) -> bool:
            return site.log().count("wall clock jumped") == jumps

        await wait_until(noticed, "the jump is noticed", timeout_s=10)
        # Longer than a lease lives: it is renewed, and work starts as before.
        await wait_until(lambda r=renewals: centre.row.grants >= r + 5, "the lease is renewed", timeout_s=20)  # type: ignore[misc]
        other = await centre.offer(work(site), lifecycle=_STOPS)
        finished = await centre.until(other, AttemptState.FINISHED, timeout_s=20)
        assert finished.outcome is AttemptOutcome.COMPLETED

    assert centre.row.held_term == term
    assert [entry for entry in entries(site, "stop") if entry["operation"] == offer.operation] == []


def in_other_time() -> list[str]:
    """Return the words that run a command where the boot clock has another start. Skips where the kernel refuses."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    words = ["unshare", *own, "--time", "--boottime", str(_BOOT_OFFSET_S), "--fork", "--kill-child", "--"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"a time namespace cannot be made here: {tried.stderr.strip()}")
    return words


async def test_where_the_boot_clock_began_at_another_moment_work_stops_in_the_same_time(
    centre: Centre, link: Link, process_site: Site
) -> None:
    centre.ttl_ms = _TTL_MS
    site = process_site
    site.url = link.url
    await site.start(*in_other_time())
    await centre.until_connected()
    offer = await centre.offer(work(site, seconds=120), lifecycle=_STOPS)
    await centre.until(offer, AttemptState.STARTED)
    link.cut()

    def stopped() -> bool:
        return any(entry["operation"] == offer.operation for entry in entries(site, "stop"))

    await wait_until(stopped, "it has stopped itself", timeout_s=20)
    until = json.loads((site.home / "lease.json").read_text())["untilNs"] / 1e9
    [stop] = [entry for entry in entries(site, "stop") if entry["operation"] == offer.operation]
    assert until > _BOOT_OFFSET_S
    assert 0 <= float(stop["bootNs"]) / 1e9 - until <= 1 + 5  # grace and the margin of a forced kill
    centre.lose()
    centre.may_start = False
    link.restore()
    await centre.until_connected(timeout_s=40)
    relinquished = await centre.until(offer, AttemptState.RELINQUISHED)
    assert relinquished.reason == "self-stopped"
