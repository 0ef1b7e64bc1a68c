"""An environment as constraints and preferences see it: built once per change, read for every operation.

A candidate is one contract version of one environment together with its evidence, its link, its control flags and the
catalogue. Parts that did not change are the same objects in the next candidate, which is how caches tell what changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from landbridge.domain import claims
from landbridge.domain.capacity import claimed_capacity, proven_capacity
from landbridge.domain.catalogue import EMPTY, Catalogue
from landbridge.domain.contract import Contract, OfferedClass
from landbridge.domain.evidence import NO_EVIDENCE, ClaimState


class Source(StrEnum):
    """The parts of a candidate, each of which changes by an event of its own."""

    CONTRACT = "contract"
    EVIDENCE = "evidence"
    LINK = "link"
    CONTROL = "control"
    CATALOGUE = "catalogue"


class LinkState(StrEnum):
    """Whether the centre hears an environment."""

    CONNECTED = "connected"
    LOST = "lost"
    RECONCILING = "reconciling"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Link:
    """Whether the centre hears the environment, and what its dispatcher says of itself."""

    state: LinkState = LinkState.NEVER
    since: datetime | None = None
    features: frozenset[str] = frozenset()
    executor: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """A part of an environment that an operator has get no new work: one class, or all behind a label `key=value`."""

    capability_class: str = ""
    node_selector: str = ""
    reason: str = ""
    by: str = ""

    def covers(self, offer: OfferedClass) -> bool:
        key, _, value = self.node_selector.partition("=")
        return offer.name == self.capability_class or (bool(key) and offer.node_selector.get(key) == value)


@dataclass(frozen=True, slots=True)
class Control:
    """What an operator asked of the environment, and of parts of it."""

    paused: bool = False
    draining: bool = False
    reason: str = ""
    by: str = ""
    holds: tuple[Hold, ...] = ()

    def held(self, contract: Contract) -> dict[str, Hold]:
        """Return the classes of a contract that get no new work, each with the first hold that covers it."""
        found = {}
        for offer in contract.classes.values():
            hold = next((hold for hold in self.holds if hold.covers(offer)), None)
            if hold is not None:
                found[offer.name] = hold
        return found


NO_LINK = Link()
NO_CONTROL = Control()
ACTIVE = "active"
DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """All evidence of an environment, for the contract version that was probed.

    `previous` is the same for the version before, as long as both are active.
    """

    contract_version: int = 0
    states: Mapping[str, ClaimState] = field(default_factory=dict)
    previous: "EvidenceSet | None" = None


NO_EVIDENCE_SET = EvidenceSet()


class Price(NamedTuple):
    """What one device, or one processor, of a class costs an hour; `cpu` is the millicores of a class of processors."""

    price: float
    told: str
    cpu: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One contract version of one environment, ready to be judged.

    `held` are its classes that get no new work; `open` is what is proven of all others. `served_by` is the one class
    by which a request for accelerators is looked at here; empty: by the best. `place` is what it is ranked and admitted
    under: the environment, with that class.
    """

    contract: Contract
    phase: str
    evidence: Mapping[str, ClaimState] = field(default_factory=dict)
    evidence_version: int = 0
    link: Link = NO_LINK
    control: Control = NO_CONTROL
    catalogue: Catalogue = EMPTY
    claimed: Mapping[str, int] = field(default_factory=dict)
    proven: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, Hold] = field(default_factory=dict)
    open: Mapping[str, int] = field(default_factory=dict)
    regions: frozenset[str] = frozenset()
    jurisdictions: frozenset[str] = frozenset()
    general_claims: tuple[str, ...] = (claims.RUNTIME,)
    prices: Mapping[str, Price] = field(default_factory=dict)
    states_speed: bool = False  # of any class
    host_prices: tuple[Price, ...] | None = None  # of classes of processors, cheapest first; None: one is not stated
    served_by: str = ""
    place: str = ""

    @property
    def environment(self) -> str:
        return self.contract.environment

    @property
    def contract_version(self) -> int:
        return self.contract.version


def build_candidate(
    contract: Contract,
    phase: str = ACTIVE,
    *,
    evidence: Mapping[str, ClaimState] = NO_EVIDENCE,
    evidence_version: int = 0,
    link: Link = NO_LINK,
    control: Control = NO_CONTROL,
    catalogue: Catalogue = EMPTY,
) -> Candidate:
    """Put a candidate together and work out what follows from its parts."""
    prices = _prices(contract)
    held, proven = control.held(contract), proven_capacity(contract, evidence)
    return Candidate(
        contract=contract,
        phase=phase,
        evidence=evidence,
        evidence_version=evidence_version,
        link=link,
        control=control,
        catalogue=catalogue,
        claimed=claimed_capacity(contract),
        proven=proven,
        held=held,
        open=proven_capacity(contract, evidence, held) if held else proven,
        regions=frozenset(contract.location.regions),
        jurisdictions=frozenset(contract.location.jurisdictions),
        general_claims=claims.general_claims(evidence),
        prices=prices,
        states_speed=any(offer.speed for offer in contract.classes.values()),
        host_prices=_host_prices(contract, prices),
        place=contract.environment,
    )


def place_name(environment: str, served_by: str) -> str:
    """Name a place: an environment, as served by one class. Neither name holds a slash."""
    return f"{environment}/{served_by}" if served_by else environment


def environment_of(place: str) -> str:
    """Return the environment of a place."""
    return place.partition("/")[0]


def class_of(place: str) -> str:
    """Return the class of a place; empty where it is the one that serves anyway."""
    return place.partition("/")[2]


def _prices(contract: Contract) -> dict[str, Price]:
    """Return the stated prices by class."""
    found = {}
    for name, price in contract.cost.per_hour.items():
        offer = contract.classes.get(name)
        told = "paid for in advance" if price == 0 else f"{price:g} {contract.cost.currency} an hour"
        listed = f" ({contract.cost.source})" if contract.cost.source else ""
        source = f"{name}, {told}{listed}, contract version {contract.version}"
        found[name] = Price(price, source, offer.cpu or 0 if offer is not None else 0)
    return found


def _host_prices(contract: Contract, prices: Mapping[str, Price]) -> tuple[Price, ...] | None:
    hosts = [offer.name for offer in contract.classes.values() if not offer.is_accelerator]
    if not hosts or any(name not in prices for name in hosts):
        return None
    return tuple(sorted((prices[name] for name in hosts), key=lambda price: (price.price, price.told)))


def build_candidates(
    versions: Sequence[tuple[Contract, str]],
    *,
    evidence: EvidenceSet = NO_EVIDENCE_SET,
    link: Link = NO_LINK,
    control: Control = NO_CONTROL,
    catalogue: Catalogue = EMPTY,
) -> tuple[Candidate, ...]:
    """Return the candidates of one environment, the newest contract version first.

    Only active versions take work; an environment without any is represented by its newest version, so that it is
    judged, and explained, all the same. `versions` are contracts with their phases.
    """
    newest_first = sorted(versions, key=lambda item: -item[0].version)
    chosen = [item for item in newest_first if item[1] == ACTIVE] or newest_first[:1]
    probed = next((contract for contract, _ in versions if contract.version == evidence.contract_version), None)
    return tuple(
        build_candidate(
            contract,
            phase,
            evidence=evidence_for(contract, evidence, probed),
            evidence_version=evidence.contract_version,
            link=link,
            control=control,
            catalogue=catalogue,
        )
        for contract, phase in chosen
    )


def evidence_for(contract: Contract, evidence: EvidenceSet, probed: Contract | None) -> Mapping[str, ClaimState]:
    """Return the evidence that counts for one contract version: all of its own, of another only for equal claims."""
    if contract.version == evidence.contract_version:
        return evidence.states
    if evidence.previous is not None and contract.version == evidence.previous.contract_version:
        return evidence.previous.states
    if probed is None:
        return NO_EVIDENCE
    return {
        claim: state for claim, state in evidence.states.items() if _claimed(contract, claim) == _claimed(probed, claim)
    }


def _claimed(contract: Contract, claim: str) -> object:
    """Return what a contract says under a claim's name; for claims about the whole environment, how it runs work."""
    section, _, name = claim.partition(".")
    if section == "bandwidth":
        return contract.connections.get(name)
    if section in ("classes", "connections", "storage", "links"):
        named: Mapping[str, object] = getattr(contract, section)
        return named.get(name)
    if claim in (claims.RUNTIME, claims.CLOCK, claims.SELF_STOP):
        return contract.runtime
    return contract.boundaries
