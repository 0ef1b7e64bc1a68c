"""Where an operation may run: one function for every path, whether new, queued, moved, retried, failed over or forced.

`judge` is the definition, and `evaluate_eligibility` what follows from it for all environments. `eligibility_index`
answers the same question faster for the same inputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import add

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import CONSTRAINTS, Constraint
from landbridge.domain.constraints.serving import serving
from landbridge.domain.requirements import RequirementClass, Requirements
from landbridge.domain.verdict import Assessment, EligibilityVerdict, assessment_id
from landbridge.domain.violation import Violation, Violations

NO_INPUTS: Mapping[str, str] = {}


def judge(
    requirements: Requirements, candidate: Candidate, constraints: Sequence[Constraint], now: datetime
) -> EligibilityVerdict:
    """Judge one candidate by every constraint; keep all violations, in the order of the constraints."""
    violations: list[Violation] = []
    until: datetime | None = None
    for constraint in constraints:
        found = constraint.check(requirements, candidate, now)
        if found:
            violations += found
        if constraint.timed:
            holds = constraint.holds_until(requirements, candidate, now)
            if holds is not None and (until is None or holds < until):
                until = holds
    classes = () if violations else serving(requirements, candidate, now)
    return EligibilityVerdict(candidate.environment, candidate.contract_version, tuple(violations), until, classes)


def judge_all(
    requirements: Requirements, candidates: Sequence[Candidate], constraints: Sequence[Constraint], now: datetime
) -> list[EligibilityVerdict]:
    """Judge several candidates, constraint by constraint: as `judge` does, with what is the same for all done once."""
    violations: list[Violations] = [()] * len(candidates)
    untils: list[datetime | None] = [None] * len(candidates)
    for constraint in constraints:
        found = constraint.check_all(requirements, candidates, now)
        if any(found):
            violations = list(map(add, violations, found))
        if constraint.timed:
            for row, holds in enumerate(constraint.hold_all(requirements, candidates, now)):
                until = untils[row]
                if holds is not None and (until is None or holds < until):
                    untils[row] = holds
    needs = requirements.accelerator is not None
    return [
        EligibilityVerdict(
            candidate.contract.environment,
            candidate.contract.version,
            broken,
            until,
            serving(requirements, candidate, now) if needs and not broken else (),
        )
        for candidate, broken, until in zip(candidates, violations, untils, strict=True)
    ]


def combine(verdicts: Sequence[EligibilityVerdict]) -> EligibilityVerdict:
    """Make one verdict of those about an environment's active contract versions, newest first.

    The newest version that fits is the one to use; if none fits, the newest tells why. The answer may change when any
    of them does.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    chosen = next((verdict for verdict in verdicts if not verdict.violations), verdicts[0])
    until = min((v.valid_until for v in verdicts if v.valid_until is not None), default=None)
    return chosen if until == chosen.valid_until else msgspec.structs.replace(chosen, valid_until=until)


def evaluate_eligibility(
    requirement_class: RequirementClass,
    candidates: Iterable[Candidate],
    now: datetime,
    constraints: Sequence[Constraint] = CONSTRAINTS,
    inputs: Mapping[str, str] = NO_INPUTS,
) -> Assessment:
    """Judge every environment for one class of operations. The order of `candidates` does not matter."""
    ordered = sorted(candidates, key=_name_and_version)
    judged = judge_all(requirement_class.requirements, ordered, constraints, now)
    verdicts = tuple([combine(list(versions)) for _, versions in groupby(judged, key=_environment)])
    return Assessment(
        id=assessment_id(requirement_class.key, verdicts),
        requirement_class=requirement_class.key,
        at=now,
        verdicts=verdicts,
        inputs=inputs,
    )


def _environment(verdict: EligibilityVerdict) -> str:
    return verdict.environment


def _name_and_version(candidate: Candidate) -> tuple[str, int]:
    return candidate.environment, -candidate.contract_version
