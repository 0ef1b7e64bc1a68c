"""What a probe may look at."""

from dataclasses import dataclass, field
from typing import Any

from landbridge_dispatch.dispatcher.clocks import CentreClock
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.protocol import Executor


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """The site as a probe sees it."""

    executor: Executor
    bindings: Bindings
    clock: CentreClock
    boot_id: str
    memory: dict[str, Any] = field(default_factory=dict)
    """What probes remember from one run to the next, by their kind."""
