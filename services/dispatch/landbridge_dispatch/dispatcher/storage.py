"""Whether the site's directory takes what has to be kept: without room for it nothing is claimed."""

import os
import time
from pathlib import Path
from typing import Final

from landbridge.runtime import logs
from landbridge_dispatch.executors.local import files

log = logs.get(__name__)

RESERVE_BYTES: Final = 4 * 2**20
"""For the ends of what runs already, the lease and reports: what is claimed must leave so much."""
_TRY_BYTES: Final = b"\0" * 65_536
_TRIED_FOR_S: Final = 0.25
_FILE: Final = ".room"


class Storage:
    """Looks from time to time: by what the file system says, and by writing, which limits and quotas may refuse."""

    def __init__(self, home: Path) -> None:
        self.problem = ""
        self._home = home
        self._until = 0.0

    def has_room(self) -> bool:
        """Tell whether there is room for more work; `problem` says what is lacking."""
        now = time.monotonic()
        if now >= self._until:
            before, self.problem = self.problem, self._look()
            self._until = now + _TRIED_FOR_S
            if self.problem and not before:
                log.warning("no_room_for_work", detail=self.problem)
            elif before and not self.problem:
                log.info("room_again")
        return not self.problem

    def _look(self) -> str:
        found = os.statvfs(self._home)
        free = found.f_bavail * found.f_frsize
        if free < RESERVE_BYTES:
            return f"{self._home}: {free >> 10} KiB are free, expected {RESERVE_BYTES >> 10} at least; make room"
        try:
            files.write_bytes(self._home / _FILE, _TRY_BYTES, sync=False)
        except OSError as error:
            return f"{self._home}: cannot be written ({error.strerror}); make room"
        return ""
