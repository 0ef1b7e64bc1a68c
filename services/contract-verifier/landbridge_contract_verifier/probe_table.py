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
from landbridge_contract_verifier.versions import LIVE, PROBED, Phase


async def read(tx: Tx, name: str, now: datetime) -> dict[str, Any] | None:
    """Return what is planned and what is known, of live versions and a draft.

    None for an environment that is not there. `contractVersion` is the newest live one, 0 where there is only a draft.
    """
    probed = [version for version in await repository.versions(tx, name) if version.phase in PROBED]
    if not probed:
        return None
    newest = max(probed, key=lambda version: (version.phase in LIVE, version.version))
    executor = parse_contract(newest.document).runtime.executor
    planned = united(version.probes for version in probed)
    records, needed = await repository.records(tx, name), {probe.name for probe in required(planned)}
    versions = {
        probe.name: [each.version for each in probed if any(own.name == probe.name for own in each.probes)]
        for probe in planned
    }
    items = [_item(probe, records.get(probe.name), executor, now, needed, versions[probe.name]) for probe in planned]
    return {
        "environment": name,
        "contractVersion": newest.version if newest.phase in LIVE else 0,
        "draftVersion": next((each.version for each in probed if each.phase is Phase.DRAFT), 0),
        "at": now.isoformat(),
        "probes": items,
    }


def _item(
    probe: Probe, record: Record | None, executor: str, now: datetime, needed: set[str], versions: list[int]
) -> dict[str, Any]:
    item: dict[str, Any] = {
        "name": probe.name,
        "versions": versions,
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
