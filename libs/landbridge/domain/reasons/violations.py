"""Every code that a rule may give when it judges an environment."""

from collections.abc import Mapping
from typing import Final

from landbridge.domain.constraints.proof import FAILED_CODE, STALE_CODE, UNKNOWN_CODE
from landbridge.domain.reasons.amounts import AMOUNTS
from landbridge.domain.reasons.base import Reason
from landbridge.domain.reasons.data import DATA
from landbridge.domain.reasons.operators import OPERATORS
from landbridge.domain.reasons.state import STATE
from landbridge.domain.reasons.who import WHO
from landbridge.domain.violation import Kind, Violation

_NOT_NOW = Kind.NOT_NOW
# Rules that rely on evidence; each gives its three codes under its own name.
PROVING: Final = ("security-tier", "controls", "identity", "connections", "hardware", "compute-evidence", "evidence")


def _evidence(rule: str) -> tuple[Reason, ...]:
    wanted, by = "fresh proof of <claim>", " by probe <probe>[ on <subject>][: <detail>]"
    verify = "landbridge env verify {environment}"
    return (
        Reason(
            rule,
            UNKNOWN_CODE,
            _NOT_NOW,
            wanted,
            "<no evidence for the contract version, or: could not be told, when and by which probe>",
            f"have it probed: {verify}; if it stays unknown, the probe's text tells why",
        ),
        Reason(
            rule, FAILED_CODE, _NOT_NOW, wanted, "failed at <time>" + by, f"repair what the probe names, then: {verify}"
        ),
        Reason(
            rule,
            STALE_CODE,
            _NOT_NOW,
            wanted,
            "proven at <time>, which counted until <time>" + by,
            f"have it probed again: {verify}; if it stays stale, the dispatcher does not probe",
        ),
    )


VIOLATIONS: Final[tuple[Reason, ...]] = (
    *WHO,
    *DATA,
    *AMOUNTS,
    *STATE,
    *OPERATORS,
    *(each for rule in PROVING for each in _evidence(rule)),
)
_BY_CODE: Final[Mapping[tuple[str, str], Reason]] = {(reason.rule, reason.code): reason for reason in VIOLATIONS}


def reason_of(violation: Violation) -> Reason | None:
    """Return what is known of a violation's code; None for one of a later release."""
    return _BY_CODE.get((violation.constraint, _parts(violation)[0]))


def next_step(violation: Violation, environment: str) -> str:
    """Return what to do about a violation; empty for a code of a later release."""
    reason = reason_of(violation)
    return reason.next.format(environment=environment, name=_parts(violation)[1]) if reason is not None else ""


def _parts(violation: Violation) -> tuple[str, str]:
    """Return a code as the table has it, and the name of the operator's rule that it carries, if it carries one."""
    code, colon, name = violation.reason.partition(":")
    return (f"{code}:<name>", name) if colon else (code, "")
