"""Virtual time: one true clock for the world, and machines whose own clocks start elsewhere and run a little off."""

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Timeline:
    """Runs actions in order of true time, milliseconds. Ties run in the order of scheduling: replays are exact."""

    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._count = 0

    def after(self, delay: int, action: Action) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + max(delay, 0), self._count, action))

    def step(self) -> bool:
        """Run the next action; False if nothing is left."""
        if not self._queue:
            return False
        self.now, _, action = heapq.heappop(self._queue)
        action()
        return True

    @property
    def next_at(self) -> int | None:
        return self._queue[0][0] if self._queue else None


class MachineClock:
    """A boot clock with its own origin and rate. `ppm` within 10,000 is the promised 1 %."""

    def __init__(self, timeline: Timeline, origin: int, ppm: int) -> None:
        self._timeline = timeline
        self._origin = origin
        self._ppm = ppm

    def now(self) -> int:
        return self._origin + self._timeline.now + self._timeline.now * self._ppm // 1_000_000

    def true_delay(self, local: int) -> int:
        """How long in true time until this clock has moved on by `local` milliseconds, rounded up."""
        return max(0, -(-local * 1_000_000 // (1_000_000 + self._ppm))) + 1
