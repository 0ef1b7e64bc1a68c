"""When running work is asked to checkpoint, asked to end and made to end."""

from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.ownership.leases import self_stop_schedule
from landbridge.domain.ownership.policy import Disconnection as DeclaredPolicy
from landbridge.domain.ownership.policy import OnDisconnect
from landbridge_dispatch.executors.local.course import MS, Course, Stage, StopRequest
from landbridge_dispatch.executors.local.order import Disconnection

FAR = 10**15


def a_course(policy: str = "continue", *, within: int = 0, grace: int = 0, timeout: int = 0) -> Course:
    return Course(Disconnection(policy, within, grace), started_ns=0, timeout_ms=timeout, grace_ms=30)


def at(course: Course, ms: int, *, lease: int = 0, stop: StopRequest | None = None, sealed: bool = False) -> Stage:
    return course.advance(ms * MS, lease_until_ns=lease * MS, stop=stop, sealed=sealed)


def test_continuing_work_never_ends_because_time_passed() -> None:
    course = a_course()
    assert at(course, FAR) is Stage.RUNNING
    assert course.next_wake_ns(FAR) is None


def test_a_timeout_ends_politely_and_then_by_force() -> None:
    course = a_course(timeout=100)
    assert at(course, 99) is Stage.RUNNING
    assert course.next_wake_ns(99 * MS) == 100 * MS
    assert at(course, 100) is Stage.TERMINATING
    assert at(course, 129) is Stage.TERMINATING
    assert at(course, 130) is Stage.KILLING
    assert course.cause == "timeout"


def test_a_stop_ends_with_its_own_grace_and_a_forced_one_at_once() -> None:
    polite, forced = a_course(), a_course()
    assert at(polite, 5, stop=StopRequest("cancelled", 20)) is Stage.TERMINATING
    assert at(polite, 25) is Stage.KILLING
    assert at(forced, 5, stop=StopRequest("cancelled", 20, force=True)) is Stage.KILLING


def test_force_shortens_a_stop_that_is_under_way() -> None:
    course = a_course()
    at(course, 5, stop=StopRequest("cancelled", 1000))
    assert at(course, 6, stop=StopRequest("cancelled", 0, force=True)) is Stage.KILLING


def test_a_lost_lease_asks_for_a_checkpoint_and_a_sealed_one_ends_the_waiting() -> None:
    course = a_course("checkpoint-then-stop", within=100, grace=10)
    assert at(course, 49, lease=50) is Stage.RUNNING
    assert at(course, 50, lease=50) is Stage.CHECKPOINTING
    assert at(course, 60, lease=50, sealed=True) is Stage.TERMINATING
    assert at(course, 70, lease=50) is Stage.KILLING
    assert course.cause == "self-stopped"


def test_a_lease_that_returns_in_time_lets_work_go_on() -> None:
    course = a_course("checkpoint-then-stop", within=100, grace=10)
    at(course, 60, lease=50)
    assert at(course, 70, lease=500) is Stage.RUNNING
    assert at(course, 400, lease=500) is Stage.RUNNING


def test_a_stop_under_way_is_not_taken_back_by_a_returning_lease() -> None:
    course = a_course("stop-after-grace", within=10, grace=50)
    assert at(course, 70, lease=50) is Stage.TERMINATING
    assert at(course, 80, lease=500) is Stage.TERMINATING


@given(
    policy=st.sampled_from(["checkpoint-then-stop", "stop-after-grace"]),
    within=st.integers(0, 1000),
    grace=st.integers(0, 1000),
    lease=st.integers(1, 1000),
    wakes=st.lists(st.integers(0, 5000), max_size=12),
)
def test_self_stop_is_never_later_than_the_rules_promise(
    policy: str, within: int, grace: int, lease: int, wakes: list[int]
) -> None:
    """However late and often the guardian wakes up, from the promised moment on it kills."""
    schedule = self_stop_schedule(DeclaredPolicy(OnDisconnect(policy), within, grace), lease)
    assert schedule is not None
    course = a_course(policy, within=within, grace=grace)
    for moment in sorted(wakes):
        if moment < schedule.kill_at:
            at(course, moment, lease=lease)
    at(course, schedule.kill_at, lease=lease)
    assert at(course, schedule.kill_at, lease=lease) is Stage.KILLING


@given(within=st.integers(0, 1000), grace=st.integers(0, 1000), lease=st.integers(1, 1000), now=st.integers(0, 4000))
def test_the_next_wake_is_never_behind_the_next_change(within: int, grace: int, lease: int, now: int) -> None:
    course = a_course("stop-after-grace", within=within, grace=grace)
    before = at(course, now, lease=lease)
    wake = course.next_wake_ns(now * MS)
    if before is Stage.KILLING:
        return
    assert wake is not None
    if wake > now * MS + MS:
        assert course.advance(wake - MS, lease_until_ns=lease * MS, stop=None, sealed=False) is before
