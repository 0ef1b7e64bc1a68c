"""The blocking half of the process executor: everything that reads or writes slots. Called in worker threads."""

import os
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from landbridge.domain import ids, units
from landbridge.domain.ownership.environment_model import FinalReport
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.local import evidence, files, outlog, slots
from landbridge_dispatch.executors.local.build import order_for
from landbridge_dispatch.executors.local.course import StopRequest
from landbridge_dispatch.executors.local.order import ORDER_FILE
from landbridge_dispatch.executors.local.views import FINAL_FILE, SETTLED_FILE, read_view
from landbridge_dispatch.executors.protocol import (
    Burial,
    Chunk,
    OutputFile,
    RefusedError,
    SlotKey,
    SlotView,
    StopOrder,
    Work,
)

OUTPUT_FILES_MAX = 10_000
CHUNK_MAX = 1 << 20
SLOT_PREFIX = "op-"
"""Of slots that placements have; probes make others."""


def name_of(key: SlotKey) -> str:
    """Return the fixed name of a slot."""
    return ids.slot_name(key.operation, key.epoch.generation, key.epoch.counter)


class SlotStore:
    """The slots of one environment on this machine's disk."""

    def __init__(self, bindings: Bindings, boot: str) -> None:
        self.bindings = bindings
        self.home = bindings.home
        self._boot = boot

    def prepare(self) -> None:
        """Make the directories, and those of connections that work may write to."""
        for name in (slots.SLOTS, slots.SETTLED):
            (self.home / name).mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        for name, binding in self.bindings.connections.items():
            if binding.directory and binding.access != "read-only":
                self.bindings.root(name).mkdir(parents=True, exist_ok=True)
        for leftover in (self.home / slots.SLOTS).glob(".new-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def slot(self, key: SlotKey) -> Path:
        """Return the slot's directory, among the settled ones if it was removed."""
        name = name_of(key)
        settled = self.home / slots.SETTLED / name
        return settled if settled.exists() else self.home / slots.SLOTS / name

    def view(self, key: SlotKey) -> SlotView | None:
        return read_view(self.slot(key))

    def views(self, names: Iterable[str]) -> list[tuple[str, SlotView | None]]:
        return [(name, read_view(self.home / slots.SLOTS / name)) for name in names]

    def inventory(self) -> list[SlotView]:
        """Read every slot; first close those whose guardian is gone, so that nothing is shown as running for ever."""
        found = []
        for name in slots.names(self.home, SLOT_PREFIX):
            slots.close_lost(self.home, name, self._boot)
            view = read_view(self.home / slots.SLOTS / name)
            if view is not None:
                found.append(view)
        return found

    def close_lost(self, names: Iterable[str]) -> None:
        for name in names:
            slots.close_lost(self.home, name, self._boot)

    def occupy(self, works: Sequence[Work]) -> list[SlotView | RefusedError | None]:
        results = [self._occupy(work) for work in works]
        files.sync_directory(self.home / slots.SLOTS)
        return results

    def _occupy(self, work: Work) -> SlotView | RefusedError | None:
        name = name_of(work.key)
        found = self.view(work.key)
        if found is not None:
            return found
        try:
            order = order_for(self.bindings, name, work)
        except RefusedError as refusal:
            return refusal
        if slots.occupy(self.home, name, {ORDER_FILE: order.to_json()}):
            return None
        return self.view(work.key)

    def secrets(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the values that the launcher hands on in memory, by slot."""
        wanted = {name: files.read_json(self.home / slots.SLOTS / name / ORDER_FILE) or {} for name in names}
        return {
            name: {key: os.environ.get(source, "") for key, source in order.get("secret_variables", {}).items()}
            for name, order in wanted.items()
        }

    def stop(self, orders: Sequence[StopOrder]) -> None:
        for order in orders:
            slot = self.home / slots.SLOTS / name_of(order.key)
            if not slot.is_dir():
                continue
            reached = slots.request_stop(slot, StopRequest(order.reason, order.grace_ms, order.force))
            if not reached and slots.claim_guardian(slot, slots.NOBODY):
                told = {"reason": order.reason, "message": "stopped before it had started", "denied": True}
                slots.append_state(slot, {"state": slots.TOMBSTONE, "at": time.time(), **told})
                slots.announce(self.home, slot.name)

    def bury(self, burials: Sequence[Burial]) -> None:
        for burial in burials:
            name, key = name_of(burial.key), burial.key
            final = _final(burial.report)
            order: dict[str, Any] = {
                "operation": key.operation,
                "generation": key.epoch.generation,
                "counter": key.epoch.counter,
                "grant_term": burial.term,
                "project": burial.project,
            }
            state = {"buried": True, "reason": burial.report.reason, "denied": True}
            if not slots.bury(self.home, name, order, state):
                slot = self.slot(key)
                view = read_view(slot)
                if view is not None and not view.ended:
                    slots.request_stop(slot, StopRequest(burial.report.reason or "buried", 0, force=True))
                files.write_json(slot / FINAL_FILE, final)
                continue
            files.write_json(self.slot(key) / FINAL_FILE, final)

    def record(self, answers: Sequence[tuple[SlotKey, FinalReport]]) -> None:
        for key, report in answers:
            slot = self.slot(key)
            view = read_view(slot)
            if view is not None and not implies(view, report):
                files.write_json(slot / FINAL_FILE, _final(report))

    def settle(self, settled: Sequence[tuple[SlotKey, int]]) -> None:
        for key, term in settled:
            slot = self.slot(key)
            if slot.is_dir():
                # Not synced: forgotten by a power cut, the end is reported and settled once more.
                files.write_json(slot / SETTLED_FILE, {"term": term}, sync=False)
                shutil.rmtree(slot / slots.WORK, ignore_errors=True)

    def remove(self, keys: Sequence[SlotKey]) -> None:
        """Move slots among the settled ones, and forget what the site does not keep any longer."""
        for key in keys:
            name = name_of(key)
            slot, settled = self.home / slots.SLOTS / name, self.home / slots.SETTLED / name
            if slot.is_dir() and not settled.exists():
                slot.rename(settled)
                os.utime(settled)
        self._prune()

    def _prune(self) -> None:
        options = self.bindings.executor
        oldest = time.time() - units.parse_duration(options.keep_logs) / 1000
        room = units.parse_bytes(options.keep_logs_size)
        entries = sorted(((path.stat().st_mtime, path) for path in (self.home / slots.SETTLED).iterdir()), reverse=True)
        for moved_at, path in entries:
            room -= sum(file.stat().st_size for file in path.iterdir() if file.is_file())
            if moved_at < oldest or room < 0:
                shutil.rmtree(path, ignore_errors=True)

    def logs(self, key: SlotKey, offset: int, limit: int, tail: int) -> Chunk | None:
        slot = self.slot(key)
        view = read_view(slot)
        if view is None:
            return None
        chunk = read_piece(slot / outlog.LOG_FILE, offset, limit, tail, complete=view.ended)
        return chunk or Chunk(b"", 0, view.ended)

    def outputs(self, key: SlotKey) -> dict[str, list[OutputFile]] | None:
        order = files.read_json(self.slot(key) / ORDER_FILE)
        if order is None:
            return None
        return {name: list_files(Path(place["directory"])) for name, place in order.get("outputs", {}).items()}

    def output_chunk(self, key: SlotKey, name: str, offset: int, limit: int) -> Chunk | None:
        order = files.read_json(self.slot(key) / ORDER_FILE) or {}
        output, _, below = name.partition("/")
        place = order.get("outputs", {}).get(output)
        parts = PurePosixPath(below).parts
        if place is None or ".." in parts or "/" in parts:
            return None
        root = Path(place["directory"])
        path = root.joinpath(*parts)
        if path.is_symlink() or not Path(os.path.realpath(path)).is_relative_to(root) or not path.is_file():
            return None
        return read_piece(path, offset, limit, 0, complete=True)


def implies(view: SlotView, report: FinalReport) -> bool:
    """Tell whether the slot's own record already says what the dispatcher's answer says."""
    told = view.report
    return view.ended and told is not None and (told.outcome, told.reason) == (report.outcome, report.reason)


def _final(report: FinalReport) -> dict[str, Any]:
    return {"state": report.state, "outcome": report.outcome, "reason": report.reason}


def read_piece(path: Path, offset: int, limit: int, tail: int, *, complete: bool) -> Chunk | None:
    """Return a piece of a file; None where there is none. `complete`: nothing will be added to it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - tail) if tail else min(offset, size)
            file.seek(start)
            data = file.read(min(limit or CHUNK_MAX, CHUNK_MAX))
    except FileNotFoundError:
        return None
    following = start + len(data)
    return Chunk(data, following, complete and following >= size)


def list_files(root: Path) -> list[OutputFile]:
    """Return the regular files below a directory, links left out."""
    if root.is_file() and not root.is_symlink():
        return [OutputFile("", root.stat().st_size)]
    paths = evidence.regular_files(root)[:OUTPUT_FILES_MAX]
    return [OutputFile(str(path.relative_to(root)), path.stat().st_size) for path in paths]
