"""How long completed work took, of one component on one amount of hardware: what makes two runs comparable.

Runs of one version of a component that take the same devices (or processors, where they take none) are taken to be
alike. What a run was given to work on is not compared: that is why a median is told, and never of fewer than three.
"""

from typing import Final, NamedTuple

from landbridge.domain.contract import CPU, MEMORY, RUNNING, SCRATCH, format_quantity
from landbridge.domain.ledger import Amounts

ENOUGH_RUNS: Final = 3
_OTHER: Final = frozenset({RUNNING, CPU, MEMORY, SCRATCH})


class Ran(NamedTuple):
    """The median of the last `samples` runs in seconds, and when the newest ended, such as `2026-11-30 09Z`."""

    median_s: float
    samples: int
    newest: str


def run_key(component: str, amounts: Amounts) -> str:
    """Name what runs of a component are comparable with: `trainer@3 on 4 gpu-80gb`; empty without a component."""
    if not component:
        return ""
    devices = sorted((resource, amount) for resource, amount in amounts.items() if resource not in _OTHER)
    if devices:
        return f"{component} on {' and '.join(f'{amount} {resource}' for resource, amount in devices)}"
    cpu = amounts.get(CPU)
    return f"{component} on {format_quantity(CPU, cpu)} processors" if cpu else component
