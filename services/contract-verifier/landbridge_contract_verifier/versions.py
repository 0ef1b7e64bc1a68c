"""Versions of a contract and their phases: pure. A version never changes.

At most two are active: the newest, and for as long as that one's `rollout.overlap` says the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from landbridge.domain import units
from landbridge.domain.errors import Problem
from landbridge.schema.wire.command_v1 import Probe
from landbridge_contract_verifier.plan import required
from landbridge_contract_verifier.records import Record


class Phase(StrEnum):
    """Where a version stands. Only active versions take work."""

    CANARY = "canary"
    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"


LIVE = (Phase.CANARY, Phase.ACTIVE)
OVER = (Phase.RETIRING, Phase.RETIRED)


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version as it is kept.

    `until`: when a canary must have passed, an active version gives way to a newer one, or a retiring one is retired.
    """

    version: int
    phase: Phase
    sha256: str
    document: bytes
    probes: tuple[Probe, ...]
    at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """What becomes of a submitted version: its phase, nothing (it is known already), or a refusal."""

    phase: Phase | None = None
    problem: Problem | None = None


def register(known: Sequence[Version], version: int, sha256: str) -> Registration:
    """Judge a submitted version against those that were ever registered.

    The first version is active at once: without evidence it takes no work anyway. A later one proves itself first.
    """
    same = next((item for item in known if item.version == version), None)
    if same is not None:
        if same.sha256 == sha256 and same.phase in OVER:
            message = f"version {version} is {same.phase} and takes no work again"
            return Registration(problem=Problem("metadata.version", "version-is-over", message, _next(known)))
        if same.sha256 == sha256:
            return Registration()
        message = f"version {version} is registered with other content (sha256 {same.sha256[:12]}…), and never changes"
        return Registration(problem=Problem("metadata.version", "version-is-fixed", message, _next(known)))
    newest = max((item.version for item in known), default=0)
    if version < newest:
        message = f"expected a version above {newest}, found {version}"
        return Registration(problem=Problem("metadata.version", "version-too-low", message, _next(known)))
    takes_work = any(item.phase is Phase.ACTIVE for item in known)
    return Registration(Phase.CANARY if takes_work else Phase.ACTIVE)


def _next(known: Sequence[Version]) -> str:
    return f"register the change as version {max(item.version for item in known) + 1}"


@dataclass(frozen=True, slots=True)
class Step:
    """A change of phases that is due; `problems` say why a canary failed."""

    changes: Mapping[int, tuple[Phase, datetime | None]]
    failed: int = 0
    problems: tuple[Problem, ...] = ()


def due_step(
    known: Sequence[Version], evidence: Mapping[str, Record], now: datetime, retiring: timedelta
) -> Step | None:
    """Return the next change of phases, or None: a canary passes or fails, a version gives way or is retired."""
    for item in known:
        if item.phase is Phase.CANARY:
            missing = _unproven(item, evidence, now)
            if not missing:
                return Step({**_giving_way(known, item, now, retiring), item.version: (Phase.ACTIVE, None)})
            if item.until is not None and now >= item.until:
                return Step({item.version: (Phase.RETIRED, None)}, item.version, missing)
        if item.phase is Phase.ACTIVE and item.until is not None and now >= item.until:
            return Step({item.version: (Phase.RETIRING, now + retiring)})
        if item.phase is Phase.RETIRING and item.until is not None and now >= item.until:
            return Step({item.version: (Phase.RETIRED, None)})
    return None


def _giving_way(
    known: Sequence[Version], passed: Version, now: datetime, retiring: timedelta
) -> dict[int, tuple[Phase, datetime | None]]:
    """Return what becomes of active versions: the newest may stay beside one that has passed, all others retire."""
    active = sorted(item.version for item in known if item.phase is Phase.ACTIVE)
    changes: dict[int, tuple[Phase, datetime | None]] = dict.fromkeys(active, (Phase.RETIRING, now + retiring))
    if active and (overlap := _overlap(passed)):
        changes[active[-1]] = (Phase.ACTIVE, now + overlap)
    return changes


def _overlap(item: Version) -> timedelta:
    spec = msgspec.json.decode(item.document).get("spec") or {}
    text = (spec.get("rollout") or {}).get("overlap")
    return timedelta(milliseconds=units.parse_duration(text)) if text else timedelta(0)


def superseded(known: Sequence[Version]) -> dict[int, tuple[Phase, datetime | None]]:
    """Return what a newer canary ends: an older one that has not passed."""
    return {item.version: (Phase.RETIRED, None) for item in known if item.phase is Phase.CANARY}


def _unproven(item: Version, evidence: Mapping[str, Record], now: datetime) -> tuple[Problem, ...]:
    problems = []
    for probe in required(item.probes):
        record = evidence.get(probe.name)
        if record is not None and record.result == "proven" and record.expires > now:
            continue
        found = "no evidence" if record is None else f"{record.result}{': ' if record.detail else ''}{record.detail}"
        message = f"expected proof by probe {probe.name} during the canary, found {found}"
        problems.append(
            Problem(f"spec.{probe.claim}", "canary-failed", message, "repair it and register a new version")
        )
    return tuple(problems)
