"""Private files and times of the command line."""

import os
import re
from pathlib import Path

from landbridge.cli.exits import CliError, Exit

_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    scratch.replace(path)


def seconds(text: str, option: str = "--timeout", also: str = "") -> float | None:
    """Return the seconds of `30s`, `5m`, `1h` or `90`; None for an empty text. `also` names what else is taken."""
    if not text:
        return None
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise CliError(f"{option} {text!r}: expected a time such as 30s, 5m or 1h{also}", Exit.INVALID)
    return float(found[1]) * _UNIT_S[found[2] or "s"]
