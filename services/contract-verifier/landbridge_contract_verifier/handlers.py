"""What the contract-verifier does with messages: intents of people, reports of environments."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.domain.documents.read import Document, read_document
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import PermanentFailure
from landbridge.schema.wire.report_v1 import EvidenceReports
from landbridge.schema.wire.request_v1 import ContractSubmitted, ControlIntent, Removal
from landbridge.store import Tx
from landbridge_contract_verifier import environments, messages
from landbridge_contract_verifier.environments import Request, Rules

log = logs.get(__name__)

CONTRACT_KIND: Final = "EnvironmentContract"
# The names under which a removal may mean an environment.
_ENVIRONMENT_KINDS: Final = frozenset({"environment", "environment-contract", CONTRACT_KIND})
_CONTRACT: Final = msgspec.json.Decoder(ContractSubmitted)
_CONTROL: Final = msgspec.json.Decoder(ControlIntent)
_REMOVAL: Final = msgspec.json.Decoder(Removal)
_EVIDENCE: Final = msgspec.json.Decoder(EvidenceReports)


def decode(decoder: Any, message: Inbound) -> Any:
    """Read a message's body. Raises PermanentFailure that names the message."""
    try:
        return decoder.decode(message.body)
    except msgspec.MsgspecError as error:
        raise PermanentFailure(f"{message.type}: {error}", offenders=[message.id]) from error


class IntentHandler:
    """Contracts, control and removal: what people want of environments. In the order in which they came."""

    def __init__(self, rules: Rules, clock: Clock, wake: Callable[[], None]) -> None:
        self._rules = rules
        self._clock = clock
        self._wake = wake

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        events: list[Outbound] = []
        now = self._clock.wall()
        for message in batch:
            match subjects.token(message.subject, 3):
                case "contract":
                    events += await self._contract(tx, message, now)
                case "control":
                    events += await self._control(tx, message, now)
                case "remove":
                    events += await self._remove(tx, message, now)
        tx.after_commit(self._wake)
        return events

    async def _contract(self, tx: Tx, message: Inbound, now: datetime) -> Sequence[Outbound]:
        intent: ContractSubmitted = decode(_CONTRACT, message)
        document = read_document(intent.document, (CONTRACT_KIND,))
        if not isinstance(document, Document):
            return [messages.refused(message.source, message.id, document.problems, now)]
        log.info("contract submitted", environment=document.name, draft=intent.draft, by=intent.by)
        request = Request(message.source, message.id, intent.by)
        return await environments.register_contract(tx, document, request, now, self._rules, draft=intent.draft)

    async def _control(self, tx: Tx, message: Inbound, now: datetime) -> Sequence[Outbound]:
        intent: ControlIntent = decode(_CONTROL, message)
        log.info("control wanted", environment=intent.environment, action=intent.action.value, by=intent.by)
        request = Request(message.source, message.id, intent.by)
        return await environments.steer(tx, intent.environment, intent.action.value, request, intent.reason, now)

    async def _remove(self, tx: Tx, message: Inbound, now: datetime) -> Sequence[Outbound]:
        intent: Removal = decode(_REMOVAL, message)
        if intent.kind not in _ENVIRONMENT_KINDS:
            return []
        log.info("environment removed", environment=intent.name, by=intent.by)
        return await environments.remove(tx, intent.name, now)


class EvidenceHandler:
    """Evidence: what environments report about their own claims. Their name comes from the subject alone."""

    def __init__(self, rules: Rules, clock: Clock, wake: Callable[[], None]) -> None:
        self._rules = rules
        self._clock = clock
        self._wake = wake

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        reported: dict[str, list[Any]] = {}
        for message in batch:
            report: EvidenceReports = decode(_EVIDENCE, message)
            reported.setdefault(subjects.environment_of(message.subject), []).extend(report.items)
        events: list[Outbound] = []
        now = self._clock.wall()
        for name in sorted(reported):
            events += await environments.take_evidence(tx, name, reported[name], now, self._rules)
        tx.after_commit(self._wake)
        return events
