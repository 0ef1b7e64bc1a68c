"""Logs, which the cluster keeps, and outputs, where the dispatcher sees the same volume as the work does.

A log is what the kubelet still has of the container: a rotated one has lost its beginning, and offsets with it.
"""

import asyncio
from pathlib import Path, PurePosixPath
from typing import Final

from landbridge.domain.ownership.environment_model import FINAL
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import ApiError, Object, UnreachableError
from landbridge_dispatch.executors.kubernetes.facts import pod_facts
from landbridge_dispatch.executors.kubernetes.shelf import Shelf, pods_path
from landbridge_dispatch.executors.kubernetes.views import phase_of
from landbridge_dispatch.executors.local.store import list_files, read_piece
from landbridge_dispatch.executors.protocol import Chunk, OutputFile, RefusedError

CHUNK_MAX: Final = 1 << 20
_NOTHING_YET: Final = frozenset({400, 404})


async def read_log(shelf: Shelf, job: Object, offset: int, limit: int, tail: int) -> Chunk:
    """Return a piece of the log of the pod that took the slot. Raises UnreachableError."""
    pod = _speaker(shelf, job)
    ended = phase_of(job) in FINAL
    if pod is None:
        return Chunk(b"", 0, ended)
    meta = pod["metadata"]
    limit = min(limit or CHUNK_MAX, CHUNK_MAX)
    query = {"container": names.container_of(pod)}
    if not tail:
        # One byte more than wanted tells whether anything follows.
        query["limitBytes"] = str(offset + limit + 1)
    kept, size = bytearray(), 0
    keep = min(tail, CHUNK_MAX) if tail else offset + limit + 1
    try:
        async for piece in shelf.api.read_text(f"{pods_path(meta['namespace'], meta['name'])}/log", query):
            size += len(piece)
            kept += piece
            if tail and len(kept) > keep:
                del kept[: len(kept) - keep]
    except UnreachableError:
        raise
    except ApiError as error:
        if error.status not in _NOTHING_YET:
            raise
        return Chunk(b"", 0, ended)
    if tail:
        return Chunk(bytes(kept), size, ended)
    data = bytes(kept[offset : offset + limit])
    following = min(offset, size) + len(data)
    return Chunk(data, following, ended and following >= size)


def _speaker(shelf: Shelf, job: Object) -> Object | None:
    """Return the pod whose log is the slot's: rank 0's that took the slot; where none did, there is no log."""
    claims = records.claims_of(job)
    pods = [pod for pod in shelf.pods_of(job) if pod_facts(pod).node]
    record = records.record_of(job)
    if record is not None and record.type == "service":
        return pods[-1] if pods else None
    owners = {claim.pod for claim in claims.values()}
    taken = [pod for pod in pods if pod["metadata"]["uid"] in owners]
    return min(taken, key=lambda pod: pod_facts(pod).rank, default=None)


async def list_outputs(bindings: Bindings, job: Object) -> dict[str, list[OutputFile]]:
    """Return the files of each output; where the dispatcher cannot see them, its whole size by the wrapper."""
    record, end = records.record_of(job), records.read(job, names.END, records.End)
    found: dict[str, list[OutputFile]] = {}
    for name, place in (record.outputs if record is not None else {}).items():
        root = _directory(bindings, place)
        told = end.outputs.get(name, {}) if end is not None else {}
        if root is not None:
            found[name] = await asyncio.to_thread(list_files, root)
        else:
            found[name] = [OutputFile("", int(told.get("bytes", 0)))] if told.get("exists") else []
    return found


async def read_output(bindings: Bindings, job: Object, name: str, offset: int, limit: int) -> Chunk | None:
    """Return a piece of an output's file; None where there is none, or where the dispatcher cannot see it."""
    record = records.record_of(job)
    output, _, below = name.partition("/")
    place = record.outputs.get(output) if record is not None else None
    root = None if place is None else _directory(bindings, place)
    parts = PurePosixPath(below)
    if root is None or parts.is_absolute() or ".." in parts.parts:
        return None
    path = root / parts
    real = path.resolve()
    if path.is_symlink() or not real.is_relative_to(root.resolve()) or not real.is_file():
        return None
    return await asyncio.to_thread(read_piece, real, offset, limit, 0, complete=True)


def _directory(bindings: Bindings, place: records.Place) -> Path | None:
    """Return where the dispatcher itself sees a place: the binding's `directory`, if it states one."""
    binding = bindings.connections.get(place.connection)
    if binding is None or not binding.directory:
        return None
    try:
        return bindings.place(place.connection, place.path)
    except RefusedError:
        return None
