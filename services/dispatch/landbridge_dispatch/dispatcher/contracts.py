"""The contract in force, as the latest probe plan carried it."""

from collections.abc import Callable
from datetime import datetime

import msgspec
import yaml

from landbridge.domain.contract import Contract
from landbridge.domain.contract_document import parse_contract
from landbridge.runtime import logs
from landbridge.schema.wire.command_v1 import ProbePlan
from landbridge_dispatch.dispatcher.offers import Terms
from landbridge_dispatch.dispatcher.pricing import hourly_cost
from landbridge_dispatch.executors.protocol import Executor
from landbridge_dispatch.specification import Operation

log = logs.get(__name__)


class ContractInForce:
    """What offers are priced by, and what the executor is told about roles."""

    def __init__(self, executor: Executor, now: Callable[[], datetime]) -> None:
        """`now` is the centre's time: prices end by the calendar."""
        self._executor = executor
        self._now = now
        self._contract: Contract | None = None
        self.version = 0

    def take(self, plan: ProbePlan) -> None:
        """Read the plan's contract; one that cannot be read leaves the one before in force."""
        self.version = plan.contract_version
        if not plan.contract:
            return
        try:
            self._contract = parse_contract(_document(plan.contract))
        except (msgspec.MsgspecError, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
            log.error("contract_unreadable", contract_version=plan.contract_version, error=str(error))
            return
        self._executor.know(self._contract)

    def terms(self, operation: Operation) -> Terms:
        """Return contract version, cost per hour and currency for an operation."""
        cost = hourly_cost(self._contract, operation, self._now())
        currency = self._contract.cost.currency if self._contract is not None and cost is not None else ""
        return self.version, cost, currency


def _document(body: bytes) -> bytes:
    """Return the contract as JSON, whichever of both it was written in."""
    return body if body.lstrip().startswith(b"{") else msgspec.json.encode(yaml.safe_load(body))
