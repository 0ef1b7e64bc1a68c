"""What directed faults need: work that waits for a gate, clients that note what they were told, and the whole truth."""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.instance import ROOT
from landbridge.client import LandbridgeError
from landbridge.store import StoreError
from support.wait import wait_until

from . import audit as auditing
from . import truth
from .audit import Findings, Frozen
from .load import Diary, patiently
from .run import caught_up
from .truth import Run, Truth
from .world import CHECKPOINTS, PROCESS_SITES, PROJECT, QUEUE, SERVERS, SERVICES, World

# Hundreds fit into what this machine proves of a claim that is far larger than it.
TINY = {"cpu": "4m", "memory": "4Mi"}
ENDED = ("completed", "failed", "cancelled")
_CLIENTS = 8
_SEALED = b"state\n"
_FILES = json.dumps({"state": {"bytes": len(_SEALED), "sha256": hashlib.sha256(_SEALED).hexdigest()}})
_SEAL = f"""
seal() {{
  made="$LANDBRIDGE_CHECKPOINT_DIR/.sealing-$$"; mkdir -p "$made"; printf 'state\\n' > "$made/state"
  printf '{{"format":"landbridge.checkpoint/v1","operation":"%s","attempt":%s,"step":1,"sealedAt":%s,"files":%s}}' \\
    "$LANDBRIDGE_OPERATION" "$LANDBRIDGE_ATTEMPT" "$(date +%s)" '{_FILES}' > "$made/manifest.json"
  mv "$made" "$LANDBRIDGE_CHECKPOINT_DIR/sealed-$$"
}}
trap seal URG
"""
_RESUMED = """
[ -e "$LANDBRIDGE_RESUME_FROM/manifest.json" ] && echo "$LANDBRIDGE_OPERATION" >> {gate}.resumed
"""
_WAIT = "flock -s {gate} true & held=$!; while kill -0 $held 2>/dev/null; do wait $held; done"


class Gate:
    """While it is closed, `command` runs and costs nothing; once it is opened, every such command ends with 0."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._held = file.open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def open(self) -> None:
        fcntl.flock(self._held, fcntl.LOCK_UN)

    def close(self) -> None:
        """Forget the file; the gate stays open."""
        self._held.close()

    def command(self, *, seals: bool = False, stubborn: bool = False) -> list[str]:
        """Return a workload. `seals`: checkpoints when asked; `stubborn`: only SIGKILL ends it before the gate does."""
        script = ("trap '' TERM\n" if stubborn else "") + (_SEAL if seals else "")
        return ["/bin/sh", "-c", script + _RESUMED.format(gate=self.file) + _WAIT.format(gate=self.file)]

    def resumed(self) -> set[str]:
        """Return the operations that went on from a sealed checkpoint."""
        file = Path(f"{self.file}.resumed")
        return set(file.read_text().split()) if file.exists() else set()


def operation(
    name: str,
    command: Sequence[str],
    *,
    sites: Collection[str] = PROCESS_SITES,
    disconnection: Mapping[str, str] | None = None,
    **lifecycle: Any,
) -> bytes:
    """Return a document of this world's project; checkpoints are declared where the policy needs them."""
    policy = dict(disconnection or {"policy": "continue"})
    spec: dict[str, Any] = {
        "type": "job",
        "queue": QUEUE,
        "command": list(command),
        "resources": {"requests": TINY},
        "constraints": {"environments": {"allow": sorted(sites)}},
        "lifecycle": {"expectedDuration": "1m", "timeout": "30m", "disconnection": policy, **lifecycle},
    }
    if policy["policy"] == "checkpoint-then-stop":
        spec["checkpoints"] = {"connection": CHECKPOINTS, "every": "1m", "format": "npz"}
    metadata = {"name": name, "project": PROJECT}
    document = {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}
    return json.dumps(document, separators=(",", ":")).encode()


async def submit(world: World, diary: Diary, documents: Mapping[str, bytes]) -> dict[str, str]:
    """Submit documents by idempotency key as patient clients do; return operation ids by key."""
    waiting = list(documents.items())
    found: dict[str, str] = {}

    async def client_of_many() -> None:
        while waiting:
            key, document = waiting.pop()
            answer = await patiently(lambda d=document, k=key: client.submit(d, idempotency_key=k))  # type: ignore[misc]
            diary.note("accepted", key, answer.id, existing=answer.existing)
            found[key] = answer.id

    async with world.application() as client:
        await asyncio.gather(*(client_of_many() for _ in range(_CLIENTS)))
    return found


async def phases(world: World, operations: Collection[str]) -> dict[str, str]:
    """Return what lineage says, by operation; empty while it cannot be asked."""
    with contextlib.suppress(StoreError):
        database = await world.database("lineage")
        try:
            query = "select id::text, phase from operation where id = any($1::uuid[])"
            return {str(row[0]): str(row[1]) for row in await database.fetch(query, list(operations))}
        finally:
            await database.close()
    return {}


async def until_phase(world: World, operations: Collection[str], *phase: str, timeout_s: float = 60.0) -> None:
    """Wait until lineage shows all of them in one of these phases."""

    async def reached() -> bool:
        shown.clear()
        shown.update(await phases(world, operations))
        return len(shown) == len(set(operations)) and set(shown.values()) <= set(phase)

    shown: dict[str, str] = {}
    try:
        await wait_until(
            reached, f"{len(operations)} operations are {' or '.join(phase)}", timeout_s=timeout_s, every_s=0.2
        )
    except AssertionError as error:
        others = [name for name in operations if shown.get(name) not in phase][:5]
        raise AssertionError(f"{error}: {Counter(shown.values())}, for example {others}") from None


async def proven(world: World, claim: str, sites: Collection[str], *, timeout_s: float = 60.0) -> None:
    """Wait until the verifier has proven a claim of each site."""

    async def all_proven() -> bool:
        async with world.client() as client:
            for site in sites:
                with contextlib.suppress(LandbridgeError):
                    claims = (await client.environment(site)).get("claims", [])
                    if any(each["claim"] == claim and each["result"] == "proven" for each in claims):
                        continue
                return False
        return True

    await wait_until(all_proven, f"{claim} is proven in {', '.join(sites)}", timeout_s=timeout_s, every_s=0.3)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


async def stop_centre(world: World, *, servers: Sequence[str] = SERVERS) -> None:
    """Kill every service of the centre and its servers, and keep them down."""
    names = (*SERVICES, *servers)
    for name in names:
        pid = world.pid(name)
        await asyncio.to_thread(world.hold, name)
        if pid:
            kill(pid)

    def gone() -> bool:
        return all(world.state["services"][name]["state"] == "held" for name in names)

    await wait_until(gone, "the centre is down", timeout_s=30)


async def start_servers(world: World, servers: Sequence[str] = SERVERS) -> None:
    for name in servers:
        await asyncio.to_thread(world.release, name)

    def up() -> bool:
        return all(world.state["services"][name]["state"] == "running" for name in servers)

    await wait_until(up, f"{', '.join(servers)} are back", timeout_s=90, every_s=0.05)


async def start_services(world: World, services: Sequence[str] = SERVICES) -> None:
    for name in services:
        await asyncio.to_thread(world.release, name)


async def until_ready(world: World, parts: Collection[str], *, timeout_s: float = 90.0) -> float:
    """Wait until these parts are ready; return how many seconds it took."""
    began = time.monotonic()

    async def ready() -> bool:
        return not set(parts) & set(await world.unready())

    try:
        await wait_until(ready, f"{', '.join(parts)} are ready", timeout_s=timeout_s, every_s=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {await world.why(await world.unready())}") from None
    return time.monotonic() - began


@contextlib.asynccontextmanager
async def away(world: World, name: str) -> AsyncIterator[None]:
    """Keep a part down."""
    await asyncio.to_thread(world.hold, name)

    def held() -> bool:
        return bool(world.state["services"][name]["state"] == "held")

    await wait_until(held, f"{name} is down", timeout_s=30)
    yield
    await asyncio.to_thread(world.release, name)


async def found_wrong(world: World) -> list[str]:
    async with world.client() as client:
        with contextlib.suppress(LandbridgeError):
            return [str(item["code"]) for item in (await client.read("/v1/recovery"))["findings"]]
    return []


async def landbridge(world: World, *arguments: str, timeout_s: float = 120.0) -> str:
    """Run the command line as an operator does; return what it printed. AssertionError if it fails."""
    command = [sys.executable, "-m", "landbridge.cli.main", *arguments, "--data", str(world.data.root)]
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        cwd=ROOT,
        env=world.environ(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"landbridge {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def what_ran(world: World) -> Truth:
    """Read the guardians' own records of every site of processes."""
    return truth.collect({site: world.home(site) / truth.AUDIT for site in PROCESS_SITES if site in world.sites}, {})


def runs_of(world: World, operations: Collection[str]) -> dict[str, list[Run]]:
    found = what_ran(world).runs
    return {name: sorted(found.get(name, []), key=lambda run: run.start) for name in operations}


async def audited(
    world: World,
    diary: Diary,
    *,
    simulated: Mapping[str, Path] | None = None,
    frozen: Sequence[Frozen] = (),
) -> Findings:
    """Compare what clients were told, what ran and what was committed; lineage with its facts and with the stream."""
    from landbridge_lineage.replay import compare, compare_with_stream

    await asyncio.sleep(1.0)  # the last guardians write their lines after their reports
    committed = await auditing.read_stream(world)
    files = {site: world.home(site) / truth.AUDIT for site in PROCESS_SITES if site in world.sites}
    ran = truth.collect(files, dict(simulated or {}))
    for probe in [name for name in ran.runs if name.startswith("probe-")]:
        del ran.runs[probe]  # canaries come and go as they like
    findings = auditing.audit(diary.known, ran, committed, frozen)
    database, bus = await world.database("lineage"), await world.bus("streams")
    try:
        await caught_up(database, bus)
        compared = [await compare(database), await compare_with_stream(database, bus)]
    finally:
        await bus.drain()
        await database.close()
    findings.projection += [each.text() for each in compared if not each.equal]
    return findings


def told(findings: Findings) -> str:
    return json.dumps(findings.to_json(), indent=2)


class Clients:
    """Some that wait for the gate, some that end at once; each with a key of its own."""

    def __init__(self, world: World, folder: Path, site: str) -> None:
        self.world, self.site = world, site
        self.gate, self.diary = Gate(folder / "gate"), Diary(folder / "clients.jsonl")
        self.held: list[str] = []
        self.short: list[str] = []
        self.said: dict[str, tuple[str, bytes]] = {}
        """Key and document of each operation."""
        self._count = 0

    async def submit(self, *, held: int, short: int) -> None:
        """Submit, and wait until the held ones run and the short ones have ended."""
        documents = {}
        for number in range(held + short):
            self._count += 1
            kind = "held" if number < held else "short"
            command = self.gate.command() if number < held else ["true"]
            documents[f"{kind}-{self._count}"] = operation(f"{kind}-{self._count}", command, sites=[self.site])
        found = await submit(self.world, self.diary, documents)
        self.said |= {name: (key, documents[key]) for key, name in found.items()}
        held_now = [name for key, name in found.items() if key.startswith("held")]
        short_now = [name for key, name in found.items() if key.startswith("short")]
        self.held += held_now
        self.short += short_now
        await until_phase(self.world, held_now, "running")
        await until_phase(self.world, short_now, "completed")

    @property
    def all(self) -> list[str]:
        return [*self.held, *self.short]

    def close(self) -> None:
        self.gate.open()
        self.gate.close()
        self.diary.close()

    async def submit_again(self, operations: Collection[str]) -> None:
        """Submit operations once more, each with its own key."""
        said = dict(self.said[name] for name in operations)
        found = await submit(self.world, self.diary, said)
        assert sorted(found.values()) == sorted(operations)

    async def end(self, *, audit: bool = True) -> None:
        """Open the gate: everything ends well, nothing was lost, nothing ran twice. `audit`: what the stream holds."""
        self.gate.open()
        await until_phase(self.world, self.all, "completed", timeout_s=60)
        if audit:
            findings = await audited(self.world, self.diary)
            assert findings.good, told(findings)
        runs = runs_of(self.world, self.all)
        twice = {name: found for name, found in runs.items() if len(found) != 1}
        assert not twice, twice
