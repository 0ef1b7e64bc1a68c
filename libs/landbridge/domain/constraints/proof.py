"""Whether a claim is proven right now: the same words and codes wherever a constraint relies on one.

Codes: `evidence-unknown` (never probed, or the probe could not tell), `evidence-failed`, `evidence-stale`. All of them
are *not now*: the next successful probe removes them.
"""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import moment
from landbridge.domain.evidence import FAILED, PROVEN, ClaimState
from landbridge.domain.violation import Kind, Violation

UNKNOWN_CODE = "evidence-unknown"
FAILED_CODE = "evidence-failed"
STALE_CODE = "evidence-stale"


def unproven(constraint: str, candidate: Candidate, claim: str, now: datetime) -> Violation | None:
    """Return why the claim does not count as proven at `now`, or None if it does."""
    state = candidate.evidence.get(claim)
    if state is not None and state.result == PROVEN and now < state.expires:
        return None
    wanted = f"fresh proof of {claim}"
    if state is None:
        found = f"no evidence for contract version {candidate.contract_version}"
        if candidate.evidence_version not in (0, candidate.contract_version):
            found += f" (version {candidate.evidence_version} was probed)"
        return Violation(constraint, UNKNOWN_CODE, Kind.NOT_NOW, wanted, found)
    if state.result == PROVEN:
        found = f"proven at {moment(state.decisive.at)}, which counted until {moment(state.expires)}"
        return Violation(constraint, STALE_CODE, Kind.NOT_NOW, wanted, found + _by(state))
    code, told = (FAILED_CODE, "failed") if state.result == FAILED else (UNKNOWN_CODE, "could not be told")
    return Violation(constraint, code, Kind.NOT_NOW, wanted, f"{told} at {moment(state.decisive.at)}{_by(state)}")


def proven_until(candidate: Candidate, claim: str, now: datetime) -> datetime | None:
    """Return when a claim that is proven at `now` stops being so by itself; None if it is not proven anyway."""
    state = candidate.evidence.get(claim)
    if state is None or state.result != PROVEN or state.expires <= now:
        return None
    return state.expires


def _by(state: ClaimState) -> str:
    piece = state.decisive
    told = f" by probe {piece.probe or 'of unknown name'}"
    if piece.subject:
        told += f" on {piece.subject}"
    return f"{told}: {piece.detail}" if piece.detail else told
