"""A recorded decision made again, as far as its inputs are recorded; and what is not recorded, said so."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from landbridge.domain import verdict as domain
from landbridge.domain.violation import Kind, Violation
from landbridge.schema.wire.event_v1 import Assessment, EnvironmentVerdict
from landbridge_lineage.reads import Round

# What verdicts were made from, of which only versions are kept.
NOT_RECORDED: Final = (
    "evidence, links, pauses and documents as they were then: of them the record names only how far the streams had "
    "been read, so the verdicts themselves are not judged again; what they said is kept whole and checked against "
    "the id they were told under"
)


def replay_answer(operation: str, shown: Round, assessment: Assessment | None, again: dict[str, Any]) -> dict[str, Any]:
    """Put together what both deciders' records give again: `checks`, `same`, what is covered and what is not."""
    checks = [*eligibility_checks(assessment, again.get("ranked") or ()), *_named(again["checks"])]
    compared = [check["same"] for check in checks if check["same"] is not None]
    return {
        "operation": operation,
        "round": shown.round,
        "decision": again["decision"],
        "at": again["at"],
        "environment": again["environment"],
        "route": again["route"],
        "policyVersion": again["policyVersion"],
        "inputs": {
            "eligibility": dict(assessment.inputs) if assessment is not None else {},
            "ranking": again["inputs"],
        },
        "checks": checks,
        "same": all(compared),
        "complete": all(check["same"] is not None for check in checks),
        "notRecorded": [NOT_RECORDED],
    }


def eligibility_checks(assessment: Assessment | None, ranked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check what eligibility recorded: its ids are hashes of their content, and ranking ranked what it found."""
    if assessment is None:
        return [_check("eligibility: verdicts", "an assessment", None, "the assessment is not kept any more")]
    key = hashlib.sha256(assessment.requirements).hexdigest()
    content = domain.assessment_id(assessment.requirement_class, tuple(map(_verdict, assessment.environments)))
    eligible = sorted(each.environment for each in assessment.environments if each.eligible)
    scored = sorted({str(each["environment"]) for each in ranked if each["eligible"]})
    return [
        _check("eligibility: requirement class", assessment.requirement_class, key, "hash of the requirements"),
        _check("eligibility: verdicts", assessment.id, content, "hash of class, versions and violations"),
        _check("eligibility: eligible environments", eligible, scored, "those that ranking scored"),
    ]


def _verdict(each: EnvironmentVerdict) -> domain.EligibilityVerdict:
    violations = tuple(
        Violation(v.constraint, v.reason, Kind(v.kind.value), v.wanted, v.found) for v in each.violations
    )
    return domain.EligibilityVerdict(
        each.environment, each.contract_version, violations, each.valid_until, tuple(each.classes)
    )


_TOLD: Final = {
    "scores": "measurements normalised and weighed again",
    "order": "scores in order",
    "environment": "chosen again for this operation",
    "route": "chosen again for this operation",
    "id": "hash of assessment, policy, ranking and choice",
}


def _named(checks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **check,
            "what": f"ranking: {check['what']}",
            "how": _TOLD[check["what"]]
            if check["same"] is not None
            else "what it depended on of the operation is kept for the last placement only",
        }
        for check in checks
    ]


def _check(what: str, recorded: object, again: object, how: str) -> dict[str, Any]:
    same = None if again is None else recorded == again
    return {"what": what, "recorded": recorded, "again": again, "same": same, "how": how}
