"""A plan in the form in which people and programs read it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from landbridge.domain.candidate import environment_of
from landbridge.domain.constraints.base import moment
from landbridge.domain.forecast import Forecast
from landbridge.domain.measured import Measured
from landbridge.domain.near_miss import Change, NearMiss
from landbridge.domain.placement import ScoreCard
from landbridge.domain.preferences import Measurement
from landbridge.domain.queues import Plan
from landbridge.domain.verdict import Assessment, EligibilityVerdict, Outlook
from landbridge.domain.violation import Kind, Violation

_STAGING = "transfer-time"
# Reasons that end at a moment that is known before.
_TIMED: Final = frozenset({"in-maintenance", "maintenance-ahead"})


def environments(
    assessment: Assessment,
    cards: Sequence[ScoreCard],
    likely_one: Mapping[str, Any] | None,
    misses: Mapping[str, NearMiss],
) -> list[dict[str, Any]]:
    """Return every environment: eligible ones best first, then the others, nearest first."""
    ranked: dict[str, list[ScoreCard]] = {}
    for each in cards:
        ranked.setdefault(each.environment, []).append(each)
    places = {name: place for place, name in enumerate(ranked)}
    nearness = {name: place for place, name in enumerate(misses)}
    ordered = sorted(
        assessment.verdicts,
        key=lambda v: (bool(v.violations), nearness.get(v.environment, places.get(v.environment, 0))),
    )
    rank = 0
    rows = []
    for verdict in ordered:
        chosen = likely_one is not None and verdict.environment == likely_one["environment"]
        served_by = str(likely_one["servedBy"]) if likely_one is not None and chosen else ""
        own = ranked.get(verdict.environment, ())
        card = next((each for each in own if each.served_by == served_by), next(iter(own), None))
        rank += verdict.is_eligible
        miss = misses.get(verdict.environment)
        rows.append(
            {
                "environment": verdict.environment,
                "contractVersion": verdict.contract_version,
                "eligible": verdict.is_eligible,
                "validUntil": verdict.valid_until,
                "violations": [_violation(each) for each in verdict.violations],
                "change": _change(miss.change) if miss is not None else None,
                "changes": [_change(each) for each in miss.changes] if miss is not None else [],
                "chosen": chosen,
                "rank": rank if verdict.is_eligible else None,
                "score": card.total if card is not None else None,
                "measurements": [_measured(each) for each in card.measurements] if card is not None else [],
                "classes": list(verdict.classes),
                "servedBy": served_by
                or (card.served_by if card is not None else "")
                or next(iter(verdict.classes), ""),
                "alternatives": [_alternative(each, served_by) for each in own] if len(own) > 1 else [],
            }
        )
    return rows


def likely(plan: Plan, ahead: Forecast | None) -> dict[str, Any] | None:
    """Return where it would go: as the passes say, else the best; with those that rank equal."""
    if plan.order is None or not plan.order.groups:
        return None
    best = plan.order.groups[0][1]
    place = ahead.place if ahead is not None and ahead.place else best[0]
    group = next((names for _, names in plan.order.groups if place in names), (place,))
    admitted = ahead.first.admitted if ahead is not None else None
    environment = environment_of(place)
    return {
        "environment": environment,
        "servedBy": plan.serves.get(place, ""),
        "equals": [other for other in dict.fromkeys(map(environment_of, group)) if other != environment],
        "route": admitted.choice.route.value if admitted is not None else None,
        "full": list(admitted.choice.full) if admitted is not None else [],
    }


def _alternative(card: ScoreCard, served_by: str) -> dict[str, Any]:
    """Return one of several accelerator classes that could serve in an environment."""
    return {
        "class": card.served_by,
        "score": card.total,
        "chosen": card.served_by == served_by,
        "measurements": [_measured(each) for each in card.measurements],
    }


def nearest(misses: Sequence[NearMiss]) -> dict[str, Any] | None:
    """Return the environment that comes nearest, and the one change after which it could run the operation."""
    if not misses:
        return None
    verdict, changes = misses[0]
    return {
        "environment": verdict.environment,
        "contractVersion": verdict.contract_version,
        "hope": _hope(verdict),
        "violations": [_violation(each) for each in verdict.violations],
        "change": _change(misses[0].change),
        "changes": [_change(each) for each in changes],
    }


def waits(ahead: Forecast | None) -> dict[str, str] | None:
    """Return what it waits for, or would; None if it would be admitted now or no turn would come."""
    wait = ahead.first.wait if ahead is not None and ahead.first.admitted is None else None
    return {"reason": wait.reason.value, "message": wait.message} if wait is not None else None


# -- when -------------------------------------------------------------------------------------------------------------


def told(
    ahead: Forecast | None,
    plan: Plan,
    assessment: Assessment,
    likely_one: Mapping[str, Any] | None,
    *,
    delay: Measurement | None,
    blind: str,
) -> dict[str, Any]:
    """Return when it may start, as numbers and as a sentence that says how sure that is.

    `delay` is how long starting takes there once its turn has come; `blind` is why nobody looked `ahead`.
    """
    if assessment.outlook is not Outlook.ELIGIBLE:
        return _nowhere(assessment)
    if ahead is None:
        return {"admission": None, "start": None, "text": blind}
    where = str(likely_one["environment"]) if likely_one is not None else ""
    staging = _measurement(plan, where, _STAGING)
    admission = None
    if ahead.middle_s is not None:
        admission = {"lowSeconds": ahead.low_s, "seconds": ahead.middle_s, "highSeconds": ahead.high_s}
    after = [part.value for part in (delay, staging) if part is not None]
    known = [value for value in after if value is not None]
    start = None
    if admission is not None and len(known) == len(after) and after:
        start = {name: None if value is None else value + sum(known) for name, value in admission.items()}
    return {
        "admission": admission,
        "startDelay": _part(delay),
        "staging": _part(staging),
        "start": start,
        "text": f"{_turn(ahead)}; {_after(where, delay, staging)}",
    }


def _turn(ahead: Forecast) -> str:
    if ahead.first.admitted is not None:
        return "it would be placed at once"
    if ahead.middle_s is None:
        if ahead.unknown:
            return (
                f"when its turn comes is unknown: of {ahead.unknown} operations that hold places, nothing tells how "
                "long they last (fewer than 3 ended in their queue there, and they state no expectedDuration)"
            )
        return "its turn does not come by time alone; see what it waits for"
    low, high = ahead.low_s or 0.0, ahead.high_s
    span = f"{seconds_told(low)} to {seconds_told(high)}" if high is not None else f"{seconds_told(low)} or much more"
    seen = f"by how long the last {ahead.seen} operations there lasted" if ahead.seen else ""
    declared = f"by what {ahead.declared} that hold places declare" if ahead.declared else ""
    source = " and ".join(filter(None, (seen, declared)))
    rest = ", if nothing comes that goes before it"
    return f"its turn comes in about {seconds_told(ahead.middle_s)} ({span}, {source}{rest})"


def _after(where: str, delay: Measurement | None, staging: Measured | None) -> str:
    if delay is None or delay.value is None:
        return f"how soon {where} then starts it is unknown: {delay.source if delay is not None else 'not measured'}"
    text = f"{where} then starts it in about {seconds_told(delay.value)} ({delay.source})"
    if staging is not None and staging.value is None:
        return f"{text}, once its data is there: how long that takes is unknown ({staging.source})"
    if staging is not None and staging.value:
        return f"{text} and {seconds_told(staging.value)} for its data ({staging.source})"
    return text


def _nowhere(assessment: Assessment) -> dict[str, Any]:
    """Tell what time may bring where nothing is eligible."""
    if assessment.outlook is Outlook.UNPLACEABLE:
        text = "it cannot start as things stand: somebody has to change something"
        return {"admission": None, "start": None, "notBefore": None, "text": text}
    ends = [end for verdict in assessment.verdicts if (end := _known_end(verdict)) is not None]
    not_before = min(ends, default=None)
    text = "when it may start is unknown: it depends on when what is in the way has passed"
    if not_before is not None:
        text = f"not before {moment(not_before)}, when a maintenance window ends"
    return {"admission": None, "start": None, "notBefore": not_before, "text": text}


def _known_end(verdict: EligibilityVerdict) -> datetime | None:
    timed = verdict.violations and all(violation.reason in _TIMED for violation in verdict.violations)
    if not timed:
        return None
    # `found` is the window: its end is the moment, whatever else holds until when.
    return datetime.fromisoformat(verdict.violations[0].found.rpartition(" ")[2])


def seconds_told(seconds: float) -> str:
    """Write a time for people: `8 s`, `4 min`, `2.5 h`, `3 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size * 1.5:
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 10 or unit == "min" else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 or not seconds else "1 s"


# -- parts ------------------------------------------------------------------------------------------------------------


def _measurement(plan: Plan, environment: str, preference: str) -> Measured | None:
    cards = plan.order.ranking.cards if plan.order is not None else ()
    card = next((card for card in cards if card.environment == environment), None)
    found = card.measurements if card is not None else ()
    return next((measured for measured in found if measured.preference == preference), None)


def _part(measured: Measured | Measurement | None) -> dict[str, Any] | None:
    return {"seconds": measured.value, "source": measured.source} if measured is not None else None


def _measured(measured: Measured) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(measured)
    return {**found, "value": measured.value, "unknown": measured.unknown}


def _violation(violation: Violation) -> dict[str, str]:
    return {
        "constraint": violation.constraint,
        "reason": violation.reason,
        "kind": violation.kind.value,
        "wanted": violation.wanted,
        "found": violation.found,
    }


def _change(change: Change | None) -> dict[str, str] | None:
    return change._asdict() if change is not None else None


def _hope(verdict: EligibilityVerdict) -> str:
    kinds = {violation.kind for violation in verdict.violations}
    return next(kind.value for kind in (Kind.NEVER, Kind.MISCONFIGURED, Kind.NOT_NOW) if kind in kinds)
