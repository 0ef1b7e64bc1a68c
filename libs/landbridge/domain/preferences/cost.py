"""What running the operation here costs, with what its data's way here costs."""

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedClass
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

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:  # noqa: ARG002
        prices = candidate.contract.cost
        whole = requirements.expected_ms > 0
        unit = (prices.currency or "unknown currency") + ("" if whole else "/h")
        priced = priced_class(requirements, candidate)
        if priced is None:
            return Measurement(None, unit, f"contract version {candidate.contract_version} states no price")
        offer, amount = priced
        price = prices.per_hour[offer.name]
        hours = requirements.expected_ms / MS_PER_HOUR if whole else 1.0
        told = "paid for in advance" if price == 0 else f"{price:g} {prices.currency} an hour"
        source = f"{amount:g} of {offer.name}, {told}, contract version {candidate.contract_version}"
        stage = staging(requirements, candidate)
        if stage.egress is None:
            return Measurement(None, unit, f"{source}; price of moving unknown: {stage.source}")
        if stage.egress and (stage.currency != prices.currency or not whole):
            return Measurement(None, unit, f"{source}; moving costs {stage.egress:g} {stage.currency}, not comparable")
        return Measurement(price * amount * hours + stage.egress, unit, source)


def priced_class(requirements: Requirements, candidate: Candidate) -> tuple[OfferedClass, float] | None:
    """Return the class that the operation pays for and how much of it: devices, or processors. None: no price stated.

    Without accelerators the cheapest class of processors that is large enough counts.
    """
    prices = candidate.contract.cost.per_hour
    if requirements.accelerator is not None:
        offer = match_accelerator(requirements.accelerator, candidate).offer
        if offer is None or offer.name not in prices:
            return None
        return offer, float(requirements.total_accelerators)
    hosts = [
        offer
        for offer in candidate.contract.classes.values()
        if not offer.is_accelerator and (offer.cpu or 0) >= requirements.total_cpu
    ]
    if not hosts or any(offer.name not in prices for offer in hosts):
        return None
    return min(hosts, key=lambda offer: (prices[offer.name], offer.name)), requirements.total_cpu / 1000
