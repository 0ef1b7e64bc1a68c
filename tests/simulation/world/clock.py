"""Virtual time: one true clock for the world, and machines whose own clocks start elsewhere and run a little off."""

import heapq
from collections.abc import Callable

from landbridge.domain.ownership.leases import ClockReading

Action = Callable[[], None]

PROMISED_PPM = 9_900
"""How wrong a clock's rate may be: just within the promised 1 %."""


class Timeline:
    """Runs actions in order of true time, milliseconds. Ties run in the order of scheduling: replays are exact."""

    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._count = 0

    def after(self, delay: int, action: Action) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay if delay > 0 else self.now, self._count, action))

    def until(self, moment: int) -> None:
        """Run all that is due by this moment, then stand at it."""
        queue, take = self._queue, heapq.heappop
        while queue and queue[0][0] <= moment:
            self.now, _, action = take(queue)
            action()
        self.now = max(self.now, moment)


class MachineClock:
    """A machine's two clocks: the boot clock that decides, and the wall clock that only betrays.

    `ppm` within `PROMISED_PPM` keeps the promise. Rate and reading may be changed at any time.
    """

    def __init__(self, timeline: Timeline, origin: int, ppm: int) -> None:
        self._timeline = timeline
        self._origin = origin
        self._since = timeline.now
        self._ppm = ppm
        self._wall_offset = 0

    def now(self) -> int:
        passed = self._timeline.now - self._since
        return self._origin + passed + passed * self._ppm // 1_000_000

    def true_delay(self, local: int) -> int:
        """How long in true time until this clock has moved on by `local` milliseconds, rounded up."""
        return max(0, -(-local * 1_000_000 // (1_000_000 + self._ppm))) + 1

    def reading(self) -> ClockReading:
        boot = self.now()
        return ClockReading(boot, boot + self._wall_offset)

    def set_rate(self, ppm: int) -> None:
        """Run at another rate from now on."""
        self._origin, self._since, self._ppm = self.now(), self._timeline.now, ppm

    def jump(self, by: int) -> None:
        """Move the boot clock, and the wall clock with it."""
        self._origin += by

    def step_wall(self, by: int) -> None:
        """Move the wall clock only, as a time service or a person does."""
        self._wall_offset += by
