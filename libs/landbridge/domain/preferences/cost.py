"""What running the operation here costs, with what its data's way here costs."""

from landbridge.domain.candidate import Candidate
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import staging

MS_PER_HOUR = 3_600_000


class Cost(Measure):
    """Money for the expected duration, or for one hour if none is expected.

    A class without a stated price is of unknown cost. A stated price of 0 is capacity that was paid for in advance.
    """

    name = "cost"
    fields = ("accelerator", "cpu", "replicas", "expected_ms", "connections")

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:  # noqa: ARG002
        currency = candidate.contract.cost.currency
        whole = requirements.expected_ms > 0
        unit = (currency or "unknown currency") + ("" if whole else "/h")
        found = priced_class(requirements, candidate)
        if found is None:
            return Measurement(None, unit, f"contract version {candidate.contract_version} states no price")
        amount, price, told = found
        hours = requirements.expected_ms / MS_PER_HOUR if whole else 1.0
        source = f"{amount:g} of {told}"
        stage = staging(requirements, candidate)
        if stage.egress is None:
            return Measurement(None, unit, f"{source}; price of moving unknown: {stage.source}")
        if stage.egress and (stage.currency != currency or not whole):
            return Measurement(None, unit, f"{source}; moving costs {stage.egress:g} {stage.currency}, not comparable")
        return Measurement(price * amount * hours + stage.egress, unit, source)


def priced_class(requirements: Requirements, candidate: Candidate) -> tuple[float, float, str] | None:
    """Return how much of which class the operation pays for: amount, price, and class and price in words.

    Devices are counted, else processors of the cheapest class that is large enough. None: no price is stated.
    """
    if requirements.accelerator is not None:
        offer = match_accelerator(requirements.accelerator, candidate).offer
        found = candidate.prices.get(offer.name) if offer is not None else None
        return (float(requirements.total_accelerators), found.price, found.told) if found is not None else None
    cpu = requirements.cpu * requirements.replicas
    if candidate.host_prices is None:
        return None
    for price in candidate.host_prices:
        if price.cpu >= cpu:
            return cpu / 1000, price.price, price.told
    return None
