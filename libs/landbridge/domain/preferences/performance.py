"""How fast the operation's work is done here."""

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedClass
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.ledger import demand
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.runs import ENOUGH_RUNS, run_key

# Times what speed 1 takes. Where equally many are measured in seconds, seconds count: the first by name does.
RELATIVE = "x"


class Performance(Measure):
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

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:
        key = run_key(requirements.component, demand(requirements, candidate)) if requirements.component else ""
        ran = observed.runs.get(key)
        if ran is not None and ran.samples >= ENOUGH_RUNS:
            source = f"median of the last {ran.samples} runs of {key}, the newest of {ran.newest}"
            return Measurement(ran.median_s, "s", source)
        return _as_declared(requirements, candidate, f"fewer than {ENOUGH_RUNS} runs of {key}" if key else "no runs")


def _as_declared(requirements: Requirements, candidate: Candidate, lacking: str) -> Measurement:
    """Measure by the speed that the contract states of the class."""
    version = f"contract version {candidate.contract_version}"
    offer = _slowest(requirements, candidate) if candidate.states_speed else None
    if offer is None or not offer.speed:
        unit = "s" if requirements.expected_ms else RELATIVE
        return Measurement(None, unit, f"{lacking}, and {version} states no speed")
    told = f"speed {offer.speed:g} of {offer.name}{f' ({offer.speed_source})' if offer.speed_source else ''}, {version}"
    if requirements.expected_ms:
        return Measurement(requirements.expected_ms / 1000 / offer.speed, "s", f"expectedDuration at {told}")
    return Measurement(1 / offer.speed, RELATIVE, f"what speed 1 takes at {told}")


def _slowest(requirements: Requirements, candidate: Candidate) -> OfferedClass | None:
    """Return the class that does the work; of classes of processors the slowest that is large enough.

    Which class of processors it will be is the executor's choice: if one of them states no speed, none is known.
    """
    if requirements.accelerator is not None:
        return match_accelerator(requirements.accelerator, candidate).offer
    cpu = requirements.cpu * requirements.replicas
    hosts = [o for o in candidate.contract.classes.values() if not o.is_accelerator and (o.cpu or 0) >= cpu]
    return min(hosts, key=lambda offer: (offer.speed or 0.0, offer.name), default=None)
