"""Recorded decisions made again from their recorded inputs, and compared part by part."""

from typing import Any

import msgspec

from landbridge.domain.candidate import place_name
from landbridge.domain.decision_record import DecisionRecord, Placed, replay, rescored
from landbridge.domain.placement import Ranking
from landbridge.store import Tx
from landbridge_ranking import questions, store


async def replayed(tx: Tx, decision: str, operation: str) -> dict[str, Any] | None:
    """Make a decision again for one operation; None if there is no such decision."""
    record = await store.decision(tx, decision)
    if record is None:
        return None
    placed = next((each for _, each in await questions.placed_by(tx, decision, operation)), None)
    return compared(record, placed)


def compared(record: DecisionRecord, placed: Placed | None) -> dict[str, Any]:
    """Compare a record with what its inputs give again. `placed` None: of that operation no more is kept.

    Each check has `what`, `recorded`, `again` and `same`; `same` None says that it cannot be made again.
    """
    ranking = rescored(record.ranking)
    checks = [
        _check("scores", _totals(record.ranking), _totals(ranking)),
        _check("order", _order(record.ranking), _order(ranking)),
    ]
    again = replay(record, placed) if placed is not None else None
    checks += [
        _check("environment", _where(record), _where(again) if again is not None else None),
        _check("route", record.route.value, again.route.value if again is not None else None),
        _check("id", record.id, again.id if again is not None else None),
    ]
    return {
        "decision": record.id,
        "at": record.at,
        "assessmentId": record.assessment,
        "policyVersion": record.policy,
        "environment": record.environment,
        "servedBy": record.served_by,
        "route": record.route.value,
        "full": list(record.full),
        "inputs": dict(record.inputs),
        "placed": msgspec.to_builtins(placed) if placed is not None else None,
        "ranked": [{"environment": card.environment, "eligible": card.eligible} for card in record.ranking.cards],
        "checks": checks,
    }


def _check(what: str, recorded: object, again: object) -> dict[str, Any]:
    return {"what": what, "recorded": recorded, "again": again, "same": None if again is None else recorded == again}


def _totals(ranking: Ranking) -> dict[str, float]:
    return {card.place: card.total for card in sorted(ranking.cards, key=lambda card: card.place)}


def _order(ranking: Ranking) -> list[str]:
    return [card.place for card in ranking.cards]


def _where(record: DecisionRecord) -> str:
    return place_name(record.environment, record.served_by)
