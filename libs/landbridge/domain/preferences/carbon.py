"""How much carbon the environment's power causes."""

from collections.abc import Callable, Sequence

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed, as_they_stand
from landbridge.domain.requirements import Requirements


class Carbon(Measure[Measurement]):
    """Grams of CO2 equivalent for each kWh: as the environment's own source tells now, else as the contract states.

    Where a contract says that it is measured, only a fresh reading counts: what was stated for good is not of now.
    """

    name = "carbon"
    observes = True

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Measurement]], list[Measurement]]:  # noqa: ARG002
        return as_they_stand

    def profile(self, candidate: Candidate, observed: Observed) -> Measurement:
        contract = candidate.contract
        source = f"contract version {contract.version}"
        if contract.carbon_measured:
            if observed.carbon is None:
                return Measurement(None, "g/kWh", f"no fresh reading, and {source} states no other")
            return Measurement(observed.carbon.grams, "g/kWh", observed.carbon.source)
        if contract.grams_per_kwh is None:
            return Measurement(None, "g/kWh", f"{source} states no intensity")
        return Measurement(contract.grams_per_kwh, "g/kWh", contract.carbon_source or source)
