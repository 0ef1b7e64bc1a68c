"""A million operations that wait in a thousand queues: how long admission takes, and how much memory each needs.

`python -m tests.benchmarks.queues` prints the figures as JSON. Queues form a tree three levels deep, with quotas,
borrowing, weights and reclaim; projects share; environments are full. Measured on one core, without a database:

- a *cycle* after a change of limits, when every class is tried again and nothing fits;
- a cycle after 1,000 releases, which admits as many;
- a cycle that admits 10,000, the most that one pass does;
- an operation that is cancelled from the middle of a queue.
"""

import argparse
import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from landbridge.domain.admission import Admission
from landbridge.domain.catalogue import Reclaim
from landbridge.domain.ledger import Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Ranking, ScoreCard, order
from landbridge.domain.queues import Plan
from landbridge.domain.tickets import Ticket
from landbridge.runtime.runner import GC_THRESHOLD
from support.deciding import NOW, a_catalogue

OPERATIONS, QUEUES, PROJECTS, ENVIRONMENTS = 1_000_000, 1_000, 100, 50
_GROUPS = 20
_HELD = 20_000


def limits_of(queues: int = QUEUES) -> Limits:
    """Make a tree: one root, groups below it, queues below those; and environments that hold `_HELD` operations."""
    documents: dict[str, dict[str, Any]] = {"root": {"quota": {"cpu": str(_HELD)}}}
    for group in range(_GROUPS):
        documents[f"group-{group}"] = {
            "parent": "root",
            "quota": {"cpu": str(_HELD // _GROUPS)},
            "borrow": {"cpu": "500"},
        }
    for number in range(queues):
        documents[f"queue-{number}"] = {
            "parent": f"group-{number % _GROUPS}",
            "quota": {"cpu": str(max(_HELD // queues, 1))},
            "borrow": {"cpu": "100"},
            "weight": 1 + number % 3,
            "priority": number % 5,
        }
    projects = {f"project-{number}": {"weight": 1 + number % 4} for number in range(PROJECTS)}
    each = _HELD // ENVIRONMENTS
    capacity = {f"env-{number:02d}": {"running": each, "cpu": each * 1000} for number in range(ENVIRONMENTS)}
    return Limits(a_catalogue(queues=documents, projects=projects), capacity)


def plan_of(number: int, limits: Limits) -> Plan:
    """Make the class of one queue: it may run in any of ten environments, half of the queues may reclaim."""
    names = [f"env-{(number + step) % ENVIRONMENTS:02d}" for step in range(10)]
    cards = tuple(ScoreCard(name, 1.0 - step / 20, ()) for step, name in enumerate(names))
    queue = limits.catalogue.queues[f"queue-{number}"]
    return Plan(
        queue=queue.name,
        project=f"project-{number % PROJECTS}",
        priority=queue.priority,
        weight=float(1 + number % 4),
        order=order(Ranking(f"r{number}", cards)),
        amounts={name: {"running": 1, "cpu": 1000} for name in names},
        ageing=timedelta(minutes=30),
        reclaim=Reclaim.LOWER_PRIORITY if number % 2 else Reclaim.NEVER,
        evictable=True,
        longest=timedelta(minutes=30) if number % 3 == 0 else None,
    )


def fill(admission: Admission, limits: Limits, operations: int, queues: int) -> None:
    """Let operations wait, in the order of their arrival."""
    keys = [f"class-{number:04d}" for number in range(queues)]
    for number, key in enumerate(keys):
        admission.set_plan(key, plan_of(number, limits))
    for position in range(operations):
        operation = str(UUID(int=position * 0x9E3779B97F4A7C15 & (1 << 128) - 1))
        admission.arrive(keys[position % queues], [Ticket(operation, 1, position, NOW)])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def memory_per_operation(operations: int, queues: int) -> float:
    """Return bytes that Python allocates for each waiting operation."""
    limits = limits_of(queues)
    admission = Admission(Ledger(), limits)
    gc.collect()
    tracemalloc.start()
    fill(admission, limits, operations, queues)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / operations


def measure(operations: int = OPERATIONS, queues: int = QUEUES) -> dict[str, Any]:
    """Return the figures. Raises RuntimeError if admission did not do what it was measured for."""
    bytes_each = memory_per_operation(min(operations, 200_000), queues)
    limits = limits_of(queues)
    admission = Admission(Ledger(), limits)
    filled, _ = timed(lambda: fill(admission, limits, operations, queues))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)  # as in a service
    largest, first = timed(lambda: admission.admit(NOW, 10_000))
    while admission.has_more:
        admission.admit(NOW, 10_000)
    held = [charge.operation for charge in admission.ledger.charges()]

    def try_all() -> int:
        admission.set_limits(limits_of(queues))
        return len(admission.admit(NOW + timedelta(minutes=6), 10_000))

    nothing, admitted = timed(try_all)

    def turn_over() -> int:
        for operation in held[::20][:1000]:
            admission.release(operation)
        return len(admission.admit(NOW + timedelta(minutes=7), 10_000))

    released, again = timed(turn_over)
    waiting = list(admission.buckets["class-0003"].tickets)
    middle = waiting[len(waiting) // 2].operation
    cancelled, _ = timed(lambda: admission.forget({middle}))
    if (
        len(first) != 10_000
        or admitted
        or not 900 <= again <= 1000
        or len(held) != len(admission.ledger) - again + 1000
    ):
        raise RuntimeError(
            f"admitted {len(first)}, {admitted} and {again}, held {len(held)}: not what was measured for"
        )
    return {
        "operations": operations,
        "queues": queues,
        "bytes_per_waiting_operation": round(bytes_each),
        "seconds_to_fill": round(filled, 2),
        "cycle_that_admits_10000_s": round(largest, 3),
        "cycle_in_which_nothing_fits_s": round(nothing, 3),
        "cycle_after_1000_releases_s": round(released, 3),
        "cancel_from_the_middle_s": round(cancelled, 6),
        "held": len(held),
        "displaced": len(admission.evicted),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.queues")
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--queues", type=int, default=QUEUES)
    arguments = parser.parse_args()
    sys.stdout.write(json.dumps(measure(arguments.operations, arguments.queues), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
