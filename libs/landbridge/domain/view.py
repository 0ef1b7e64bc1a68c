"""One replica's view of everything that deciding reads: contracts, evidence, links, control, and the catalogue.

Messages of ENVIRONMENTS and CATALOGUE are applied as they come, each the whole value of its subject; `settle` then
brings candidates up to date, once for all that came together. Parts that did not change stay the same objects.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from landbridge.domain import catalogue_document
from landbridge.domain.candidate import (
    ACTIVE,
    DRAFT,
    NO_CONTROL,
    NO_EVIDENCE_SET,
    NO_LINK,
    Candidate,
    Control,
    EvidenceSet,
    Hold,
    Link,
    LinkState,
    build_candidates,
)
from landbridge.domain.catalogue import Catalogue, Queue, QueueControl, build_catalogue
from landbridge.domain.contract import Contract
from landbridge.domain.contract_document import parse_contract
from landbridge.domain.evidence import ClaimState, Evidence, claim_states
from landbridge.domain.requirements import DEFAULT_QUEUE
from landbridge.schema.wire import event_v1, report_v1

# Kinds of documents that deciding reads, with the name under which the catalogue keeps them.
_KINDS: Final[Mapping[str, tuple[str, Callable[[str, int, Mapping[str, Any]], object]]]] = {
    "queue": ("queues", catalogue_document.read_queue),
    "project": ("projects", catalogue_document.read_project),
    "policy": ("policies", catalogue_document.read_policy),
    "capability-class": ("classes", catalogue_document.read_class),
    "rule": ("rules", catalogue_document.read_rule),
    "connection": ("connections", catalogue_document.read_connection),
}
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_LINK_STATES: Final = {state.value: state for state in LinkState}

_contract = msgspec.json.Decoder(event_v1.EnvironmentContractChanged)
_evidence = msgspec.json.Decoder(event_v1.EnvironmentEvidence)
_link = msgspec.json.Decoder(event_v1.EnvironmentLink)
_control = msgspec.json.Decoder(event_v1.EnvironmentControl)
_entry = msgspec.json.Decoder(event_v1.CatalogueEntry)
_queue_control = msgspec.json.Decoder(QueueControl)


@dataclass(slots=True)
class _Parts:
    """What is known of one environment, each part by an event of its own."""

    versions: tuple[tuple[Contract, str], ...] = ()
    sha256: dict[int, str] = field(default_factory=dict)
    evidence: EvidenceSet = NO_EVIDENCE_SET
    link: Link = NO_LINK
    control: Control = NO_CONTROL


@dataclass(frozen=True, slots=True)
class Changes:
    """What `settle` changed: environments by name, and whether the catalogue is another one."""

    environments: frozenset[str]
    catalogue: bool

    def __bool__(self) -> bool:
        return bool(self.environments) or self.catalogue


def _priced_at(contract: Contract, now: datetime) -> Contract:
    """Return a contract with the prices that hold at a moment; the same object while none has ended."""
    cost = contract.cost.at(now)
    return contract if cost is contract.cost else replace(contract, cost=cost)


def _states(items: Iterable[report_v1.Evidence]) -> Mapping[str, ClaimState]:
    return claim_states(
        Evidence(
            item.claim,
            item.result,
            item.at,
            item.expires,
            item.probe,
            item.subject,
            item.proven,
            item.claimed,
            item.detail,
        )
        for item in items
    )


class View:
    """The newest value of everything, and the candidates made of it. `revision` grows with every settled change."""

    def __init__(self) -> None:
        self.catalogue: Catalogue = build_catalogue(())
        self.candidates: dict[str, tuple[Candidate, ...]] = {}
        self.revision = 0
        self.shape_revision = 0  # grows only when contracts or catalogue change, not with evidence, links or control
        self.environments_sequence = 0
        self.catalogue_sequence = 0
        self._parts: dict[str, _Parts] = {}
        self._documents: dict[str, dict[str, Any]] = {section: {} for section, _ in _KINDS.values()}
        self._controls: dict[str, QueueControl] = {}
        self._dirty: set[str] = set()
        self._catalogue_dirty = False
        self._price_ends: datetime | None = None  # None: to be found out

    def apply_environment(self, event: str, name: str, body: bytes, sequence: int) -> bool:
        """Take on one message of ENVIRONMENTS; tell whether it matters. The name comes from the subject.

        Raises msgspec.MsgspecError or units.UnitError if it cannot be understood; what was known then stays.
        """
        self.environments_sequence = max(self.environments_sequence, sequence)
        apply = {
            "contract": self._apply_contract,
            "evidence": self._apply_evidence,
            "link": self._apply_link,
            "control": self._apply_control,
        }.get(event)
        if apply is None or not apply(self._parts.setdefault(name, _Parts()), body):
            return False
        self._dirty.add(name)
        if event == "contract":
            self._catalogue_dirty, self._price_ends = True, None
        return True

    def apply_document(self, body: bytes, sequence: int) -> bool:
        """Take on one message of CATALOGUE; tell whether it matters. Raises like `apply_environment`."""
        self.catalogue_sequence = max(self.catalogue_sequence, sequence)
        entry = _entry.decode(body)
        if entry.kind == "queue-control":
            return self._apply_queue_control(entry)
        known = _KINDS.get(entry.kind)
        if known is None:
            return False
        section, read = known
        if entry.deleted:
            self._documents[section].pop(entry.name, None)
        else:
            self._documents[section][entry.name] = read(entry.name, entry.version, msgspec.json.decode(entry.document))
        self._catalogue_dirty = True
        return True

    def _apply_queue_control(self, entry: event_v1.CatalogueEntry) -> bool:
        """Take on what people decided about a queue, unless something newer is known."""
        known = self._controls.get(entry.name)
        if known is not None and known.version >= entry.version:
            return False
        self._controls[entry.name] = _queue_control.decode(entry.document)
        self._catalogue_dirty = True
        return True

    def withdraw(self, now: datetime) -> None:
        """Withdraw prices that have ended: from then on they are unknown. Cheap while none has."""
        if self._price_ends is not None and self._price_ends > now:
            return
        for name, parts in self._parts.items():
            held = tuple((_priced_at(contract, now), phase) for contract, phase in parts.versions)
            if any(after is not before for (after, _), (before, _) in zip(held, parts.versions, strict=True)):
                parts.versions = held
                self._dirty.add(name)
                self._catalogue_dirty = True  # a price is of the shape of what is decided on
        ends = (contract.cost.until for parts in self._parts.values() for contract, _ in parts.versions)
        self._price_ends = min((end for end in ends if end is not None), default=_NEVER)

    @property
    def unsettled(self) -> bool:
        return bool(self._dirty) or self._catalogue_dirty

    def settle(self) -> Changes:
        """Bring catalogue and candidates up to date with what was applied."""
        dirty, self._dirty = self._dirty, set()
        self.shape_revision += self._catalogue_dirty
        renewed = self._catalogue_dirty and self._renew_catalogue()
        if renewed:
            dirty = set(self._parts) | dirty
        for name in sorted(dirty):
            parts = self._parts[name]
            found = build_candidates(
                parts.versions,
                evidence=parts.evidence,
                link=parts.link,
                control=parts.control,
                catalogue=self.catalogue,
            )
            if found:
                self.candidates[name] = found
            else:
                self.candidates.pop(name, None)
        if dirty or renewed:
            self.revision += 1
        return Changes(frozenset(dirty), renewed)

    def inputs(self) -> dict[str, str]:
        """Name how far the view has read: the last message of each stream."""
        return {"environments": str(self.environments_sequence), "catalogue": str(self.catalogue_sequence)}

    def capacity(self) -> dict[str, Mapping[str, int]]:
        """Return what of each environment's capacity is proven and open, by its newest active contract version.

        What only the version before offers counts by that one: nothing is without a limit because another is silent.
        """
        found: dict[str, Mapping[str, int]] = {}
        for name, candidates in self.candidates.items():
            active = [candidate.open for candidate in candidates if candidate.phase == ACTIVE]
            if active:
                found[name] = active[0] if len(active) == 1 else dict(ChainMap(*map(dict, active)))
        return found

    def _renew_catalogue(self) -> bool:
        self._catalogue_dirty = False
        # What a draft says of regions, prices and names holds for nobody yet.
        contracts = [contract for parts in self._parts.values() for contract, phase in parts.versions if phase != DRAFT]
        documents = {section: dict(sorted(known.items())) for section, known in self._documents.items()}
        queues = documents["queues"]
        for name, control in self._controls.items():
            if name in queues or name == DEFAULT_QUEUE:
                queues[name] = queues.get(name, Queue(name)).controlled(control)
        found = build_catalogue(contracts, **documents)
        if found == self.catalogue:
            return False
        self.catalogue = found
        return True

    @staticmethod
    def _apply_contract(parts: _Parts, body: bytes) -> bool:
        known = {(contract.version, parts.sha256[contract.version]): contract for contract, _ in parts.versions}
        found = _contract.decode(body).versions
        # What was read of a version stays, and with it all answers that rest on it.
        parts.versions = tuple(
            (known.get((item.version, item.sha256)) or parse_contract(item.document), item.phase) for item in found
        )
        parts.sha256 = {item.version: item.sha256 for item in found}
        return True

    @staticmethod
    def _apply_evidence(parts: _Parts, body: bytes) -> bool:
        event = _evidence.decode(body)
        before = event.previous
        previous = EvidenceSet(before.contract_version, _states(before.items)) if before is not None else None
        found = EvidenceSet(event.contract_version, _states(event.items), previous)
        if found == parts.evidence:
            return False
        parts.evidence = found
        return True

    @staticmethod
    def _apply_link(parts: _Parts, body: bytes) -> bool:
        event = _link.decode(body)
        # A state of a later release is not one to place work on.
        state = _LINK_STATES.get(event.state, LinkState.LOST)
        found = Link(state, event.since, frozenset(event.features), event.executor)
        if found == parts.link:
            return False
        parts.link = found
        return True

    @staticmethod
    def _apply_control(parts: _Parts, body: bytes) -> bool:
        event = _control.decode(body)
        holds = tuple(Hold(item.capability_class, item.node_selector, item.reason, item.by) for item in event.holds)
        found = Control(event.paused, event.draining, event.reason, event.by, holds)
        if found == parts.control:
            return False
        parts.control = found
        return True
