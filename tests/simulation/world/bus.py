"""A faulty bus between the centre and its environments.

Streams lose nothing but may delay, repeat and reorder, and wait while a link is cut or nobody receives. Requests and
replies may also vanish. A link can be cut in one direction only.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from simulation.world.clock import Timeline

Receive = Callable[[Any], bool]
"""Takes a payload; False: nobody is there, deliver again later."""

Way = tuple[str, str]
"""(environment, "up" | "down"): one direction of a link."""

_REMEMBERED = 60
"""Commands that a consumer whose position goes back gets again."""


@dataclass
class Weather:
    """How bad the bus is. Probabilities per message; delays in milliseconds."""

    repeat: float = 0.05
    drop: float = 0.03
    slow: float = 0.05
    delay: int = 20
    slow_delay: int = 45_000
    shuffle: float = 0.3
    """That what waited is delivered out of order."""


def about_of(payload: Any) -> str:
    """Name the operation that a message is about; empty = none, or several."""
    match payload:
        case (str() as operation, _):
            return operation
        case (int(), str(), (str() as operation, _)):
            return operation
    return ""


@dataclass
class FaultyBus:
    timeline: Timeline
    random: Random
    weather: Weather
    met: Callable[[str, str], None]
    """Told what the weather does to a message: drop, repeat, delay or reorder, and the operation it is about."""
    cut: set[Way] = field(default_factory=set)
    history: dict[str, deque[tuple[Any, Receive]]] = field(default_factory=dict)
    calm: bool = False
    waiting: dict[Way, list[tuple[Any, Receive]]] = field(default_factory=dict)
    """What could not be delivered yet, oldest first."""
    _trying: set[Way] = field(default_factory=set)

    def _repeats(self) -> bool:
        return not self.calm and self.random.random() < self.weather.repeat

    def _delay(self, payload: Any) -> int:
        chance = self.random.random()
        if self.calm:
            return 1 + int(chance * 20)
        if chance < self.weather.slow:
            self.met("delay", about_of(payload))
            return 1 + int(self.random.random() * self.weather.slow_delay)
        return 1 + int(chance * self.weather.delay)

    # -- streams ------------------------------------------------------------------------------------------------------

    def stream(self, environment: str, direction: str, payload: Any, receive: Receive) -> None:
        """Deliver at least once, whenever the link allows."""
        way = (environment, direction)
        if direction == "down":
            self.history.setdefault(environment, deque(maxlen=_REMEMBERED)).append((payload, receive))
        self._deliver(way, payload, receive)
        if self._repeats():
            self.met("repeat", about_of(payload))
            self._deliver(way, payload, receive)

    def post(self, way: Way, payload: Any, receive: Receive) -> None:
        """Deliver now, or as soon as somebody receives."""
        if way in self.cut or not receive(payload):
            self._wait(way, [(payload, receive)])

    def _deliver(self, way: Way, payload: Any, receive: Receive) -> None:
        self.timeline.after(self._delay(payload), lambda: self.post(way, payload, receive))

    def _wait(self, way: Way, messages: list[tuple[Any, Receive]]) -> None:
        self.waiting.setdefault(way, []).extend(messages)
        if way not in self.cut and way not in self._trying:
            self._trying.add(way)
            self.timeline.after(1_000 + self.random.randint(0, 500), lambda: self._again(way))

    def _again(self, way: Way) -> None:
        """Deliver all that waits, until the link or the receiver fails again."""
        self._trying.discard(way)
        messages = self.waiting.pop(way, [])
        if len(messages) > 1 and not self.calm and self.random.random() < self.weather.shuffle:
            self.random.shuffle(messages)
            for payload, _ in messages:
                self.met("reorder", about_of(payload))
        for position, (payload, receive) in enumerate(messages):
            if way in self.cut or not receive(payload):
                self._wait(way, messages[position:])
                return

    def sever(self, way: Way) -> None:
        """Cut one direction of a link."""
        self.cut.add(way)

    def mend(self, way: Way) -> None:
        """Restore one direction of a link; what waits goes on soon."""
        self.cut.discard(way)
        if self.waiting.get(way):
            self._wait(way, [])

    def redeliver(self, environment: str) -> None:
        """Deliver earlier commands to this environment again: its consumer's position went back."""
        for payload, receive in self.history.get(environment, ()):
            self._deliver((environment, "down"), payload, receive)

    # -- requests -----------------------------------------------------------------------------------------------------

    def request(self, environment: str, direction: str, payload: Any, receive: Receive) -> None:
        """Deliver at most once or, when repeated by the network, twice; or never."""
        way = (environment, direction)
        if way in self.cut:
            return
        if not self.calm and self.random.random() < self.weather.drop:
            self.met("drop", about_of(payload))
            return

        def arrive() -> None:
            if way not in self.cut:
                receive(payload)

        self.timeline.after(self._delay(payload), arrive)
        if self._repeats():
            self.met("repeat", about_of(payload))
            self.timeline.after(self._delay(payload), arrive)
