"""Messages on the hot path, as the coordinator reads and writes them.

The same messages as in `landbridge.schema.wire`, with two differences: of what comes in only the fields that decide are
read, and reports and specifications pass through as the bytes that they came as.
"""

from datetime import datetime

import msgspec

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_model import Verdict
from landbridge.schema.wire.common_v1 import Epoch, PlacementRef


class Accepted(msgspec.Struct, frozen=True, rename="camel"):
    """Of `OperationAccepted`."""

    operation: str
    project: str
    effective_sha256: str
    effective: msgspec.Raw


class Round(msgspec.Struct, frozen=True, rename="camel"):
    """One operation of `OperationsWaiting`."""

    operation: str
    round: int = 0


class Waiting(msgspec.Struct, frozen=True, rename="camel"):
    """Of `OperationsWaiting`."""

    by: str = ""
    operations: tuple[Round, ...] = ()
    reason: str = ""
    message: str = ""
    condition: str = ""


class Preempted(msgspec.Struct, frozen=True, rename="camel"):
    """Of `OperationsPreempted`."""

    operations: tuple[Round, ...] = ()
    message: str = ""


class Placed(msgspec.Struct, frozen=True, rename="camel"):
    """Of `DecidedOperation`."""

    operation: str
    environment: str
    round: int = 0
    contract_version: int = 0
    valid_until: datetime | None = None
    served_by: str = ""


class DecisionHead(msgspec.Struct, frozen=True, rename="camel"):
    """Of `Decision`."""

    id: str
    at: datetime | None = None


class Decided(msgspec.Struct, frozen=True, rename="camel"):
    """Of `OperationsDecided`."""

    decision: DecisionHead
    operations: tuple[Placed, ...] = ()


class Reports(msgspec.Struct, frozen=True, rename="camel"):
    """Of `AttemptReports`; each item is kept as it came."""

    incarnation: str = ""
    term: int = 0
    items: tuple[msgspec.Raw, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, rename="camel"):
    """Of `CheckpointRef`."""

    manifest: str = ""


class ReportHead(msgspec.Struct, frozen=True, rename="camel"):
    """Of `AttemptReport`."""

    operation: str
    epoch: Epoch
    state: str = ""
    term: int = 0
    outcome: str = ""
    reason: str = ""
    exit_code: int | None = None
    message: str = ""
    checkpoint: Checkpoint | None = None


class Slot(msgspec.Struct, frozen=True, rename="camel"):
    """Of `SlotState`."""

    operation: str
    epoch: Epoch
    state: str = ""
    report: msgspec.Raw = msgspec.Raw(b"")
    """Empty where the slot has no report yet."""


class Inventory(msgspec.Struct, frozen=True, rename="camel"):
    """`Inventory`; the reports of its slots are kept as they came."""

    incarnation: str
    term: int = 0
    part: int = 1
    parts: int = 1
    slots: tuple[Slot, ...] = ()


class SurveyedSlot(msgspec.Struct, frozen=True, rename="camel"):
    """`SurveyedSlot`."""

    operation: str
    epoch: Epoch
    over: bool = False


class Survey(msgspec.Struct, frozen=True, rename="camel"):
    """`Survey`."""

    incarnation: str
    term: int = 0
    complete: bool = False
    slots: tuple[SurveyedSlot, ...] = ()


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`Condition`."""

    type: str
    status: bool = False
    reason: str = ""
    message: str = ""


class Changed(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`OperationChanged`."""

    operation: str
    project: str
    op_seq: int
    phase: Phase
    at: str
    round: int = 0
    attempt: int = 0
    epoch: Epoch | None = None
    environment: str = ""
    decision_id: str = ""
    reason: str = ""
    message: str = ""
    condition: Condition | None = None
    report: msgspec.Raw | None = None
    verdict: Verdict = Verdict.NONE


class Requeued(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`OperationRequeued`."""

    operation: str
    project: str
    round: int
    effective: msgspec.Raw
    reason: str = ""
    exclude: tuple[str, ...] = ()
    failed_over: bool = False


class Freed(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`OperationFreed`."""

    operation: str
    project: str
    round: int = 0
    environment: str = ""


class Offer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`Offer`."""

    operation: str
    project: str
    epoch: Epoch
    attempt: int
    spec: msgspec.Raw
    spec_sha256: str
    features: tuple[str, ...] = ()
    resume_from: str = ""
    claim_by: str = ""
    accelerator_class: str = ""


class Offers(msgspec.Struct, frozen=True):
    """`Offers`."""

    offers: list[Offer]


class Stop(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`Stop`."""

    operation: str
    epoch: Epoch
    reason: str = ""
    grace_seconds: int = 0
    force: bool = False


class Stops(msgspec.Struct, frozen=True):
    """`Stops`."""

    items: list[Stop]


class Placements(msgspec.Struct, frozen=True):
    """`Withdrawals` and `Settlements`."""

    items: list[PlacementRef]


encode = msgspec.json.Encoder().encode
read_accepted = msgspec.json.Decoder(Accepted).decode
read_waiting = msgspec.json.Decoder(Waiting).decode
read_decided = msgspec.json.Decoder(Decided).decode
read_preempted = msgspec.json.Decoder(Preempted).decode
read_reports = msgspec.json.Decoder(Reports).decode
read_report = msgspec.json.Decoder(ReportHead).decode
read_survey = msgspec.json.Decoder(Survey).decode
read_inventory = msgspec.json.Decoder(Inventory).decode
