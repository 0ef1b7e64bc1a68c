"""Named places where a test may kill, fail or pause this process.

LANDBRIDGE_FAILPOINTS="loop.after-commit=kill@3,intake.reply=error,loop.before-ack=pause:500ms" — the action happens at
every visit, or with `@n` at the n-th visit only. Unset, a failpoint costs one test of an empty dictionary.
"""

import os
import re
import signal
import time
from dataclasses import dataclass

_ACTION = re.compile(r"(?P<what>kill|error|pause)(?::(?P<value>\d+)(?P<unit>ms|s))?(?:@(?P<visit>[1-9]\d*))?")
VARIABLE = "LANDBRIDGE_FAILPOINTS"


class InjectedError(Exception):
    """Raised by a failpoint with the action `error`."""


@dataclass(slots=True)
class _Point:
    what: str
    pause_s: float
    visit: int  # 0: every visit
    visits: int = 0


def parse(text: str) -> dict[str, _Point]:
    """Read the variable's text. Raises ValueError that names the faulty part."""
    points: dict[str, _Point] = {}
    for part in filter(None, (piece.strip() for piece in text.replace(";", ",").split(","))):
        name, _, action = part.partition("=")
        match = _ACTION.fullmatch(action)
        if not name or match is None or (match["what"] == "pause") != (match["value"] is not None):
            raise ValueError(
                f"{VARIABLE}: {part!r} is not NAME=kill|error|pause:<n>ms|pause:<n>s, with an optional @<n>"
            )
        pause = float(match["value"] or 0) / (1000 if match["unit"] == "ms" else 1)
        points[name] = _Point(match["what"], pause, int(match["visit"] or 0))
    return points


_active = parse(os.environ.get(VARIABLE, ""))


def enable(text: str) -> None:
    """Replace the failpoints of this process (tests in one process)."""
    _active.clear()
    _active.update(parse(text))


def failpoint(name: str) -> None:
    """Do what the test asked for here; normally nothing."""
    if _active:
        _visit(name)


def _visit(name: str) -> None:
    point = _active.get(name)
    if point is None:
        return
    point.visits += 1
    if point.visit and point.visits != point.visit:
        return
    if point.what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif point.what == "error":
        raise InjectedError(f"failpoint {name}, visit {point.visits}")
    else:
        time.sleep(point.pause_s)
