"""Charges and what their operations' owner says of them: what is found, when, and what may be given back."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from landbridge.domain.charge_audit import UNDECIDED_AFTER, ChargeAudit
from landbridge.domain.ledger import Charge
from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_model import OperationState, PlacementState
from landbridge.domain.ownership.standing import Standing, standing
from support.deciding import NOW

RUNS = OperationState(
    operation="o", project="p", phase=Phase.RUNNING, round=2, environment="a", placement=PlacementState.RUNNING
)


def a_charge(round_: int = 2, *, age: timedelta = timedelta(hours=1)) -> Charge:
    return Charge("o", round_, "a", "training", "p", {"running": 1}, at=NOW - age)


@pytest.mark.parametrize(
    ("changes", "round_", "expected"),
    [
        ({}, 2, Standing.PLACED),
        ({"placement": PlacementState.OFFERED}, 2, Standing.PLACED),
        ({"placement": PlacementState.CLAIMED}, 2, Standing.PLACED),
        ({"placement": PlacementState.RECOVERING}, 2, Standing.PLACED),
        ({"placement": PlacementState.IDLE, "phase": Phase.QUEUED}, 2, Standing.IDLE),
        ({}, 1, Standing.OVER),
        ({}, 3, Standing.AHEAD),
        ({"environment": "b"}, 2, Standing.ELSEWHERE),
        ({"phase": Phase.COMPLETED, "placement": PlacementState.DONE}, 2, Standing.ENDED),
        ({"phase": Phase.CANCELLED, "placement": PlacementState.DONE}, 1, Standing.ENDED),
    ],
)
def test_an_operation_stands_about_a_round_as_its_row_says(
    changes: dict[str, object], round_: int, expected: Standing
) -> None:
    assert standing(replace(RUNS, **changes), round_, "a") is expected


def test_what_the_owner_does_not_know_is_unknown() -> None:
    assert standing(None, 1, "a") is Standing.UNKNOWN


@pytest.mark.parametrize("over", [Standing.OVER, Standing.ENDED])
def test_what_is_over_counts_when_two_looks_in_a_row_have_shown_it_and_may_be_given_back(over: Standing) -> None:
    audit, charge = ChargeAudit(), a_charge()
    told = {("o", 2): over}
    assert audit.look([charge], told, NOW) == []
    [found] = audit.look([charge], told, NOW)
    assert (found.charge, found.over) == (charge, True)


def test_what_was_freed_between_two_looks_is_not_found() -> None:
    audit = ChargeAudit()
    assert audit.look([a_charge(1)], {("o", 1): Standing.OVER}, NOW) == []
    assert audit.look([a_charge(2)], {("o", 2): Standing.PLACED}, NOW) == []
    assert audit.look([a_charge(1)], {("o", 1): Standing.OVER}, NOW) == []


@pytest.mark.parametrize("waits", [Standing.IDLE, Standing.UNKNOWN, Standing.AHEAD])
def test_what_may_still_be_placed_is_found_after_a_while_and_never_given_back(waits: Standing) -> None:
    audit, told = ChargeAudit(), {("o", 2): waits}
    for _ in range(3):
        assert audit.look([a_charge(age=UNDECIDED_AFTER - timedelta(seconds=1))], told, NOW) == []
    audit.look([a_charge(age=UNDECIDED_AFTER)], told, NOW)
    [found] = audit.look([a_charge(age=UNDECIDED_AFTER)], told, NOW)
    assert not found.over


def test_what_is_placed_or_not_told_of_is_left_alone() -> None:
    audit = ChargeAudit()
    for told in ({("o", 2): Standing.PLACED}, {}):
        for _ in range(3):
            assert audit.look([a_charge()], told, NOW) == []
