"""Tiny workloads that prove that this machine runs work, and that work without a lease stops itself.

They run through launcher and guardian like any other, in slots that no placement can have.
"""

import asyncio
import contextlib
import platform
import secrets
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.local import outlog, procfs, slots
from landbridge_dispatch.executors.local.client import LauncherClient, LauncherError
from landbridge_dispatch.executors.local.course import StopRequest
from landbridge_dispatch.executors.local.lease import Lease, write_lease
from landbridge_dispatch.executors.local.order import ORDER_FILE, Disconnection, Order
from landbridge_dispatch.executors.protocol import Finding

TERM = 1
POLL_S = 0.05
GRACE_MS = 500
WITHIN_MS = 500
CUT_AFTER_MS = 1500
_MS_NS = 1_000_000
# Ignores the polite signal: only the guardian's own kill ends it.
_STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(300)"
)


async def run_to_its_end(home: Path, boot: str, launcher: LauncherClient) -> Finding:
    """Run a trivial workload, start to end."""
    word = secrets.token_hex(8)
    argv = [sys.executable, "-I", "-S", "-c", f"print({word!r})"]
    async with _canary(home, boot, launcher, argv, Disconnection(), lease_ms=60_000) as slot:
        began = time.monotonic()
        state = await _ended(slot)
        log = (slot / outlog.LOG_FILE).read_text(encoding="utf-8")
    subject = f"guardian on kernel {platform.release()}, boot {boot[:8]}"
    if state.get("outcome") == "completed" and log == f"{word}\n":
        return Finding(EvidenceResult.PROVEN, subject, "ran and ended")
    told = state.get("message") or state.get("reason") or "its output was not what it wrote"
    return Finding(EvidenceResult.FAILED, subject, f"after {time.monotonic() - began:.1f} s: {told}")


async def stop_by_itself(home: Path, boot: str, launcher: LauncherClient) -> Finding:
    """Cut the lease of a canary that ignores the polite signal, and measure when it is gone."""
    policy = Disconnection("stop-after-grace", WITHIN_MS, GRACE_MS)
    argv = [sys.executable, "-I", "-S", "-c", _STUBBORN]
    async with _canary(home, boot, launcher, argv, policy, lease_ms=CUT_AFTER_MS) as slot:
        cut_ns = procfs.boottime_ns() + CUT_AFTER_MS * _MS_NS
        state = await _ended(slot)
        late_ms = (procfs.boottime_ns() - cut_ns) // _MS_NS
    subject = f"guardian on kernel {platform.release()}, boot {boot[:8]}"
    bound_ms = WITHIN_MS + GRACE_MS + KILL_MARGIN_MS
    if state.get("reason") != "self-stopped":
        told = state.get("message") or state.get("reason") or "it went on"
        return Finding(EvidenceResult.FAILED, subject, f"the canary did not stop itself: {told}")
    if late_ms > bound_ms:
        detail = f"stopped {late_ms} ms after its lease, promised within {bound_ms} ms"
        return Finding(EvidenceResult.FAILED, subject, detail)
    return Finding(EvidenceResult.PROVEN, subject, f"stopped within {bound_ms} ms of the end of its lease")


@contextlib.asynccontextmanager
async def _canary(
    home: Path, boot: str, launcher: LauncherClient, argv: list[str], policy: Disconnection, *, lease_ms: int
) -> Any:
    """Start a canary under a lease of its own; whatever happens, nothing of it is left."""
    name = f"probe-{secrets.token_hex(8)}"
    slot, lease_file = home / slots.SLOTS / name, f"{name}.lease"
    order = Order(
        operation=name,
        generation=0,
        counter=0,
        attempt=1,
        grant_term=TERM,
        spec_sha256="",
        project="",
        name="probe",
        argv=argv,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        grace_ms=GRACE_MS,
        start_wait_ms=0,
        disconnection=policy,
        lease_file=lease_file,
    )
    until_ns = procfs.boottime_ns() + lease_ms * _MS_NS
    try:
        write_lease(home, Lease(TERM, until_ns, boot, may_start=True), lease_file)
        await asyncio.to_thread(slots.occupy, home, name, {ORDER_FILE: order.to_json()})
        await launcher.ask({"do": "start", "slots": [{"slot": name, "secrets": {}}]})
        yield slot
    except LauncherError as error:
        raise OSError(str(error)) from error
    finally:
        await asyncio.shield(asyncio.to_thread(_clear, home, slot, lease_file))


async def _ended(slot: Path) -> dict[str, Any]:
    while True:
        state = await asyncio.to_thread(slots.state_of, slot)
        if state is None or state["state"] in slots.ENDED:
            return state or {}
        await asyncio.sleep(POLL_S)


def _clear(home: Path, slot: Path, lease_file: str) -> None:
    if slot.is_dir():
        guardian, boot = slots.guardian_of(slot), procfs.boot_id()
        slots.request_stop(slot, StopRequest("probe-over", 0, force=True))
        while guardian is not None and guardian.lives(boot):
            time.sleep(POLL_S)
        shutil.rmtree(slot, ignore_errors=True)
    (home / lease_file).unlink(missing_ok=True)
