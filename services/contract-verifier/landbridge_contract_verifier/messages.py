"""What the contract-verifier says, as messages."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.documents.canonical import canonical_json
from landbridge.domain.errors import Problem
from landbridge.schema.wire import command_v1, event_v1
from landbridge_contract_verifier.holds import State
from landbridge_contract_verifier.plan import united
from landbridge_contract_verifier.records import Record, as_evidence
from landbridge_contract_verifier.versions import LIVE, PROBED, Phase, Version

_encode = msgspec.json.Encoder().encode


def contract_changed(environment: str, versions: Iterable[Version], at: datetime) -> Outbound:
    """Return all versions of a contract that are not retired; none means that the environment was removed."""
    shown = [item for item in versions if item.phase is not Phase.RETIRED]
    event = event_v1.EnvironmentContractChanged(
        environment=environment,
        at=at,
        versions=tuple(
            event_v1.ContractVersion(
                version=item.version, phase=item.phase.value, document=item.document, sha256=item.sha256
            )
            for item in sorted(shown, key=lambda item: item.version)
        ),
    )
    return _environment("contract", environment, event)


def evidence(
    environment: str,
    version: int,
    records: Iterable[Record],
    at: datetime,
    *,
    previous: tuple[int, Iterable[Record]] | None = None,
) -> Outbound:
    """Return the whole current evidence of an environment: of its newest version, and of one active beside it."""
    event = event_v1.EnvironmentEvidence(
        environment=environment,
        at=at,
        contract_version=version,
        items=as_evidence(records),
        previous=event_v1.PreviousEvidence(contract_version=previous[0], items=as_evidence(previous[1]))
        if previous is not None
        else None,
    )
    return _environment("evidence", environment, event)


def control(environment: str, state: State, at: datetime) -> Outbound:
    """Return what operators want of an environment and of parts of it: all that holds."""
    event = event_v1.EnvironmentControl(
        environment=environment,
        paused=state.paused,
        draining=state.draining,
        reason=state.reason,
        by=state.by,
        at=at,
        holds=state.holds,
    )
    return _environment("control", environment, event)


def _environment(kind: str, environment: str, event: msgspec.Struct) -> Outbound:
    kind_of = event_type("environment", type(event).__name__)
    return Outbound(subjects.environment(kind, environment), kind_of, _encode(event))


def probe_plan(environment: str, versions: Sequence[Version]) -> Outbound | None:
    """Return what the environment has to probe for its live versions and a draft; None without any.

    The contract that it goes by is the newest live one: a draft is only probed, unless there is nothing else.
    """
    probed = sorted((item for item in versions if item.phase in PROBED), key=lambda item: item.version)
    if not probed:
        return None
    newest = [item for item in probed if item.phase in LIVE][-1:] or probed[-1:]
    command = command_v1.ProbePlan(
        contract_version=newest[0].version,
        contract=newest[0].document,
        probes=united(item.probes for item in probed),
    )
    return _command(environment, "probe-plan", command)


def verify_now(environment: str) -> Outbound:
    return _command(environment, "verify", command_v1.VerifyNow())


def _command(environment: str, kind: str, command: msgspec.Struct) -> Outbound:
    kind_of = event_type("command", type(command).__name__)
    return Outbound(subjects.command(environment, kind), kind_of, _encode(command))


def refused(source: str, submission: str, problems: Iterable[Problem], at: datetime) -> Outbound:
    """Return the refusal of what somebody asked for; it belongs to no project."""
    event = event_v1.OperationRefused(
        project=subjects.NO_PROJECT,
        source=source,
        submission=submission,
        at=at,
        problems=tuple(
            event_v1.Problem(
                path=p.path, line=p.line, column=p.column, code=p.code, message=p.message, suggestion=p.suggestion
            )
            for p in problems
        ),
    )
    kind = event_type("operation", "OperationRefused")
    return Outbound(subjects.operation("refused", subjects.NO_PROJECT), kind, _encode(event))


def access(name: str, version: int, document: dict[str, object], at: datetime, *, deleted: bool = False) -> Outbound:
    """Return an access entry; it holds the digest of the token, never the token."""
    body = b"" if deleted else canonical_json(document)
    entry = event_v1.CatalogueEntry(
        kind="access",
        name=name,
        version=version,
        document=body,
        sha256=sha256(body).hexdigest() if body else "",
        deleted=deleted,
        at=at,
    )
    return Outbound(subjects.catalogue("access", name), event_type("catalogue", "CatalogueEntry"), _encode(entry))
