"""The answer to "where may this run?": a verdict for every environment, kept together as one assessment."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from landbridge.domain.violation import Kind, Violation

_encode = msgspec.json.Encoder().encode


class Outlook(StrEnum):
    """What an operation without any eligible environment can hope for."""

    ELIGIBLE = ""  # at least one environment can run it
    NOT_NOW = "not-now"  # some environment can once a passing obstacle is gone
    UNPLACEABLE = "unplaceable"  # no environment can unless somebody changes something


class EligibilityVerdict(msgspec.Struct, frozen=True, gc=False):
    """Whether one environment may run one class of operations, with everything that stands against it.

    `valid_until` is when a rule may answer differently although no input changes (evidence expires, a deadline comes
    too close, a maintenance window opens or ends); None means never. `classes` are the accelerator classes by which it
    may be run there, the one to prefer first; none if it asks for no accelerators, or may not be run.
    """

    environment: str
    contract_version: int
    violations: tuple[Violation, ...]
    valid_until: datetime | None
    classes: tuple[str, ...] = ()

    @property
    def is_eligible(self) -> bool:
        return not self.violations

    @property
    def may_become_eligible(self) -> bool:
        """Tell whether only passing obstacles stand against the environment."""
        return all(violation.kind is Kind.NOT_NOW for violation in self.violations)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdicts of all environments about one requirement class, in the order of the environments' names.

    `id` is a hash of requirement class and verdicts without times, so equal answers have equal ids. `inputs` names the
    versions of what was read.
    """

    id: str
    requirement_class: str
    at: datetime
    verdicts: tuple[EligibilityVerdict, ...]
    inputs: Mapping[str, str]

    @property
    def eligible(self) -> tuple[EligibilityVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.violations)

    @property
    def outlook(self) -> Outlook:
        if any(not verdict.violations for verdict in self.verdicts):
            return Outlook.ELIGIBLE
        if any(verdict.may_become_eligible for verdict in self.verdicts):
            return Outlook.NOT_NOW
        return Outlook.UNPLACEABLE

    @property
    def valid_until(self) -> datetime | None:
        """Return when the first of the verdicts may change by itself."""
        return min((v.valid_until for v in self.verdicts if v.valid_until is not None), default=None)

    def nearest_miss(self) -> EligibilityVerdict | None:
        """Return the ineligible verdict with the least against it: hopeful ones first, then the fewest violations."""
        missed = [verdict for verdict in self.verdicts if verdict.violations]
        return min(missed, key=_distance, default=None)


def _distance(verdict: EligibilityVerdict) -> tuple[int, int, str]:
    never = sum(violation.kind is Kind.NEVER for violation in verdict.violations)
    return never, len(verdict.violations), verdict.environment


def assessment_id(requirement_class: str, verdicts: tuple[EligibilityVerdict, ...]) -> str:
    """Return the content address: equal for equal verdicts, whenever and from whichever inputs they were derived."""
    content = [
        (v.environment, v.contract_version, v.violations, v.classes)
        if v.classes
        else (v.environment, v.contract_version, v.violations)
        for v in verdicts
    ]
    return content_address(requirement_class, content)


def content_address(requirement_class: str, content: Iterable[tuple[object, ...]]) -> str:
    """Return the address of verdicts, told as environment, contract version, violations, and classes if any are."""
    return hashlib.sha256(_encode((requirement_class, list(content)))).hexdigest()[:32]
