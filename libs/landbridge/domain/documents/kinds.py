"""The kinds of documents that people write."""

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from landbridge.schema import documents_v1 as schema

API_VERSION: Final = "landbridge/v1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. `slug` names it in subjects and addresses; `versioned` kinds keep every version that was applied."""

    name: str
    slug: str
    model: type[BaseModel]
    versioned: bool = False


KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("Operation", "operation", schema.Operation),
        Kind("Component", "component", schema.Component, versioned=True),
        Kind("Preset", "preset", schema.Preset, versioned=True),
        Kind("Project", "project", schema.Project),
        Kind("Queue", "queue", schema.Queue),
        Kind("Policy", "policy", schema.Policy),
        Kind("Rule", "rule", schema.Rule),
        Kind("CapabilityClass", "capability-class", schema.CapabilityClass),
        Kind("Connection", "connection", schema.Connection),
        Kind("EnvironmentContract", "environment-contract", schema.EnvironmentContract, versioned=True),
    )
}
# Documents for tools: they are never applied.
SCENARIO: Final = Kind("Scenario", "scenario", schema.Scenario)
READABLE: Final[dict[str, Kind]] = {**KINDS, SCENARIO.name: SCENARIO}
_IRREGULAR: Final = {"policies": "policy", "environment": "environmentcontract", "contract": "environmentcontract"}


def find_kind(text: str) -> Kind | None:
    """Return the kind that `text` names, in any of the usual spellings: `Queue`, `queues`, `capability-class`."""
    plain = text.lower().replace("-", "").replace("_", "")
    wanted = {
        plain,
        plain.removesuffix("s"),
        plain.removesuffix("es"),
        _IRREGULAR.get(plain, ""),
        _IRREGULAR.get(plain[:-1], ""),
    }
    return next((kind for kind in KINDS.values() if kind.name.lower() in wanted), None)
