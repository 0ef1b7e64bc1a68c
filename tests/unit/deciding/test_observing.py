"""What environments do lately: windows that forget, rounded so that noise changes no ranking."""

from datetime import timedelta

from landbridge.domain.preferences import Observed
from landbridge.domain.runs import Ran
from landbridge_ranking.observing import Observations
from support.deciding import NOW


def test_delays_and_failures_are_counted_over_the_last_ones() -> None:
    seen = Observations()
    for number in range(30):
        seen.started("a", 10.0 if number < 10 else 2.0)
        seen.ended("a", "failed-to-start" if number == 29 else "exit-code")
    assert seen.snapshot(NOW)["a"] == Observed(20, 2.0, 30, 1)


def test_measured_bandwidths_are_part_of_what_is_observed() -> None:
    seen = Observations().snapshot(NOW, bandwidths={"a": {"events": 1e9}})
    assert seen == {"a": Observed(bandwidths={"events": 1e9})}


def test_only_the_environments_own_faults_count_as_failures() -> None:
    seen = Observations()
    for reason in ("exit-code", "timeout", "completed", "environment-lost", "relinquished"):
        seen.ended("a", reason)
    assert seen.snapshot(NOW)["a"].failures == 2


def test_noise_does_not_show() -> None:
    first, second = Observations(), Observations()
    for i in range(20):
        first.started("a", 1.20 + i / 10_000)
        second.started("a", 1.21 - i / 10_000)
    assert first.snapshot(NOW) == second.snapshot(NOW)


def test_a_clock_that_is_behind_is_no_negative_delay() -> None:
    seen = Observations()
    seen.started("a", -5.0)
    assert seen.snapshot(NOW)["a"].start_delay_s == 0.0


def test_snapshots_are_rare_and_come_by_time_alone() -> None:
    seen = Observations()
    assert seen.due(NOW)
    seen.snapshot(NOW)
    seen.ended("a", "")
    assert not seen.due(NOW + timedelta(seconds=9))
    assert seen.due(NOW + timedelta(seconds=10))


def test_windows_survive_a_restart() -> None:
    seen, successor = Observations(), Observations()
    for i in range(5):
        seen.started("a", float(i))
        seen.ended("b", "lost")
    successor.load(seen.dump())
    assert successor.snapshot(NOW) == seen.snapshot(NOW)


def test_medians_of_runs_have_samples_and_age_and_are_kept() -> None:
    seen, successor = Observations(), Observations()
    for minute, seconds in enumerate((100.0, 104.9, 9000.0)):
        seen.ran("a", "trainer@3 on 4 gpu-80gb", seconds, NOW + timedelta(minutes=minute))
    found = seen.snapshot(NOW)["a"].runs
    assert found == {"trainer@3 on 4 gpu-80gb": Ran(100.0, 3, "2026-11-30 03Z")}
    successor.load(seen.dump())
    assert successor.snapshot(NOW)["a"].runs == found


def test_runs_are_forgotten_by_number_by_age_and_by_what_was_not_run_for_longest() -> None:
    seen = Observations()
    for number in range(30):
        seen.ran("a", "old", 1.0 if number < 10 else 3.0, NOW)
    assert seen.snapshot(NOW)["a"].runs["old"] == Ran(3.0, 20, "2026-11-30 03Z")
    later = NOW + timedelta(days=31)
    assert seen.due(later)
    assert seen.snapshot(later)["a"].runs == {}
    for number in range(300):
        seen.ran("a", f"c{number}", 1.0, later)
    assert sorted(seen.snapshot(later)["a"].runs) == sorted(f"c{number}" for number in range(100, 300))


def test_a_run_that_ends_before_it_starts_is_no_run() -> None:
    seen = Observations()
    seen.ran("a", "trainer@3", -4.0, NOW)
    assert seen.snapshot(NOW)["a"].runs == {}


def test_only_what_changed_is_kept_again() -> None:
    seen = Observations()
    seen.ended("a", "")
    seen.ended("b", "")
    seen.snapshot(NOW)
    assert sorted(seen.dump()) == ["a", "b"]
    seen.ended("b", "")
    assert sorted(seen.dump()) == ["b"]
    seen.snapshot(NOW)
    assert sorted(seen.dump()) == ["b"]
    assert seen.dump() == {}
