"""What the wrapper left as the container's termination message, in the container of an untrusted workload. Pure."""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Final

METRICS_MAX: Final = 1000
NAME_MAX: Final = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECKPOINT = re.compile(r"sealed-[A-Za-z0-9._-]{1,200}")
_CAUSE = re.compile(r"[a-z-]{1,40}")


@dataclass(slots=True)
class Remains:
    """`not_started`: reason and text of work that never ran. `status`: the shell's; times are seconds since 1970."""

    not_started: tuple[str, str] | None = None
    started_at: float = 0.0
    ended_at: float = 0.0
    status: int | None = None
    cause: str = ""
    checkpoint: str = ""
    not_stored: str = ""
    """What the carrier could not store."""
    outputs: dict[str, tuple[int, str]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def read_remains(message: str) -> Remains:
    """Read a termination message; lines that cannot be understood are skipped."""
    found = Remains()
    for line in message.splitlines():
        word, _, rest = line.partition(" ")
        _take(word, rest, found)
    return found


def _take(word: str, rest: str, found: Remains) -> None:
    match word:
        case "not-started":
            reason, _, text = rest.partition(" ")
            if _CAUSE.fullmatch(reason):
                found.not_started = reason, text
        case "started" | "ended" if rest.isdecimal() and len(rest) < 12:
            setattr(found, f"{word}_at", float(rest))
        case "status" if rest.isdecimal() and len(rest) < 4:
            found.status = int(rest)
        case "cause" if _CAUSE.fullmatch(rest):
            found.cause = rest
        case "checkpoint" if _CHECKPOINT.fullmatch(rest):
            found.checkpoint = rest
        case "not-stored" if rest:
            found.not_stored = rest
        case "output":
            _take_output(rest, found)
        case "metric":
            _take_metric(rest, found)


def is_checkpoint(name: str) -> bool:
    """Tell whether a workload's word for a checkpoint can be one."""
    return bool(_CHECKPOINT.fullmatch(name))


def _take_output(rest: str, found: Remains) -> None:
    parts = rest.split(" ")
    if len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) < 19 and _DIGEST.fullmatch(parts[2]):
        found.outputs[parts[0]] = int(parts[1]), parts[2]


def _take_metric(line: str, found: Remains) -> None:
    try:
        entry = json.loads(line)
        name, value = entry["name"], float(entry["value"])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return
    known = isinstance(name, str) and len(name) <= NAME_MAX
    if known and math.isfinite(value) and (name in found.metrics or len(found.metrics) < METRICS_MAX):
        found.metrics[name] = value
