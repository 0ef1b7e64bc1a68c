"""Which faults happen when: a pure function of the seed."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from landbridge.bus.streams import COMMANDS, DURABLES, OPERATIONS, REPORTS
from support.proxy import Wire

from .world import PROCESS_SITES, SERVERS, SERVICES, SITES

PAUSED = ("coordinator", "ranking", "eligibility", "intake", "lineage")
DOUBLED = ("coordinator", "ranking", "eligibility")
TRIPS = ("at-lease", "at-claim", "at-report")
LINKS = ("reset", "flap", *TRIPS, *(str(wire) for wire in Wire if wire is not Wire.PASS))
REPLAYED = (OPERATIONS, COMMANDS, REPORTS)
SIZES = (1, 4, 7, 9, 11)
"""How many faults a round has."""
APART_S = 0.7
"""How far apart the faults of a round begin on average."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. It begins `after_s` into its round and lasts `lasts_s`; `target` says where, `how` in which way."""

    number: int
    kind: str
    target: str
    how: str = ""
    after_s: float = 0.0
    lasts_s: float = 0.0
    draw: float = 0.0

    @property
    def part(self) -> str:
        """What it takes hold of; two faults of one round never share it."""
        return self.target.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rounds(seed: int, faults: int, ttl_s: float, sites: Sequence[str] = SITES) -> list[list[Fault]]:
    """Return all faults in rounds: those of a round overlap, rounds follow each other after recovery."""
    found: list[list[Fault]] = []
    number = 0
    while number < faults:
        draw = random.Random(f"{seed}/round/{len(found)}")
        size = min(draw.choice(SIZES), faults - number)
        part: list[Fault] = []
        while len(part) < size:
            fault = _fault(draw, number + len(part), size, ttl_s, sites)
            if all(fault.part != other.part for other in part):
                part.append(fault)
        found.append(part)
        number += size
    return found


def lasts_s(faults: Sequence[Fault]) -> float:
    """Return the seconds from the beginning of a round to the end of its last fault."""
    return max(fault.after_s + fault.lasts_s for fault in faults)


def _fault(draw: random.Random, number: int, size: int, ttl_s: float, sites: Sequence[str]) -> Fault:
    kinds: dict[str, tuple[int, Callable[[], tuple[str, str, float]]]] = {
        "kill-service": (24, lambda: (draw.choice(SERVICES), "", 0.0)),
        "kill-dispatcher": (12, lambda: (f"dispatcher-{draw.choice(sites)}", "", 0.0)),
        "kill-launcher": (4, lambda: (f"launcher-{draw.choice(_processes(sites))}", "", 0.0)),
        "kill-server": (10, lambda: (draw.choice(SERVERS), "", 0.0)),
        "outage": (6, lambda: (draw.choice(SERVERS), "", draw.uniform(0.5, 4.0))),
        "pause-service": (9, lambda: (draw.choice(PAUSED), "", ttl_s * draw.uniform(0.5, 3.0))),
        "pause-dispatcher": (8, lambda: (f"dispatcher-{draw.choice(sites)}", "", ttl_s * draw.uniform(0.5, 3.0))),
        "link": (18, lambda: (f"dispatcher-{draw.choice(sites)}", *_link(draw, ttl_s))),
        "rewind": (4, lambda: (_durable(draw), "", 0.0)),
        "repeat": (4, lambda: (f"{draw.choice(REPLAYED)}", "", 0.0)),
        "twin": (4, lambda: (f"twin-{draw.choice(DOUBLED)}", "", draw.uniform(3.0, 7.0))),
        "cancel-storm": (4, lambda: ("clients", "", 0.0)),
    }
    kind = draw.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
    target, how, lasts_s = kinds[kind][1]()
    return Fault(number, kind, target, how, draw.uniform(0.0, APART_S * size), lasts_s, draw.random())


def _processes(sites: Sequence[str]) -> list[str]:
    return [site for site in sites if site in PROCESS_SITES] or list(PROCESS_SITES)


def _link(draw: random.Random, ttl_s: float) -> tuple[str, float]:
    how = draw.choice(LINKS)
    return how, 0.0 if how == "reset" else ttl_s * draw.uniform(0.2, 3.0)


def _durable(draw: random.Random) -> str:
    spec = draw.choice(DURABLES)
    return f"{spec.stream}/{spec.name}"
