"""What happens to one environment: registered, steered, proven, removed. Inside the caller's transaction.

Each function returns the events that tell of it. Rows are locked environment by environment, in the order of names.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.documents.read import Document
from landbridge.domain.errors import Problem
from landbridge.schema.wire.report_v1 import Evidence
from landbridge.store import Tx
from landbridge_contract_verifier import accounts_table, holds, messages, repository
from landbridge_contract_verifier.holds import State
from landbridge_contract_verifier.plan import Periods, plan, united
from landbridge_contract_verifier.records import Record, clock_offset, judge, merge, refresh_at
from landbridge_contract_verifier.versions import LIVE, PROBED, Phase, Step, Version, due_step, register, superseded

COALESCE: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Rules:
    """How versions and evidence are handled."""

    periods: Periods
    canary: timedelta
    retiring: timedelta


@dataclass(frozen=True, slots=True)
class Request:
    """Who asked for something, and by which message."""

    source: str
    id: str
    by: str


async def register_contract(
    tx: Tx, document: Document, request: Request, now: datetime, rules: Rules, *, draft: bool = False
) -> list[Outbound]:
    """Take in a contract version, or the draft of one.

    A repeated one changes nothing; one that contradicts is answered by a refusal.
    """
    name, version = document.name, int(document.value["metadata"].get("version", 1))
    body = document.canonical
    digest = sha256(body).hexdigest()
    await repository.enter(tx, name, now)
    await repository.environment(tx, name)  # locks it
    known = await repository.versions(tx, name)
    registration = register(known, version, digest, draft=draft)
    if registration.problem is not None:
        submission = f"{name}@{version}" if not request.id else request.id
        problem = dataclasses.replace(registration.problem, message=f"{name}: {registration.problem.message}")
        return [messages.refused(request.source, submission, [problem], now)]
    if registration.phase is None:
        return []
    phase = registration.phase
    until = now + rules.canary if phase is Phase.CANARY else None
    changes = superseded(known, phase)
    versions = list(known)
    if registration.promoted:
        changes = {**changes, version: (phase, until)}
        await repository.evidence_due(tx, name, now)  # what it has proven as a draft counts at once
    else:
        await accounts_table.want(tx, "environment", name, now)
        probes = _planned(document.value, version, known, rules.periods)
        item = Version(version=version, phase=phase, sha256=digest, document=body, probes=probes, at=now, until=until)
        await repository.add_version(tx, name, item, request.by)
        versions.append(item)
    await repository.set_phases(tx, name, changes)
    versions = _changed(versions, changes)
    await repository.set_phase_due(tx, name, _phase_due(versions))
    return _told(name, versions, now)


def _planned(document: Mapping[str, Any], version: int, known: Sequence[Version], periods: Periods) -> Any:
    earlier = [probe for item in known if item.phase in PROBED for probe in item.probes]
    return plan(document["spec"], version, periods, earlier)


def _told(name: str, versions: Sequence[Version], now: datetime) -> list[Outbound]:
    events = [messages.contract_changed(name, versions, now)]
    command = messages.probe_plan(name, versions)
    return [*events, command] if command is not None else events


async def replan(tx: Tx, name: str, periods: Periods) -> list[Outbound]:
    """Bring the plans of versions to the present rules and periods; tells the environment what changed."""
    versions = await repository.versions(tx, name)
    changed = False
    planned: list[Version] = []
    for item in versions:
        probes = item.probes
        if item.phase in PROBED:
            spec = msgspec.json.decode(item.document)["spec"]
            probes = plan(spec, item.version, periods, item.probes)
            if probes != item.probes:
                await repository.set_probes(tx, name, item.version, probes)
                changed = True
        planned.append(msgspec.structs.replace(item, probes=probes))
    command = messages.probe_plan(name, planned) if changed else None
    return [command] if command is not None else []


async def remove(tx: Tx, name: str, now: datetime) -> list[Outbound]:
    """Remove an environment: no versions, no evidence, and its account is ended. Nothing for an unknown one."""
    found = await repository.environment(tx, name)
    if found is None or found.removed:
        return []
    steered = await holds.read(tx, name) != State()
    await repository.leave(tx, name)
    await holds.forget(tx, name)
    await accounts_table.end(tx, "environment", name, now)
    events = [messages.contract_changed(name, [], now), messages.evidence(name, 0, [], now)]
    # One of the same name that is registered later begins open.
    return [*events, messages.control(name, State(), now)] if steered else events


async def steer(tx: Tx, name: str, action: str, request: Request, reason: str, now: datetime) -> list[Outbound]:
    """Pause, resume, drain or verify an environment. An unknown one, or an unknown action, is answered by a refusal."""
    found = await repository.environment(tx, name)
    if found is None or found.removed:
        problem = Problem("environment", "unknown-environment", f"no environment {name!r} is registered")
        return [messages.refused(request.source, request.id, [problem], now)]
    if action == "verify":
        return [messages.verify_now(name)]
    if action not in _CONTROL:
        expected = ", ".join((*_CONTROL, "verify"))
        problem = Problem("action", "unknown-action", f"expected one of {expected}; found {action!r}")
        return [messages.refused(request.source, request.id, [problem], now)]
    paused, draining = _CONTROL[action]
    state = State(paused=paused, draining=draining, by=request.by, reason=reason)
    await holds.set_whole(tx, name, state)
    await holds.record(tx, action, name, "", request.by, reason, now)
    return [messages.control(name, await holds.read(tx, name), now)]


_CONTROL: Final[Mapping[str, tuple[bool, bool]]] = {
    "pause": (True, False),
    "drain": (True, True),
    "resume": (False, False),
}


async def take_evidence(tx: Tx, name: str, items: Sequence[Evidence], now: datetime, rules: Rules) -> list[Outbound]:
    """Keep what an environment reported about its own claims. It is published soon, and canaries may pass by it."""
    found = await repository.environment(tx, name)
    if found is None or found.removed:
        return []
    versions = await repository.versions(tx, name)
    planned = {probe.name: probe for probe in united(item.probes for item in versions if item.phase in PROBED)}
    offset_s = clock_offset(items, found.clock_offset)
    if offset_s != found.clock_offset:
        await repository.set_clock_offset(tx, name, offset_s)
    current = await repository.records(tx, name)
    news, changed = merge(current, judge(items, planned, now, offset_s), now)
    if not news:
        return []
    await repository.save_records(tx, name, news.values())
    due = max(now, found.evidence_told + COALESCE) if changed else max(now, found.refresh_at)
    await repository.evidence_due(tx, name, due)
    return await _advance(tx, name, versions, {**current, **news}, now, rules)


async def due(tx: Tx, name: str, now: datetime, rules: Rules) -> list[Outbound]:
    """Do what is due for an environment whose row is locked: phases that change with time, evidence to publish."""
    versions = await repository.versions(tx, name)
    records = await repository.records(tx, name)
    events = await _advance(tx, name, versions, records, now, rules)
    return events or [await _tell_evidence(tx, name, versions, records, now)]


async def _advance(
    tx: Tx, name: str, versions: Sequence[Version], records: Mapping[str, Record], now: datetime, rules: Rules
) -> list[Outbound]:
    """Change phases as long as a change is due; the evidence is then told at once, for the version that is active."""
    events: list[Outbound] = []
    changed = False
    while (step := due_step(versions, records, now, rules.retiring)) is not None:
        changed = True
        await repository.set_phases(tx, name, step.changes)
        versions = _changed(versions, step.changes)
        events += _failure(name, step, now)
    if not changed:
        return []
    await repository.set_phase_due(tx, name, _phase_due(versions))
    return [*events, *_told(name, versions, now), await _tell_evidence(tx, name, versions, records, now)]


def _failure(name: str, step: Step, now: datetime) -> list[Outbound]:
    if not step.failed:
        return []
    return [messages.refused("/services/contract-verifier", f"{name}@{step.failed}", step.problems, now)]


async def _tell_evidence(
    tx: Tx, name: str, versions: Sequence[Version], records: Mapping[str, Record], now: datetime
) -> Outbound:
    """Return the evidence of the versions that take work; that of a canary or a draft is nobody else's business yet."""
    live = sorted((item for item in versions if item.phase in LIVE), key=lambda item: -item.version)
    shown = [item for item in live if item.phase is Phase.ACTIVE][:2] or live[:1]
    counted = [(item.version, _of(item, records)) for item in shown]
    every = [record for _, found in counted for record in found]
    await repository.evidence_told(tx, name, now, refresh_at(every, now))
    version, newest = counted[0] if counted else (0, [])
    return messages.evidence(name, version, newest, now, previous=counted[1] if len(counted) > 1 else None)


def _of(item: Version, records: Mapping[str, Record]) -> list[Record]:
    probes = {probe.name for probe in item.probes}
    return [record for probe, record in records.items() if probe in probes]


def _changed(versions: Iterable[Version], changes: Mapping[int, tuple[Phase, datetime | None]]) -> list[Version]:
    changed = []
    for item in versions:
        phase, until = changes.get(item.version, (item.phase, item.until))
        changed.append(msgspec.structs.replace(item, phase=phase, until=until))
    return changed


def _phase_due(versions: Iterable[Version]) -> datetime | None:
    return min(
        (item.until for item in versions if item.until is not None and item.phase is not Phase.RETIRED), default=None
    )
