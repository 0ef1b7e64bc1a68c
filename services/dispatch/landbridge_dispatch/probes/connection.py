"""A connection is reached as workloads reach it: read and, where writing is claimed, write, read back, remove."""

import asyncio
import os
import secrets
from pathlib import Path

from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import WRITABLE
from landbridge_dispatch.executors.protocol import Finding, RefusedError
from landbridge_dispatch.probes.context import ProbeContext

READ_BYTES = 4096


async def run(probe: Probe, context: ProbeContext) -> Finding:
    """Try it in a thread: a hanging mount must not hold up the dispatcher."""
    return await asyncio.to_thread(_try, probe, context)


def _try(probe: Probe, context: ProbeContext) -> Finding:
    name = probe.parameters.get("connection", "")
    writes = probe.parameters.get("access") in WRITABLE
    subject = f"connection {name}"
    try:
        root = context.bindings.place(name, "", write=writes)
        status = root.stat()
        subject = f"connection {name} on device {status.st_dev}, inode {status.st_ino}"
        if probe.parameters.get("access") != "write-only":
            _read(root)
        if writes:
            _write(root)
    except RefusedError as refusal:
        return Finding(EvidenceResult.FAILED, subject, str(refusal))
    except OSError as error:
        # Without the path, which would tell the physical place.
        return Finding(EvidenceResult.FAILED, subject, f"connection {name}: {error.strerror or type(error).__name__}")
    return Finding(EvidenceResult.PROVEN, subject, "read and written" if writes else "read")


def _read(root: Path) -> None:
    """List it, and read the beginning of one file if there is one."""
    with os.scandir(root) as entries:
        first = next((entry for entry in entries if entry.is_file(follow_symlinks=False)), None)
    if first is not None:
        fd = os.open(first.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.read(fd, READ_BYTES)
        finally:
            os.close(fd)


def _write(root: Path) -> None:
    body = secrets.token_bytes(64)
    path = root / f".landbridge-probe-{secrets.token_hex(8)}"
    try:
        path.write_bytes(body)
        if path.read_bytes() != body:
            raise OSError(0, "what was written is not what was read back")
    finally:
        path.unlink(missing_ok=True)
