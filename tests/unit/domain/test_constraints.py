"""Every hard rule: satisfied, violated, at its boundary, and where the environment says nothing."""

from datetime import timedelta

import pytest

from landbridge.domain.constraints import CONSTRAINTS
from support.deciding import NOW, an_environment, an_operation, codes, judged_by
from unit.domain.constraint_cases import CASES
from unit.domain.constraint_worlds import JOB, MAINTENANCE, NOT_NOW, WINDOW, Case, gpus, holding


def test_an_environment_is_supported_to_the_end_of_its_last_day() -> None:
    site = an_environment(support={"until": "2026-11-30"})
    end = NOW.replace(hour=0) + timedelta(days=1)
    [rule] = [each for each in CONSTRAINTS if each.name == "support"]
    assert rule.holds_until(JOB.requirements, site, NOW) == end
    assert rule.holds_until(JOB.requirements, site, end) is None
    assert not judged_by("support", JOB, site, end - timedelta(seconds=1))
    assert [found.reason for found in judged_by("support", JOB, site, end)] == ["support-ended"]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{'-'.join(c for c, _ in case[4]) or 'ok'}"
)
def test_a_constraint_says_exactly_what_is_wrong(case: Case) -> None:
    constraint, _, operation, environment, expected = case
    assert codes(constraint, operation, environment) == expected


@pytest.mark.parametrize(
    ("hours", "expected", "code"),
    [
        (-2, "1h", []),
        (-1, "1h", []),  # it ends as the window opens
        (-1, "1h1m", ["maintenance-ahead"]),
        (-1, "0s", []),
        (0, "0s", ["in-maintenance"]),
        (1.99, "0s", ["in-maintenance"]),
        (2, "0s", []),
    ],
)
def test_work_neither_starts_in_a_maintenance_window_nor_runs_into_one(
    hours: float, expected: str, code: list[str]
) -> None:
    operation = an_operation(lifecycle={"expectedDuration": expected})
    found = judged_by("maintenance", operation, MAINTENANCE, NOW + timedelta(hours=hours))
    assert [violation.reason for violation in found] == code
    assert all(violation.kind == NOT_NOW for violation in found)


def test_a_maintenance_window_follows_the_clocks_of_its_place() -> None:
    berlin = an_environment(maintenance=[{**WINDOW, "timeZone": "Europe/Berlin"}])  # 02:00 to 04:00 UTC in winter
    assert judged_by("maintenance", JOB, berlin, NOW - timedelta(minutes=1))
    assert not judged_by("maintenance", JOB, berlin, NOW + timedelta(hours=1))


def test_every_constraint_has_a_case_in_which_it_holds_and_one_in_which_it_does_not() -> None:
    covered = {(constraint, bool(expected)) for constraint, _, _, _, expected in CASES} | {
        ("maintenance", True),
        ("maintenance", False),
    }
    assert covered == {(constraint.name, violated) for constraint in CONSTRAINTS for violated in (True, False)}


def test_every_constraint_has_a_boundary_or_an_unknown() -> None:
    states = {(constraint, situation) for constraint, situation, _, _, _ in CASES}
    plain_flags = {"maintenance", "control"}
    for constraint in CONSTRAINTS:
        if constraint.name not in plain_flags:
            assert {(constraint.name, "boundary"), (constraint.name, "unknown")} & states, constraint.name


def test_names_of_constraints_are_unique() -> None:
    names = [constraint.name for constraint in CONSTRAINTS]
    assert len(set(names)) == len(names)


def test_a_paused_class_says_who_paused_it_and_why() -> None:
    [violation] = judged_by("class-control", gpus(), holding(nodes="pool=gpu"))
    assert violation.wanted == "4 gpu-80gb of classes that take new work"
    assert violation.found == "class gpu-80gb paused with nodes pool=gpu by ann: new driver"
    [violation] = judged_by("class-control", an_operation(resources={"requests": {"cpu": "65"}}), holding("gpu-80gb"))
    assert violation.wanted == "65 cpu of classes that take new work"
    assert violation.found == "class gpu-80gb paused by ann: new driver"


def test_nothing_of_a_paused_class_counts_as_room_for_new_work() -> None:
    paused = holding("gpu-80gb")
    assert (paused.proven["gpu-80gb"], paused.open["gpu-80gb"]) == (16, 0)
    assert (paused.proven["cpu"], paused.open["cpu"]) == (96_000, 64_000)
