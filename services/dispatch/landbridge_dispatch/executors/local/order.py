"""What a guardian is told to run, as the dispatcher left it in the slot. Everything is resolved: no name needs look-up.

Times are milliseconds, sizes bytes, 0 means "none". Standard library only.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from landbridge_dispatch.executors.local.files import read_json

ORDER_FILE = "order.json"
SELF_STOPPING = frozenset({"checkpoint-then-stop", "stop-after-grace"})


@dataclass(frozen=True, slots=True)
class Disconnection:
    """What to do when the lease runs out: `within_ms` to seal a checkpoint or to run on, then `grace_ms` to end."""

    policy: str = "continue"
    within_ms: int = 0
    grace_ms: int = 0

    @property
    def stops_itself(self) -> bool:
        return self.policy in SELF_STOPPING


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """Where an output is written: `directory` here, `path` below its logical connection for the centre."""

    connection: str
    path: str
    directory: str


@dataclass(frozen=True, slots=True)
class CheckpointPlace:
    """Where checkpoints are sealed; `path` is the same place below its logical connection."""

    connection: str
    path: str
    directory: str


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt, ready to start."""

    operation: str
    generation: int
    counter: int
    attempt: int
    grant_term: int
    spec_sha256: str
    project: str
    name: str
    argv: list[str]
    env: dict[str, str]
    secret_files: dict[str, str] = field(default_factory=dict)
    secret_variables: dict[str, str] = field(default_factory=dict)
    user: tuple[int, int] | None = None
    ranks: int = 1
    timeout_ms: int = 0
    grace_ms: int = 30_000
    start_wait_ms: int = 15_000
    lease_file: str = "lease.json"
    """Another one only for a canary, whose lease is cut while everybody else's goes on."""
    memory_bytes: int = 0
    log_bytes: int = 64 * 2**20
    disconnection: Disconnection = field(default_factory=Disconnection)
    outputs: dict[str, OutputPlace] = field(default_factory=dict)
    checkpoint: CheckpointPlace | None = None
    acceptance: list[dict[str, Any]] = field(default_factory=list)
    resolved: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the order as it is stored."""
        flat = {name: getattr(self, name) for name in _FIELDS}
        flat["disconnection"] = asdict(self.disconnection)
        flat["outputs"] = {name: asdict(place) for name, place in self.outputs.items()}
        flat["checkpoint"] = None if self.checkpoint is None else asdict(self.checkpoint)
        return flat

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Order":
        """Invert `to_json`. Raises TypeError for a field that this version does not know."""
        user = value.get("user")
        checkpoint = value.get("checkpoint")
        nested = {
            "user": None if user is None else (int(user[0]), int(user[1])),
            "disconnection": Disconnection(**value.get("disconnection", {})),
            "outputs": {name: OutputPlace(**place) for name, place in value.get("outputs", {}).items()},
            "checkpoint": None if checkpoint is None else CheckpointPlace(**checkpoint),
        }
        return cls(**{**value, **nested})


_FIELDS = tuple(each.name for each in fields(Order))


def read_order(slot: Path) -> Order | None:
    """Return the order in `slot`; None where the slot holds none, as a tombstone does."""
    value = read_json(slot / ORDER_FILE)
    return None if value is None else Order.from_json(value)
