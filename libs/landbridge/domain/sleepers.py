"""Who is awake, who sleeps on which limits, and whom time alone will wake."""

import heapq
from collections.abc import Iterable
from datetime import datetime

from landbridge.domain.ledger import Limit


class Sleepers:
    """Keys that are awake, that sleep on limits, or that have a time. A key may be all of it at once."""

    def __init__(self) -> None:
        self.awake: set[str] = set()
        self._on: dict[Limit, set[str]] = {}
        self._limits: dict[str, set[Limit]] = {}
        self._times: dict[str, datetime] = {}
        self._queue: list[tuple[datetime, str]] = []

    def wake(self, key: str) -> None:
        self.awake.add(key)

    def wake_all(self, keys: Iterable[str]) -> None:
        self.awake.update(keys)

    def wake_on(self, limit: Limit) -> None:
        """Wake all that sleep on a limit."""
        found = self._on.get(limit)
        if found:
            self.awake |= found

    def take(self, now: datetime) -> set[str]:
        """Return all that are awake, with those whose time has come, and let them be asleep from now on."""
        while self._queue and self._queue[0][0] <= now:
            at, key = heapq.heappop(self._queue)
            if self._times.get(key) == at:
                del self._times[key]
                self.awake.add(key)
        taken, self.awake = self.awake, set()
        return taken

    def sleep(self, key: str, limits: set[Limit]) -> None:
        """Let a key sleep on exactly these limits."""
        before = self._limits.get(key, set())
        for limit in before - limits:
            found = self._on[limit]
            found.discard(key)
            if not found:
                del self._on[limit]
        for limit in limits - before:
            self._on.setdefault(limit, set()).add(key)
        if limits:
            self._limits[key] = limits
        else:
            self._limits.pop(key, None)

    def remind(self, key: str, at: datetime) -> None:
        """Wake a key at a time, or earlier if it has an earlier one."""
        known = self._times.get(key)
        if known is None or at < known:
            self._times[key] = at
            heapq.heappush(self._queue, (at, key))

    def forget(self, key: str) -> None:
        self.sleep(key, set())
        self.awake.discard(key)
        self._times.pop(key, None)

    @property
    def next_time(self) -> datetime | None:
        """Return when time alone will wake somebody."""
        while self._queue and self._times.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None
