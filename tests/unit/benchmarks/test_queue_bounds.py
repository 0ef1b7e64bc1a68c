"""A million operations in a thousand queues: the bounds that the documentation states hold."""

import pytest

from benchmarks.queues import measure


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_waiting_operations_stay_within_time_and_memory() -> None:
    figures = measure()
    assert figures["bytes_per_waiting_operation"] < 2048
    assert figures["cycle_in_which_nothing_fits_s"] < 1.0
    assert figures["cycle_after_1000_releases_s"] < 1.0
    assert figures["cycle_that_admits_10000_s"] < 2.0
    assert figures["cancel_from_the_middle_s"] < 0.001


def test_the_benchmark_measures_what_it_says_at_a_hundredth_of_the_size() -> None:
    figures = measure(operations=40_000, queues=100)
    assert figures["held"] > 1000
