"""What people are told while nothing is eligible: the true reason, which changes with the cause."""

from dataclasses import replace
from datetime import timedelta

import pytest

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Control, Link, LinkState
from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.waiting import NoPlace, announcement, reason
from support.deciding import NOW, an_environment, an_operation, proof

LATE = proof("classes.cpu-general", at=NOW - timedelta(hours=2), lasts=timedelta(hours=1))

CAUSES: list[tuple[Candidate, NoPlace, str]] = [
    (an_environment(workloads=["service"]), NoPlace.INCOMPATIBLE, "workload-type"),
    (an_environment(classes={"cpu-general": {"cpu": None}}), NoPlace.MISCONFIGURED, "compute"),
    (an_environment(evidence={"classes.cpu-general": LATE}), NoPlace.UNVERIFIED, "compute-evidence"),
    (an_environment(evidence={claims.RUNTIME: None}), NoPlace.UNVERIFIED, "evidence"),
    (an_environment(control=Control(paused=True)), NoPlace.UNAVAILABLE, "control"),
    (an_environment(link=Link(LinkState.LOST)), NoPlace.UNAVAILABLE, "link"),
]


@pytest.mark.parametrize(("environment", "code", "constraint"), CAUSES)
def test_each_cause_has_its_own_code_and_the_sentence_names_it(
    environment: Candidate, code: NoPlace, constraint: str
) -> None:
    found = reason(evaluate_eligibility(an_operation(), [environment], NOW))
    assert found.code is code
    assert f"{constraint}: wanted" in found.message
    assert "onprem-a (contract version 1)" in found.message


def test_the_reason_changes_when_the_cause_changes() -> None:
    operation = an_operation()
    told = [reason(evaluate_eligibility(operation, [environment], NOW)).message for environment, _, _ in CAUSES]
    assert len(set(told)) == len(CAUSES)


def test_without_environments_people_are_told_to_register_one() -> None:
    assert reason(evaluate_eligibility(an_operation(), [], NOW)).code is NoPlace.NO_ENVIRONMENT


def test_only_what_readers_must_know_at_once_is_announced() -> None:
    operation = an_operation()
    fit, far = an_environment("near"), an_environment("far", workloads=["service"])
    first = announcement(evaluate_eligibility(operation, [fit, far], NOW))
    detail = evaluate_eligibility(operation, [fit, replace(far, control=Control(paused=True))], NOW)
    assert announcement(detail) == first
    gone = evaluate_eligibility(operation, [replace(fit, control=Control(paused=True)), far], NOW)
    assert announcement(gone) != first
