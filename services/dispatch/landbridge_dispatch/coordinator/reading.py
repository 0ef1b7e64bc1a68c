"""From the words of environments to the messages that decide."""

import msgspec

from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.coordinator import wire

_KINDS: dict[str, type[model.Reported]] = {
    "started": model.ReportStarted,
    "relinquished": model.ReportRelinquished,
    "failed-to-start": model.ReportFailedToStart,
    "checkpointed": model.ReportCheckpointed,
    "refused": model.ReportRefused,
}
_SLOTS = {phase.value: phase for phase in SlotPhase}


def report(head: wire.ReportHead, raw: msgspec.Raw, environment: str, environment_term: int) -> model.Message | None:
    """Return what a report means; None for a state that this release does not know."""
    epoch = Epoch(head.epoch.generation, head.epoch.counter)
    checkpoint = head.checkpoint.manifest if head.checkpoint is not None else ""
    if head.state == "finished":
        return model.ReportFinished(
            environment=environment,
            epoch=epoch,
            term=head.term,
            environment_term=environment_term,
            reason=head.reason,
            message=head.message,
            checkpoint=checkpoint,
            report=raw,
            outcome=head.outcome,
            exit_code=head.exit_code,
        )
    kind = _KINDS.get(head.state)
    if kind is None:
        return None
    return kind(  # type: ignore[return-value]
        environment=environment,
        epoch=epoch,
        term=head.term,
        environment_term=environment_term,
        reason=head.reason,
        message=head.message,
        checkpoint=checkpoint,
        report=raw,
    )


def slot(found: wire.Slot, environment: str, term: int) -> model.InventoryItem | None:
    """Return what a slot of a full inventory means; None for a state that this release does not know."""
    phase = _SLOTS.get(found.state)
    if phase is None:
        return None
    raw = msgspec.Raw(bytes(found.report))
    head = wire.read_report(raw) if bytes(raw) else None
    return model.InventoryItem(
        environment=environment,
        epoch=Epoch(found.epoch.generation, found.epoch.counter),
        term=term,
        environment_term=term,
        slot=phase,
        reason=head.reason if head is not None else "",
        message=head.message if head is not None else "",
        checkpoint=head.checkpoint.manifest if head is not None and head.checkpoint is not None else "",
        report=raw if head is not None else None,
        final=head.state if head is not None else "",
        outcome=head.outcome if head is not None else "",
        exit_code=head.exit_code if head is not None else None,
    )
