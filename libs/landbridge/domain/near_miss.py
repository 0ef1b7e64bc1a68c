"""How near an environment comes that cannot run an operation: the change after which it could, found by judging.

A change of the operation is tried: it is judged by every rule, and told only if nothing stands against it any more.
Where no change of the operation helps against a rule, the next step in the environment is told: all other rules were
judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.reasons import next_step
from landbridge.domain.remedies import REMEDIES, Trial
from landbridge.domain.requirements import Requirements
from landbridge.domain.verdict import EligibilityVerdict
from landbridge.domain.violation import Kind

# Changes are looked for in so many environments, the nearest first.
MOST_TRIED: Final = 20


class Change(NamedTuple):
    """One change after which an environment may run the operation.

    `path` and `value` name the field of the operation and what it would be, an empty value that it is left out; both
    are empty where the change is one of the environment.
    """

    text: str
    path: str = ""
    value: str = ""


class NearMiss(NamedTuple):
    """An environment that cannot run an operation as things stand, and all that would have to change; () if unknown."""

    verdict: EligibilityVerdict
    changes: tuple[Change, ...]

    @property
    def change(self) -> Change | None:
        """Return the change, if a single one is enough."""
        return self.changes[0] if len(self.changes) == 1 else None


def near_misses(
    requirements: Requirements,
    verdicts: Iterable[EligibilityVerdict],
    candidates: Mapping[str, Sequence[Candidate]],
    now: datetime,
) -> list[NearMiss]:
    """Return the environments that are not eligible, nearest first."""
    missed = sorted((verdict for verdict in verdicts if verdict.violations), key=_distance)
    found = [
        NearMiss(verdict, _changes_for(requirements, verdict, candidates, now) if place < MOST_TRIED else ())
        for place, verdict in enumerate(missed)
    ]
    return sorted(found, key=_nearness)


def _changes_for(
    requirements: Requirements,
    verdict: EligibilityVerdict,
    candidates: Mapping[str, Sequence[Candidate]],
    now: datetime,
) -> tuple[Change, ...]:
    judged = (c for c in candidates.get(verdict.environment, ()) if c.contract_version == verdict.contract_version)
    candidate = next(judged, None)
    return changes(requirements, candidate, verdict, now) if candidate is not None else ()


def changes(
    requirements: Requirements, candidate: Candidate, verdict: EligibilityVerdict, now: datetime
) -> tuple[Change, ...]:
    """Return what would have to change for this environment to run the operation: one thing, if one is enough.

    Else one for each violated rule, each tried on top of those before it; () if somewhere nothing is known to help.
    """
    rules = tuple(dict.fromkeys(violation.constraint for violation in verdict.violations))
    for rule in rules:
        for trial in _trials(rule, requirements, candidate, now):
            if not _violated(trial.requirements, candidate, now):
                return (_told(trial),)
    found: list[Change] = []
    for rule in rules:
        cleared = _clearing(rule, requirements, candidate, now)
        if cleared is not None:
            requirements = cleared.requirements
            found.append(_told(cleared))
            continue
        of_rule = [violation for violation in verdict.violations if violation.constraint == rule]
        steps = dict.fromkeys(filter(None, (next_step(violation, verdict.environment) for violation in of_rule)))
        if not steps:
            return ()
        found.append(Change("; ".join(steps)))
    return tuple(found)


def _clearing(rule: str, requirements: Requirements, candidate: Candidate, now: datetime) -> Trial | None:
    """Return the first trial after which a rule holds, and none that held before is violated."""
    before = _violated(requirements, candidate, now)
    if rule not in before:
        return None
    for trial in _trials(rule, requirements, candidate, now):
        if _violated(trial.requirements, candidate, now) <= before - {rule}:
            return trial
    return None


def _trials(rule: str, requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    remedy = REMEDIES.get(rule)
    return remedy(requirements, candidate, now) if remedy is not None else iter(())


def _violated(requirements: Requirements, candidate: Candidate, now: datetime) -> set[str]:
    return {constraint.name for constraint in CONSTRAINTS if constraint.check(requirements, candidate, now)}


def _told(trial: Trial) -> Change:
    return Change(trial.text, trial.path, trial.value)


def _distance(verdict: EligibilityVerdict) -> tuple[int, int, str]:
    never = sum(violation.kind is Kind.NEVER for violation in verdict.violations)
    return never, len(verdict.violations), verdict.environment


def _nearness(miss: NearMiss) -> tuple[bool, int, int, int, str]:
    """Order by hope: what may pass by itself, then what the fewest changes mend, then by what stands against it."""
    never, count, environment = _distance(miss.verdict)
    return never > 0, len(miss.changes) or count + 1, never, count, environment
