"""What the centre's side of ownership wants done: events to append, commands to send, answers to give."""

from enum import StrEnum

import msgspec

from landbridge.domain.lifecycle import Condition, Phase
from landbridge.domain.ownership.epochs import Epoch


class Verdict(StrEnum):
    """What the centre made of a report."""

    NONE = ""
    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"
    REFUSED = "refused"


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """One lifecycle event to append: `event` is a phase, `condition` or `observed`."""

    event: str
    op_seq: int
    phase: Phase
    round: int
    attempt: int
    epoch: Epoch
    environment: str
    decision_id: str = ""
    reason: str = ""
    message: str = ""
    condition: Condition | None = None
    status: bool = False
    report: object = None
    verdict: Verdict = Verdict.NONE


class SendOffer(msgspec.Struct, frozen=True):
    """Offer the placement to the environment; `served_by` is the class of its accelerators there."""

    environment: str
    epoch: Epoch
    attempt: int
    resume_from: str
    claim_by: int
    served_by: str = ""


class SendWithdraw(msgspec.Struct, frozen=True):
    """Take an unclaimed offer back."""

    environment: str
    epoch: Epoch


class SendStop(msgspec.Struct, frozen=True):
    """Have the placement ended. `force`: also if it is declared `must-finish`."""

    environment: str
    epoch: Epoch
    reason: str
    grace_ms: int
    force: bool = False


class SendSettle(msgspec.Struct, frozen=True):
    """Acknowledge the final report: its slot may go once the term has advanced."""

    environment: str
    epoch: Epoch


class Grant(msgspec.Struct, frozen=True):
    """The answer to a claim: yes, in this term."""

    epoch: Epoch
    term: int


class RefuseClaim(msgspec.Struct, frozen=True):
    """The answer to a claim: no. `retry`: only for now."""

    epoch: Epoch
    reason: str
    retry: bool = False


class Requeue(msgspec.Struct, frozen=True):
    """Have the operation judged and ranked again, as this round."""

    round: int
    reason: str
    exclude: tuple[str, ...] = ()
    failed_over: bool = False
    only: str = ""
    """The one environment that it may be placed in; empty = any that the rules allow."""


class Free(msgspec.Struct, frozen=True):
    """What this round held in the environment is free."""

    round: int
    environment: str


class RaiseTerm(msgspec.Struct, frozen=True):
    """Raise the environment's term in the same transaction, so that its old grants are void."""

    environment: str


class Alarm(msgspec.Struct, frozen=True):
    """Something that a person must see."""

    kind: str
    message: str


Effect = (
    Lifecycle | SendOffer | SendWithdraw | SendStop | SendSettle | Grant | RefuseClaim | Requeue | Free | RaiseTerm
    | Alarm
)  # fmt: skip
