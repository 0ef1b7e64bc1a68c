"""A running alerting service and what a test does to it."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.bus.state import LastPerSubject
from landbridge.domain.ids import operation_id
from landbridge.schema.wire.event_v1 import (
    Alert,
    ContractVersion,
    EnvironmentContractChanged,
    EnvironmentEvidence,
    EnvironmentLink,
    LinkState,
)
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from landbridge_alerting.service import AlertingService

ADMIN = "admin-token-of-the-tests"
SECRET_HASH = hashlib.sha256(ADMIN.encode()).hexdigest()


def operation(number: int, project: str = "retail") -> str:
    return operation_id(project, f"key-{number}")


class Alerting:
    """The service, an HTTP client as administrator, and the messages that others would publish."""

    def __init__(self, service: AlertingService, centre: Bus) -> None:
        self.service = service
        self.centre = centre
        self.http = self.client(ADMIN)

    def client(self, token: str) -> httpx2.AsyncClient:
        base = f"http://127.0.0.1:{self.service.port}"
        return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    async def _publish(self, stream: str, subject: str, type_: str, body: Any, **more: Any) -> None:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        family = subjects.family(subject)
        await publish_batch(self.centre, stream, [Outbound(subject, event_type(family, type_), encoded, **more)])

    # -- operations -----------------------------------------------------------------------------------------------

    async def assessed(self, assessment: str, queue: str, project: str = "retail") -> None:
        requirements = msgspec.json.encode({"project": project, "queue": queue})
        body = {"assessment": {"id": assessment, "requirements": requirements}, "operations": []}
        await self._publish(streams.OPERATIONS, subjects.operation("assessed", project), "OperationsAssessed", body)

    async def waiting(
        self, *numbers: int, by: str = "ranking", reason: str = "at-capacity", assessment: str = "a-1"
    ) -> None:
        body = {
            "by": by,
            "operations": [{"operation": operation(number), "round": 1} for number in numbers],
            "reason": reason,
            "assessmentId": assessment,
        }
        await self._publish(streams.OPERATIONS, subjects.operation("waiting", "retail"), "OperationsWaiting", body)

    async def decided(self, *numbers: int, environment: str = "onprem-a") -> None:
        operations = [{"operation": operation(n), "round": 1, "environment": environment} for n in numbers]
        body = {"decision": {"id": "d-1"}, "operations": operations}
        await self._publish(streams.OPERATIONS, subjects.operation("decided", "retail"), "OperationsDecided", body)

    async def not_started(self, number: int, reason: str = "image-not-found", environment: str = "onprem-a") -> None:
        body = {
            "operation": operation(number),
            "project": "retail",
            "environment": environment,
            "report": {"state": "failed-to-start", "reason": reason},
        }
        await self._publish(streams.OPERATIONS, subjects.operation("retrying", "retail"), "OperationChanged", body)

    async def ended(self, number: int, event: str = "cancelled") -> None:
        body = {"operation": operation(number), "project": "retail"}
        await self._publish(streams.OPERATIONS, subjects.operation(event, "retail"), "OperationChanged", body)

    async def dead_letter(self, service: str, error: str = "PermanentFailure: no") -> None:
        subject = subjects.deadletter(service)
        await self._publish(streams.DEADLETTERS, subject, "Anything", b"?", extra=(("lb-error", error),))

    # -- environments ---------------------------------------------------------------------------------------------

    async def contract(self, name: str = "onprem-a", *, removed: bool = False) -> None:
        versions = () if removed else (ContractVersion(version=1, phase="active"),)
        event = EnvironmentContractChanged(environment=name, at=datetime.now(UTC), versions=versions)
        await self._environment("contract", name, event)

    async def link(self, state: LinkState, name: str = "onprem-a", *, since_s: float = 0.0) -> None:
        since = datetime.now(UTC) - timedelta(seconds=since_s)
        await self._environment("link", name, EnvironmentLink(environment=name, state=state, since=since))

    async def evidence(
        self,
        claim: str,
        name: str = "onprem-a",
        *,
        result: EvidenceResult = EvidenceResult.PROVEN,
        expires_s: float = 60.0,
        detail: str = "",
    ) -> None:
        now = datetime.now(UTC)
        expires = now + timedelta(seconds=expires_s)
        item = Evidence(claim=claim, result=result, at=now, expires=expires, probe=claim, detail=detail)
        event = EnvironmentEvidence(environment=name, at=now, contract_version=1, items=(item,))
        await self._environment("evidence", name, event)

    async def _environment(self, kind: str, name: str, event: msgspec.Struct) -> None:
        await self._publish(streams.ENVIRONMENTS, subjects.environment(kind, name), type(event).__name__, event)

    # -- what it says ---------------------------------------------------------------------------------------------

    async def alerts(self, state: str = "firing", client: httpx2.AsyncClient | None = None) -> list[dict[str, Any]]:
        answer = await (client or self.http).get("/v1/alerts", params={"state": state})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def firing(self, rule: str) -> dict[str, Any] | None:
        return next((item for item in await self.alerts() if item["rule"] == rule), None)

    async def told(self, rule: str) -> Alert:
        """The last event about a rule on the stream ALERTS."""
        found: list[Inbound] = []
        async for message in LastPerSubject(self.centre, streams.ALERTS, subjects.alert(rule)):
            found.append(message)
            break
        alert: Alert = msgspec.json.decode(found[0].body, type=Alert)
        return alert

    async def close(self) -> None:
        await self.http.aclose()
