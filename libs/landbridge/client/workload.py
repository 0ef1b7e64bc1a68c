"""For programs that Landbridge runs: log metrics, seal checkpoints. Standard library only; works outside it, too.

Programs in other languages write the same files.

**Metrics**: append one line of JSON to the file named by `LANDBRIDGE_METRICS`, in one write:

    {"name": "auc", "value": 0.83, "step": 20, "at": 1764500000.5}

The last value of a name counts for acceptance. `step` and `at` (seconds since the epoch) may be left out.

**Checkpoints**: write files below `LANDBRIDGE_CHECKPOINT_DIR`. To seal them, move them into a new directory
`.sealing-<id>`, add `manifest.json`, and rename the directory to `sealed-<id>`, which seals all of them in one step:

    {"format": "landbridge.checkpoint/v1", "operation": "<id>", "attempt": 1, "step": 20, "sealedAt": 1764500000.5,
     "files": {"weights.npz": {"bytes": 1234, "sha256": "<hex>"}}}

`LANDBRIDGE_RESUME_FROM` names the sealed directory to go on from; its files lie under the names they were sealed with.

**A checkpoint is wanted now** when the file named by `LANDBRIDGE_CHECKPOINT_REQUEST` appears, together with SIGURG.
**The end is wanted** at SIGTERM; SIGKILL follows after the declared grace.
"""

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

SEALED_PREFIX = "sealed-"
_CHUNK_BYTES = 1 << 20


def log_metric(name: str, value: float, step: int | None = None) -> None:
    """Log one value of a metric. Raises ValueError for what is no finite number; does nothing outside Landbridge."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"metric {name}: expected a finite number, found {number}")
    path = os.environ.get("LANDBRIDGE_METRICS")
    if not path:
        return
    entry: dict[str, object] = {"name": name, "value": number, "at": time.time()}
    if step is not None:
        entry["step"] = step
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        # One write, so that lines of several processes never mix.
        os.write(fd, json.dumps(entry).encode() + b"\n")
    finally:
        os.close(fd)


def seal_checkpoint(files: Iterable[str | os.PathLike[str]], step: int | None = None, *, keep: int = 2) -> Path | None:
    """Seal files below the checkpoint directory as one checkpoint, all or nothing, and return its directory.

    The files are **moved** into it: writing the next checkpoint under the same names changes nothing that is sealed.
    The newest `keep` checkpoints of this attempt stay. Returns None where no checkpoints are declared. Raises OSError
    for a missing file and ValueError for one outside the directory; nothing is sealed then.
    """
    directory = checkpoint_directory()
    if directory is None:
        return None
    names = [_below(directory, file) for file in files]
    number = time.time_ns()
    staging, sealed = directory / f".sealing-{number}", directory / f"{SEALED_PREFIX}{number}"
    staging.mkdir()
    manifest = {
        "format": "landbridge.checkpoint/v1",
        "operation": os.environ.get("LANDBRIDGE_OPERATION", ""),
        "attempt": int(os.environ.get("LANDBRIDGE_ATTEMPT", "0")),
        "step": step,
        "sealedAt": number / 1e9,
        "files": {name: _describe(directory / name) for name in names},
    }
    for name in names:
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).rename(staging / name)
    _write_durably(staging / "manifest.json", json.dumps(manifest).encode())
    staging.rename(sealed)
    _sync_directory(directory)
    for old in sorted(directory.glob(f"{SEALED_PREFIX}*"))[: -max(1, keep)]:
        shutil.rmtree(old, ignore_errors=True)
    return sealed


def checkpoint_directory() -> Path | None:
    """Return where to write checkpoints; None where none are declared."""
    path = os.environ.get("LANDBRIDGE_CHECKPOINT_DIR")
    return Path(path) if path else None


def resume_directory() -> Path | None:
    """Return the sealed checkpoint to go on from; None to start afresh."""
    path = os.environ.get("LANDBRIDGE_RESUME_FROM")
    return Path(path) if path else None


def checkpoint_requested() -> bool:
    """Tell whether a checkpoint is wanted now, because this attempt is about to be stopped."""
    path = os.environ.get("LANDBRIDGE_CHECKPOINT_REQUEST")
    return bool(path) and os.path.exists(path or "")  # noqa: PTH110 - asked often, and cheap


def _below(directory: Path, file: str | os.PathLike[str]) -> str:
    path = Path(file) if Path(file).is_absolute() else directory / file
    if ".." in path.parts or not path.is_relative_to(directory) or path == directory:
        raise ValueError(f"{file}: expected a file below {directory}")
    return str(path.relative_to(directory))


def _describe(path: Path) -> dict[str, object]:
    """Return size and digest of a file, after its content has reached the disk."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
        os.fsync(stream.fileno())
        return {"bytes": stream.tell(), "sha256": digest.hexdigest()}


def _write_durably(path: Path, body: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(body)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
