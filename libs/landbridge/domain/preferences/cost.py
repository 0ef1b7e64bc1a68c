"""What running the operation here costs, with what its data's way here costs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate, Price
from landbridge.domain.constraints.base import moment
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.preferences.base import Measure, Measurement, Observed, measurement_of
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.staging import Staging, moves_data, staging

MS_PER_HOUR = 3_600_000


class Priced(NamedTuple):
    """An environment with its prices: of processors cheapest first, and the units in which it tells costs."""

    candidate: Candidate
    hosts: Sequence[Price]
    currency: str
    by_hour: str
    unpriced: str


class Cost(Measure[Priced]):
    """Money for the expected duration, or for one hour if none is expected.

    A class without a stated price is of unknown cost. A stated price of 0 is capacity that was paid for in advance.
    """

    name = "cost"
    fields = ("accelerator", "cpu", "replicas", "expected_ms", "connections")

    def profile(self, candidate: Candidate, observed: Observed) -> Priced:  # noqa: ARG002
        currency = candidate.contract.cost.currency or "unknown currency"
        hosts = candidate.host_prices or ()
        return Priced(candidate, hosts, currency, f"{currency}/h", _no_price(candidate))

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Priced]], list[Measurement]]:
        whole = requirements.expected_ms > 0
        hours = requirements.expected_ms / MS_PER_HOUR if whole else 1.0
        need, cpu, moves = requirements.accelerator, requirements.total_cpu, moves_data(requirements)
        amount = priced_amount(requirements)
        told_amount = f"{amount:g} of "

        def ask(profiles: Sequence[Priced]) -> list[Measurement]:
            found = []
            for candidate, hosts, in_whole, by_hour, unpriced in profiles:
                unit = in_whole if whole else by_hour
                if need is not None:
                    price = _accelerators(need, candidate)
                else:  # mostly the first is large enough
                    price = hosts[0] if hosts and hosts[0][2] >= cpu else _host(hosts, cpu)
                if price is None:
                    found.append(Measurement(None, unit, unpriced))
                    continue
                source, moving = told_amount + price[1], 0.0
                if moves:
                    stage = staging(requirements, candidate)
                    unknown = _unknown(stage, candidate.contract.cost.currency, whole=whole)
                    if unknown:
                        found.append(Measurement(None, unit, f"{source}; {unknown}"))
                        continue
                    moving = stage.egress or 0.0
                found.append(measurement_of((price[0] * amount * hours + moving, unit, source)))
            return found

        return ask


def _unknown(stage: Staging, currency: str, *, whole: bool) -> str:
    """Return why the price of moving data cannot be added; empty if it can."""
    if stage.egress is None:
        return f"price of moving unknown: {stage.source}"
    if stage.egress and (stage.currency != currency or not whole):
        return f"moving costs {stage.egress:g} {stage.currency}, not comparable"
    return ""


def priced_amount(requirements: Requirements) -> float:
    """Return how much the operation pays for: devices if it asks for any, else processors."""
    if requirements.accelerator is not None:
        return float(requirements.total_accelerators)
    return requirements.total_cpu / 1000


def _host(hosts: Sequence[Price], cpu: int) -> Price | None:
    """Return the price of a processor of the cheapest class that is large enough; None: it is not stated."""
    for host in hosts:
        if host[2] >= cpu:
            return host
    return None


def _accelerators(need: AcceleratorNeed, candidate: Candidate) -> Price | None:
    """Return the price of a device of the class that serves; None: it is not stated."""
    offer = match_accelerator(need, candidate).offer
    return candidate.prices.get(offer.name) if offer is not None else None


def _no_price(candidate: Candidate) -> str:
    version, ended = f"contract version {candidate.contract_version}", candidate.contract.cost.ended
    if not ended:
        return f"{version} states no price"
    told = ", ".join(f"{name} at {moment(end)}" for name, end in sorted(ended.items()))
    return f"{version} states no price that still holds; ended: {told}"


def priced_class(requirements: Requirements, candidate: Candidate) -> tuple[float, float, str] | None:
    """Return how much of which class the operation pays for: amount, price, and class and price in words.

    Devices are counted, else processors of the cheapest class that is large enough. None: no price is stated.
    """
    need = requirements.accelerator
    hosts = candidate.host_prices or ()
    price = _host(hosts, requirements.total_cpu) if need is None else _accelerators(need, candidate)
    return (priced_amount(requirements), price.price, price.told) if price is not None else None
