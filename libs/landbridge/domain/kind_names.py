"""What the kinds of documents are called: light, for whoever needs names and not the documents themselves."""

from typing import Final, NamedTuple


class KindName(NamedTuple):
    """`slug` names a kind in subjects and addresses; `versioned` kinds keep every version that was applied."""

    name: str
    slug: str
    versioned: bool = False


KIND_NAMES: Final = (
    KindName("Operation", "operation"),
    KindName("Component", "component", versioned=True),
    KindName("Preset", "preset", versioned=True),
    KindName("Project", "project"),
    KindName("Queue", "queue"),
    KindName("Policy", "policy"),
    KindName("Rule", "rule"),
    KindName("CapabilityClass", "capability-class"),
    KindName("Connection", "connection"),
    KindName("EnvironmentContract", "environment-contract", versioned=True),
)
_BY_NAME: Final = {kind.name.lower(): kind for kind in KIND_NAMES}
_IRREGULAR: Final = {"policies": "policy", "environment": "environmentcontract", "contract": "environmentcontract"}


def find_kind_name(text: str) -> KindName | None:
    """Return the kind that `text` names, in any of the usual spellings: `Queue`, `queues`, `capability-class`."""
    plain = text.lower().replace("-", "").replace("_", "")
    spellings = (
        plain,
        plain.removesuffix("s"),
        plain.removesuffix("es"),
        _IRREGULAR.get(plain, ""),
        _IRREGULAR.get(plain[:-1], ""),
    )
    return next((_BY_NAME[spelling] for spelling in spellings if spelling in _BY_NAME), None)
