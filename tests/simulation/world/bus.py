"""A faulty bus between the centre and its environments.

Streams lose nothing but may delay, repeat and reorder, and wait while a link is cut. Requests and replies may also
vanish. A link can be cut in one direction only.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from simulation.world.clock import Timeline

Receive = Callable[[Any], bool]
"""Takes a payload; False: nobody is there, deliver again later."""


@dataclass
class Weather:
    """How bad the bus is. Probabilities per message; delays in milliseconds."""

    repeat: float = 0.05
    drop: float = 0.03
    slow: float = 0.05
    delay: int = 20
    slow_delay: int = 45_000


@dataclass
class FaultyBus:
    timeline: Timeline
    random: Random
    weather: Weather
    cut: set[tuple[str, str]] = field(default_factory=set)
    """(environment, "up" | "down")"""
    history: dict[str, list[tuple[Any, Receive]]] = field(default_factory=dict)
    calm: bool = False

    def _delay(self) -> int:
        if self.calm:
            return self.random.randint(1, 20)
        if self.random.random() < self.weather.slow:
            return self.random.randint(1, self.weather.slow_delay)
        return self.random.randint(1, self.weather.delay)

    def stream(self, environment: str, direction: str, payload: Any, receive: Receive) -> None:
        """Deliver at least once, whenever the link allows."""
        if direction == "down":
            self.history.setdefault(environment, []).append((payload, receive))
        copies = 1 if self.calm or self.random.random() >= self.weather.repeat else 2
        for _ in range(copies):
            self._deliver(environment, direction, payload, receive, self._delay())

    def _deliver(self, environment: str, direction: str, payload: Any, receive: Receive, delay: int) -> None:
        def arrive() -> None:
            if (environment, direction) in self.cut or not receive(payload):
                self._deliver(environment, direction, payload, receive, 1_000 + self.random.randint(0, 500))

        self.timeline.after(delay, arrive)

    def request(self, environment: str, direction: str, payload: Any, receive: Receive) -> None:
        """Deliver at most once or, when repeated by the network, twice; or never."""
        if (environment, direction) in self.cut:
            return
        if not self.calm and self.random.random() < self.weather.drop:
            return

        def arrive() -> None:
            if (environment, direction) not in self.cut:
                receive(payload)

        self.timeline.after(self._delay(), arrive)
        if not self.calm and self.random.random() < self.weather.repeat:
            self.timeline.after(self._delay(), arrive)

    def redeliver(self, environment: str) -> None:
        """Deliver every earlier command to this environment again: its consumer's position went back."""
        for payload, receive in self.history.get(environment, [])[-60:]:
            self._deliver(environment, "down", payload, receive, self._delay())
