"""One function decides where work may run; its fast path never disagrees; adding a rule never opens a door."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from landbridge.domain.candidate import Candidate, Control, EvidenceSet, Hold, Link, LinkState, build_candidates
from landbridge.domain.catalogue_document import read_rule
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.constraints.operator_rules import OneRule
from landbridge.domain.eligibility import evaluate_eligibility, judge
from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.requirements import RequirementClass, from_class_body
from landbridge.domain.verdict import Outlook
from landbridge.domain.violation import Kind, Violation
from support.deciding import CONNECTED, NOW, a_catalogue, a_contract, all_proven, an_environment, an_operation, states
from unit.domain.strategies import (
    CONTROLS,
    ENVIRONMENTS,
    HOLDS,
    LINKS,
    RULES,
    candidates,
    catalogues,
    contracts,
    evidence,
    operations,
)


@given(operation=operations(), candidate=candidates("alpha"), chosen=st.sets(st.sampled_from(CONSTRAINTS)))
@settings(max_examples=150, deadline=None)
def test_adding_a_constraint_never_makes_more_environments_eligible(
    operation: RequirementClass, candidate: Candidate, chosen: set[object]
) -> None:
    fewer = [constraint for constraint in CONSTRAINTS if constraint in chosen]
    with_all = judge(operation.requirements, candidate, CONSTRAINTS, NOW)
    with_some = judge(operation.requirements, candidate, fewer, NOW)
    assert set(with_some.violations) <= set(with_all.violations)
    assert with_some.is_eligible or not with_all.is_eligible


@given(operation=operations(), candidate=candidates("alpha"), part=st.floats(0, 1, exclude_max=True))
@settings(max_examples=150, deadline=None)
def test_a_verdict_stays_what_it_is_until_the_moment_it_names(
    operation: RequirementClass, candidate: Candidate, part: float
) -> None:
    verdict = judge(operation.requirements, candidate, CONSTRAINTS, NOW)
    horizon = verdict.valid_until or NOW + timedelta(days=1)
    later = min(NOW + (horizon - NOW) * part, horizon - timedelta(microseconds=1))
    again = judge(operation.requirements, candidate, CONSTRAINTS, later)
    assert again.violations == verdict.violations
    assert again.valid_until == verdict.valid_until
    assert again.classes == verdict.classes


@given(operation=operations())
@settings(max_examples=50, deadline=None)
def test_a_class_survives_the_way_through_an_assessment(operation: RequirementClass) -> None:
    again = from_class_body(operation.body)
    assert again == operation


@given(
    operation=operations(),
    candidate=candidates("alpha"),
    kept=st.lists(HOLDS, unique=True, max_size=2),
    more=st.lists(HOLDS, unique=True, max_size=2),
)
@settings(max_examples=150, deadline=None)
def test_pausing_more_of_an_environment_never_opens_it(
    operation: RequirementClass, candidate: Candidate, kept: list[Hold], more: list[Hold]
) -> None:
    def with_holds(holds: list[Hold]) -> Candidate:
        control = replace(candidate.control, holds=tuple(holds))
        [found] = build_candidates(
            [(candidate.contract, candidate.phase)],
            evidence=EvidenceSet(candidate.contract_version, candidate.evidence),
            link=candidate.link,
            control=control,
            catalogue=candidate.catalogue,
        )
        return found

    few, many = with_holds(kept), with_holds([*kept, *more])
    before = judge(operation.requirements, few, CONSTRAINTS, NOW)
    after = judge(operation.requirements, many, CONSTRAINTS, NOW)
    assert before.is_eligible or not after.is_eligible
    assert all(many.open.get(resource, 0) <= amount for resource, amount in few.open.items())
    assert few.open.keys() == many.open.keys() == few.proven.keys()
    pauses = [v for v in after.violations if v.constraint == "class-control"]
    assert all(v.kind is Kind.NOT_NOW for v in pauses)
    assert [v for v in after.violations if v not in pauses] == [
        v for v in before.violations if v.constraint != "class-control"
    ]


@given(
    operation=operations(),
    candidate=candidates("alpha"),
    few=st.dictionaries(st.sampled_from("abc"), RULES, max_size=2),
    more=st.dictionaries(st.sampled_from("def"), RULES, max_size=2),
)
@settings(max_examples=150, deadline=None)
def test_adding_a_rule_never_makes_more_environments_eligible(
    operation: RequirementClass, candidate: Candidate, few: dict[str, Any], more: dict[str, Any]
) -> None:
    def under(rules: dict[str, Any]) -> set[Violation]:
        read = {name: read_rule(name, 1, {"spec": spec}) for name, spec in rules.items()}
        ruled = replace(candidate, catalogue=replace(candidate.catalogue, rules=read))
        return set(judge(operation.requirements, ruled, CONSTRAINTS, NOW).violations)

    assert under({}) <= under(few) <= under({**few, **more})


@given(
    first=operations(),
    second=operations(),
    sites=st.lists(st.sampled_from(ENVIRONMENTS).flatmap(candidates), max_size=3),
    minutes=st.integers(-3, 200),
)
@settings(max_examples=150, deadline=None)
def test_a_constraint_says_of_all_at_once_what_it_says_of_each(
    first: RequirementClass, second: RequirementClass, sites: list[Candidate], minutes: int
) -> None:
    """And the same to two operations of which it asks the same."""
    now = NOW + timedelta(minutes=minutes)
    rules = [OneRule(rule) for site in sites for rule in site.catalogue.rules.values()]
    for constraint in (*CONSTRAINTS, *rules):
        answers = []
        for operation in (first.requirements, second.requirements):
            found = [constraint.check(operation, site, now) for site in sites]
            holds = [constraint.holds_until(operation, site, now) for site in sites]
            assert constraint.check_all(operation, sites, now) == found
            assert constraint.hold_all(operation, sites, now) == holds
            answers.append((found, holds))
        if constraint.asks(first.requirements) == constraint.asks(second.requirements):
            assert answers[0] == answers[1]


@given(operation=operations(), sites=st.tuples(*(candidates(name) for name in ENVIRONMENTS)))
@settings(max_examples=100, deadline=None)
def test_evaluating_is_judging_every_environment(operation: RequirementClass, sites: tuple[Candidate, ...]) -> None:
    judged = [judge(operation.requirements, site, CONSTRAINTS, NOW) for site in sites]
    assert list(evaluate_eligibility(operation, sites, NOW).verdicts) == judged


class FastPath(RuleBasedStateMachine):
    """Environments change in every way while classes are asked about; the index must equal the plain evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.index = EligibilityIndex(most_classes=5)
        self.now = NOW
        self.known: dict[str, Candidate] = {}
        self.asked: list[RequirementClass] = []

    @rule(data=st.data(), name=st.sampled_from(ENVIRONMENTS))
    def an_environment_is_registered_anew(self, data: st.DataObject, name: str) -> None:
        self._set(name, data.draw(candidates(name)))

    @rule(data=st.data(), name=st.sampled_from(ENVIRONMENTS), part=st.sampled_from(("evidence", "link", "control")))
    def one_part_changes(self, data: st.DataObject, name: str, part: str) -> None:
        before = self.known.get(name)
        if before is None:
            return
        strategy = {"link": LINKS, "control": CONTROLS, "evidence": evidence(before.contract, self.now)}[part]
        parts = {
            "evidence": before.evidence,
            "link": before.link,
            "control": before.control,
            "catalogue": before.catalogue,
        }
        parts[part] = data.draw(strategy)
        found = EvidenceSet(before.contract_version, parts.pop("evidence"))  # type: ignore[arg-type]
        [after] = build_candidates([(before.contract, before.phase)], evidence=found, **parts)  # type: ignore[arg-type]
        self._set(name, after)

    @rule(data=st.data())
    def a_document_changes(self, data: st.DataObject) -> None:
        catalogue = data.draw(catalogues(*(candidate.contract for candidate in self.known.values())))
        for name, before in list(self.known.items()):
            self._set(name, replace(before, catalogue=catalogue))

    @rule(name=st.sampled_from(ENVIRONMENTS))
    def an_environment_is_removed(self, name: str) -> None:
        self.known.pop(name, None)
        self.index.set_environment(name, ())

    @rule(minutes=st.integers(-3, 90))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(operation=operations())
    def another_class_is_asked_about(self, operation: RequirementClass) -> None:
        self.asked = [operation, *self.asked][:8]

    @invariant()
    def fast_equals_plain(self) -> None:
        for operation in self.asked:
            plain = evaluate_eligibility(operation, self.known.values(), self.now)
            fast = self.index.assess(operation, self.now)
            assert fast.verdicts == plain.verdicts
            assert fast.id == plain.id

    def _set(self, name: str, candidate: Candidate) -> None:
        self.known[name] = candidate
        self.index.set_environment(name, (candidate,))


FastPath.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestFastPath = FastPath.TestCase


def test_the_order_of_environments_does_not_matter() -> None:
    environments = [an_environment(name) for name in ENVIRONMENTS]
    forwards = evaluate_eligibility(an_operation(), environments, NOW)
    backwards = evaluate_eligibility(an_operation(), reversed(environments), NOW)
    assert forwards == backwards
    assert [verdict.environment for verdict in forwards.verdicts] == sorted(ENVIRONMENTS)


def test_all_violations_are_kept_not_only_the_first() -> None:
    operation = an_operation(
        constraints={"jurisdictions": ["US"], "securityTier": "restricted"}, resources={"requests": {"cpu": "1000"}}
    )
    environment = an_environment(boundaries={"securityTier": "open"}, control=Control(paused=True))
    [verdict] = evaluate_eligibility(operation, [environment], NOW).verdicts
    assert [violation.reason for violation in verdict.violations] == [
        "jurisdiction",
        "tier-too-low",
        "cpu-exceeds-capacity",
        "paused",
    ]


def test_equal_answers_have_equal_ids_whenever_they_were_given() -> None:
    operation, environment = an_operation(), an_environment()
    first = evaluate_eligibility(operation, [environment], NOW)
    later = evaluate_eligibility(operation, [environment], NOW + timedelta(minutes=5))
    paused = evaluate_eligibility(operation, [replace(environment, control=Control(paused=True))], NOW)
    assert first.id == later.id != paused.id


def test_without_any_environment_nothing_is_eligible() -> None:
    assessment = evaluate_eligibility(an_operation(), [], NOW)
    assert assessment.outlook is Outlook.UNPLACEABLE
    assert assessment.nearest_miss() is None


def test_the_outlook_tells_hopeless_from_not_now() -> None:
    operation = an_operation(constraints={"jurisdictions": ["EU"]})
    far = an_environment("far", location={"jurisdictions": ["US"]})
    paused = an_environment("near", control=Control(paused=True))
    assert evaluate_eligibility(operation, [far], NOW).outlook is Outlook.UNPLACEABLE
    assert evaluate_eligibility(operation, [far, paused], NOW).outlook is Outlook.NOT_NOW
    assert evaluate_eligibility(operation, [far, an_environment()], NOW).outlook is Outlook.ELIGIBLE


def test_the_nearest_miss_is_the_most_hopeful_environment() -> None:
    operation = an_operation(constraints={"jurisdictions": ["EU"]})
    far = an_environment("far", location={"jurisdictions": ["US"]})
    near = an_environment("near", control=Control(paused=True), link=Link(LinkState.LOST))
    miss = evaluate_eligibility(operation, [far, near], NOW).nearest_miss()
    assert miss is not None
    assert miss.environment == "near"


def test_of_two_active_contract_versions_the_newest_that_fits_is_used() -> None:
    old, new = a_contract(version=8), a_contract(version=9, workloads=["service"])
    proven = EvidenceSet(9, states({**all_proven(old), **all_proven(new)}))
    pair = build_candidates(
        [(old, "active"), (new, "active")], evidence=proven, link=CONNECTED, catalogue=a_catalogue(old, new)
    )
    [for_job] = evaluate_eligibility(an_operation(), pair, NOW).verdicts
    [for_service] = evaluate_eligibility(an_operation(type="distributed-job"), pair, NOW).verdicts
    assert (for_job.contract_version, for_job.is_eligible) == (8, True)
    assert (for_service.contract_version, for_service.is_eligible) == (9, False)


def test_each_of_two_active_contract_versions_is_judged_by_its_own_evidence() -> None:
    """The newer one has larger machines, of which nothing is proven yet."""
    old, new = a_contract(version=8), a_contract(version=9, classes={"cpu-general": {"cpu": "128"}})
    unproven = {claim: piece for claim, piece in all_proven(new).items() if claim != "classes.cpu-general"}
    found = EvidenceSet(9, states(unproven), EvidenceSet(8, states(all_proven(old))))
    pair = build_candidates(
        [(old, "active"), (new, "active")], evidence=found, link=CONNECTED, catalogue=a_catalogue(old, new)
    )
    [verdict] = evaluate_eligibility(an_operation(), pair, NOW).verdicts
    assert (verdict.is_eligible, verdict.contract_version) == (True, 8)
    [verdict] = evaluate_eligibility(an_operation(resources={"requests": {"cpu": "100"}}), pair, NOW).verdicts
    assert (verdict.is_eligible, verdict.contract_version) == (False, 9)


def test_evidence_for_another_contract_version_counts_only_for_claims_that_did_not_change() -> None:
    probed, new = a_contract(version=8), a_contract(version=9, classes={"cpu-general": {"cpu": "128"}})
    found = EvidenceSet(8, states(all_proven(probed)))
    [candidate] = build_candidates(
        [(probed, "retiring"), (new, "active")], evidence=found, link=CONNECTED, catalogue=a_catalogue(new)
    )
    [verdict] = evaluate_eligibility(an_operation(inputs={"x": {"connection": "events"}}), [candidate], NOW).verdicts
    assert [(v.constraint, v.reason) for v in verdict.violations] == [("compute-evidence", "evidence-unknown")]
    assert "version 8 was probed" in verdict.violations[0].found


@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_an_environment_that_nobody_heard_of_yet_is_never_eligible(data: st.DataObject) -> None:
    contract = data.draw(contracts("alpha"))
    [candidate] = build_candidates([(contract, "active")], catalogue=a_catalogue(contract))
    [verdict] = evaluate_eligibility(data.draw(operations()), [candidate], NOW).verdicts
    assert {"never-connected", "evidence-unknown"} <= {violation.reason for violation in verdict.violations}
