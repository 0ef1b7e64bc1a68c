"""Which tests share a worker, and which worker takes what next.

Most time of the suite is spent in two ways that hardly disturb each other: tests of the first kind compute, those of
the second wait (for a lease to end, for a message to be delivered once more). In the order of the tree all workers
would wait first and compute afterwards; so two workers begin with what computes, the others with what waits, and who
has come to the end of one kind goes on with the other.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_GROUP = re.compile(r'xdist_group\("([^"]+)"\)')
_COMPUTES = ("tests/architecture/", "tests/models/", "tests/simulation/", "tests/unit/")
_COMPUTING_WORKERS = 2


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Sends all tests of a group to one worker, and every other test by itself to whoever is free.

    The plugin's own `loadgroup` writes a test's group where pytest 9.2 no longer reads a test's id from, so that it
    groups nothing: every worker then has an instance of its own, and tests with bounds in time disturb each other.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0]) or nodeid

    def _assign_work_unit(self, node: Any) -> None:
        """Let the plugin take the unit that it finds in front: the next of the kind that this worker prefers."""
        computing = list(self.nodes).index(node) < _COMPUTING_WORKERS
        wanted = next_unit(self.workqueue, lambda test: computes(test) == computing)
        self.workqueue.move_to_end(wanted, last=False)
        super()._assign_work_unit(node)


def next_unit(queue: dict[str, dict[str, bool]], preferred: Callable[[str], bool]) -> str:
    """Return the first unit whose tests are preferred, or else the first of all; the queue is not empty."""
    return next((unit for unit, tests in queue.items() if preferred(next(iter(tests)))), next(iter(queue)))


def computes(test: str) -> bool:
    """Whether a test keeps a processor busy, rather than waiting for servers, processes and clocks."""
    return test.startswith(_COMPUTES)


@cache
def group_of(file: str) -> str:
    """Return the group that a test file names; "" if it names none, or is not there."""
    path = Path(__file__).parents[2] / file
    found = _GROUP.search(path.read_text()) if path.is_file() else None
    return found[1] if found else ""
