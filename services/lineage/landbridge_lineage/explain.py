"""Why an operation goes where it goes, or why it waits: verdicts, scores and decision in one answer. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from landbridge.schema.wire.event_v1 import (
    Assessment,
    Decision,
    EnvironmentVerdict,
    ScoreCard,
    ViolationKind,
)
from landbridge_lineage.reads import Round
from landbridge_lineage.state import State


def explanation(
    state: State,
    rounds: Sequence[Round],
    shown: Round | None,
    assessment: Assessment | None,
    decision: Decision | None,
) -> dict[str, Any]:
    """Return the whole answer. `assessment` is the one that was decided on, or the newest while nothing is decided."""
    answer: dict[str, Any] = {
        "operation": state.operation,
        "project": state.project,
        "phase": state.phase,
        "round": shown.round if shown else state.round,
        "rounds": [each.shown() for each in rounds],
        "waiting": plain(state.waits or state.held_back),
        "decision": _decision(decision, shown),
        "assessment": _assessment(assessment),
        "environments": [],
        "nearestMiss": None,
    }
    if assessment is not None:
        answer["environments"] = _environments(assessment, decision, shown)
        if not assessment.eligible:
            answer["nearestMiss"] = nearest_miss(assessment.environments)
    return answer


def _decision(decision: Decision | None, shown: Round | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    return {
        "id": decision.id,
        "at": decision.at,
        "environment": shown.environment if shown else "",
        "servedBy": shown.served_by if shown else "",
        "route": decision.route,
        "policyVersion": decision.policy_version,
        "assessmentId": decision.assessment_id,
        "inputs": decision.inputs,
        "override": plain(decision.override),
    }


def _assessment(assessment: Assessment | None) -> dict[str, Any] | None:
    if assessment is None:
        return None
    return {
        "id": assessment.id,
        "requirementClass": assessment.requirement_class,
        "at": assessment.at,
        "validUntil": assessment.valid_until,
        "eligible": assessment.eligible,
        "condition": assessment.condition,
        "inputs": assessment.inputs,
    }


def _environments(assessment: Assessment, decision: Decision | None, shown: Round | None) -> list[dict[str, Any]]:
    """Return every environment: ranked ones in their order, then eligible ones, then the rest, nearest first."""
    ranked: dict[str, list[ScoreCard]] = {}
    for card in decision.ranked if decision else ():
        ranked.setdefault(card.environment, []).append(card)
    places = {environment: place for place, environment in enumerate(ranked, 1)}
    ordered = sorted(
        assessment.environments,
        key=lambda verdict: (
            places.get(verdict.environment, len(places) + 1),
            not verdict.eligible,
            distance(verdict),
        ),
    )
    return [
        _environment(verdict, places.get(verdict.environment), ranked.get(verdict.environment, ()), shown)
        for verdict in ordered
    ]


def _environment(
    verdict: EnvironmentVerdict, rank: int | None, cards: Sequence[ScoreCard], shown: Round | None
) -> dict[str, Any]:
    """Return one environment, scored by the accelerator class that was chosen, else by the best that could serve."""
    chosen = shown is not None and verdict.environment == shown.environment
    served_by = shown.served_by if shown is not None and chosen else ""
    card = next((each for each in cards if each.served_by == served_by), next(iter(cards), None))
    return {
        "environment": verdict.environment,
        "contractVersion": verdict.contract_version,
        "eligible": verdict.eligible,
        "validUntil": verdict.valid_until,
        "violations": [violation(each) for each in verdict.violations],
        "chosen": chosen,
        "rank": rank,
        "score": card.total if card else None,
        "measurements": [measurement(each) for each in card.measurements] if card else [],
        "classes": list(verdict.classes),
        "servedBy": served_by or (card.served_by if card else "") or next(iter(verdict.classes), ""),
        "alternatives": [alternative(each, served_by) for each in cards] if len(cards) > 1 else [],
    }


def alternative(card: ScoreCard, served_by: str) -> dict[str, Any]:
    """Return one of several accelerator classes that could serve in an environment."""
    return {
        "class": card.served_by,
        "score": card.total,
        "chosen": card.served_by == served_by,
        "measurements": [measurement(each) for each in card.measurements],
    }


def violation(each: Any) -> dict[str, Any]:
    return {
        "constraint": each.constraint,
        "reason": each.reason,
        "kind": each.kind,
        "wanted": each.wanted,
        "found": each.found,
    }


def measurement(each: Any) -> dict[str, Any]:
    return {
        "preference": each.preference,
        "value": each.value,
        "unit": each.unit,
        "source": each.source,
        "normalised": each.normalised,
        "weight": each.weight,
        "unknown": each.unknown,
    }


def distance(verdict: EnvironmentVerdict) -> tuple[int, int, str]:
    """Order environments by how far they are from running it: hopeful ones first, then the fewest violations."""
    never = sum(each.kind is ViolationKind.NEVER for each in verdict.violations)
    return never, len(verdict.violations), verdict.environment


def nearest_miss(verdicts: Sequence[EnvironmentVerdict]) -> dict[str, Any] | None:
    """Return the ineligible environment with the least against it, and whether waiting alone can help there."""
    missed = [verdict for verdict in verdicts if not verdict.eligible]
    if not missed:
        return None
    nearest = min(missed, key=distance)
    kinds = {each.kind for each in nearest.violations}
    if ViolationKind.NEVER in kinds:
        hope = ViolationKind.NEVER
    else:
        hope = ViolationKind.MISCONFIGURED if ViolationKind.MISCONFIGURED in kinds else ViolationKind.NOT_NOW
    return {
        "environment": nearest.environment,
        "contractVersion": nearest.contract_version,
        "hope": hope,
        "violations": [violation(each) for each in nearest.violations],
    }


def plain(part: Any) -> Any:
    """Return a struct as JSON would carry it, or None."""
    return msgspec.to_builtins(part) if part is not None else None
