"""What runs on this machine for its environments, and what becomes of it when Landbridge goes down.

Launchers and the guardians of workloads outlive dispatchers on purpose. They are told after the dispatchers have
ended: while one still ran, the centre would place the stopped work elsewhere. The outcomes lie in the slots and are
reported at the next start.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from landbridge_embedded.environments import LocalEnvironment
from landbridge_embedded.keeper import Note

GRACE_MS = 10_000


async def leave(environments: Sequence[LocalEnvironment], note: Note, *, keep: bool) -> None:
    """Stop all workloads and end the launchers; with `keep`, end only launchers that guard nothing."""
    here = [item for item in environments if _may_run(item.directory)]
    await asyncio.gather(*(_leave_one(item, note, keep) for item in here))


def _may_run(home: Path) -> bool:
    slots = home / "slots"
    return (home / "launcher.sock").exists() or (slots.is_dir() and any(slots.iterdir()))


async def _leave_one(item: LocalEnvironment, note: Note, keep: bool) -> None:
    # Loaded only here: the supervisor needs nothing of the dispatcher while it runs.
    from landbridge_dispatch.executors.local.client import LauncherClient, LauncherError

    client = LauncherClient(item.directory)
    try:
        guarded = int((await client.ask({"do": "ping"})).get("guardians", 0))
        if keep and guarded:
            note(f"{item.name}: {guarded} workload(s) go on; the next `landbridge up` takes them over")
            return
        answer = await client.ask({"do": "quit", "keepWorkloads": keep, "graceMs": GRACE_MS})
        if answer.get("left"):
            note(f"{item.name}: {answer['left']} workload(s) did not end; see {item.directory / 'launcher.log'}")
    except LauncherError as error:
        note(f"{item.name}: {error}")
    finally:
        await client.close()
