"""How much carbon the environment's power causes."""

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements


class Carbon(Measure):
    """Grams of CO2 equivalent for each kWh, as the contract states them."""

    name = "carbon"

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:  # noqa: ARG002
        contract = candidate.contract
        source = f"contract version {contract.version}"
        if contract.grams_per_kwh is None:
            return Measurement(None, "g/kWh", f"{source} states no intensity")
        return Measurement(contract.grams_per_kwh, "g/kWh", contract.carbon_source or source)
