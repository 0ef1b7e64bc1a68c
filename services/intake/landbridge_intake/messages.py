"""What intake tells the others."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.errors import Problem
from landbridge.schema.wire import event_v1, request_v1
from landbridge_intake.prepare import Ready

_encode = msgspec.json.Encoder().encode
_ACCEPTED = event_type("operation", "OperationAccepted")
_REFUSED = event_type("operation", "OperationRefused")
_CATALOGUE = event_type("catalogue", "CatalogueEntry")
_CANCEL = event_type("intent", "Cancel")
_CONTRACT = event_type("intent", "ContractSubmitted")
_CONTROL = event_type("intent", "ControlIntent")
_REMOVAL = event_type("intent", "Removal")


def accepted(
    operation: str, ready: Ready, *, key: str, by: str, at: datetime, retry_of: str = "", traceparent: str = ""
) -> Outbound:
    """Return the first event of an operation."""
    event = event_v1.OperationAccepted(
        operation=operation,
        project=ready.project,
        name=ready.name,
        queue=ready.queue,
        op_seq=1,
        at=at,
        spec_sha256=ready.written_hex,
        effective=ready.effective,
        effective_sha256=ready.effective_hex,
        idempotency_key=key,
        submitted_by=by,
        retry_of=retry_of,
    )
    subject = subjects.operation("accepted", ready.project)
    return Outbound(subject, _ACCEPTED, _encode(event), operation, traceparent=traceparent)


def refused(
    project: str, source: str, submission: str, problems: Sequence[Problem], at: datetime, conflicts_with: str = ""
) -> Outbound:
    """Return the answer to a submission that was refused; `project` is `_` where none could be told."""
    event = event_v1.OperationRefused(
        project=project,
        source=source,
        submission=submission,
        at=at,
        problems=tuple(
            event_v1.Problem(
                path=p.path, line=p.line, column=p.column, code=p.code, message=p.message, suggestion=p.suggestion
            )
            for p in problems
        ),
        conflicts_with=conflicts_with,
    )
    return Outbound(subjects.operation("refused", project), _REFUSED, _encode(event))


def catalogue_entry(
    kind: str, name: str, version: int, document: bytes, sha256: str, at: datetime, *, deleted: bool = False
) -> Outbound:
    """Return the current state of one document."""
    entry = event_v1.CatalogueEntry(
        kind=kind, name=name, version=version, document=document, sha256=sha256, deleted=deleted, at=at
    )
    return Outbound(subjects.catalogue(kind, name), _CATALOGUE, _encode(entry))


def cancel(operation: str, project: str, by: str, reason: str, *, force: bool = False) -> Outbound:
    """Return the wish that an operation ends; `force` also where it is declared to finish."""
    body = _encode(request_v1.Cancel(operation=operation, by=by, reason=reason, force=force))
    return Outbound(subjects.intent("cancel", project), _CANCEL, body, operation)


def contract(document: bytes, by: str, submission: str, *, draft: bool = False) -> Outbound:
    """Return an environment contract for the verifier, who owns it; a refusal names the submission."""
    body = _encode(request_v1.ContractSubmitted(document=document, by=by, draft=draft))
    return Outbound(subjects.intent("contract"), _CONTRACT, body, id=submission)


def control(environment: str, action: str, by: str, reason: str) -> Outbound:
    """Return what an operator wants of an environment."""
    wanted = request_v1.ControlAction(action)
    body = _encode(request_v1.ControlIntent(environment=environment, action=wanted, by=by, reason=reason))
    return Outbound(subjects.intent("control"), _CONTROL, body)


def removal(kind: str, name: str, by: str) -> Outbound:
    """Return the wish that a document of another owner is removed."""
    body = _encode(request_v1.Removal(kind=kind, name=name, by=by))
    return Outbound(subjects.intent("remove"), _REMOVAL, body)
