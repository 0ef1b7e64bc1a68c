"""The whole centre is gone for three times the lease, with work of every disconnection policy running at two sites.

Measured is what the sites did by themselves, from the guardians' records and from the lease files that they obeyed.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landbridge.domain.claims import SELF_STOP
from landbridge.domain.ownership.expiry import release_wait_ms
from landbridge.domain.ownership.policy import KILL_MARGIN_MS, Timing
from support.proxy import Wire
from support.wait import wait_until

from . import directed
from .directed import Gate
from .load import Diary
from .truth import Run, boot_offset
from .world import CHECKPOINTS, PROCESS_SITES, SERVICES, World

LEASES = 3
STAYS_AWAY = "site-b"
_GRACE_S = 0.5
_WITHIN_S = 1.0


@dataclass(frozen=True)
class Kind:
    """Work of one policy. `stop_s`: from the end of the lease to its forced end; 0 for work that goes on."""

    name: str
    policy: Mapping[str, str]
    stop_s: float = 0.0
    seals: bool = False
    stubborn: bool = False


def _checkpoint(name: str, *, seals: bool, stubborn: bool) -> Kind:
    policy = {"policy": "checkpoint-then-stop", "checkpointWithin": f"{_WITHIN_S:g}s", "grace": "500ms"}
    return Kind(name, policy, _WITHIN_S + _GRACE_S, seals, stubborn)


def _grace(name: str, *, stubborn: bool) -> Kind:
    return Kind(name, {"policy": "stop-after-grace", "grace": "500ms"}, _GRACE_S, stubborn=stubborn)


KINDS = (
    Kind("continue", {"policy": "continue"}),
    Kind("must-finish", {"policy": "must-finish"}),
    _checkpoint("seals", seals=True, stubborn=False),
    _checkpoint("never-seals", seals=False, stubborn=True),
    _grace("polite", stubborn=False),
    _grace("stubborn", stubborn=True),
)


@dataclass(frozen=True)
class Outage:
    """How many operations run, on an instance below `folder`."""

    operations: int
    folder: Path
    ttl_s: float
    run_s: float = 60.0
    """How long starting all of them may take, and placing them again."""
    say: Callable[[str], None] = print


class OutageRun:
    """`await OutageRun(outage).run()` returns what was measured; it raises AssertionError when a promise is broken."""

    def __init__(self, outage: Outage) -> None:
        self.outage = outage
        outage.folder.mkdir(parents=True, exist_ok=True)
        sites = (*PROCESS_SITES, "sim-a")  # three, so that one that stays away is not most of them
        self.world = World(outage.folder / "data", ttl_s=outage.ttl_s, sites=sites, slots=2 * outage.operations)
        self.diary = Diary(outage.folder / "clients.jsonl")
        self.gate = Gate(outage.folder / "gate")
        self.kinds: dict[str, Kind] = {}
        self._began = time.monotonic()
        self.report: dict[str, Any] = {"operations": outage.operations, "lease_ttl_s": outage.ttl_s}

    async def run(self) -> dict[str, Any]:
        """Fill both sites, lose the centre, let it and one site return, then the other one; end everything."""
        await self.world.open()
        self._say("the instance is ready")
        try:
            await self._fill()
            before = self._runs()
            cut = await self._lose_the_centre()
            self._check_stops(before, cut)
            returned = await self._return()
            await self._wait_for_the_site_that_stays_away(before, returned)
            self._heal(STAYS_AWAY)
            await self._end()
        finally:
            self.gate.open()
            self.gate.close()
            self.diary.close()
            await self.world.close()
        return self.report

    # -- before ---------------------------------------------------------------------------------------------------

    async def _fill(self) -> None:
        await directed.proven(self.world, SELF_STOP, PROCESS_SITES)
        self._say("self-stop is proven")
        documents = {}
        for number in range(self.outage.operations):
            kind = KINDS[number % len(KINDS)]
            command = self.gate.command(seals=kind.seals, stubborn=kind.stubborn)
            key = f"{kind.name}-{number}"
            documents[key] = directed.operation(key, command, disconnection=kind.policy)
        began = time.monotonic()
        found = await directed.submit(self.world, self.diary, documents)
        self.kinds = {operation: KINDS[int(key.rpartition("-")[2]) % len(KINDS)] for key, operation in found.items()}
        await directed.until_phase(self.world, found.values(), "running", timeout_s=self.outage.run_s)
        self._say(f"all run after {time.monotonic() - began:.1f} s")

    def _runs(self) -> dict[str, list[Run]]:
        return directed.runs_of(self.world, self.kinds)

    # -- without the centre ---------------------------------------------------------------------------------------

    async def _lose_the_centre(self) -> float:
        """Cut every wire and kill the centre; return, on the boot clock, when nothing could be renewed any more."""
        for wire in self.world.wires.values():
            wire.set(Wire.BLACK_HOLE)
        cut = _boot()
        await directed.stop_centre(self.world)
        await asyncio.sleep(cut + LEASES * self.outage.ttl_s - _boot())
        return cut

    def _check_stops(self, before: Mapping[str, list[Run]], cut: float) -> None:
        """Work that stops itself has stopped within its bound, all other work runs, nothing has started."""
        ends = {site: self._lease_end(site) for site in PROCESS_SITES}
        for site, end in ends.items():
            assert cut - 0.5 <= end <= cut + self.outage.ttl_s, f"{site}: lease ends {end - cut:.2f} s after the cut"
        late: dict[str, list[float]] = {}
        for operation, runs in self._runs().items():
            kind = self.kinds[operation]
            assert len(runs) == len(before[operation]) == 1, f"{kind.name} {operation} started again alone: {runs}"
            stop = runs[0].stop
            if not kind.stop_s:
                assert stop is None, f"{kind.name} {operation} ended: {runs[0]}"
                continue
            assert stop is not None, f"{kind.name} {operation} runs on after {_boot() - cut:.1f} s"
            assert runs[0].cause == "self-stopped", f"{kind.name} {operation}: {runs[0]}"
            after = stop - ends[runs[0].site]
            assert -0.05 <= after <= kind.stop_s + KILL_MARGIN_MS / 1000, f"{kind.name} {operation}: {after:.3f} s"
            late.setdefault(kind.name, []).append(after)
        self.report["stopped_after_lease_end_s"] = {
            kind.name: {"of": len(late[kind.name]), "declared": kind.stop_s, "max": round(max(late[kind.name]), 3)}
            for kind in KINDS
            if kind.stop_s
        }
        self.report["self_stopped"] = sum(map(len, late.values()))
        self._say(f"stopped by themselves: {json.dumps(self.report['stopped_after_lease_end_s'])}")

    def _lease_end(self, site: str) -> float:
        """Return when the lease that the site's guardians obey has ended, on the boot clock."""
        return float(json.loads((self.world.home(site) / "lease.json").read_text())["untilNs"] / 1e9)

    # -- the centre returns ---------------------------------------------------------------------------------------

    async def _return(self) -> float:
        """Let the centre return and all sites but one; return when its services could be asked, on the boot clock."""
        await directed.start_servers(self.world)
        released = _boot()
        await directed.start_services(self.world)
        await directed.until_ready(self.world, SERVICES)
        for site in self.world.sites:
            if site != STAYS_AWAY:
                self._heal(site)
        self._say(f"the centre is ready again after {_boot() - released:.1f} s")
        return released

    def _heal(self, site: str) -> None:
        self.world.wires[site].heal()

    async def _wait_for_the_site_that_stays_away(self, before: Mapping[str, list[Run]], returned: float) -> None:
        """What stopped at the returned site moves by its word, at the other one by time, and no other work moves."""
        self_stopping = [operation for operation, kind in self.kinds.items() if kind.stop_s]

        def placed_again() -> bool:
            ran = self._runs()
            return all(len(ran[operation]) == 2 for operation in self_stopping)

        patience_s = self._not_before_s(max(kind.stop_s for kind in KINDS)) + self.outage.run_s
        await wait_until(placed_again, "what had stopped runs again", timeout_s=patience_s, every_s=0.3)
        waits: list[float] = []
        for operation, runs in self._runs().items():
            kind, home = self.kinds[operation], before[operation][0].site
            if not kind.stop_s:
                assert len(runs) == 1, f"{kind.name} {operation} was placed again: {runs}"
                assert runs[0].stop is None, f"{kind.name} {operation} was stopped: {runs[0]}"
                continue
            first, second = runs
            assert first.stop is not None, f"{kind.name} {operation}: {first}"
            assert second.start >= first.stop, f"{kind.name} {operation} ran twice at once: {runs}"
            if home == STAYS_AWAY:
                assert second.site != STAYS_AWAY, f"{operation} started where nobody is heard: {second}"
                waited = second.start - returned
                assert waited >= self._not_before_s(kind.stop_s), f"{kind.name} {operation}: {waited:.2f} s"
                waits.append(waited - self._not_before_s(kind.stop_s))
        await self._check_checkpoints()
        self.report["placed_again_by_time"] = {"of": len(waits), "least_s_after_bound": round(min(waits), 2)}
        self.report["at_home"] = dict(Counter(runs[0].site for runs in before.values()))
        self._say(f"placed again by time: {self.report['placed_again_by_time']}")

    async def _check_checkpoints(self) -> None:
        """Whoever had sealed a checkpoint goes on from it, also where the centre could not be told of it."""
        sealed = {each.parent.parent.name for each in (self.outage.folder / CHECKPOINTS).glob("*/e1-1/sealed-*")}
        assert sealed, "nobody has sealed a checkpoint"
        assert all(self.kinds[operation].seals for operation in sealed), sealed

        def resumed() -> bool:
            return self.gate.resumed() == sealed

        await wait_until(resumed, f"all {len(sealed)} that had sealed a checkpoint go on from it", timeout_s=20)
        self.report["went_on_from_checkpoints"] = len(sealed)

    def _not_before_s(self, stop_s: float) -> float:
        """Return the expiry rule's wait; a returning centre counts every lease as granted at its return."""
        timing = Timing(ttl_ms=round(self.outage.ttl_s * 1000))
        return release_wait_ms(round(stop_s * 1000) + KILL_MARGIN_MS, timing) / 1000

    # -- the end --------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """All that went on is adopted and ends well; nobody was lost, nothing ran twice."""
        await directed.until_ready(self.world, self.world.parts)
        await directed.until_phase(self.world, self.kinds, "running", timeout_s=self.outage.run_s)
        await self._until_adopted()
        self._say("everything is adopted")
        self.gate.open()
        await directed.until_phase(self.world, self.kinds, "completed", timeout_s=self.outage.run_s)
        findings = await directed.audited(self.world, self.diary)
        assert findings.good, directed.told(findings)
        ran = self._runs()
        for operation, kind in self.kinds.items():
            assert len(ran[operation]) == (2 if kind.stop_s else 1), f"{kind.name} {operation}: {ran[operation]}"
        self._say("audited")
        self.report["adopted"] = sum(1 for kind in self.kinds.values() if not kind.stop_s)
        self.report["audit"] = findings.counts

    async def _until_adopted(self) -> None:
        async def all_controlled() -> bool:
            async with self.world.client() as client:
                overviews = [await client.read(f"/v1/environments/{site}/disconnection") for site in PROCESS_SITES]
            return all(each["link"] == "connected" and not each["operations"] for each in overviews)

        await wait_until(all_controlled, "nothing is out of control any more", timeout_s=60, every_s=0.3)

    def _say(self, text: str) -> None:
        self.outage.say(f"{time.monotonic() - self._began:6.1f} s: {text}")


def _boot() -> float:
    return time.time() + boot_offset()
