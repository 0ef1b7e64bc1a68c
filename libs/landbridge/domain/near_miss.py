"""How near an environment comes that cannot run an operation: the one change after which it could, found by judging.

A change of the operation is tried: it is judged by every rule, and told only if nothing stands against it any more.
Where a single rule is violated and no change of the operation helps, the next step in the environment is told: all
other rules were judged and hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import CONSTRAINTS, Constraint
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
    """An environment that cannot run an operation as things stand. `change` None: more than one thing is in the way."""

    verdict: EligibilityVerdict
    change: Change | None


def near_misses(
    requirements: Requirements,
    verdicts: Iterable[EligibilityVerdict],
    candidates: Mapping[str, Sequence[Candidate]],
    now: datetime,
) -> list[NearMiss]:
    """Return the environments that are not eligible, nearest first."""
    missed = sorted((verdict for verdict in verdicts if verdict.violations), key=_distance)
    found = [
        NearMiss(verdict, _change_for(requirements, verdict, candidates, now) if place < MOST_TRIED else None)
        for place, verdict in enumerate(missed)
    ]
    return sorted(found, key=_nearness)


def _change_for(
    requirements: Requirements,
    verdict: EligibilityVerdict,
    candidates: Mapping[str, Sequence[Candidate]],
    now: datetime,
) -> Change | None:
    judged = (c for c in candidates.get(verdict.environment, ()) if c.contract_version == verdict.contract_version)
    candidate = next(judged, None)
    return single_change(requirements, candidate, verdict, now) if candidate is not None else None


def single_change(
    requirements: Requirements, candidate: Candidate, verdict: EligibilityVerdict, now: datetime
) -> Change | None:
    """Return the one change after which this environment could run the operation; None if no single one is known."""
    rules = tuple(dict.fromkeys(violation.constraint for violation in verdict.violations))
    for rule in rules:
        remedy = REMEDIES.get(rule)
        for trial in remedy(requirements, candidate, now) if remedy is not None else ():
            if _holds(trial, candidate, now):
                return Change(trial.text, trial.path, trial.value)
    if len(rules) != 1:
        return None
    steps = dict.fromkeys(next_step(violation, verdict.environment) for violation in verdict.violations)
    return Change("; ".join(filter(None, steps)))


def _holds(trial: Trial, candidate: Candidate, now: datetime, constraints: Sequence[Constraint] = CONSTRAINTS) -> bool:
    return not any(constraint.check(trial.requirements, candidate, now) for constraint in constraints)


def _distance(verdict: EligibilityVerdict) -> tuple[int, int, str]:
    never = sum(violation.kind is Kind.NEVER for violation in verdict.violations)
    return never, len(verdict.violations), verdict.environment


def _nearness(miss: NearMiss) -> tuple[bool, bool, int, int, str]:
    """Order by hope: what may pass by itself, then what a single change mends, then by what stands against it."""
    never, count, environment = _distance(miss.verdict)
    return never > 0, miss.change is None, never, count, environment
