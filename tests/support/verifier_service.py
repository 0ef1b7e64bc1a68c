"""A running contract-verifier on a broker with accounts, and what a test does to it."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec

from fixtures.bus import SecuredNats
from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.consume import Consumer
from landbridge.bus.envelope import Inbound, Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.bus.state import LastPerSubject
from landbridge.schema.wire.command_v1 import Probe, ProbePlan
from landbridge.schema.wire.event_v1 import (
    CatalogueEntry,
    EnvironmentContractChanged,
    EnvironmentControl,
    EnvironmentEvidence,
    OperationRefused,
)
from landbridge.schema.wire.report_v1 import Evidence, EvidenceReports, EvidenceResult
from landbridge_contract_verifier.service import ContractVerifierService
from landbridge_contract_verifier.settings import VerifierSettings
from support.wait import wait_until

ADMIN = "admin-token-of-the-tests"
CONTRACT = """
apiVersion: landbridge/v1
kind: EnvironmentContract
metadata: {name: NAME, version: VERSION}
spec:
  owner: {team: infra, contact: oncall@example.org}
  location: {regions: [eu-de-1], jurisdictions: [EU], operatedBy: own}
  runtime: {executor: process}
  workloads: [job]
  classes:
    cpu-general: {cpu: "CPU", memory: 8Gi}
  connections:
    models: {type: volume, access: read-write}
"""


def contract(name: str = "onprem-a", version: int = 1, cpu: int = 8, *, overlap: str = "") -> bytes:
    text = CONTRACT.replace("NAME", name).replace("VERSION", str(version)).replace("CPU", str(cpu))
    return (text + (f"  rollout: {{overlap: {overlap}}}\n" if overlap else "")).encode()


def settings_of(secured: SecuredNats, dsn: str, **more: Any) -> VerifierSettings:
    creds = secured.root / "contract-verifier.creds"
    if not creds.exists():
        from landbridge.bus import accounts

        creds.write_text(accounts.service_user(secured.keys, "contract-verifier").credentials)
    return VerifierSettings(
        nats_url=secured.server.url,
        nats_creds=creds,
        postgres_dsn=dsn,
        keys_dir=secured.root / "keys",
        admin_token_sha256=hashlib.sha256(ADMIN.encode()).hexdigest(),
        **more,
    )


class Verifier:
    """The service, an HTTP client as administrator, and the events that it published last."""

    def __init__(self, service: ContractVerifierService, secured: SecuredNats, centre: Bus) -> None:
        self.service = service
        self.secured = secured
        self.centre = centre
        self.http = self.client(ADMIN)
        self.latest: dict[str, list[Inbound]] = {}
        self._readers = [
            asyncio.create_task(self._read(streams.ENVIRONMENTS, "environment")),
            asyncio.create_task(self._read(streams.CATALOGUE, "catalogue")),
        ]

    async def _read(self, stream: str, family: str) -> None:
        async for message in LastPerSubject(self.centre, stream, subjects.every(family)):
            self.latest.setdefault(message.subject, []).append(message)

    def client(self, token: str) -> httpx2.AsyncClient:
        base = f"http://127.0.0.1:{self.service.port}"
        return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    async def intent(self, kind: str, type_: str, body: dict[str, Any], *, id_: str = "") -> None:
        """Publish what intake publishes."""
        message = Outbound(
            subjects.intent(kind), event_type("intent", type_), msgspec.json.encode(body), id=id_, source="/test"
        )
        await publish_batch(self.centre, streams.INTENTS, [message])

    async def submit(self, document: bytes, *, id_: str = "", draft: bool = False) -> None:
        body = {"document": document, "by": "ann", **({"draft": True} if draft else {})}
        await self.intent("contract", "ContractSubmitted", body, id_=id_)

    async def control(self, environment: str, action: str, reason: str = "") -> None:
        body = {"environment": environment, "action": action, "by": "ann", "reason": reason}
        await self.intent("control", "ControlIntent", body)

    async def remove(self, environment: str) -> None:
        await self.intent("remove", "Removal", {"kind": "environment-contract", "name": environment, "by": "ann"})

    async def project(self, name: str) -> None:
        """Make a project known, as intake does."""
        entry = CatalogueEntry(kind="project", name=name, version=1, document=b"{}", at=datetime.now(UTC))
        kind = event_type("catalogue", "CatalogueEntry")
        message = Outbound(subjects.catalogue("project", name), kind, msgspec.json.encode(entry))
        await publish_batch(self.centre, streams.CATALOGUE, [message])
        await wait_until(lambda: name in self.service.projects, f"project {name} is known")

    # -- what it said ---------------------------------------------------------------------------------------------

    def _last(self, subject: str, kind: Any) -> Any:
        messages = self.latest.get(subject)
        return msgspec.json.decode(messages[-1].body, type=kind) if messages else None

    def told_contract(self, name: str = "onprem-a") -> dict[int, str]:
        """Phases by version, as told last."""
        found = self._last(subjects.environment("contract", name), EnvironmentContractChanged)
        return {item.version: item.phase for item in found.versions} if found else {}

    def told_evidence(self, name: str = "onprem-a") -> EnvironmentEvidence | None:
        found: EnvironmentEvidence | None = self._last(subjects.environment("evidence", name), EnvironmentEvidence)
        return found

    def told_results(self, name: str = "onprem-a") -> dict[str, str]:
        found = self.told_evidence(name)
        return {item.probe: item.result.value for item in found.items} if found else {}

    def told_control(self, name: str = "onprem-a") -> EnvironmentControl | None:
        found: EnvironmentControl | None = self._last(subjects.environment("control", name), EnvironmentControl)
        return found

    def evidence_events(self, name: str = "onprem-a") -> int:
        return len(self.latest.get(subjects.environment("evidence", name), []))

    async def refusals(self) -> list[OperationRefused]:
        """Every refusal of the stream OPERATIONS."""
        consumer = Consumer(await self.secured.service("lineage"), streams.OPERATIONS, "lineage")
        found = [msgspec.json.decode(message.body, type=OperationRefused) for message in await consumer.take(5)]
        await consumer.stop()
        return found

    # -- the environment's side -----------------------------------------------------------------------------------

    async def join(self, name: str = "onprem-a", **body: Any) -> dict[str, Any]:
        answer = await self.http.post(f"/v1/environments/{name}/join", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def registered(self, name: str = "onprem-a", version: int = 1) -> None:
        await self.submit(contract(name, version))
        await wait_until(lambda: version in self.told_contract(name), f"{name} is registered")

    async def site(self, name: str = "onprem-a") -> "Site":
        """Register if need be, join, and connect as the dispatcher of an environment."""
        if not self.told_contract(name):
            await self.registered(name)
        answer = await self.join(name)
        return Site(name, await self.secured.open_text(answer["creds"], f"dispatcher-{name}"))

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self.http.aclose()


class Site:
    """A dispatcher as far as the contract-verifier is concerned."""

    def __init__(self, name: str, bus: Bus) -> None:
        self.name = name
        self.bus = bus
        self.commands = Consumer(bus, streams.COMMANDS, f"env-{name}")
        self._waiting: list[Inbound] = []
        self._seen: set[str] = set()

    async def command(self, timeout_s: float = 10) -> Inbound:
        """The next command, each once, as a dispatcher does. Fails if there is none."""
        while not self._waiting:
            found = await self.commands.take(timeout_s)
            assert found, "a command was expected"
            await self.commands.ack(found)
            for message in found:
                if message.id not in self._seen:
                    self._seen.add(message.id)
                    self._waiting.append(message)
        return self._waiting.pop(0)

    async def plan(self) -> ProbePlan:
        found: ProbePlan = msgspec.json.decode((await self.command()).body, type=ProbePlan)
        return found

    async def report(self, *items: Evidence, version: int = 1) -> None:
        body = msgspec.json.encode(EvidenceReports(contract_version=version, items=items))
        message = Outbound(
            subjects.report(self.name, "evidence"), event_type("report", "EvidenceReports"), body, source="/site"
        )
        await publish_batch(self.bus, streams.REPORTS, [message])

    async def prove(self, *probes: Probe, result: EvidenceResult = EvidenceResult.PROVEN, **more: Any) -> None:
        await self.report(*(finding(probe, result, **more) for probe in probes))


def finding(
    probe: Probe,
    result: EvidenceResult = EvidenceResult.PROVEN,
    *,
    at: datetime | None = None,
    subject: str = "host 1",
    detail: str = "",
    proven: float | None = None,
) -> Evidence:
    """What a probe found, valid for as long as planned."""
    moment = at or datetime.now(UTC)
    return Evidence(
        claim=probe.claim,
        result=result,
        probe=probe.name,
        subject=subject,
        at=moment,
        expires=moment + timedelta(seconds=probe.expiry_seconds),
        detail=detail,
        proven=proven,
    )
