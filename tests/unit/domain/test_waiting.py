"""What people are told while nothing is eligible: the true reason, which changes with the cause."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"control": Control(paused=True, by="ann")}, {"control": Control(paused=True, by="bob")}),
        ({"control": Control(paused=True)}, {"link": Link(LinkState.LOST)}),
        ({"version": 1, "workloads": ["service"]}, {"version": 2, "workloads": ["service"]}),
        ({"workloads": ["service"]}, {"workloads": ["service", "training"]}),
        (
            {"evidence": {"classes.cpu-general": proof("classes.cpu-general", "failed")}},
            {"evidence": {claims.RUNTIME: proof(claims.RUNTIME, "failed")}},
        ),
    ],
    ids=["who", "what", "version", "found", "claim"],
)
def test_another_sentence_under_the_same_code_is_told_again(before: dict[str, Any], after: dict[str, Any]) -> None:
    told = [announcement(evaluate_eligibility(an_operation(), [an_environment(**one)], NOW)) for one in (before, after)]
    assert told[0] != told[1]


def test_the_same_failure_proven_anew_is_not_told_again() -> None:
    """Probes run every few minutes: their moments must not make an event for every operation that waits."""
    failed = [proof(claims.RUNTIME, "failed", at=NOW + timedelta(minutes=minutes)) for minutes in (0, 5)]
    told = [
        announcement(evaluate_eligibility(an_operation(), [an_environment(evidence={claims.RUNTIME: one})], NOW))
        for one in failed
    ]
    assert told[0] == told[1]
