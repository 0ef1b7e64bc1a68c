"""What a preference is: one measure, in one unit, of how well an environment would serve an operation."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from landbridge.domain.backlog import Backlog
from landbridge.domain.candidate import Candidate
from landbridge.domain.carbon import Reading
from landbridge.domain.requirements import Requirements
from landbridge.domain.runs import Ran

P = TypeVar("P")
NO_RUNS: Mapping[str, Ran] = {}
NO_BANDWIDTHS: Mapping[str, float] = {}


class Measurement(NamedTuple):
    """A value with its unit and where it comes from. None is unknown, which is never zero and never wins."""

    value: float | None
    unit: str
    source: str


class Observed(NamedTuple):
    """What was seen of an environment's recent work. `start_delay_s` is seconds from decision to start, on average.

    `failures` are attempts that the environment, not the workload, let down. `runs` tells by `run_key` how long
    completed work took, `backlog` what runs and waits there; None: nothing does. `carbon` is the intensity that its
    own source tells, `bandwidths` what was measured of connections, in bits per second.
    """

    starts: int = 0
    start_delay_s: float = 0.0
    attempts: int = 0
    failures: int = 0
    runs: Mapping[str, Ran] = NO_RUNS
    backlog: Backlog | None = None
    carbon: Reading | None = None
    bandwidths: Mapping[str, float] = NO_BANDWIDTHS


NOTHING_OBSERVED = Observed()


# Makes a measurement of its three fields, in half of the time that naming them takes.
measurement_of: Final[Callable[[tuple[float | None, str, str]], Measurement]] = partial(tuple.__new__, Measurement)


class Preference(Protocol):
    """One measure; lower values are better.

    It reads of an operation the fields that `reads` names, of a candidate contract and catalogue, and what was observed
    only if it `observes`. Measuring is in two halves, so that neither is done anew for each pair of operation and
    environment: `profile` is what it knows of an environment whatever is asked, `asking` what it asks of profiles.
    """

    @property
    def name(self) -> str: ...
    @property
    def observes(self) -> bool: ...

    def reads(self, requirements: Requirements, *, backlog: bool) -> tuple[str, ...]:
        """Name the fields of such requirements that it reads; `backlog`: if anything runs or waits anywhere."""
        ...

    def profile(self, candidate: Candidate, observed: Observed) -> Any: ...

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Any]], list[Measurement]]: ...

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement: ...


class Measure(Generic[P]):
    """Defaults of a preference that reads the candidate only."""

    name: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    observes: ClassVar[bool] = False

    def reads(self, requirements: Requirements, *, backlog: bool) -> tuple[str, ...]:  # noqa: ARG002
        return self.fields

    def profile(self, candidate: Candidate, observed: Observed) -> P:
        """Return what is known of an environment; each preference has its own."""
        raise NotImplementedError

    def asking(self, requirements: Requirements) -> Callable[[Sequence[P]], list[Measurement]]:
        """Return what measures profiles for such an operation, in order; each preference has its own."""
        raise NotImplementedError

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:
        """Measure one environment for one operation."""
        return self.asking(requirements)([self.profile(candidate, observed)])[0]


def as_they_stand(profiles: Sequence[Measurement]) -> list[Measurement]:
    """Return what was measured whatever the operation."""
    return list(profiles)
