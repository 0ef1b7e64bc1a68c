"""The carrier of a pod: brings the checkpoint to go on from, stores what is sealed, and outputs at the end.

It runs beside the workload, which never sees the keys of a store that it only writes to. Wrapper and carrier speak by
files in a directory of both: `refused` or `ready` at the start, `sealed/<name>` for each stored checkpoint, `over` when
the workload has ended (by the wrapper), `stored` when everything lies in the store.
"""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import checkpoints, files
from .signing import Keys
from .store import Place, Store, StoreError

TASK = "LANDBRIDGE_CARRIER"
STEP_S = 0.5
TEXT_MAX = 300


@dataclass
class Carrier:
    """One pod's. `task` is what the dispatcher wrote into its environment; `directories`: where connections are."""

    task: dict[str, Any]
    stores: dict[str, Store]
    directories: dict[str, Path]
    words: Path

    def begin(self) -> None:
        """Try every place that will be written, and bring the checkpoint; then say whether the work may start."""
        if (self.words / "ready").exists() or (self.words / "refused").exists():
            return  # It runs again: the kubelet restarts it where it broke.
        (self.words / "sealed").mkdir(exist_ok=True)
        try:
            for place in self._places():
                self._directory(place).mkdir(parents=True, exist_ok=True)
                self._try(place)
            resumed = self._resume()
        except checkpoints.UnreadableError as error:
            self._say("refused", f"checkpoint-unreadable the checkpoint to resume from cannot be read here: {error}")
        except StoreError as error:
            reason = "connection-not-accepted" if error.forbidden else "connection-unavailable"
            self._say("refused", f"{reason} an object store of this work: {error}")
        except OSError as error:
            self._say("refused", f"failed-to-start the carrier cannot write: {error.strerror}")
        else:
            self._say("ready", resumed)

    def step(self) -> bool:
        """Store what was sealed since; once the workload is over, its outputs too. Return whether all is done."""
        over = (self.words / "over").exists()
        problem = self._keep_sealed(last=over)
        if not over or (self.words / "stored").exists():
            return over
        self._say("stored", self._keep_outputs() or problem or "ok")
        return True

    # -- the start -------------------------------------------------------------------------------------------------

    def _places(self) -> list[dict[str, str]]:
        checkpoint = self.task.get("checkpoint")
        return [*self.task.get("outputs", {}).values(), *([checkpoint] if checkpoint else [])]

    def _try(self, place: dict[str, str]) -> None:
        """Write and remove an empty object there: a store that would refuse the end is told before the start."""
        store, key = self.stores[place["connection"]], f"{place['path']}/.landbridge-{os.getpid()}-{time.time_ns()}"
        store.write(key, b"")
        try:
            store.delete(key)
        except StoreError as error:
            if not error.forbidden:
                raise

    def _resume(self) -> str:
        """Return the path of the checkpoint that was brought; empty: the work starts afresh."""
        wanted = self.task.get("resume")
        if not wanted:
            return ""
        connection = wanted["connection"]
        path = checkpoints.bring(
            self.stores[connection],
            self.directories[connection],
            named=wanted["named"],
            own=wanted["own"],
            epoch=(wanted["epoch"][0], wanted["epoch"][1]),
        )
        return str(self.directories[connection] / path) if path else ""

    # -- while it runs, and at the end -----------------------------------------------------------------------------

    def _keep_sealed(self, *, last: bool) -> str:
        """Store new sealed checkpoints, oldest first. Return what went wrong at the last look, if anything did."""
        place = self.task.get("checkpoint")
        if not place:
            return ""
        store, directory = self.stores[place["connection"]], self._directory(place)
        sealed = _oldest_first(directory)
        problem = ""
        for found in sealed:
            if (self.words / "sealed" / found.name).exists():
                continue
            try:
                checkpoints.keep(store, place["path"], found)
            except (StoreError, OSError, ValueError) as error:
                # What cannot be stored is not told to anybody; what is not sealed any more was replaced by newer.
                problem = f"checkpoint {found.name}: {_text(error)}" if found.exists() else ""
                if problem:
                    _log(problem)
                continue
            (self.words / "sealed" / found.name).touch()
        self._forget_old(store, place["path"], {found.name for found in sealed})
        return problem if last else ""

    def _forget_old(self, store: Store, place: str, here: set[str]) -> None:
        """Delete from the store what the workload has removed for newer ones, as it would from a volume."""
        stored = {path.name for path in (self.words / "sealed").iterdir()}
        for gone in stored - here if stored & here else ():
            try:
                checkpoints.forget(store, place, gone)
            except StoreError as error:
                _log(f"checkpoint {gone} stays in the store: {error}")
            (self.words / "sealed" / gone).unlink(missing_ok=True)

    def _keep_outputs(self) -> str:
        """Store every output. Return what went wrong; empty: nothing."""
        for name, place in self.task.get("outputs", {}).items():
            directory = str(self._directory(place))
            try:
                for file in files.regular(directory):
                    body, size = files.opened(directory, file)
                    with body:
                        self.stores[place["connection"]].put(f"{place['path']}/{file}", body, size)
            except (StoreError, OSError, ValueError) as error:  # a name that is no text is a ValueError
                return f"output {name}: {_text(error)}"
        return ""

    def _directory(self, place: dict[str, str]) -> Path:
        return self.directories[place["connection"]] / place["path"]

    def _say(self, word: str, text: str) -> None:
        part = self.words / f".{word}"
        part.write_text(" ".join(text.split())[:TEXT_MAX] + "\n", encoding="utf-8", errors="replace")
        part.rename(self.words / word)


def _oldest_first(directory: Path) -> list[Path]:
    """Return the sealed checkpoints of a directory; the workload may remove them at any time."""
    found = []
    for manifest in directory.glob(f"{checkpoints.SEALED}*/{checkpoints.MANIFEST}"):
        try:
            found.append((os.lstat(manifest).st_mtime_ns, manifest.parent))
        except FileNotFoundError:
            continue
    return [path for _, path in sorted(found)]


def _log(text: str) -> None:
    sys.stderr.write(ascii(text)[1:-1] + "\n")
    sys.stderr.flush()


def _text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def make(environment: dict[str, str]) -> Carrier:
    """Read the task and the keys, which lie in variables that only the carrier's container has."""
    task = json.loads(environment[TASK])
    stores = {
        name: Store(Place(**told["place"]), keys_of(environment, told["keys"])) for name, told in task["stores"].items()
    }
    directories = {name: Path(told["directory"]) for name, told in task["stores"].items()}
    return Carrier(task, stores, directories, Path(task["words"]))


def keys_of(environment: dict[str, str], prefix: str) -> Keys:
    """Read one store's keys."""
    return Keys(environment[f"{prefix}_ID"], environment[f"{prefix}_SECRET"], environment.get(f"{prefix}_TOKEN", ""))


def main() -> None:
    """Run until the kubelet says that the workload's container has ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    carrier = make(dict(os.environ))
    carrier.begin()
    while not carrier.step():
        time.sleep(STEP_S)
    signal.pause()


if __name__ == "__main__":
    main()
