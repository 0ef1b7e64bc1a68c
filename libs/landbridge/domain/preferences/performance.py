"""How fast the operation's work is done here."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedClass
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.ledger import demand, demand_anywhere
from landbridge.domain.preferences.base import Measure, Measurement, Observed, measurement_of
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.runs import ENOUGH_RUNS, Ran, run_key

# Times what speed 1 takes. Where equally many are measured in seconds, seconds count: the first by name does.
RELATIVE = "x"


class Speed(NamedTuple):
    """The speed that a class states, and what is told of work by it; `cpu` is the class's millicores."""

    speed: float
    told: str
    told_relative: str
    cpu: int


UNKNOWN = Speed(0.0, "", "", 0)


class Runner(NamedTuple):
    """An environment that does work. `hosts` are its classes of processors, slowest first, if it states any speed."""

    candidate: Candidate
    runs: Mapping[str, Ran]
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

    def profile(self, candidate: Candidate, observed: Observed) -> Runner:
        hosts: list[OfferedClass] = []
        if candidate.states_speed:
            hosts = [offer for offer in candidate.contract.classes.values() if not offer.is_accelerator]
            hosts.sort(key=lambda offer: (offer.speed or 0.0, offer.name))
        version = f"contract version {candidate.contract_version}"
        return Runner(candidate, observed.runs, version, tuple([_speed(offer, version) for offer in hosts]))

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Runner]], list[Measurement]]:
        component, need, cpu = requirements.component, requirements.accelerator, requirements.total_cpu
        anywhere = demand_anywhere(requirements)
        common = run_key(component, anywhere) if anywhere is not None else ""
        expected_s = requirements.expected_ms / 1000

        def ask(profiles: Sequence[Runner]) -> list[Measurement]:
            found = []
            for runner in profiles:
                candidate, runs, version, hosts = runner
                key = common or (run_key(component, demand(requirements, candidate)) if component else "")
                ran = runs.get(key)
                if ran is not None and ran.samples >= ENOUGH_RUNS:
                    found.append(_as_observed(key, ran))
                    continue
                if need is not None:
                    host = _accelerators(need, runner)
                else:  # mostly the first is large enough
                    host = hosts[0] if hosts and hosts[0][3] >= cpu else _host(hosts, cpu)
                speed, told, told_relative, _ = host
                if not speed:
                    found.append(_unknown(key, version, "s" if expected_s else RELATIVE))
                elif expected_s:
                    found.append(measurement_of((expected_s / speed, "s", told)))
                else:
                    found.append(measurement_of((1 / speed, RELATIVE, told_relative)))
            return found

        return ask


def _as_observed(key: str, ran: Ran) -> Measurement:
    source = f"median of the last {ran.samples} runs of {key}, the newest of {ran.newest}"
    return Measurement(ran.median_s, "s", source)


def _unknown(key: str, version: str, unit: str) -> Measurement:
    lacking = f"fewer than {ENOUGH_RUNS} runs of {key}" if key else "no runs"
    return Measurement(None, unit, f"{lacking}, and {version} states no speed")


def _host(hosts: Sequence[Speed], cpu: int) -> Speed:
    """Return the slowest class of processors that is large enough.

    Which one it will be is the executor's choice: if one of them states no speed, none is known.
    """
    for host in hosts:
        if host[3] >= cpu:
            return host
    return UNKNOWN


def _accelerators(need: AcceleratorNeed, runner: Runner) -> Speed:
    """Return the class of accelerators that does the work."""
    offer = match_accelerator(need, runner.candidate).offer if runner.candidate.states_speed else None
    return _speed(offer, runner.version) if offer is not None else UNKNOWN


def _speed(offer: OfferedClass, version: str) -> Speed:
    """Return a class's speed; 0: it states none."""
    speed, source = offer.speed or 0.0, f" ({offer.speed_source})" if offer.speed_source else ""
    told = f"speed {speed:g} of {offer.name}{source}, {version}"
    return Speed(speed, f"expectedDuration at {told}", f"what speed 1 takes at {told}", offer.cpu or 0)
