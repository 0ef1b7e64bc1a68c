"""What the centre knows of environments beside their leases: live contract versions, control, measured self-stop."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound
from landbridge.domain import claims
from landbridge.schema.wire.event_v1 import (
    EnvironmentContractChanged,
    EnvironmentControl,
    EnvironmentEvidence,
    EnvironmentLink,
)
from landbridge.schema.wire.report_v1 import EvidenceResult

# A canary proves itself by its probes, which run in the environment without a claim; no work is placed by it.
_TAKES_WORK = "active"
_contract = msgspec.json.Decoder(EnvironmentContractChanged)
_control = msgspec.json.Decoder(EnvironmentControl)
_evidence = msgspec.json.Decoder(EnvironmentEvidence)
_link = msgspec.json.Decoder(EnvironmentLink)


class Verdicts:
    """Each replica's view, from the last message of each subject."""

    def __init__(self) -> None:
        self._versions: dict[str, frozenset[int]] = {}
        self._standing: dict[str, frozenset[int]] = {}
        self._closed: dict[str, bool] = {}
        self._held: dict[str, tuple[frozenset[tuple[str, str]], datetime]] = {}
        self._self_stop: dict[str, datetime] = {}
        self._quarantined: set[str] = set()

    def apply_contract(self, message: Inbound) -> None:
        changed = _contract.decode(message.body)
        name = subjects.environment_of(message.subject)
        self._standing[name] = frozenset(v.version for v in changed.versions)
        if changed.versions:
            self._versions[name] = frozenset(v.version for v in changed.versions if v.phase == _TAKES_WORK)
        else:
            self._versions.pop(name, None)

    def apply_control(self, message: Inbound) -> None:
        control, name = _control.decode(message.body), subjects.environment_of(message.subject)
        self._closed[name] = control.paused or control.draining
        holds = frozenset((hold.capability_class, hold.node_selector) for hold in control.holds)
        before, since = self._held.get(name, (frozenset(), control.at))
        self._held[name] = holds, since if holds <= before else control.at

    def apply_evidence(self, message: Inbound) -> None:
        name = subjects.environment_of(message.subject)
        proven = [
            item.expires
            for item in _evidence.decode(message.body).items
            if item.claim == claims.SELF_STOP and item.result is EvidenceResult.PROVEN
        ]
        if proven:
            self._self_stop[name] = max(proven)
        else:
            self._self_stop.pop(name, None)

    def apply_link(self, message: Inbound) -> None:
        name = subjects.environment_of(message.subject)
        if _link.decode(message.body).quarantined:
            self._quarantined.add(name)
        else:
            self._quarantined.discard(name)

    @property
    def any_quarantined(self) -> bool:
        """Whether some environment holds work that nobody here knows of."""
        return bool(self._quarantined)

    def names(self) -> Iterable[str]:
        """Return all registered environments."""
        return self._versions

    def is_registered(self, environment: str) -> bool:
        return environment in self._versions

    def stale(self, environment: str, contract_version: int) -> str:
        """Say why the verdict behind an offer no longer holds; empty if it does, or cannot be told."""
        if self._closed.get(environment, False):
            return "environment-paused"
        versions = self._versions.get(environment)
        if versions is not None and contract_version and contract_version not in versions:
            return "contract-changed"
        return ""

    def standing(self, environment: str) -> frozenset[int] | None:
        """Return the contract versions that are not over; None for an environment that is not known."""
        return self._standing.get(environment)

    def holds_since(self, environment: str) -> datetime | None:
        """Return since when no further part of an environment is held off new work; None if none is.

        What was decided before may be for that part: its verdict held until then.
        """
        holds, since = self._held.get(environment, (frozenset(), None))
        return since if holds else None

    def self_stop_verified(self, environment: str, now: datetime) -> bool:
        """Whether the environment's verifier measured, and not too long ago, that work stops by itself there."""
        expires = self._self_stop.get(environment)
        return expires is not None and now < expires
