"""The kinds of documents that people write."""

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from landbridge.domain.kind_names import KIND_NAMES, find_kind_name
from landbridge.schema import documents_v1 as schema

API_VERSION: Final = "landbridge/v1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: what it is called, and what it consists of."""

    name: str
    slug: str
    model: type[BaseModel]
    versioned: bool = False


_MODELS: Final[dict[str, type[BaseModel]]] = {
    "Operation": schema.Operation,
    "Component": schema.Component,
    "Preset": schema.Preset,
    "Project": schema.Project,
    "Queue": schema.Queue,
    "Policy": schema.Policy,
    "Rule": schema.Rule,
    "CapabilityClass": schema.CapabilityClass,
    "Connection": schema.Connection,
    "EnvironmentContract": schema.EnvironmentContract,
}
KINDS: Final[dict[str, Kind]] = {
    name: Kind(name, slug, _MODELS[name], versioned) for name, slug, versioned in KIND_NAMES
}
# Documents for tools: they are never applied.
SCENARIO: Final = Kind("Scenario", "scenario", schema.Scenario)
READABLE: Final[dict[str, Kind]] = {**KINDS, SCENARIO.name: SCENARIO}


def find_kind(text: str) -> Kind | None:
    """Return the kind that `text` names, in any of the usual spellings."""
    found = find_kind_name(text)
    return None if found is None else KINDS[found.name]
