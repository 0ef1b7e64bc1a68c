"""The slot of one attempt: a directory under a fixed name, whose files tell the whole story.

    order.json     what to run; the slot appears together with it, by one rename
    grant.json     the lease term under which it may start, if a later one than the order's
    guardian       who may start it: written once, by the guardian or by whoever buries the slot
    state.jsonl    running, finished or tombstone, a line each time something changed; empty: created
    stop.json      the latest request to stop
    output.log  work/

Whoever finds the name taken finds everything that was decided before. The first line that says finished or tombstone
counts for ever, whoever wrote it; a torn last line does not count. Standard library only.
"""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landbridge_dispatch.executors.local import files, procfs
from landbridge_dispatch.executors.local.course import StopRequest
from landbridge_dispatch.executors.local.order import ORDER_FILE

SLOTS, SETTLED, CHANGES_FIFO, AUDIT_FILE = "slots", "settled", "changes.fifo", "audit.jsonl"
STATE_FILE, STOP_FILE, GUARDIAN_FILE, WORK = "state.jsonl", "stop.json", "guardian", "work"
GRANT_FILE = "grant.json"
METRICS = ".landbridge/metrics.jsonl"
CREATED, RUNNING, FINISHED, TOMBSTONE = "created", "running", "finished", "tombstone"
ENDED = frozenset({FINISHED, TOMBSTONE})
MARKER = "LANDBRIDGE_SLOT"


@dataclass(frozen=True, slots=True)
class GuardianId:
    """A guardian's process, or, with pid 0, somebody who keeps the slot from starting."""

    pid: int
    ticks: int = 0
    boot: str = ""

    def __str__(self) -> str:
        return f"{self.pid}:{self.ticks}:{self.boot}"

    def lives(self, boot: str) -> bool:
        return self.pid > 0 and self.boot == boot and procfs.is_alive(self.pid, self.ticks)


NOBODY = GuardianId(0)


def occupy(home: Path, name: str, contents: dict[str, dict[str, Any]]) -> bool:
    """Create the slot with `contents` (JSON by file name), durably; False if the name is taken, settled ones included.

    Call `files.sync_directory(home / SLOTS)` after a batch: only then do the names survive a power cut.
    """
    if (home / SETTLED / name).exists():
        return False
    slot, temporary = home / SLOTS / name, home / SLOTS / f".new-{name}-{os.getpid()}"
    temporary.mkdir(mode=files.DIRECTORY_MODE)
    (temporary / STATE_FILE).touch(mode=files.FILE_MODE)
    for file, content in contents.items():
        files.append_line(temporary / file, json.dumps(content, separators=(",", ":")), sync=True)
    try:
        # A slot is never empty, so that renaming onto one fails: this is the test-and-set.
        temporary.rename(slot)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if slot.is_dir():
            return False
        raise
    return True


def bury(home: Path, name: str, order: dict[str, Any], state: dict[str, Any]) -> bool:
    """Make sure that nothing starts in the slot, free or occupied but unstarted; False if its guardian was first."""
    created = occupy(home, name, {ORDER_FILE: order})
    if created:
        files.sync_directory(home / SLOTS)
    slot = home / SLOTS / name
    if not slot.is_dir() or not claim_guardian(slot, NOBODY):
        return False
    append_state(slot, {**state, "state": TOMBSTONE, "at": time.time()})
    return True


def claim_guardian(slot: Path, guardian: GuardianId) -> bool:
    """Take the one right to start, or to keep from starting, what the slot holds; False if it is taken."""
    return files.claim_once(slot / GUARDIAN_FILE, str(guardian))


def guardian_of(slot: Path) -> GuardianId | None:
    """Return who took the slot; None while nobody has."""
    owner = files.owner_of(slot / GUARDIAN_FILE)
    if not owner:
        return None
    pid, ticks, boot = owner.split(":")
    return GuardianId(int(pid), int(ticks), boot)


def append_state(slot: Path, state: dict[str, Any]) -> None:
    """Record a state, durably; without effect once a final one is recorded."""
    files.append_line(slot / STATE_FILE, json.dumps(state, separators=(",", ":")), sync=True)


def state_of(slot: Path) -> dict[str, Any] | None:
    """Return the slot's state, with `state` always set; None where there is no slot."""
    try:
        lines = (slot / STATE_FILE).read_bytes().splitlines(keepends=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    newest: dict[str, Any] = {"state": CREATED}
    for line in lines:
        if line.endswith(b"\n") and line.strip():
            newest = json.loads(line)
        if newest["state"] in ENDED:
            break
    return newest


def request_stop(slot: Path, stop: StopRequest) -> bool:
    """Leave a stop request and wake the guardian; False if no guardian lives to honour it."""
    files.write_json(slot / STOP_FILE, {"reason": stop.reason, "graceMs": stop.grace_ms, "force": stop.force})
    guardian = guardian_of(slot)
    if guardian is None or guardian.pid == 0:
        return False
    return procfs.signal_exactly(guardian.pid, guardian.ticks, procfs.WAKE)


def regrant(slot: Path, term: int) -> None:
    """Let the slot start under a newer grant's term; no effect on what has started."""
    files.write_json(slot / GRANT_FILE, {"term": term}, sync=False)


def grant_term(slot: Path, ordered: int) -> int:
    """Return the newest term under which the slot may start; `ordered`: the one it was occupied under."""
    value = files.read_json(slot / GRANT_FILE)
    return ordered if value is None else max(ordered, int(value["term"]))


def stop_requested(slot: Path) -> StopRequest | None:
    """Return the request last left in the slot."""
    value = files.read_json(slot / STOP_FILE)
    return None if value is None else StopRequest(value["reason"], int(value["graceMs"]), bool(value["force"]))


def names(home: Path, prefix: str = "") -> list[str]:
    """Return the names of all slots, in the order of their names."""
    try:
        return sorted(name for name in os.listdir(home / SLOTS) if name.startswith(prefix) and name[0] != ".")  # noqa: PTH208 - names only
    except FileNotFoundError:
        return []


def announce(home: Path, name: str) -> None:
    """Tell the dispatcher that the slot changed, if it listens; a lost hint costs latency only."""
    try:
        fd = os.open(home / CHANGES_FIFO, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, name.encode() + b"\n")
    except OSError:
        return
    finally:
        os.close(fd)


def audit(home: Path, event: str, **facts: Any) -> None:
    """Append to the site's own record of what really started and stopped, which the control plane never reads."""
    entry = {"event": event, "bootNs": procfs.boottime_ns(), "at": time.time(), **facts}
    files.append_line(home / AUDIT_FILE, json.dumps(entry, separators=(",", ":")))


def close_lost(home: Path, name: str, boot: str) -> bool:
    """Finish a slot whose guardian died without a word: kill what is left of it, record why. False: nothing to do.

    A guardian lives as long as its workload, so this is a machine that restarted, or a guardian killed by hand. The
    kernel has killed the main processes with it; a marked process is one that had made itself independent.
    """
    slot = home / SLOTS / name
    guardian, state = guardian_of(slot), state_of(slot)
    if guardian is None or guardian.pid == 0 or state is None or guardian.lives(boot):
        return False
    if state["state"] in ENDED:
        return False
    rebooted = guardian.boot != boot
    if not rebooted:
        kill_marked(name)
    reason = "host-restarted" if rebooted else "guardian-lost"
    message = "the machine restarted" if rebooted else "its guardian was killed; the exit code is not known"
    lost = {"state": FINISHED, "finishedAt": time.time(), "outcome": "failed", "reason": reason, "message": message}
    append_state(slot, {**state, **lost})
    audit(home, "stop", slot=name, reason=reason)
    announce(home, name)
    return True


def kill_marked(name: str) -> None:
    """Kill every process that carries the slot's mark, until none is left."""
    marker = f"{MARKER}={name}".encode()
    while pids := procfs.marked_processes(marker):
        for pid in pids:
            ticks = procfs.start_ticks(pid)
            if ticks is not None:
                procfs.signal_exactly(pid, ticks, procfs.KILL)
        time.sleep(0.002)
