"""What nobody may override, whoever asks and whatever else stands against an environment."""

from hypothesis import given, settings

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.decision_record import Placed, make_record, replay
from landbridge.domain.eligibility import judge
from landbridge.domain.overriding import UNABLE, UNBREAKABLE, EmergencyOverride, stands, why_it_stands
from landbridge.domain.placement import Choice, Route, score
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.violation import Kind, Violation
from support.deciding import NOW
from unit.domain.strategies import candidates, operations


@given(operation=operations(), candidate=candidates("alpha"))
@settings(max_examples=150, deadline=None)
def test_no_override_breaks_residency_tier_licence_or_the_sites_word(
    operation: RequirementClass, candidate: Candidate
) -> None:
    violations = judge(operation.requirements, candidate, CONSTRAINTS, NOW).violations
    against = stands(violations)
    broken = {violation.constraint for violation in violations}
    assert bool(against) or not broken & {"residency", "security-tier", "model-licence", "data-movement", "site-policy"}
    assert all(violation.constraint in why_it_stands(violation) for violation in against)
    if not against:
        record = _record(violations)
        assert replay(record, Placed("op", 1)) == record


def test_rules_that_stand_are_rules_that_exist() -> None:
    assert {*UNBREAKABLE, *UNABLE} <= {constraint.name for constraint in CONSTRAINTS}


def test_a_record_of_what_may_not_be_broken_does_not_replay() -> None:
    law = Violation("residency", "jurisdiction", Kind.NEVER, "EU", "US")
    record = _record((law,))
    assert replay(record, Placed("op", 1)) != record


def test_who_and_why_are_part_of_the_record() -> None:
    assert len({_record((), by=by, reason=reason).id for by in ("ann", "bob") for reason in ("fire", "flood")}) == 4


def _record(violations: tuple[Violation, ...], by: str = "ann", reason: str = "fire"):  # type: ignore[no-untyped-def]
    return make_record(
        assessment="a",
        at=NOW,
        policy="p",
        ranking=score({}, {}, names=[]),
        choice=Choice("alpha", Route.EMERGENCY_OVERRIDE, ()),
        inputs={},
        override=EmergencyOverride("alpha", by, reason, violations),
    )
