"""What is asked of the centre about an operation, by people and by the ranking service. Part of `centre_model`."""

import msgspec


class CancelRequested(msgspec.Struct, frozen=True):
    """Someone wants the operation to end. `force`: also if it is declared `must-finish`."""

    by: str = ""
    reason: str = ""
    force: bool = False


class Preempted(msgspec.Struct, frozen=True):
    """Ranking needs what this round holds for another operation."""

    round: int
    message: str = ""


class QueueChanged(msgspec.Struct, frozen=True):
    """A named person has an operation that waits do so in another queue, or by another priority class."""

    by: str
    reason: str = ""
    queue: str = ""
    priority: str = ""


class DeclaredDead(msgspec.Struct, frozen=True):
    """A named person attests that the environment is off."""

    environment: str
    by: str
    reason: str = ""


class Override(msgspec.Struct, frozen=True):
    """A named person moves the operation although its old placement may still run."""

    by: str
    reason: str = ""


class MoveRequested(msgspec.Struct, frozen=True):
    """A named person wants the operation in `to`, by the ordinary rules; empty = wherever it may run again."""

    to: str
    by: str
    reason: str = ""
