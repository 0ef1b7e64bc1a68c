"""How fast the operation's work is done here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedClass
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.ledger import demand, demand_anywhere
from landbridge.domain.preferences.base import Measure, Measurement, Observed, measurement_of
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.runs import ENOUGH_RUNS, run_key

# Times what speed 1 takes. Where equally many are measured in seconds, seconds count: the first by name does.
RELATIVE = "x"


class Speed(NamedTuple):
    """The speed that a class states, in words too; `cpu` is its millicores."""

    speed: float
    told: str
    cpu: int


UNKNOWN = Speed(0.0, "", 0)


class Runner(NamedTuple):
    """An environment that does work. `hosts` are its classes of processors, slowest first, if it states any speed."""

    candidate: Candidate
    observed: Observed
    version: str
    hosts: tuple[Speed, ...]


class Performance(Measure[Runner]):
    """Seconds that the work takes: as completed runs of its component took here, else as the class's speed promises.

    A speed turns the operation's expected duration, which is meant for speed 1, into seconds; without one it is told as
    a multiple of the time that speed 1 would take. Neither runs nor a speed: unknown.
    """

    name = "performance"
    fields = ("component", "accelerator", "cpu", "replicas", "expected_ms")
    observes = True

    def reads(self, requirements: Requirements, *, backlog: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Tell runs apart by all that they demand; without a component there are none."""
        return (*self.fields, "memory", "scratch") if requirements.component else self.fields

    def place(self, candidate: Candidate, observed: Observed) -> Runner:
        hosts: list[OfferedClass] = []
        if candidate.states_speed:
            hosts = [offer for offer in candidate.contract.classes.values() if not offer.is_accelerator]
            hosts.sort(key=lambda offer: (offer.speed or 0.0, offer.name))
        version = f"contract version {candidate.contract_version}"
        return Runner(candidate, observed, version, tuple([_speed(offer, version) for offer in hosts]))

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Runner]], list[Measurement]]:
        declared = _declared(requirements)
        if not requirements.component:
            return lambda places: [declared(runner, "no runs") for runner in places]
        anywhere = demand_anywhere(requirements)
        common = run_key(requirements.component, anywhere) if anywhere is not None else ""

        def ask(runner: Runner) -> Measurement:
            key = common or run_key(requirements.component, demand(requirements, runner.candidate))
            ran = runner.observed.runs.get(key)
            if ran is not None and ran.samples >= ENOUGH_RUNS:
                source = f"median of the last {ran.samples} runs of {key}, the newest of {ran.newest}"
                return Measurement(ran.median_s, "s", source)
            return declared(runner, f"fewer than {ENOUGH_RUNS} runs of {key}")

        return lambda places: [ask(runner) for runner in places]


def _declared(requirements: Requirements) -> Callable[[Runner, str], Measurement]:
    """Return what measures by the speed that the contract states of the class; `lacking` is told where it does not."""
    expected_s = requirements.expected_ms / 1000
    unit = "s" if requirements.expected_ms else RELATIVE
    need, cpu = requirements.accelerator, requirements.total_cpu

    def ask(runner: Runner, lacking: str) -> Measurement:
        speed, told, _ = _host(runner.hosts, cpu) if need is None else _accelerators(need, runner)
        if not speed:
            return Measurement(None, unit, f"{lacking}, and {runner.version} states no speed")
        if expected_s:
            return measurement_of((expected_s / speed, "s", "expectedDuration at " + told))
        return Measurement(1 / speed, RELATIVE, "what speed 1 takes at " + told)

    return ask


def _host(hosts: Sequence[Speed], cpu: int) -> Speed:
    """Return the slowest class of processors that is large enough.

    Which one it will be is the executor's choice: if one of them states no speed, none is known.
    """
    for host in hosts:
        if host[2] >= cpu:
            return host
    return UNKNOWN


def _accelerators(need: AcceleratorNeed, runner: Runner) -> Speed:
    """Return the class of accelerators that does the work."""
    offer = match_accelerator(need, runner.candidate).offer if runner.candidate.states_speed else None
    return _speed(offer, runner.version) if offer is not None else UNKNOWN


def _speed(offer: OfferedClass, version: str) -> Speed:
    """Return a class's speed; 0: it states none."""
    speed, source = offer.speed or 0.0, f" ({offer.speed_source})" if offer.speed_source else ""
    return Speed(speed, f"speed {speed:g} of {offer.name}{source}, {version}", offer.cpu or 0)
