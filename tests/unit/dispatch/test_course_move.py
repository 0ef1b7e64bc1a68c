"""A stop for a move asks for a checkpoint first, within bounds that a lost lease shortens."""

from landbridge_dispatch.executors.local.course import MOVED, MS, Course, Stage, StopRequest
from landbridge_dispatch.executors.local.order import Disconnection

MOVE = StopRequest(MOVED, 100)


def a_course(policy: str = "continue", *, within: int = 0, grace: int = 0, checkpoints: bool = True) -> Course:
    disconnection = Disconnection(policy, within, grace)
    return Course(disconnection, started_ns=0, timeout_ms=0, grace_ms=30, checkpoints=checkpoints)


def at(course: Course, ms: int, *, lease: int = 10**9, sealed: bool = False, stop: StopRequest = MOVE) -> Stage:
    return course.advance(ms * MS, lease_until_ns=lease * MS, stop=stop, sealed=sealed)


def test_it_ends_as_soon_as_the_checkpoint_is_sealed() -> None:
    course = a_course()
    assert at(course, 10) is Stage.CHECKPOINTING
    assert course.next_wake_ns(10 * MS) == 110 * MS
    assert at(course, 50, sealed=True) is Stage.TERMINATING
    assert at(course, 149) is Stage.TERMINATING
    assert at(course, 150) is Stage.KILLING
    assert course.cause == MOVED


def test_without_a_checkpoint_in_time_it_ends_all_the_same() -> None:
    course = a_course()
    assert at(course, 0) is Stage.CHECKPOINTING
    assert at(course, 99) is Stage.CHECKPOINTING
    assert at(course, 100) is Stage.TERMINATING


def test_the_declared_time_to_seal_counts_where_it_is_longer() -> None:
    course = a_course("checkpoint-then-stop", within=500, grace=100)
    assert at(course, 0) is Stage.CHECKPOINTING
    assert at(course, 499) is Stage.CHECKPOINTING
    assert at(course, 500) is Stage.TERMINATING


def test_work_that_declares_no_checkpoints_is_stopped_at_once() -> None:
    assert at(a_course(checkpoints=False), 0) is Stage.TERMINATING


def test_a_forced_stop_asks_for_nothing() -> None:
    assert at(a_course(), 0, stop=StopRequest(MOVED, 100, force=True)) is Stage.KILLING


def test_a_lease_that_ends_meanwhile_does_not_move_the_end_that_the_centre_counts_on() -> None:
    course = a_course("stop-after-grace", grace=100)
    assert at(course, 0, lease=50) is Stage.CHECKPOINTING
    assert at(course, 60, lease=50) is Stage.TERMINATING
    assert at(course, 149, lease=50) is Stage.TERMINATING
    assert at(course, 150, lease=50) is Stage.KILLING
