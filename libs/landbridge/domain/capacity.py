"""How much an environment has, by resource name: what it claims, what of it is proven, what its quotas leave.

Resources are `cpu` (millicores), `memory` and `ephemeral-storage` (bytes), `running` (operations at a time) and every
accelerator class by its name (devices). A resource that is missing here is not stated at all.
"""

from collections.abc import Container, Mapping

from landbridge.domain import claims
from landbridge.domain.contract import CPU, MEMORY, RUNNING, SCRATCH, Contract, OfferedClass
from landbridge.domain.evidence import ClaimState


def claimed_capacity(contract: Contract) -> dict[str, int]:
    """Return what the contract claims, within the environment's own quotas."""
    return _within_quotas(contract, [(offer, 1.0) for offer in contract.classes.values()])


def proven_capacity(
    contract: Contract, evidence: Mapping[str, ClaimState], held: Container[str] = ()
) -> dict[str, int]:
    """Return what of the claimed capacity the latest evidence found working, within the environment's own quotas.

    Classes whose evidence states no amount count as claimed; whether evidence is good enough is for constraints to say.
    `held` are classes that get no new work: they count as none.
    """
    shares = []
    for offer in contract.classes.values():
        state = evidence.get(claims.capability_class(offer.name))
        shares.append((offer, 0.0 if offer.name in held else _share(offer, state)))
    return _within_quotas(contract, shares)


def _share(offer: OfferedClass, state: ClaimState | None) -> float:
    if state is None or state.proven is None:
        return 1.0
    whole = offer.count if offer.count is not None else state.claimed
    return min(state.proven / whole, 1.0) if whole else 1.0


def _within_quotas(contract: Contract, shares: list[tuple[OfferedClass, float]]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for offer, share in shares:
        if offer.count is not None:
            _add(amounts, offer.name, offer.count, share)
        else:
            _add(amounts, MEMORY, offer.memory, share)
        _add(amounts, CPU, offer.cpu, share)
        _add(amounts, SCRATCH, offer.scratch, share)
    for resource, limit in contract.quotas.items():
        if resource == RUNNING or resource in amounts:
            amounts[resource] = min(amounts.get(resource, limit), limit)
    return amounts


def _add(amounts: dict[str, int], resource: str, amount: int | None, share: float) -> None:
    if amount is not None:
        # Rounded, not cut off: 14 of 16 devices must not become 13 by a binary fraction.
        amounts[resource] = amounts.get(resource, 0) + round(amount * share)
