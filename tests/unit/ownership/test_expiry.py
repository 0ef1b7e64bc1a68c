"""When silence frees work, and when the centre doubts itself instead."""

from landbridge.domain.ownership.expiry import Watch, lift_hold, look, release_wait_ms, silent_ms
from landbridge.domain.ownership.policy import Timing

TIMING = Timing()
BEGIN = Watch()


def watched(grants: dict[str, int], until: int, *, watch: Watch = BEGIN, start: int = 0) -> Watch:
    for now in range(start, until + 1, 1_000):
        watch = look(watch, grants, now, TIMING)
    return watch


def test_the_wait_covers_drift_stopping_and_an_unnoticed_pause() -> None:
    wait = release_wait_ms(20_000, TIMING)

    assert wait >= (30_000 + 20_000) * 1.01 / 0.99 + 2_000
    assert wait <= (30_000 + 20_000) * 1.01 / 0.99 + 2_001


def test_silence_counts_from_the_last_grant_that_was_seen() -> None:
    watch = watched({"a": 1, "b": 1, "c": 1}, 20_000)
    watch = watched({"a": 2, "b": 2, "c": 1}, 45_000, watch=watch, start=21_000)

    assert silent_ms(watch, "c", 45_000) == 45_000
    assert silent_ms(watch, "a", 45_000) == 24_000
    assert list(watch.silent_since) == ["c"]
    assert not watch.held


def test_a_new_expirer_counts_every_lease_as_granted_now() -> None:
    watch = look(Watch(), {"a": 7}, 1_000_000, TIMING)

    assert silent_ms(watch, "a", 1_000_000) == 0
    assert silent_ms(Watch(), "a", 1_000_000) == 0


def test_a_loop_that_stood_still_begins_to_count_anew() -> None:
    watch = watched({"a": 1, "b": 1, "c": 1}, 25_000)
    watch = look(watch, {"a": 1, "b": 1, "c": 1}, 60_000, TIMING)

    assert watch.silent_since == {}
    assert silent_ms(watch, "a", 60_000) == 0


def _each_heard(names: str, count: int) -> dict[str, int]:
    return dict.fromkeys(names, count)


def test_most_environments_falling_silent_together_make_the_centre_doubt_itself() -> None:
    watch = watched(_each_heard("abcd", 1), 32_000)

    assert watch.held


def test_half_of_the_environments_may_fall_silent_without_doubt() -> None:
    watch = Watch()
    for now in range(0, 40_000, 1_000):
        watch = look(watch, {"a": 1, "b": 1, "c": now, "d": now}, now, TIMING)

    assert list(watch.silent_since) == ["a", "b"]
    assert not watch.held


def test_one_that_returns_ends_the_doubt() -> None:
    watch = watched(_each_heard("abcd", 1), 60_000)
    watch = look(watch, {"a": 2, "b": 2, "c": 2, "d": 1}, 61_000, TIMING)

    assert not watch.held


def test_environments_lost_one_after_the_other_cause_no_doubt() -> None:
    watch, counts = Watch(), _each_heard("abc", 1)
    for now in range(0, 400_000, 1_000):
        counts = {**counts, **({"b": now} if now < 100_000 else {}), **({"c": now} if now < 250_000 else {})}
        watch = look(watch, counts, now, TIMING)
        if now < 280_000:
            assert not watch.held, now
    # With the last one silent nobody is left to tell that it is not the centre that is deaf.
    assert watch.held


def test_a_confirmed_silence_stays_confirmed_until_it_is_broken() -> None:
    watch = lift_hold(watched(_each_heard("ab", 1), 40_000))
    watch = watched(_each_heard("ab", 1), 90_000, watch=watch, start=41_000)
    assert not watch.held
    watch = look(watch, _each_heard("ab", 1), 200_000, TIMING)  # the loop stood still
    watch = watched(_each_heard("ab", 1), 260_000, watch=watch, start=201_000)
    assert not watch.held
    watch = watched(_each_heard("ab", 2), 330_000, watch=watch, start=261_000)

    assert watch.held
