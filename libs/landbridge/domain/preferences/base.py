"""What a preference is: one measure, in one unit, of how well an environment would serve an operation."""

from typing import ClassVar, NamedTuple, Protocol

from landbridge.domain.candidate import Candidate
from landbridge.domain.requirements import Requirements


class Measurement(NamedTuple):
    """A value with its unit and where it comes from. None is unknown, which is never zero and never wins."""

    value: float | None
    unit: str
    source: str


class Observed(NamedTuple):
    """What was seen of an environment's recent work. `start_delay_s` is seconds from decision to start, on average.

    `failures` are attempts that the environment, not the workload, let down.
    """

    starts: int = 0
    start_delay_s: float = 0.0
    attempts: int = 0
    failures: int = 0


NOTHING_OBSERVED = Observed()


class Preference(Protocol):
    """One measure; lower values are better.

    `of_operation` tells whether it depends on the operation or, else, on what was observed. Of the candidate it reads
    nothing but contract and catalogue.
    """

    @property
    def name(self) -> str: ...
    @property
    def of_operation(self) -> bool: ...

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement: ...


class Measure:
    """Defaults of a preference whose value differs from operation to operation."""

    name: ClassVar[str] = ""
    of_operation: ClassVar[bool] = True
