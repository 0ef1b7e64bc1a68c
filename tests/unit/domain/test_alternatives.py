"""Several classes of an environment could serve a request: all are tried, each is judged and charged for itself."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain import claims
from landbridge.domain.admission import Admission
from landbridge.domain.candidate import Candidate, Control, Hold, Link, LinkState, build_candidate
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.decision_record import Placed, make_record, replay
from landbridge.domain.eligibility import judge
from landbridge.domain.hardware import alternatives
from landbridge.domain.ledger import Ledger, demand
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Route, choose, groups_in_question, order, rank
from landbridge.domain.queues import Plan
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.tickets import Ticket
from landbridge.domain.verdict import EligibilityVerdict
from landbridge.domain.violation import Kind
from support.deciding import CONNECTED, NOW, a_catalogue, a_contract, an_environment, an_operation, proof, states
from unit.domain.strategies import candidates, operations

SMALL = {"count": 4, "memory": "48Gi", "precision": ["bf16"]}
LARGE = {"count": 8, "memory": "80Gi", "precision": ["bf16", "fp8"]}
TWO = {"gpu-48gb": SMALL, "gpu-80gb": LARGE}


def asking(**accelerator: Any) -> RequirementClass:
    return an_operation(resources={"accelerator": accelerator}, lifecycle={"expectedDuration": "1h"})


def verdict(operation: RequirementClass, environment: Candidate) -> EligibilityVerdict:
    return judge(operation.requirements, environment, CONSTRAINTS, NOW)


def a_plan(operation: RequirementClass, *environments: Candidate, weights: dict[str, float] | None = None) -> Plan:
    """The plan that ranking makes: every environment, once for every class that can serve there."""
    need = operation.requirements.accelerator
    places = [
        place
        for environment in environments
        for place in alternatives(need, environment, verdict(operation, environment).classes)
    ]
    ranking = rank(operation.requirements, places, weights or {"cost": 1.0})
    return Plan(
        queue="training",
        project="retail-eu",
        priority=0,
        weight=1.0,
        order=order(ranking),
        amounts={place.place: demand(operation.requirements, place) for place in places},
    )


def an_admission(plan: Plan, *environments: Candidate) -> Admission:
    capacity = {environment.environment: environment.open for environment in environments}
    admission = Admission(Ledger(), Limits(a_catalogue(queues={"training": {"quota": {"gpu-80gb": "4"}}}), capacity))
    admission.set_plan("k", plan)
    return admission


# -- eligibility -------------------------------------------------------------------------------------------------------


def test_a_request_by_attributes_is_served_by_every_class_that_has_them_the_smallest_first() -> None:
    assert verdict(asking(memory="40Gi"), an_environment(classes=TWO)).classes == ("gpu-48gb", "gpu-80gb")
    assert verdict(asking(memory="60Gi"), an_environment(classes=TWO)).classes == ("gpu-80gb",)
    assert verdict(asking(precision=["fp8"]), an_environment(classes=TWO)).classes == ("gpu-80gb",)


def test_a_class_is_served_by_itself_first_and_by_any_that_fulfils_what_it_guarantees() -> None:
    documents = a_catalogue(a_contract(classes=TWO), classes={"gpu-48gb": {"attributes": {"memory": "48Gi"}}})
    environment = an_environment(classes=TWO, catalogue=documents)
    assert verdict(asking(**{"class": "gpu-48gb"}), environment).classes == ("gpu-48gb", "gpu-80gb")
    assert verdict(asking(**{"class": "gpu-80gb"}), environment).classes == ("gpu-80gb",)


HELD = Control(holds=(Hold("gpu-48gb", by="ann", reason="new driver"),))
FAILED = {claims.capability_class("gpu-48gb"): proof(claims.capability_class("gpu-48gb"), "failed")}
FEW = {claims.capability_class("gpu-48gb"): proof(claims.capability_class("gpu-48gb"), proven=0.0, claimed=4.0)}


@pytest.mark.parametrize("environment", [
    an_environment(classes=TWO, control=HELD),
    an_environment(classes=TWO, evidence=FAILED),
    an_environment(classes=TWO, evidence=FEW),
    an_environment(classes={**TWO, "gpu-48gb": {**SMALL, "count": 1}}),
    an_environment(classes={**TWO, "gpu-48gb": {**SMALL, "perNode": 1}}),
    an_environment(classes={**TWO, "gpu-48gb": {**SMALL, "interruptible": True}}),
], ids=["paused", "not proven", "proven in part", "too few", "too few on a node", "interruptible"])  # fmt: skip
def test_what_stands_against_one_class_leaves_the_others(environment: Candidate) -> None:
    found = verdict(asking(memory="40Gi", count=2), environment)
    assert (found.violations, found.classes) == ((), ("gpu-80gb",))


def test_where_no_class_can_serve_the_reason_says_of_each_why_not() -> None:
    environment = an_environment(classes={**TWO, "gpu-80gb": {**LARGE, "interruptible": True}}, evidence=FAILED)
    [violation] = verdict(asking(memory="40Gi"), environment).violations
    assert (violation.constraint, violation.reason, violation.kind) == ("hardware", "evidence-failed", Kind.NOT_NOW)
    assert "; nor class gpu-80gb (interruptible: interruptible devices in class gpu-80gb)" in violation.found


def test_one_class_that_may_serve_later_keeps_the_environment_hopeful() -> None:
    environment = an_environment(classes={**TWO, "gpu-80gb": {**LARGE, "interruptible": True}}, control=HELD)
    found = verdict(asking(memory="40Gi"), environment)
    assert [(v.constraint, v.reason) for v in found.violations] == [("class-control", "class-paused")]
    assert found.may_become_eligible


def test_all_classes_that_could_serve_are_named_when_all_of_them_are_paused() -> None:
    both = Control(holds=(Hold("gpu-48gb", by="ann"), Hold("gpu-80gb", by="bob")))
    [violation] = verdict(asking(memory="40Gi"), an_environment(classes=TWO, control=both)).violations
    assert violation.reason == "class-paused"
    assert violation.found == "class gpu-48gb paused by ann; class gpu-80gb paused by bob"


def test_an_older_dispatcher_gets_only_the_class_that_is_named() -> None:
    old = Link(LinkState.CONNECTED, NOW, CONNECTED.features - {"assigned-class"})
    documents = a_catalogue(a_contract(classes=TWO), classes={"gpu-48gb": {"attributes": {"memory": "48Gi"}}})
    named = asking(**{"class": "gpu-48gb"})
    assert verdict(named, an_environment(classes=TWO, catalogue=documents, link=old)).classes == ("gpu-48gb",)
    found = verdict(named, an_environment(classes=TWO, catalogue=documents, link=old, evidence=FAILED))
    assert "class-not-assignable" in found.violations[0].found
    unnamed = verdict(asking(memory="60Gi"), an_environment(classes=TWO, link=old))
    assert [(v.reason, v.kind) for v in unnamed.violations] == [("class-not-assignable", Kind.MISCONFIGURED)]


def test_an_image_that_has_no_variant_for_a_class_leaves_those_it_has_one_for() -> None:
    variants = {"large": {"digest": "sha256:1", "accelerator": "gpu-80gb"}}
    runtime = {"executor": "kubernetes"}
    brought: dict[str, Any] = {"command": ["train"], "image": {"registry": "events", "name": "t", "variants": variants}}
    accelerator: dict[str, Any] = {"accelerator": {"memory": "40Gi"}}
    environment = an_environment(classes=TWO, runtime=runtime)
    assert verdict(an_operation(resources=accelerator, **brought), environment).classes == ("gpu-80gb",)
    failed = proof(claims.capability_class("gpu-80gb"), "failed")
    environment = an_environment(classes=TWO, runtime=runtime, evidence={failed.claim: failed})
    [violation] = verdict(an_operation(resources=accelerator, **brought), environment).violations
    assert violation.reason == "evidence-failed"
    assert "nor class gpu-48gb (no-image-variant" in violation.found


@given(operation=operations(), candidate=candidates("alpha"), more=st.sampled_from((SMALL, LARGE)))
@settings(max_examples=200, deadline=None)
def test_an_alternative_class_never_makes_fewer_environments_eligible(
    operation: RequirementClass, candidate: Candidate, more: dict[str, Any]
) -> None:
    ruled = replace(candidate, catalogue=replace(candidate.catalogue, rules={}))
    contract = candidate.contract
    added = {**contract.classes, "gpu-more": a_contract(classes={"gpu-more": more}).classes["gpu-more"]}
    pieces = {**candidate.evidence, **states([proof(claims.capability_class("gpu-more"))])}
    wider = build_candidate(
        replace(contract, classes=added),
        candidate.phase,
        evidence=pieces,
        evidence_version=candidate.evidence_version,
        link=candidate.link,
        control=candidate.control,
        catalogue=ruled.catalogue,
    )
    before = judge(operation.requirements, ruled, CONSTRAINTS, NOW)
    after = judge(operation.requirements, wider, CONSTRAINTS, NOW)
    assert after.is_eligible or not before.is_eligible
    assert after.may_become_eligible or not before.may_become_eligible
    assert set(before.classes) <= set(after.classes)


# -- ranking and admission ---------------------------------------------------------------------------------------------


def priced(name: str, small: float, large: float, **more: Any) -> Candidate:
    cost = {"currency": "EUR", "perHour": {"gpu-48gb": small, "gpu-80gb": large}}
    return an_environment(name, classes=TWO, cost=cost, **more)


def test_each_class_is_scored_for_itself_and_the_best_is_chosen() -> None:
    operation = asking(memory="40Gi")
    plan = a_plan(operation, priced("x", 2.0, 9.0), priced("y", 5.0, 1.0))
    assert plan.order is not None
    cards = [(card.environment, card.served_by) for card in plan.order.ranking.cards]
    assert cards == [("y", "gpu-80gb"), ("x", "gpu-48gb"), ("y", "gpu-48gb"), ("x", "gpu-80gb")]
    choice = choose(plan.order, "op", ())
    assert choice is not None
    assert (choice.environment, choice.served_by, choice.place) == ("y", "gpu-80gb", "y/gpu-80gb")


def test_of_classes_that_score_alike_the_one_that_fits_best_is_taken() -> None:
    plan = a_plan(asking(memory="40Gi"), an_environment("x", classes=TWO), weights={"reliability": 1.0})
    assert plan.order is not None
    for number in range(20):
        choice = choose(plan.order, f"op-{number}", ())
        assert choice is not None
        assert choice.served_by == "gpu-48gb"


def test_a_full_class_gives_way_to_the_next_and_the_chosen_one_is_charged() -> None:
    operation, environment = asking(memory="40Gi", count=2), priced("x", 1.0, 2.0)
    admission = an_admission(a_plan(operation, environment), environment)
    admission.arrive("k", [Ticket(f"op-{number}", 1, number, NOW) for number in range(6)])
    admitted = admission.admit(NOW)
    assert [found.choice.served_by for found in admitted] == ["gpu-48gb"] * 2 + ["gpu-80gb"] * 2
    charged = [{name for name in found.charge.amounts if name.startswith("gpu")} for found in admitted]
    assert charged == [{"gpu-48gb"}, {"gpu-48gb"}, {"gpu-80gb"}, {"gpu-80gb"}]
    assert {found.charge.environment for found in admitted} == {"x"}
    # Four devices of the larger class are free, but the quota of the queue is used up: neither class is left.
    wait = admission.buckets["k"].wait
    assert wait is not None
    admission.release(admitted[2].ticket.operation)
    assert [found.choice.served_by for found in admission.admit(NOW)] == ["gpu-80gb"]
    admission.release(admitted[0].ticket.operation)
    assert [found.choice.served_by for found in admission.admit(NOW)] == ["gpu-48gb"]


# -- overflow ----------------------------------------------------------------------------------------------------------


def strict(plan: Plan) -> Plan:
    """The same plan under a policy that forbids overflow."""
    assert plan.order is not None
    return replace(plan, order=order(msgspec.structs.replace(plan.order.ranking, overflow_allowed=False)))


def test_where_overflow_is_forbidden_every_class_of_the_best_environment_serves_and_no_other_environment() -> None:
    """What is forbidden is a worse environment; one that stands idle by half would be waited for in vain."""
    operation = asking(memory="40Gi", count=4)
    best, other = priced("x", 1.0, 9.0), priced("y", 2.0, 3.0)
    plan = strict(a_plan(operation, best, other))
    assert plan.order is not None
    assert groups_in_question(plan.order) == ["x/gpu-48gb", "x/gpu-80gb"]
    admission = an_admission(plan, best, other)
    admission.set_limits(Limits(a_catalogue(), {"x": best.open, "y": other.open}))
    admission.arrive("k", [Ticket(f"op-{number}", 1, number, NOW) for number in range(5)])
    admitted = admission.admit(NOW)
    assert [found.choice.place for found in admitted] == ["x/gpu-48gb", "x/gpu-80gb", "x/gpu-80gb"]
    assert {found.choice.route for found in admitted} == {Route.PREFERRED}
    wait = admission.buckets["k"].wait
    assert wait is not None
    assert wait.message.startswith("x holds 4 of 4 gpu-48gb")
    admission.release(admitted[2].ticket.operation)
    assert [found.choice.place for found in admission.admit(NOW)] == ["x/gpu-80gb"]


def test_who_holds_out_for_the_best_environment_takes_any_class_of_it_meanwhile() -> None:
    operation = asking(memory="40Gi", count=4)
    best, other = priced("x", 1.0, 9.0), priced("y", 2.0, 3.0)
    plan = replace(a_plan(operation, best, other), overflow_after=timedelta(minutes=5))
    admission = an_admission(plan, best, other)
    admission.set_limits(Limits(a_catalogue(), {"x": best.open, "y": other.open}))
    admission.arrive("k", [Ticket(f"op-{number}", 1, number, NOW) for number in range(4)])
    assert {found.choice.environment for found in admission.admit(NOW)} == {"x"}
    [late] = admission.admit(NOW + timedelta(minutes=5))
    assert (late.choice.place, late.choice.route) == ("y/gpu-48gb", Route.OVERFLOW)


def test_another_class_of_the_preferred_environment_is_no_overflow_and_another_environment_is() -> None:
    plan = a_plan(asking(memory="40Gi"), priced("x", 1.0, 9.0), priced("y", 2.0, 3.0))
    assert plan.order is not None
    places = ["x/gpu-48gb", "y/gpu-48gb", "y/gpu-80gb", "x/gpu-80gb"]
    routes = []
    for number in range(len(places)):
        choice = choose(plan.order, "op", places[:number])
        assert choice is not None
        assert choice.place == places[number]
        routes.append(choice.route)
    assert routes == [Route.PREFERRED, Route.OVERFLOW, Route.OVERFLOW, Route.PREFERRED]


def test_where_the_best_environment_has_one_class_only_that_is_waited_for() -> None:
    best = an_environment("x", classes={"gpu-48gb": SMALL}, cost={"perHour": {"gpu-48gb": 1.0}})
    plan = strict(a_plan(asking(memory="40Gi"), best, priced("y", 2.0, 3.0)))
    assert plan.order is not None
    assert groups_in_question(plan.order) == ["x"]
    assert choose(plan.order, "op", {"x"}) is None


def test_a_decision_among_classes_is_made_again_from_its_record() -> None:
    plan = a_plan(asking(memory="40Gi"), priced("x", 1.0, 1.0), priced("y", 1.0, 1.0))
    assert plan.order is not None
    for number in range(10):
        operation = f"op-{number}"
        for full in ((), ("x/gpu-48gb",), ("x/gpu-48gb", "y/gpu-48gb")):
            choice = choose(plan.order, operation, full)
            assert choice is not None
            record = make_record(
                assessment="a", at=NOW, policy="p", ranking=plan.order.ranking, choice=choice, inputs={}
            )
            assert record.served_by == choice.served_by
            assert replay(record, Placed(operation, 1)) == record


@given(small=st.integers(0, 6), large=st.integers(0, 6), wanted=st.integers(1, 3), many=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_no_class_is_charged_beyond_what_there_is_and_nothing_waits_beside_room(
    small: int, large: int, wanted: int, many: int
) -> None:
    classes = {"gpu-48gb": {**SMALL, "count": small}, "gpu-80gb": {**LARGE, "count": large}}
    environment = an_environment("x", classes={name: each for name, each in classes.items() if each["count"]})
    operation = asking(memory="40Gi", count=wanted)
    if not verdict(operation, environment).is_eligible:
        assert max(small, large) < wanted
        return
    admission = an_admission(a_plan(operation, environment), environment)
    admission.set_limits(Limits(a_catalogue(), {"x": environment.open}))
    admission.arrive("k", [Ticket(f"op-{number}", 1, number, NOW) for number in range(many)])
    admitted = admission.admit(NOW + timedelta(seconds=1))
    assert len(admitted) == min(many, small // wanted + large // wanted)
    for name, most in (("gpu-48gb", small), ("gpu-80gb", large)):
        assert sum(found.charge.amounts.get(name, 0) for found in admitted) <= most
