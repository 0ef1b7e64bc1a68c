"""The end of a log in a form for people: services write JSON, servers write lines."""

import json
from pathlib import Path
from typing import Any

_READ_BYTES = 256 * 1024
_LINE_MAX = 400
_CAUSE_LINES = 3
_PLAIN = frozenset({"module", "event", "service", "level", "timestamp", "exception", "logger"})


def log_tail(path: Path, lines: int = 12) -> str:
    """Return the last entries of a log, indented for a message; a remark when there are none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _READ_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return "  (no log)"
    readable = [piece for line in text.splitlines()[-lines:] for piece in _readable(line)]
    return "\n".join(f"  {line[:_LINE_MAX]}" for line in readable) or "  (the log is empty)"


def _readable(line: str) -> list[str]:
    """Return one entry as lines: what happened, and of an exception only what it says in the end."""
    if not line.startswith("{"):
        return [line]
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        return [line]
    more = " ".join(f"{key}={value}" for key, value in entry.items() if key not in _PLAIN)
    at = str(entry.get("timestamp", ""))[11:19]
    head = " ".join(part for part in (at, str(entry.get("level", "")), str(entry.get("event", "")), more) if part)
    return [head, *(f"    {cause}" for cause in _causes(str(entry.get("exception") or "")))]


def _causes(exception: str) -> list[str]:
    """Return the last lines of a trace that name an error; frames and the frames of groups are left out."""
    told = [line.strip(" |+-") for line in exception.splitlines()]
    named = [line for line in told if _names_error(line)]
    return named[-_CAUSE_LINES:]


def _names_error(line: str) -> bool:
    name, colon, _ = line.partition(":")
    last = name.rpartition(".")[2]
    return bool(colon) and name.replace(".", "").isidentifier() and last[:1].isupper() and "Group" not in last
