"""Versions of a contract and their phases: pure. A version never changes.

At most two are active: the newest, and for as long as that one's `rollout.overlap` says the one before. One may be a
draft: it is shown and probed beside them, and changes nothing until it is registered.
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

    DRAFT = "draft"
    CANARY = "canary"
    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"


LIVE = (Phase.CANARY, Phase.ACTIVE)
PROBED = (Phase.DRAFT, *LIVE)
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
    """What becomes of a submitted version: its phase, nothing (it is known already), or a refusal.

    `promoted`: it is there as a draft already.
    """

    phase: Phase | None = None
    problem: Problem | None = None
    promoted: bool = False


def register(known: Sequence[Version], version: int, sha256: str, *, draft: bool = False) -> Registration:
    """Judge a submitted version against those that were ever registered.

    The first version is active at once: without evidence it takes no work anyway. A later one proves itself first.
    """
    same = next((item for item in known if item.version == version), None)
    if same is not None:
        return _again(same, known, sha256, draft=draft)
    newest = max((item.version for item in known), default=0)
    if version < newest:
        return _refused("version-too-low", f"expected a version above {newest}, found {version}", known)
    return Registration(Phase.DRAFT if draft else _first_phase(known))


def _again(same: Version, known: Sequence[Version], sha256: str, *, draft: bool) -> Registration:
    """Judge a version whose number is known already."""
    if same.sha256 != sha256:
        phase = "kept as a draft" if same.phase is Phase.DRAFT else "registered"
        message = (
            f"version {same.version} is {phase} with other content (sha256 {same.sha256[:12]}…), and never changes"
        )
        return _refused("version-is-fixed", message, known)
    if same.phase in OVER:
        return _refused("version-is-over", f"version {same.version} is {same.phase} and takes no work again", known)
    if same.phase is Phase.DRAFT and not draft:
        return Registration(_first_phase(known), promoted=True)
    if draft and same.phase is not Phase.DRAFT:
        message = f"version {same.version} is {same.phase} already, and becomes no draft again"
        return _refused("version-is-no-draft", message, known)
    return Registration()


def _first_phase(known: Sequence[Version]) -> Phase:
    return Phase.CANARY if any(item.phase is Phase.ACTIVE for item in known) else Phase.ACTIVE


def _refused(code: str, message: str, known: Sequence[Version]) -> Registration:
    following = f"register the change as version {max(item.version for item in known) + 1}"
    return Registration(problem=Problem("metadata.version", code, message, following))


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


def superseded(known: Sequence[Version], phase: Phase) -> dict[int, tuple[Phase, datetime | None]]:
    """Return what a newer version in this phase ends: older drafts, and a canary unless the newer is a draft itself."""
    ended = (Phase.DRAFT,) if phase is Phase.DRAFT else (Phase.DRAFT, Phase.CANARY)
    return {item.version: (Phase.RETIRED, None) for item in known if item.phase in ended}


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
