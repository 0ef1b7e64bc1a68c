"""What counts as drift: what runs and is not recorded so, what is recorded and does not run, nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_model import OperationState, PlacementState
from landbridge.domain.ownership.drift import Kind, compare_survey
from landbridge.domain.ownership.epochs import Epoch

HERE, THERE = "onprem-a", "cloud-b"
ONE, TWO = Epoch(1, 1), Epoch(1, 2)
RUNNING, CLAIMED, DONE, IDLE = PlacementState.RUNNING, PlacementState.CLAIMED, PlacementState.DONE, PlacementState.IDLE


def recorded(
    operation: str = "a", epoch: Epoch = ONE, placement: PlacementState = RUNNING, where: str = HERE, version: int = 3
) -> OperationState:
    phase = {RUNNING: Phase.RUNNING, CLAIMED: Phase.PENDING, DONE: Phase.COMPLETED}.get(placement, Phase.QUEUED)
    return OperationState(
        operation=operation, project="p", epoch=epoch, placement=placement, environment=where, phase=phase,
        grant_term=1, contract_version=version,
    )  # fmt: skip


def found(*present: tuple[str, Epoch], record: list[OperationState], **more: object) -> list[tuple[str, str, str]]:
    states = {state.operation: state for state in record}
    drifts = compare_survey(HERE, 1, present, states, more.pop("standing", {3}), **more)  # type: ignore[arg-type]
    return [(drift.kind.value, drift.wanted, drift.found) for drift in drifts]


def test_what_runs_where_it_is_recorded_is_no_drift() -> None:
    assert found(("a", ONE), record=[recorded()]) == []
    assert found(("a", ONE), record=[recorded(placement=CLAIMED)]) == []


def test_work_that_nobody_recorded() -> None:
    assert found(("x", ONE), record=[]) == [("unknown-work", "nothing of it recorded", "epoch 1.1 runs in onprem-a")]


def test_work_that_is_recorded_elsewhere_or_over() -> None:
    runs = "epoch 1.1 runs in onprem-a"
    other, newer, done = recorded(where=THERE, epoch=TWO), recorded(epoch=TWO), recorded(placement=DONE)
    assert found(("a", ONE), record=[other]) == [("runs-elsewhere", "epoch 1.2 in cloud-b, running", runs)]
    assert found(("a", ONE), ("a", TWO), record=[newer]) == [("runs-elsewhere", "epoch 1.2 in onprem-a, running", runs)]
    assert found(("a", ONE), record=[done]) == [("runs-elsewhere", "over: completed", runs)]


def test_work_that_is_gone_although_it_is_recorded() -> None:
    gone = [("missing-work", "epoch 1.1 in onprem-a, running", "onprem-a holds nothing of it")]
    assert found(record=[recorded()]) == gone
    assert found(record=[recorded()], complete=False) == []
    assert found(record=[recorded()], over=[("a", ONE)]) == []  # it has ended, and the report is on its way
    assert found(record=[recorded(placement=IDLE)]) == []
    assert found(record=[recorded(where=THERE)]) == []


def test_work_granted_in_a_later_term_cannot_be_missed_by_this_survey() -> None:
    later = [recorded()]
    assert compare_survey(HERE, 0, [], {"a": later[0]}, None) == []


def test_a_contract_version_that_is_over() -> None:
    old = [recorded(version=2)]
    told = "it runs under version 2, which is over"
    assert found(("a", ONE), record=old) == [("contract-version", "contract version 3 of onprem-a", told)]
    assert found(("a", ONE), record=old, standing={2, 3}) == []
    assert found(("a", ONE), record=old, standing=None) == []
    assert found(("a", ONE), record=[recorded(version=0)]) == []


_epochs = st.builds(Epoch, st.just(1), st.integers(1, 3))
_items = st.tuples(st.sampled_from("abc"), _epochs)
_states = st.builds(
    recorded,
    operation=st.sampled_from("abc"),
    epoch=_epochs,
    placement=st.sampled_from((RUNNING, CLAIMED, DONE, IDLE)),
    where=st.sampled_from((HERE, THERE)),
)


@given(present=st.sets(_items, max_size=4), record=st.lists(_states, max_size=3, unique_by=lambda s: s.operation))
def test_there_is_drift_exactly_where_the_two_differ(
    present: set[tuple[str, Epoch]], record: list[OperationState]
) -> None:
    states = {state.operation: state for state in record}
    drifts = compare_survey(HERE, 1, present, states, None)
    mine = {(s.operation, s.epoch) for s in record if s.environment == HERE and s.placement in (RUNNING, CLAIMED)}
    told = {(drift.operation, drift.epoch) for drift in drifts}
    assert told == present ^ mine
    assert {drift.kind for drift in drifts} <= {Kind.UNKNOWN, Kind.ELSEWHERE, Kind.MISSING}
