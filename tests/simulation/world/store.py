"""What the centre holds durably, with transactions that may crash before or after their commit."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OperationState
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases_centre import EnvironmentLease

Items = tuple[tuple[str, model.InventoryItem], ...]
SlotOf = tuple[str, str, Epoch]
"""Environment, operation, epoch."""


class Crashed(Exception):  # noqa: N818 - it is what happens here, not an error of ours
    """The centre died inside this call."""


@dataclass(frozen=True)
class Found:
    """A slot that no operation accounts for. `state`: open, stopping, stopped, adopted or gone."""

    item: model.InventoryItem
    state: str = "open"


@dataclass
class Store:
    """What Postgres holds. Values are immutable, so a copy of the tables is a backup."""

    operations: dict[str, OperationState] = field(default_factory=dict)
    environments: dict[str, EnvironmentLease] = field(default_factory=dict)
    inbox: set[int] = field(default_factory=set)
    outbox: list[Callable[[], None]] = field(default_factory=list)
    shown: dict[str, tuple[int, Items]] = field(default_factory=dict)
    """The latest inventory of each environment, and the generation it was taken in."""
    quarantine: dict[SlotOf, Found] = field(default_factory=dict)
    declared_dead: frozenset[str] = frozenset()
    """Environments that a person declared dead since this generation began."""
    generation: int = 1
    recovering: bool = False

    def copy(self) -> "Store":
        return replace(
            self,
            operations=dict(self.operations),
            environments=dict(self.environments),
            inbox=set(self.inbox),
            outbox=list(self.outbox),
            shown=dict(self.shown),
            quarantine=dict(self.quarantine),
        )

    def undecided(self, operation: str) -> bool:
        """Whether a slot of this operation waits for a decision, or for its stop to be proven."""
        return any(
            name == operation and found.state in ("open", "stopping") for (_, name, _), found in self.quarantine.items()
        )
