"""What every replica holds in memory about environments and documents: the last message of each subject."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound
from landbridge.domain.candidate import DRAFT
from landbridge.schema.wire.event_v1 import (
    CatalogueEntry,
    ContractVersion,
    EnvironmentContractChanged,
    EnvironmentControl,
    EnvironmentDrift,
    EnvironmentEvidence,
    EnvironmentLink,
)
from landbridge_lineage.explain import plain

_PARTS: Final[dict[str, Any]] = {
    "contract": EnvironmentContractChanged,
    "evidence": EnvironmentEvidence,
    "link": EnvironmentLink,
    "control": EnvironmentControl,
    "drift": EnvironmentDrift,
}


def location(document: bytes) -> dict[str, Any]:
    """Return where a contract says that its environment is, or an empty one."""
    try:
        found = msgspec.json.decode(document)
    except msgspec.DecodeError:
        return {}
    spec = found.get("spec") if isinstance(found, dict) else None
    place = spec.get("location") if isinstance(spec, dict) else None
    return place if isinstance(place, dict) else {}


def in_force(versions: Sequence[ContractVersion]) -> ContractVersion:
    """Return the newest version that is not a draft; the draft where there is nothing else."""
    return next((each for each in reversed(versions) if each.phase != DRAFT), versions[-1])


class Environments:
    """The current value of each event of each environment."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, Any]] = {}

    def apply(self, message: Inbound) -> None:
        """Take in one message; one that cannot be read raises and changes nothing."""
        kind, name = subjects.token(message.subject, 3), subjects.environment_of(message.subject)
        if kind in _PARTS and name:
            self._parts.setdefault(name, {})[kind] = msgspec.json.decode(message.body, type=_PARTS[kind])

    def names(self) -> list[str]:
        """Return environments that have a contract, sorted."""
        return sorted(name for name, parts in self._parts.items() if self._contract(parts))

    def summary(self, name: str) -> dict[str, Any] | None:
        """Return one row of a list, or None for an environment that is not known."""
        parts = self._parts.get(name, {})
        versions = self._contract(parts)
        if not versions:
            return None
        evidence = parts.get("evidence")
        items = evidence.items if evidence else ()
        results = [str(each.result) or "unknown" for each in items]
        link, control = parts.get("link"), parts.get("control")
        return {
            "environment": name,
            "versions": [{"version": each.version, "phase": each.phase, "sha256": each.sha256} for each in versions],
            "location": location(in_force(versions).document),
            "executor": link.executor if link else "",
            "link": plain(link),
            "control": plain(control),
            "drift": len(self.drift(name)),
            "evidence": {result: results.count(result) for result in ("proven", "failed", "unknown")},
        }

    def drift(self, name: str, operation: str = "") -> list[dict[str, Any]]:
        """Return where what runs in an environment is not what is recorded; of one operation only if it is named."""
        told = self._parts.get(name, {}).get("drift")
        items = told.items if told is not None else ()
        return [plain(item) for item in items if operation in ("", item.operation)]

    def drift_of(self, operation: str) -> list[dict[str, Any]]:
        """Return the differences about one operation, in whatever environment."""
        return [{"environment": name, **item} for name in sorted(self._parts) for item in self.drift(name, operation)]

    def detail(self, name: str) -> dict[str, Any] | None:
        """Return everything about one environment, its contracts' texts included."""
        found = self.summary(name)
        if found is None:
            return None
        parts = self._parts[name]
        documents = {each.version: each.document.decode(errors="replace") for each in self._contract(parts)}
        for version in found["versions"]:
            version["document"] = documents[version["version"]]
        evidence = parts.get("evidence")
        found["claims"] = [plain(each) for each in evidence.items] if evidence else []
        found["evidenceContractVersion"] = evidence.contract_version if evidence else 0
        return found

    @staticmethod
    def _contract(parts: Mapping[str, Any]) -> Any:
        return parts["contract"].versions if "contract" in parts else ()


class Documents:
    """The current version of each document, by kind and name."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], CatalogueEntry] = {}

    def apply(self, message: Inbound) -> CatalogueEntry:
        """Take in one message and return it; a deletion removes the document."""
        entry = msgspec.json.decode(message.body, type=CatalogueEntry)
        if entry.deleted:
            self._entries.pop((entry.kind, entry.name), None)
        else:
            self._entries[entry.kind, entry.name] = entry
        return entry

    def spec(self, kind: str, name: str) -> dict[str, Any]:
        """Return a document's spec, or an empty one."""
        entry = self._entries.get((kind, name))
        if entry is None:
            return {}
        document = msgspec.json.decode(entry.document)
        found = document.get("spec") if isinstance(document, dict) else None
        return found if isinstance(found, dict) else {}

    def names(self, kind: str) -> list[str]:
        return sorted(name for owner, name in self._entries if owner == kind)
