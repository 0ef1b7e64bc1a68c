"""What each replica holds about environments: the last message of each subject."""

from collections import Counter
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound
from landbridge.schema.wire.event_v1 import (
    EnvironmentCharges,
    EnvironmentContractChanged,
    EnvironmentDrift,
    EnvironmentEvidence,
    EnvironmentLink,
)
from landbridge_alerting.world import Link, Proof, Unowned

_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "contract": msgspec.json.Decoder(EnvironmentContractChanged),
    "evidence": msgspec.json.Decoder(EnvironmentEvidence),
    "link": msgspec.json.Decoder(EnvironmentLink),
    "drift": msgspec.json.Decoder(EnvironmentDrift),
    "charges": msgspec.json.Decoder(EnvironmentCharges),
}


class Environments:
    """Links and evidence of the environments that have a contract."""

    def __init__(self) -> None:
        self._contracts: dict[str, EnvironmentContractChanged] = {}
        self._evidence: dict[str, EnvironmentEvidence] = {}
        self._links: dict[str, EnvironmentLink] = {}
        self._drifts: dict[str, EnvironmentDrift] = {}
        self._charges: dict[str, EnvironmentCharges] = {}

    def apply(self, message: Inbound) -> None:
        """Take in one message; one that cannot be read raises and changes nothing."""
        kind, name = subjects.token(message.subject, 3), subjects.environment_of(message.subject)
        decoder = _DECODERS.get(kind)
        if decoder is None or not name:
            return
        places: dict[str, dict[str, Any]] = {
            "contract": self._contracts,
            "evidence": self._evidence,
            "link": self._links,
            "drift": self._drifts,
            "charges": self._charges,
        }
        places[kind][name] = decoder.decode(message.body)

    def names(self) -> list[str]:
        return sorted(name for name, contract in self._contracts.items() if contract.versions)

    def links(self) -> dict[str, Link]:
        known = ((name, self._links.get(name)) for name in self.names())
        return {name: Link(link.state.value, link.since, link.quarantined) for name, link in known if link is not None}

    def drifts(self) -> dict[str, Counter[str]]:
        """Return how many differences of each kind there are between what runs and what is recorded."""
        known = ((name, self._drifts.get(name)) for name in self.names())
        return {name: Counter(item.kind for item in told.items) for name, told in known if told is not None}

    def unowned(self) -> dict[str, tuple[Unowned, ...]]:
        """Return charges that no placement holds: also of environments that are gone, whose charges count in queues."""
        return {
            name: tuple(Unowned(item.operation, item.reason, item.released) for item in told.items)
            for name, told in self._charges.items()
        }

    def proofs(self) -> dict[str, tuple[Proof, ...]]:
        known = ((name, self._evidence.get(name)) for name in self.names())
        return {
            name: tuple(
                Proof(item.claim, item.result.value or "unknown", item.expires, item.detail) for item in evidence.items
            )
            for name, evidence in known
            if evidence is not None
        }
