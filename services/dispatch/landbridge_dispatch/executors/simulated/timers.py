"""One timer over one heap: thousands of moments a second for the price of a few."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable

from landbridge_dispatch.executors.simulated.slot import Slot

TICK_MS = 5


class Timers:
    """Calls back with everything that has become due since the last time, in the order of its moments."""

    def __init__(self, due: Callable[[list[tuple[int, Slot]]], None]) -> None:
        self._due = due
        self._heap: list[tuple[int, int, int, Slot]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0

    def add(self, due_ms: int, kind: int, slot: Slot) -> None:
        """Note that something of this kind is due for a slot, at a moment on the boot clock."""
        # In steps, so that what is due at nearly the same time is one batch.
        due_ms = -(-due_ms // TICK_MS) * TICK_MS
        heapq.heappush(self._heap, (due_ms, next(self._numbers), kind, slot))
        if self._timer is None or due_ms < self._timer_at:
            self._arm(due_ms)

    def close(self) -> None:
        """Call back no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due_ms
        delay_s = max(0, due_ms - _now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now, heap = _now_ms(), self._heap
        due = []
        while heap and heap[0][0] <= now:
            _, _, kind, slot = heapq.heappop(heap)
            due.append((kind, slot))
        self._due(due)
        if heap and (self._timer is None or heap[0][0] < self._timer_at):
            self._arm(heap[0][0])


def _now_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
