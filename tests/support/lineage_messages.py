"""Messages about operations as the services publish them, for tests of whoever reads OPERATIONS."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.domain.ids import operation_id
from landbridge.runtime.ids import new_id
from landbridge.schema.wire import event_v1 as events
from landbridge.schema.wire import report_v1 as reports

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "apiVersion": "landbridge/v1",
    "kind": "Operation",
    "metadata": {"name": "tides", "project": "coast", "labels": {"team": "forecasting"}},
    "spec": {
        "type": "job",
        "command": ["python3", "tides.py"],
        "inputs": {"gauges": {"connection": "gauge-readings", "path": "2026/q4"}},
        "outputs": {"forecast": {"connection": "results"}},
    },
}


def an_operation(key: str = "tides-1", project: str = "coast") -> str:
    return operation_id(project, key)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def an_epoch(counter: int = 1) -> events.Epoch:
    return events.Epoch(generation=1, counter=counter)


def message(event: str, body: msgspec.Struct, project: str = "coast", message_id: str = "") -> Inbound:
    """One message as a consumer receives it."""
    subject = subjects.operation(event, project)
    kind = event_type("operation", type(body).__name__)
    return Inbound(subject, message_id or new_id(), "/services/test", kind, "", "", msgspec.json.encode(body))


def outbound(inbound: Inbound) -> Outbound:
    """The same message as its service publishes it."""
    return Outbound(inbound.subject, inbound.type, inbound.body, inbound.about, inbound.id)


def accepted(operation: str, *, project: str = "coast", queue: str = "batch", **spec: Any) -> Inbound:
    effective = {**SPEC, "spec": {**SPEC["spec"], **spec}}
    body = events.OperationAccepted(
        operation=operation,
        project=project,
        name="tides",
        queue=queue,
        op_seq=1,
        at=at(1),
        effective=msgspec.json.encode(effective),
        submitted_by="app:harbour",
        idempotency_key="tides-1",
    )
    return message("accepted", body, project)


def changed(
    operation: str, number: int, phase: str, *, project: str = "coast", event: str = "", **rest: Any
) -> Inbound:
    body = events.OperationChanged(
        operation=operation, project=project, op_seq=number, phase=events.Phase(phase), at=at(number), **rest
    )
    return message(event or phase, body, project)


def placed(operation: str, number: int, phase: str, *, counter: int = 1, **rest: Any) -> Inbound:
    return changed(
        operation,
        number,
        phase,
        **{"round": counter, "attempt": counter, "epoch": an_epoch(counter), "environment": "quay", **rest},
    )


def a_report(operation: str, state: str, *, counter: int = 1, **rest: Any) -> reports.AttemptReport:
    return reports.AttemptReport(
        operation=operation,
        epoch=an_epoch(counter),
        state=reports.AttemptState(state),
        at=at(counter * 10),
        **{"started_at": at(counter * 10 - 5), **rest},
    )


RESOLVED = reports.Resolved(
    workload="guardian-7",
    host="quay-1",
    hardware="8 vCPU",
    principal="uid:2001",
    connections={"gauge-readings": "s3://readings-eu/raw", "results": "file:///srv/results"},
    contract_version=3,
    executor="process",
)
OUTPUT = reports.OutputRef(connection="results", path="tides/1", bytes=2048, sha256="ab" * 32, exists=True)


def a_verdict(environment: str, *kinds: str) -> events.EnvironmentVerdict:
    violations = tuple(
        events.Violation(constraint=f"rule-{n}", reason="r", kind=events.ViolationKind(kind), wanted="w", found="f")
        for n, kind in enumerate(kinds)
    )
    return events.EnvironmentVerdict(
        environment=environment, contract_version=3, eligible=not kinds, violations=violations
    )


def an_assessment(name: str, *verdicts: events.EnvironmentVerdict, requirement_class: str = "c-1") -> events.Assessment:
    return events.Assessment(
        id=name,
        requirement_class=requirement_class,
        at=at(2),
        eligible=any(each.eligible for each in verdicts),
        condition="" if any(each.eligible for each in verdicts) else "unplaceable",
        environments=verdicts,
        inputs={each.environment: "3" for each in verdicts},
    )


def assessed(assessment: events.Assessment, *operations: str, in_round: int = 1, project: str = "coast") -> Inbound:
    rounds = tuple(events.OperationRound(operation=each, round=in_round) for each in operations)
    return message("assessed", events.OperationsAssessed(assessment=assessment, operations=rounds), project)


def waiting(*operations: str, in_round: int = 1, project: str = "coast", message_id: str = "", **rest: Any) -> Inbound:
    rounds = tuple(events.OperationRound(operation=each, round=in_round) for each in operations)
    body = events.OperationsWaiting(by="ranking", operations=rounds, **{"reason": "quota", "message": "8 of 8", **rest})
    return message("waiting", body, project, message_id)


def a_decision(name: str, assessment: str, *environments: str) -> events.Decision:
    measured = (
        events.Measured(preference="cost", value=0.1, unit="EUR/h", source="contract", normalised=0.5, weight=2),
        events.Measured(preference="carbon", unit="g/kWh", source="contract", weight=1, unknown=True),
    )
    ranked = tuple(
        events.ScoreCard(environment=each, total=1 - n / 10, measurements=measured)
        for n, each in enumerate(environments)
    )
    return events.Decision(
        id=name, assessment_id=assessment, at=at(3), policy_version="p@1", route=events.Route.PREFERRED, ranked=ranked
    )


def decided(decision: events.Decision, environment: str, *operations: str, in_round: int = 1) -> Inbound:
    one = events.DecidedOperation
    rows = tuple(one(operation=each, round=in_round, environment=environment) for each in operations)
    return message("decided", events.OperationsDecided(decision=decision, operations=rows))


def a_whole_life(operation: str) -> list[Inbound]:
    """An operation that fails once, moves on and completes."""
    return [
        accepted(operation),
        placed(operation, 2, "pending", decision_id="d-1"),
        placed(operation, 3, "running", report=a_report(operation, "started", resolved=RESOLVED), verdict="accepted"),
        changed(
            operation,
            4,
            "retrying",
            round=2,
            attempt=1,
            reason="signal",
            verdict=events.ReportVerdict.ACCEPTED,
            report=a_report(operation, "finished", outcome="failed", signal=9, reason="signal"),
        ),
        placed(operation, 5, "pending", counter=2, decision_id="d-2"),
        placed(operation, 6, "running", counter=2, report=a_report(operation, "started", counter=2, resolved=RESOLVED)),
        placed(
            operation,
            7,
            "completed",
            counter=2,
            reason="exit-code",
            verdict=events.ReportVerdict.ACCEPTED,
            report=a_report(
                operation,
                "finished",
                counter=2,
                outcome="completed",
                exit_code=0,
                outputs={"forecast": OUTPUT},
                metrics={"rmse": 0.1},
                finished_at=at(30),
            ),
        ),
    ]
