"""One dispatcher process. A paused one keeps what it had decided to do, and does it when it wakes."""

from landbridge.domain.ownership import environment_model as model
from landbridge.domain.ownership.environment_model import HeldOperation
from landbridge.domain.ownership.leases import ClockReading
from simulation.world.clock import Timeline


class Process:
    """What is lost when a dispatcher dies."""

    def __init__(self, timeline: Timeline, incarnation: str) -> None:
        self._timeline = timeline
        self.incarnation = incarnation
        self.alive = True
        self.paused_until = 0
        self.held: dict[str, HeldOperation] = {}
        self.queues: dict[str, list[model.Effect]] = {}
        self.working: set[str] = set()
        self.inventory_term = 0
        self.greeted = False
        self.reading: ClockReading | None = None

    @property
    def can_act(self) -> bool:
        return self.alive and self._timeline.now >= self.paused_until
