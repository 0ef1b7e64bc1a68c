"""A dispatcher that is killed again and again while the API server comes and goes: each operation runs once.

The scripted centre does what a coordinator does about work that it hears nothing of, or that is given back: it places
it again, as the next epoch.
"""

import asyncio
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from contract.executors.harness import IMAGE
from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.command_v1 import Offer
from landbridge.schema.wire.report_v1 import AttemptReport, AttemptState
from landbridge_dispatch.executors.kubernetes.names import name_of
from landbridge_dispatch.executors.protocol import SlotKey
from support.wait import happens_within, wait_until

ROUNDS = 4
"""How often an operation may be placed: first, and again after a kill that took what was known of it."""
UNHEARD_S = 20.0
ENDS_S = 300.0
RAN = "ran\n"
"""A log is written by the workload alone, a line each time that it runs."""


class Cluster(Protocol):
    """What is done to a cluster behind the dispatcher's back, and what is looked at afterwards."""

    async def cut_watches(self) -> None:
        """Break every connection that is open."""

    async def restart(self) -> None:
        """End the API server, and start it again."""

    async def forget(self) -> None:
        """Have watches from before told 410, where a test can do that."""

    async def jobs(self) -> set[str]:
        """Names of all Jobs that are there."""

    def texts(self) -> Iterable[str]:
        """Logs of all pods that there ever were."""


class ClusterSite(Site):
    """A site whose bindings stand already."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.url = url
        self.creds = None
        self.process = None
        self.port_file = home / "port"


def program(seconds: float, exit_code: int = 0) -> list[str]:
    return [sys.executable, "-S", "-c", f"import sys, time; print('ran'); time.sleep({seconds}); sys.exit({exit_code})"]


def slot_name(offer: Offer) -> str:
    return name_of(SlotKey(offer.operation, Epoch(offer.epoch.generation, offer.epoch.counter)))


@dataclass
class Placed:
    """One operation: what it has to end with, and every offer that was made of it."""

    command: list[str]
    exit_code: int
    offers: list[Offer] = field(default_factory=list)

    def ends(self, centre: Centre) -> list[AttemptReport]:
        return [end for offer in self.offers for end in centre.of(offer, AttemptState.FINISHED)]

    def is_given_back(self, centre: Centre) -> bool:
        return bool(centre.of(self.offers[-1], AttemptState.RELINQUISHED, AttemptState.REFUSED))


async def place(centre: Centre, placed: Placed) -> None:
    counter = len(placed.offers) + 1
    operation = placed.offers[0].operation if placed.offers else ""
    placed.offers.append(await centre.offer(placed.command, operation=operation, counter=counter, image=IMAGE))


async def killed_again_and_again(
    centre: Centre, site: Site, cluster: Cluster, *, count: int = 200, kills: int = 20
) -> list[Placed]:
    """Place `count` operations, kill the dispatcher `kills` times meanwhile, restart the API server twice."""
    chance = random.Random(11)
    await site.start()
    await centre.until_connected(timeout_s=90)
    all_placed: list[Placed] = []
    for number in range(kills):
        for at in range(count // kills):
            all_placed.append(Placed(program(chance.random() * 2, at % 3), at % 3))
            await place(centre, all_placed[-1])
        await asyncio.sleep(chance.random() * 8)
        await site.kill()
        if number in (kills // 3, 2 * kills // 3):
            await cluster.restart()
        await cluster.cut_watches()
        if number % 5 == 4:
            await cluster.forget()
        centre.may_start = False
        await site.start()
        await centre.until_connected(timeout_s=120)
    return all_placed


async def all_ended(centre: Centre, cluster: Cluster, all_placed: list[Placed]) -> None:
    """Wait until each has ended; what nobody knows of any more, or was given back, is placed again."""
    for _ in range(ROUNDS):
        waiting = [placed for placed in all_placed if not placed.ends(centre)]
        for placed in await _unknown(centre, cluster, waiting):
            await place(centre, placed)
        await wait_until(
            lambda: all(placed.ends(centre) or placed.is_given_back(centre) for placed in waiting),  # noqa: B023
            "what is placed ends or is given back",
            timeout_s=ENDS_S,
            every_s=0.2,
        )
    left = [placed.offers[-1].operation for placed in all_placed if not placed.ends(centre)]
    assert not left, f"placed {ROUNDS} times and not ended: {left}"


async def _unknown(centre: Centre, cluster: Cluster, waiting: list[Placed]) -> list[Placed]:
    """Return what the environment has given back, or has neither as a slot nor on its way to one."""
    await happens_within(UNHEARD_S, lambda: all(centre.of(placed.offers[-1]) for placed in waiting), every_s=0.2)
    jobs = await cluster.jobs()
    return [
        placed
        for placed in waiting
        if placed.is_given_back(centre) or not (slot_name(placed.offers[-1]) in jobs or centre.of(placed.offers[-1]))
    ]


async def each_ran_once(centre: Centre, cluster: Cluster, all_placed: list[Placed]) -> None:
    """Assert that each operation has one end, that it is the right one, and that nothing else is there."""
    for placed in all_placed:
        ends = placed.ends(centre)
        assert {end.exit_code for end in ends} == {placed.exit_code}, ends
        assert len({(end.epoch, end.outcome, end.finished_at) for end in ends}) == 1, ends
    names = {slot_name(offer) for placed in all_placed for offer in placed.offers}
    assert await cluster.jobs() <= names, "no orphan"
    texts = list(cluster.texts())
    assert all(text in ("", RAN) for text in texts)
    assert texts.count(RAN) == len(all_placed)
