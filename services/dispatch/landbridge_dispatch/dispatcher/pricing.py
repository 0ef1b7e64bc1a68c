"""What an attempt costs an hour here, by the contract in force. Unknown is None, never zero."""

from datetime import datetime

from landbridge.domain import units
from landbridge.domain.contract import Contract
from landbridge_dispatch.specification import Operation


def hourly_cost(contract: Contract | None, operation: Operation, now: datetime) -> float | None:
    """Return the price of the accelerators asked for, else of the processors in the cheapest class that holds them.

    A price that has ended is unknown.
    """
    if contract is None:
        return None
    prices, spec = contract.cost.at(now).per_hour, operation.spec
    replicas = max(1, spec.replicas) if spec.type == "distributed-job" else 1
    accelerator = spec.resources.accelerator
    if accelerator is not None:
        price = prices.get(accelerator.class_)
        return None if price is None else price * max(1, accelerator.count) * replicas
    cpu = spec.resources.requests.cpu
    if not cpu:
        return None
    millicores = units.parse_cpu(cpu) * replicas
    hosts = [
        name for name, offer in contract.classes.items() if not offer.is_accelerator and (offer.cpu or 0) >= millicores
    ]
    if not hosts or any(name not in prices for name in hosts):
        return None
    return min(prices[name] for name in hosts) * millicores / 1000
