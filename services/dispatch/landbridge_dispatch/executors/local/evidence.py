"""What a workload leaves behind: metrics, outputs with size and digest, sealed checkpoints, acceptance.

Everything read here was written by an untrusted workload: lines are bounded, malformed ones are skipped, links are not
followed, numbers that JSON cannot carry are dropped.
"""

import errno
import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

SEALED_PREFIX = "sealed-"
MANIFEST_FILE = "manifest.json"
METRIC_NAMES_MAX = 1000
_LINE_BYTES_MAX = 16_384
_NAME_CHARS_MAX = 200
_CHUNK_BYTES = 1 << 20


def read_metrics(path: Path) -> dict[str, float]:
    """Return the last value of each metric in a file of JSON lines; empty where there is none."""
    values: dict[str, float] = {}
    if path.parent.is_symlink():
        return values
    try:
        with _open(path) as file:
            while line := file.readline(_LINE_BYTES_MAX):
                _take_metric(line, values)
    except OSError:
        return values
    return values


def _open(path: Path) -> BinaryIO:
    """Open a regular file, no link and no pipe. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(fd, "rb")


def _take_metric(line: bytes, values: dict[str, float]) -> None:
    try:
        entry = json.loads(line)
        name, value = entry["name"], float(entry["value"])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return
    known = (
        isinstance(name, str) and len(name) <= _NAME_CHARS_MAX and (name in values or len(values) < METRIC_NAMES_MAX)
    )
    if known and math.isfinite(value):
        values[name] = value


def measure_output(directory: Path) -> dict[str, Any]:
    """Return `exists`, `bytes` and `sha256` of an output: a file's own digest, or that of a directory's listing.

    The listing has one line `<sha256>  <relative path>` per file in the order of paths, as `sha256sum` prints it.
    An empty directory is what we made ourselves: it does not exist yet.
    """
    if directory.is_symlink():
        return {"exists": False, "bytes": 0, "sha256": ""}
    if directory.is_file():
        return {"exists": True, "bytes": directory.stat().st_size, "sha256": _digest(directory)}
    listing = hashlib.sha256()
    total = count = 0
    for path in regular_files(directory):
        listing.update(f"{_digest(path)}  {path.relative_to(directory)}\n".encode(errors="surrogateescape"))
        total += path.stat().st_size
        count += 1
    return {"exists": count > 0, "bytes": total, "sha256": listing.hexdigest() if count else ""}


def regular_files(directory: Path) -> list[Path]:
    """Return every regular file below `directory`, links left out, in the order of paths."""
    found = [
        Path(folder) / name
        for folder, _, names in os.walk(directory, followlinks=False)
        for name in names
        if not (Path(folder) / name).is_symlink() and (Path(folder) / name).is_file()
    ]
    return sorted(found)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with _open(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def newest_checkpoint(directory: Path) -> tuple[str, int] | None:
    """Return name and time (ns) of the checkpoint sealed last below `directory`; None where there is none."""
    newest: tuple[int, str] | None = None
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return None
    for entry in entries:
        if not entry.name.startswith(SEALED_PREFIX):
            continue
        try:
            sealed = (Path(entry.path) / MANIFEST_FILE).stat().st_mtime_ns
        except OSError:
            continue
        newest = max(newest or (0, ""), (sealed, entry.name))
    return None if newest is None else (newest[1], newest[0])


def judge_acceptance(
    criteria: list[dict[str, Any]], exit_code: int | None, metrics: dict[str, float], outputs: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return every criterion with `criterion` (words), `met` and `found`. What cannot be read is not met."""
    return [_judge(criterion, exit_code, metrics, outputs) for criterion in criteria]


def accepted_exit_codes(criteria: list[dict[str, Any]]) -> frozenset[int]:
    """Return the codes that the criteria name; zero where they name none."""
    named = [frozenset(criterion["exitCodes"]) for criterion in criteria if criterion.get("exitCodes")]
    return frozenset.intersection(*named) if named else frozenset({0})


def _judge(
    criterion: dict[str, Any], exit_code: int | None, metrics: dict[str, float], outputs: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    if criterion.get("metric"):
        return _judge_metric(criterion, metrics.get(str(criterion["metric"])))
    if criterion.get("output"):
        return _judge_output(criterion, outputs.get(str(criterion["output"]), {}))
    codes = sorted(criterion.get("exitCodes", ()))
    found = "none" if exit_code is None else str(exit_code)
    words = f"exit code is one of {', '.join(map(str, codes))}"
    return {"criterion": words, "met": exit_code in codes, "found": found}


def _judge_metric(criterion: dict[str, Any], value: float | None) -> dict[str, Any]:
    bounds = [(word, float(criterion[word])) for word in ("atLeast", "atMost") if criterion.get(word) is not None]
    words = " and ".join(f"metric {criterion['metric']} {word} {bound:g}" for word, bound in bounds)
    if value is None:
        return {"criterion": words, "met": False, "found": "not logged"}
    met = all(value >= bound if word == "atLeast" else value <= bound for word, bound in bounds)
    return {"criterion": words, "met": met, "found": f"{value:g}"}


def _judge_output(criterion: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    name, exists, size = criterion["output"], bool(output.get("exists")), int(output.get("bytes", 0))
    if criterion.get("exists") is False:
        return {"criterion": f"output {name} does not exist", "met": not exists, "found": _size(exists, size)}
    smallest, digest = int(criterion.get("minBytes", 0)), criterion.get("sha256")
    words, met = f"output {name} exists", exists and size >= smallest
    if smallest:
        words += f" with at least {smallest} bytes"
    if digest:
        words, met = f"{words} with SHA-256 {digest}", met and output.get("sha256") == digest
    return {"criterion": words, "met": met, "found": _size(exists, size)}


def _size(exists: bool, size: int) -> str:
    return f"exists with {size} bytes" if exists else "not there"
