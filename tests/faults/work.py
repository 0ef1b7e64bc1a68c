"""The operations of a run, each derived from the seed and its number alone, so that a run can go on and be replayed."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .world import CHECKPOINTS, PROCESS_SITES, PROJECT, QUEUE, SIMULATED_SITES

POLICIES: tuple[dict[str, str], ...] = (
    {"policy": "continue"},
    {"policy": "must-finish"},
    {"policy": "checkpoint-then-stop", "checkpointWithin": "500ms", "grace": "500ms"},
    {"policy": "stop-after-grace", "grace": "500ms"},
)
_SCRIPT = 'echo "start $LANDBRIDGE_OPERATION $LANDBRIDGE_ATTEMPT" >> {file}; sleep {seconds}; exit {code}'


@dataclass(frozen=True)
class Planned:
    """One submission and what its client does with it later. Seconds; negative: never."""

    number: int
    key: str
    document: bytes
    over_nats: bool
    repeats: int
    cancel_after: float
    fails: bool


def plan(seed: int, number: int, diary: Path) -> Planned:
    """Return the operation `number`. `diary` is where local processes write that they have started."""
    draw = random.Random(f"{seed}/operation/{number}")
    simulated = draw.random() < 0.5
    fails = draw.random() < 0.08
    cancel_after = draw.uniform(0.0, 2.0) if draw.random() < 0.08 else -1.0
    seconds = draw.choice((0.02, 0.1, 0.3, 0.8, 2.0))
    if cancel_after >= 0:
        seconds = draw.choice((0.1, 3.0))
    code = draw.choice((1, 3)) if fails else 0
    disconnection = draw.choice(POLICIES)
    checkpoints = {"connection": CHECKPOINTS, "every": "1m", "format": "npz"}
    spec: dict[str, Any] = {
        **({"checkpoints": checkpoints} if disconnection["policy"] == "checkpoint-then-stop" else {}),
        "type": "job",
        "queue": QUEUE,
        "command": _command(simulated, seconds, code, diary),
        "resources": {"requests": {"cpu": f"{100 + number % 4 * 50}m", "memory": "64Mi"}},
        "constraints": {"environments": {"allow": list(SIMULATED_SITES if simulated else PROCESS_SITES)}},
        "lifecycle": {
            "expectedDuration": "1s",
            "timeout": "2m",
            "stopGrace": "1s",
            "retries": {"limit": draw.choice((2, 4)), "backoff": "200ms", "exceptExitCodes": [3]},
            "disconnection": disconnection,
        },
    }
    return Planned(
        number=number,
        key=f"seed-{seed}-{number}",
        document=_document(f"fault-{number}", spec),
        over_nats=draw.random() < 0.3,
        repeats=draw.choice((1, 1, 3)) if draw.random() < 0.15 else 0,
        cancel_after=cancel_after,
        fails=fails,
    )


def _command(simulated: bool, seconds: float, code: int, diary: Path) -> list[str]:
    if simulated:
        return ["simulate", f"duration={round(seconds * 1000)}ms", f"exit={code}"]
    return ["/bin/sh", "-c", _SCRIPT.format(file=diary, seconds=seconds, code=code)]


def canary(name: str, sites: Sequence[str]) -> bytes:
    """Return an operation that may run in any of these sites and ends at once: whether anything moves."""
    spec: dict[str, Any] = {
        "type": "job",
        "queue": QUEUE,
        "command": ["true"],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "constraints": {"environments": {"allow": sorted(sites)}},
        "lifecycle": {"expectedDuration": "1s", "timeout": "1m", "retries": {"limit": 5, "backoff": "200ms"}},
    }
    return _document(name, spec)


def _document(name: str, spec: dict[str, Any]) -> bytes:
    metadata = {"name": name, "project": PROJECT}
    return json.dumps(
        {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}, separators=(",", ":")
    ).encode()
