# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Requests with replies between an environment and the centre, and the intents of people and applications."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field
from landbridge.schema.common_v1 import Epoch, PlacementRef
from landbridge.schema.base import Bytes, Message, Moment

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


class LeaseRequest(Message):
    """An environment asks for the right to start work."""

    # First contact or renewal.
    kind: LeaseKind = LeaseKind.UNSPECIFIED
    # The dispatcher's incarnation, new with every start.
    incarnation: Annotated[str, Field(min_length=1)]
    # The term that the dispatcher holds; 0 for none.
    term: int = 0
    # The link of the chain that it asks for.
    n: int = 0
    # The host's boot id.
    boot_id: str = ""
    # Features that the dispatcher understands now; what changes is known with the next link.
    features: tuple[str, ...] = ()
    # The executor behind it.
    executor: str = ""
    # The environment's wall clock when it sent the request.
    wall_clock: Moment | None = None
    # Free slots right now; advisory.
    free_slots: int = 0


class LeaseGrant(Message):
    """The answer to a lease request, committed before it was sent."""

    # The term in force.
    term: int = 0
    # The link granted.
    n: int = 0
    # Milliseconds that the lease runs for, from when the request was sent.
    ttl_ms: int = 0
    # Whether new work may start.
    may_start: bool = False
    # Whether the centre wants a full inventory first.
    want_inventory: bool = False
    # Why the request was refused; empty if granted.
    refused: str = ""
    # The centre's wall clock when it answered.
    at: Moment | None = None


class ClaimRequest(Message):
    """An environment claims offered placements that it can hold."""

    # The dispatcher's incarnation.
    incarnation: Annotated[str, Field(min_length=1)]
    # The lease term that it holds.
    term: int = 0
    # The placements.
    items: tuple[PlacementRef, ...] = ()


class ClaimRefusal(Message):
    """A claim that was not granted."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement's epoch.
    epoch: Epoch
    # Why, as a code.
    reason: str = ""


class ClaimReply(Message):
    """The grant: what the environment now owns, committed before it was sent."""

    # The term that the grant belongs to.
    term: int = 0
    # The placements granted.
    granted: tuple[PlacementRef, ...] = ()
    # The placements refused.
    refused: tuple[ClaimRefusal, ...] = ()


class QueryRequest(Message):
    """Live detail, logs or output bytes, asked of the environment; authorised and audited by the centre, never stored
    there."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The placement; absent means the latest.
    epoch: Epoch | None = None
    # The output or stream asked for.
    name: str = ""
    # The first byte wanted.
    offset: Annotated[int, Field(ge=0)] = 0
    # The most bytes wanted.
    limit: Annotated[int, Field(ge=0)] = 0
    # The last so many bytes instead of an offset.
    tail: Annotated[int, Field(ge=0)] = 0


class QueryReply(Message):
    """The answer to a query."""

    # Whether the thing asked for is there.
    found: bool = False
    # Bytes of a log or an output.
    data: Bytes = b""
    # Where the next chunk starts.
    next_offset: int = 0
    # Whether nothing more will follow.
    end: bool = False
    # A JSON document, for queries that answer with structure.
    json_: Bytes = Field(default=b"", alias="json")
    # What went wrong or what to know, for people.
    message: str = ""


class PlanRequest(Message):
    """What would be decided now, asked of ranking within the centre. Nothing is changed by it."""

    # The requirement class: canonical JSON of everything that decides where and when an operation may run.
    requirements: Bytes
    # An accepted operation, which keeps its place in the queue; empty for one that is not submitted yet.
    operation: str = ""
    # The requirement classes of further operations, none submitted yet: all are planned as if they were submitted
    # now, one behind the other. The answer then has `items`, one for each, in this order.
    together: tuple[Bytes, ...] = ()


class BrokerRequest(Message):
    """Which servers of the broker acknowledge before data is on disk, asked of the contract-verifier within the
    centre."""



class ReplayRequest(Message):
    """A recorded decision is to be made again from its recorded inputs, asked of ranking within the centre."""

    # The decision's id.
    decision: Annotated[str, Field(min_length=1)]
    # The operation that it is made again for.
    operation: Annotated[str, Field(min_length=1)]


class OverrideRequest(Message):
    """One operation that waits is to be placed in a named environment, past its queue and its rules, asked of ranking
    within the centre."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # Who asks.
    by: Annotated[str, Field(min_length=1)]
    # Why, in words.
    reason: Annotated[str, Field(max_length=2000)] = ""
    # Whether only to tell what it would do.
    dry_run: bool = False


class HeldRound(Message):
    """What ranking holds a charge for."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The round that it was admitted in.
    round: int = 0
    # The environment that it was decided for.
    environment: str = ""


class StandingRequest(Message):
    """Whether placements still hold what they are charged for, asked of the coordinator within the centre."""

    # The charges.
    items: tuple[HeldRound, ...] = ()


class Standing(Message):
    """How an operation stands with its owner, about one round."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # The round that was asked about.
    round: int = 0
    # placed, idle (not placed in this round yet), over (a later round has begun), ended, ahead (no such round has
    # begun), elsewhere (placed in another environment), or unknown.
    state: str = ""


class StandingReply(Message):
    """How operations stand; in the order of the question."""

    # Whether the centre recovers: what is placed is not known before environments have shown it, and nothing is
    # told.
    recovering: bool = False
    # One for each round that was asked about.
    items: tuple[Standing, ...] = ()


class AskReply(Message):
    """The answer to a question within the centre."""

    # Whether the thing asked for is there.
    found: bool = False
    # The answer as a JSON document.
    json_: Bytes = Field(default=b"", alias="json")
    # What went wrong or what to know, for people.
    message: str = ""


class Cancel(Message):
    """Someone wants an operation to end."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1)]
    # Who asks.
    by: str = ""
    # Why, in words.
    reason: Annotated[str, Field(max_length=1000)] = ""
    # Also if the operation is declared must-finish.
    force: bool = False


class ContractSubmitted(Message):
    """An environment contract is proposed."""

    # The document's bytes as written.
    document: Bytes
    # Who proposes it.
    by: str = ""
    # It is kept, shown and probed as a draft, and changes nothing until it is registered.
    draft: bool = False


class ControlIntent(Message):
    """An operator steers an environment."""

    # The environment's name.
    environment: Annotated[str, Field(min_length=1)]
    # What is wanted.
    action: ControlAction = ControlAction.UNSPECIFIED
    # Who asks.
    by: str = ""
    # Why, in words.
    reason: Annotated[str, Field(max_length=1000)] = ""


class Removal(Message):
    """Someone wants a document to be removed."""

    # The document's kind, lower-kebab.
    kind: Annotated[str, Field(min_length=1)]
    # The document's name.
    name: Annotated[str, Field(min_length=1)]
    # Who asks.
    by: str = ""

