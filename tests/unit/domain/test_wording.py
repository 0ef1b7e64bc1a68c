"""What a cut means in words agrees with what the rules then do."""

import pytest
from msgspec.structs import replace

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre import decide
from landbridge.domain.ownership.centre_model import EnvironmentExpired, OperationState, PlacementState
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.expiry import release_wait_ms
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Disconnection, OnDisconnect
from landbridge.domain.ownership.wording import Prospect, Silence, outlook

SINCE = 1_000_000


def running(policy: OnDisconnect, **more: object) -> OperationState:
    state = OperationState(
        operation="0190a1b2-0000-5000-8000-00000000dead",
        project="p",
        phase=Phase.RUNNING,
        placement=PlacementState.RUNNING,
        epoch=Epoch(1, 1),
        environment="a",
        grant_term=1,
        policy=Disconnection(policy, 20_000, 10_000),
    )
    return replace(state, **more)


def silence(*, verified: bool = True, held: bool = False) -> Silence:
    return Silence(environment="a", since=SINCE, self_stop_verified=verified, held=held)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("policy", OnDisconnect)
def test_only_what_is_said_to_move_is_freed_by_time(policy: OnDisconnect, verified: bool, held: bool) -> None:
    state = running(policy)
    told = outlook(state, silence(verified=verified, held=held), DEFAULT_TIMING)
    wait = release_wait_ms(state.policy.stop_ms)
    expired = EnvironmentExpired(environment="a", silent_ms=wait, wait_ms=wait, self_stop_verified=verified, held=held)
    freed = decide(state, expired, 0).state.placement is PlacementState.IDLE
    assert freed is (told.prospect is Prospect.MAY_MOVE)
    assert bool(told.not_before) is freed


def test_the_moment_told_is_the_expiry_rules() -> None:
    told = outlook(running(OnDisconnect.CHECKPOINT_THEN_STOP), silence(), DEFAULT_TIMING)
    # Noticed a TTL after the last grant; (30 s + 35 s) x 1.01 / 0.99 + 2 s after it.
    assert told.not_before == SINCE - 30_000 + 68_314


def test_what_only_a_person_frees_names_the_commands() -> None:
    told = outlook(running(OnDisconnect.CONTINUE), silence(), DEFAULT_TIMING)
    assert told.prospect is Prospect.RUNS_ON
    assert "landbridge env declare-dead a" in told.text
    assert "landbridge release 0190a1b2 --override" in told.text


def test_work_without_a_record_waits_for_a_person_whatever_it_declares() -> None:
    told = outlook(running(OnDisconnect.STOP_AFTER_GRACE, missing=True), silence(), DEFAULT_TIMING)
    assert told.prospect is Prospect.WAITS


def test_a_cancel_is_said_to_take_effect_when_time_frees_the_work() -> None:
    told = outlook(running(OnDisconnect.STOP_AFTER_GRACE, cancel="x"), silence(), DEFAULT_TIMING)
    assert "cancelled then" in told.text
