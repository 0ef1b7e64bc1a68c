"""The probes of an environment as people read them: the plan, and the latest result of each. No result is newer."""

from datetime import datetime
from typing import Any

import msgspec

from landbridge.domain.contract_document import parse_contract
from landbridge.domain.probe_costs import cost_of
from landbridge.schema.wire.command_v1 import Probe
from landbridge.store import Tx
from landbridge_contract_verifier import repository
from landbridge_contract_verifier.plan import required, united
from landbridge_contract_verifier.records import Record
from landbridge_contract_verifier.versions import LIVE


async def read(tx: Tx, name: str, now: datetime) -> dict[str, Any] | None:
    """Return what is planned for the live versions and what is known; None for an environment that is not there."""
    live = [version for version in await repository.versions(tx, name) if version.phase in LIVE]
    if not live:
        return None
    newest = max(live, key=lambda version: version.version)
    executor = parse_contract(newest.document).runtime.executor
    planned = united(version.probes for version in live)
    records, needed = await repository.records(tx, name), {probe.name for probe in required(planned)}
    items = [_item(probe, records.get(probe.name), executor, now, needed) for probe in planned]
    return {"environment": name, "contractVersion": newest.version, "at": now.isoformat(), "probes": items}


def _item(probe: Probe, record: Record | None, executor: str, now: datetime, needed: set[str]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "name": probe.name,
        "claim": probe.claim,
        "kind": probe.kind,
        "periodSeconds": probe.period_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "required": probe.name in needed,
        "cost": cost_of(executor, probe.kind),
    }
    if record is not None:
        told = msgspec.to_builtins(record)
        item |= {key: told[key] for key in ("result", "subject", "at", "expires", "proven", "claimed", "detail")}
        item["secondsLeft"] = round((record.expires - now).total_seconds())
    return item
