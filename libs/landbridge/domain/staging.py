"""How long, and at what price, an operation's inputs take to reach an environment.

Data of a connection that lies in the environment's own region, or that is cached there, is at hand. Other data crosses
a way whose bandwidth was measured, else that which the connection or the contract states. What is neither is unknown,
never zero.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from landbridge.domain import claims, units
from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import OfferedConnection
from landbridge.domain.evidence import PROVEN
from landbridge.domain.requirements import ConnectionNeed, Requirements

GB = 10**9
NOTHING_MEASURED: Mapping[str, float] = {}


class Staging(NamedTuple):
    """Seconds, bytes and egress price of bringing data here; None where it cannot be told. `source` says from what."""

    seconds: float | None
    bytes: int | None
    egress: float | None
    currency: str
    source: str


AT_HAND = Staging(0.0, 0, 0.0, "", "all inputs are at hand")


def moves_data(requirements: Requirements) -> bool:
    """Tell whether there is anything to stage, wherever it runs."""
    return any(need.readings for need in requirements.connections)


def staging(
    requirements: Requirements, candidate: Candidate, measured: Mapping[str, float] = NOTHING_MEASURED
) -> Staging:
    """Return what staging all inputs takes, one after the other. `measured`: bits per second by connection."""
    moved: list[Staging] = []
    for need in requirements.connections:
        if need.readings:
            part = _stage(need, candidate, measured.get(need.name))
            if part is not AT_HAND:
                moved.append(part)
    if not moved:
        return AT_HAND
    currencies = {part.currency for part in moved if part.currency}
    egress = [part.egress for part in moved]
    return Staging(
        seconds=_total([part.seconds for part in moved]),
        bytes=_whole([part.bytes for part in moved]),
        egress=_total(egress) if len(currencies) <= 1 else None,
        currency=next(iter(currencies)) if len(currencies) == 1 else "",
        source="; ".join(part.source for part in moved),
    )


def measured_bandwidths(candidate: Candidate, now: datetime) -> dict[str, float]:
    """Return what the environment's probes have measured of its connections, in bits per second, where it is fresh."""
    found = {}
    for name in candidate.contract.connections:
        state = candidate.evidence.get(claims.bandwidth(name))
        if state is not None and state.result == PROVEN and state.proven and state.expires > now:
            found[name] = state.proven
    return found


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _whole(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _stage(need: ConnectionNeed, candidate: Candidate, measured: float | None) -> Staging:
    offer = candidate.contract.connections.get(need.name)
    if offer is None:
        return Staging(None, None, None, "", f"connection {need.name} is not here")
    if offer.cached or not offer.region or offer.region in candidate.regions:
        return AT_HAND
    size = _size(need, offer, candidate)
    bandwidth, way = _bandwidth(offer, candidate, measured)
    seconds = size * 8 / bandwidth if size is not None and bandwidth else None
    price, currency = candidate.catalogue.region_egress.get(offer.region, (None, ""))
    egress = None if price is None or size is None else size / GB * price
    told = "an unknown number of" if size is None else str(size)
    return Staging(seconds, size, egress, currency, f"{told} bytes of {need.name} from {offer.region} {way}")


def _size(need: ConnectionNeed, offer: OfferedConnection, candidate: Candidate) -> int | None:
    """Return the bytes to read: as the inputs say, else all that the connection holds."""
    sizes = [reading.size for reading in need.readings]
    if None not in sizes:
        return _whole(sizes)
    if offer.size is not None:
        return offer.size
    document = candidate.catalogue.connections.get(need.name)
    return document.size if document is not None else None


def _bandwidth(offer: OfferedConnection, candidate: Candidate, measured: float | None) -> tuple[float | None, str]:
    if measured:
        return measured, f"at {units.format_bandwidth(round(measured))}, as measured there"
    if offer.bandwidth is not None:
        return offer.bandwidth, "over the connection's own bandwidth"
    links = candidate.contract.links
    ways = [
        (link.bandwidth, name)
        for name in candidate.catalogue.region_environments.get(offer.region, ())
        if (link := links.get(name)) is not None and link.bandwidth
    ]
    if not ways:
        return None, "over a way of unknown bandwidth"
    bandwidth, name = max(ways)
    return bandwidth, f"over the link to {name}"
