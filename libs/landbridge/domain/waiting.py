"""What to tell about operations that no environment can run: a stable code, a sentence, and what would change it."""

import hashlib
from enum import StrEnum
from typing import NamedTuple

import msgspec

from landbridge.domain.constraints.proof import FAILED_CODE, STALE_CODE, UNKNOWN_CODE
from landbridge.domain.verdict import Assessment, EligibilityVerdict, Outlook
from landbridge.domain.violation import Kind, Violation

_UNVERIFIED = frozenset({UNKNOWN_CODE, FAILED_CODE, STALE_CODE, "capacity-not-proven"})


class NoPlace(StrEnum):
    """Why nothing is eligible, by what the nearest environment lacks. Stable codes."""

    NO_ENVIRONMENT = "no-environment"  # none is registered
    INCOMPATIBLE = "incompatible"  # the nearest can never run it
    MISCONFIGURED = "misconfigured"  # somebody has to correct something
    UNVERIFIED = "unverified"  # the nearest could run it once it is proven again
    UNAVAILABLE = "unavailable"  # the nearest could run it and takes nothing for now


class Reason(NamedTuple):
    """A code and its sentence."""

    code: NoPlace
    message: str


def reason(assessment: Assessment) -> Reason:
    """Tell why no environment is eligible, by the nearest miss with its contract version."""
    miss = assessment.nearest_miss()
    if miss is None:
        return Reason(NoPlace.NO_ENVIRONMENT, "no environment is registered; register one")
    told = "; ".join(f"{v.constraint}: wanted {v.wanted}, found {v.found}" for v in miss.violations)
    message = f"no environment is eligible; nearest is {miss.environment} (contract version {miss.contract_version}): "
    return Reason(_code(miss.violations), message + told)


def _code(violations: tuple[Violation, ...]) -> NoPlace:
    kinds = {violation.kind for violation in violations}
    if Kind.NEVER in kinds:
        return NoPlace.INCOMPATIBLE
    if Kind.MISCONFIGURED in kinds:
        return NoPlace.MISCONFIGURED
    unverified = any(violation.reason in _UNVERIFIED for violation in violations)
    return NoPlace.UNVERIFIED if unverified else NoPlace.UNAVAILABLE


def announcement(assessment: Assessment) -> str:
    """Return a hash of what readers of a class's verdict must be told at once.

    Where something is eligible: which environments, by which contract version. Else the outlook and what the nearest
    environment lacks. Other environments' details are told with the next operation.
    """
    content: object
    if assessment.outlook is Outlook.ELIGIBLE:
        content = [(verdict.environment, verdict.contract_version) for verdict in assessment.eligible]
    else:
        content = (assessment.outlook, _lacks(assessment.nearest_miss()))
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]


def _lacks(miss: EligibilityVerdict | None) -> object:
    """Return what the sentence about a miss says, without the moments and details that every new proof changes."""
    if miss is None:
        return None
    told = [
        (violation.constraint, violation.reason, violation.wanted, _lasting(violation)) for violation in miss.violations
    ]
    return miss.environment, miss.contract_version, told


def _lasting(violation: Violation) -> str:
    return "" if violation.reason in _UNVERIFIED else violation.found
