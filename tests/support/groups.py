"""Which tests share a worker: those of files that name the same group in their `pytestmark`."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_GROUP = re.compile(r'xdist_group\("([^"]+)"\)')


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Sends all tests of a group to one worker, and every other test by itself to whoever is free.

    The plugin's own `loadgroup` writes a test's group where pytest 9.2 no longer reads a test's id from, so that it
    groups nothing: every worker then has an instance of its own, and tests with bounds in time disturb each other.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0]) or nodeid


@cache
def group_of(file: str) -> str:
    """Return the group that a test file names; "" if it names none, or is not there."""
    path = Path(__file__).parents[2] / file
    found = _GROUP.search(path.read_text()) if path.is_file() else None
    return found[1] if found else ""
