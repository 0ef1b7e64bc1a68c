"""The latest proof of an environment's claims, brought to one state per claim."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

PROVEN = "proven"
FAILED = "failed"
UNKNOWN = "unknown"


class Evidence(NamedTuple):
    """What one probe found about one claim. `proven` and `claimed` are amounts, where the claim is a number."""

    claim: str
    result: str
    at: datetime
    expires: datetime
    probe: str = ""
    subject: str = ""
    proven: float | None = None
    claimed: float | None = None
    detail: str = ""


class ClaimState(NamedTuple):
    """All evidence for one claim: it holds only if every probe of it says so, and until the first of them expires.

    `decisive` is the piece to show: the one that speaks against the claim, or the one that expires first.
    """

    result: str
    expires: datetime
    proven: float | None
    claimed: float | None
    decisive: Evidence


# A probe that failed outweighs one that could not tell, which outweighs one that succeeded.
_WEIGHT = {FAILED: 0, UNKNOWN: 1, PROVEN: 2}


def _rank(piece: Evidence) -> tuple[int, datetime, str]:
    return _WEIGHT.get(piece.result, 1), piece.expires, piece.probe


def claim_states(items: Iterable[Evidence]) -> dict[str, ClaimState]:
    """Bring evidence to one state per claim."""
    pieces: dict[str, list[Evidence]] = {}
    for item in items:
        pieces.setdefault(item.claim, []).append(item)
    return {claim: _state(found) for claim, found in sorted(pieces.items())}


def _state(pieces: list[Evidence]) -> ClaimState:
    decisive = min(pieces, key=_rank)
    amounts = [piece.proven for piece in pieces if piece.proven is not None]
    claimed = [piece.claimed for piece in pieces if piece.claimed is not None]
    return ClaimState(
        result=decisive.result if decisive.result in _WEIGHT else UNKNOWN,
        expires=min(piece.expires for piece in pieces),
        proven=min(amounts, default=None),
        claimed=max(claimed, default=None),
        decisive=decisive,
    )


NO_EVIDENCE: Mapping[str, ClaimState] = {}
