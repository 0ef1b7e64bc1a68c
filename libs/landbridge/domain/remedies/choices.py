"""What an operation could choose otherwise: places, queues, forms, tiers, names, times."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import listed, moment, nearest
from landbridge.domain.constraints.controls import CONTROLS
from landbridge.domain.maintenance import openings
from landbridge.domain.remedies.base import Trial, changed
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import staging
from landbridge.domain.units import format_duration

_MOST_QUEUES = 50
_RULES = "spec.constraints"


def environment(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    here, path = candidate.environment, f"{_RULES}.environments"
    allow, forbid = requirements.allow, tuple(name for name in requirements.forbid if name != here)
    if allow and here not in allow:
        wider = (*allow, here)
        yield Trial(f"add {here} to {path}.allow", f"{path}.allow", listed(wider), changed(requirements, allow=wider))
    if forbid != requirements.forbid:
        trial = changed(requirements, forbid=forbid)
        yield Trial(f"take {here} out of {path}.forbid", f"{path}.forbid", listed(forbid, ""), trial)


def queue(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    """Yield other queues, the most alike by name first."""
    queues = sorted(candidate.catalogue.queues)
    near = nearest(requirements.queue, frozenset(queues))
    for name in sorted(queues[:_MOST_QUEUES], key=lambda name: (name != near, name)):
        if name != requirements.queue:
            yield Trial(f"use the queue {name}", "spec.queue", name, changed(requirements, queue=name))


def operated_by(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    found = candidate.contract.location.operated_by
    if found:
        yield _wider(requirements, "operated_by", "operatedBy", [found], "trust environments operated by")


def residency(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    """Yield a wider choice of places; whether the law allows it is for people to know."""
    if requirements.regions and candidate.regions.isdisjoint(requirements.regions) and candidate.regions:
        yield _wider(requirements, "regions", "regions", candidate.regions, "allow the regions")
    if requirements.jurisdictions and candidate.jurisdictions:
        yield _wider(
            requirements, "jurisdictions", "jurisdictions", candidate.jurisdictions, "if the law allows it, allow"
        )


def _wider(requirements: Requirements, field: str, name: str, more: Iterable[str], words: str) -> Trial:
    found = sorted(more)
    wider = tuple(sorted({*getattr(requirements, field), *found}))
    path = f"{_RULES}.{name}"
    return Trial(f"{words} {', '.join(found)} ({path})", path, listed(wider), changed(requirements, **{field: wider}))


def security_tier(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    """Yield the tier that is here, where only the operation's own constraint demands more."""
    found, path = candidate.contract.boundaries.security_tier, f"{_RULES}.securityTier"
    if requirements.security_tier and found:
        yield Trial(
            f"be content with the tier {found} ({path})", path, found, changed(requirements, security_tier=found)
        )


def controls(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    """Yield the controls that are in force here."""
    kept = tuple(
        name for name in requirements.controls if name in CONTROLS and CONTROLS[name].stated(candidate.contract)
    )
    missing, path = [name for name in requirements.controls if name not in kept], f"{_RULES}.controls"
    if missing:
        text = f"do without the control {', '.join(missing)} ({path})"
        yield Trial(text, path, listed(kept, ""), changed(requirements, controls=kept))


def architecture(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    offered = candidate.contract.runtime.architectures
    if offered and requirements.architectures:
        yield _wider(requirements, "architectures", "architectures", offered, "allow processors of")
    if offered and requirements.image_variants:
        more = (*requirements.image_variants, *((name, "") for name in offered))
        text = f"bring an image variant for {' or '.join(offered)} (spec.image.variants)"
        yield Trial(text, "spec.image.variants", offered[0], changed(requirements, image_variants=more))


def kubernetes(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    runtime, path = candidate.contract.runtime, f"{_RULES}.kubernetes"
    if requirements.kubernetes:
        version = runtime.kubernetes
        text = f"let {path} take in {version}" if version else f"take {path} out: there is no Kubernetes here"
        yield Trial(text, path, version, changed(requirements, kubernetes=""))
    kept = tuple(name for name in requirements.operators if name in runtime.operators)
    if kept != requirements.operators:
        missing = [name for name in requirements.operators if name not in kept]
        text = f"do without the operator {', '.join(missing)} ({_RULES}.operators)"
        yield Trial(text, f"{_RULES}.operators", listed(kept, ""), changed(requirements, operators=kept))


def runtime_form(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    if not requirements.image:
        yield Trial("bring an image (spec.image)", "spec.image", "", changed(requirements, image=True))
    if not requirements.command:
        text = "bring a program that starts without an image (spec.command)"
        yield Trial(text, "spec.command", "", changed(requirements, command=True))


def connections(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    """Yield misspelt names as they were probably meant."""
    offered = candidate.contract.connections
    for place, need in enumerate(requirements.connections):
        near = nearest(need.name, frozenset(offered)) if need.name not in offered else ""
        if near:
            meant = list(requirements.connections)
            meant[place] = msgspec.structs.replace(need, name=near)
            path = f"spec.{need.uses[0]}.connection"
            text = f"use the connection {near} instead of {need.name} ({path})"
            yield Trial(text, path, near, changed(requirements, connections=tuple(meant)))


def deadline(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    stage = staging(requirements, candidate)
    if requirements.deadline is None or stage.seconds is None:
        return
    needed = timedelta(seconds=stage.seconds, milliseconds=requirements.expected_ms)
    # A minute more, from a full minute on: there must be time left to read this and act.
    earliest = (now + needed).replace(second=0, microsecond=0) + timedelta(minutes=2)
    path = f"{_RULES}.deadline"
    text = f"move {path} to {moment(earliest)} or later"
    yield Trial(text, path, moment(earliest), changed(requirements, deadline=earliest))


def maintenance(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    """Yield a duration that ends before the next window, where one that is stated is longer."""
    ahead = openings(candidate.contract.maintenance, now)
    if not ahead or ahead[0][0] <= now:
        return
    minutes = int((ahead[0][0] - now).total_seconds() // 60)
    if minutes and minutes * 60_000 < requirements.expected_ms:
        length, path = format_duration(minutes * 60_000), "spec.lifecycle.expectedDuration"
        text = f"be done within {length} ({path}), before the window at {moment(ahead[0][0])}"
        yield Trial(text, path, length, changed(requirements, expected_ms=minutes * 60_000))


def recovery(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:  # noqa: ARG001
    allowed, path = requirements.recovery_environments, "spec.lifecycle.recovery.environments"
    if allowed and candidate.environment not in allowed:
        wider = (*allowed, candidate.environment)
        text = f"name {candidate.environment} in {path}, in a new submission"
        yield Trial(text, path, listed(wider), changed(requirements, recovery_environments=wider))
