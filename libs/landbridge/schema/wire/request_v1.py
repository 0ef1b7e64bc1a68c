# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Requests with replies between an environment and the centre, and the intents of people and applications."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec
from landbridge.schema.wire.common_v1 import Epoch, PlacementRef

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

__all__ = [
    "AskReply",
    "BrokerRequest",
    "Cancel",
    "ClaimRefusal",
    "ClaimReply",
    "ClaimRequest",
    "ContractSubmitted",
    "ControlAction",
    "ControlIntent",
    "Epoch",
    "HeldRound",
    "LeaseGrant",
    "LeaseKind",
    "LeaseRequest",
    "OverrideRequest",
    "PlacementRef",
    "PlanRequest",
    "QueryReply",
    "QueryRequest",
    "Removal",
    "ReplayRequest",
    "Standing",
    "StandingReply",
    "StandingRequest",
]


class LeaseKind(StrEnum):
    """What a lease request is."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # First contact of an incarnation, or contact after a loss.
    HELLO = "hello"
    # The next link of the chain.
    RENEW = "renew"

    @classmethod
    def _missing_(cls, value: object) -> "LeaseKind":
        return cls.UNSPECIFIED


class ControlAction(StrEnum):
    """What an operator wants of an environment."""

    # Not known to this reader.
    UNSPECIFIED = ""
    # No new work; what runs runs on.
    PAUSE = "pause"
    # New work again.
    RESUME = "resume"
    # No new work; what runs is moved or finished.
    DRAIN = "drain"
    # Run all probes now.
    VERIFY = "verify"

    @classmethod
    def _missing_(cls, value: object) -> "ControlAction":
        return cls.UNSPECIFIED


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An environment asks for the right to start work."""

    kind: LeaseKind = LeaseKind.UNSPECIFIED
    incarnation: str
    term: int = 0
    n: int = 0
    boot_id: str = ""
    features: tuple[str, ...] = ()
    executor: str = ""
    wall_clock: Moment | None = None
    free_slots: int = 0


class LeaseGrant(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to a lease request, committed before it was sent."""

    term: int = 0
    n: int = 0
    ttl_ms: int = 0
    may_start: bool = False
    want_inventory: bool = False
    refused: str = ""
    at: Moment | None = None


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An environment claims offered placements that it can hold."""

    incarnation: str
    term: int = 0
    items: tuple[PlacementRef, ...] = ()


class ClaimRefusal(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A claim that was not granted."""

    operation: str
    epoch: Epoch
    reason: str = ""


class ClaimReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The grant: what the environment now owns, committed before it was sent."""

    term: int = 0
    granted: tuple[PlacementRef, ...] = ()
    refused: tuple[ClaimRefusal, ...] = ()


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Live detail, logs or output bytes, asked of the environment; authorised and audited by the centre, never stored
    there."""

    operation: str
    epoch: Epoch | None = None
    name: str = ""
    offset: int = 0
    limit: int = 0
    tail: int = 0


class QueryReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to a query."""

    found: bool = False
    data: bytes = b""
    next_offset: int = 0
    end: bool = False
    json: bytes = b""
    message: str = ""


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What would be decided now, asked of ranking within the centre. Nothing is changed by it."""

    requirements: bytes
    operation: str = ""
    together: tuple[bytes, ...] = ()


class BrokerRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which servers of the broker acknowledge before data is on disk, asked of the contract-verifier within the
    centre."""



class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A recorded decision is to be made again from its recorded inputs, asked of ranking within the centre."""

    decision: str
    operation: str


class OverrideRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One operation that waits is to be placed in a named environment, past its queue and its rules, asked of ranking
    within the centre."""

    operation: str
    environment: str
    by: str
    reason: str = ""
    dry_run: bool = False


class HeldRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What ranking holds a charge for."""

    operation: str
    round: int = 0
    environment: str = ""


class StandingRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether placements still hold what they are charged for, asked of the coordinator within the centre."""

    items: tuple[HeldRound, ...] = ()


class Standing(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How an operation stands with its owner, about one round."""

    operation: str
    round: int = 0
    state: str = ""


class StandingReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How operations stand; in the order of the question."""

    recovering: bool = False
    items: tuple[Standing, ...] = ()


class AskReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to a question within the centre."""

    found: bool = False
    json: bytes = b""
    message: str = ""


class Cancel(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Someone wants an operation to end."""

    operation: str
    by: str = ""
    reason: str = ""
    force: bool = False


class ContractSubmitted(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An environment contract is proposed."""

    document: bytes
    by: str = ""
    draft: bool = False


class ControlIntent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An operator steers an environment."""

    environment: str
    action: ControlAction = ControlAction.UNSPECIFIED
    by: str = ""
    reason: str = ""


class Removal(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Someone wants a document to be removed."""

    kind: str
    name: str
    by: str = ""

