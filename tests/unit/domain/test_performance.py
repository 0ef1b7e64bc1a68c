"""Performance: as measured of the same component on the same hardware, else as the class declares, else unknown."""

from statistics import median
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landbridge.domain.candidate import Candidate
from landbridge.domain.ledger import demand
from landbridge.domain.placement import rank
from landbridge.domain.preferences import Measurement, Observed
from landbridge.domain.preferences.performance import Performance
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.runs import Ran, run_key
from support.deciding import a_catalogue, a_contract, an_environment, an_operation

FAST = {"gpu-80gb": {"count": 8, "memory": "80Gi", "speed": 2.0, "speedSource": "our run of 2026-10"}}
PLAIN = {"gpu-80gb": {"count": 8, "memory": "80Gi"}}
KEY = "trainer@3 on 4 gpu-80gb"
ONLY = {"performance": 1.0}


def training(component: str = "trainer@3", expected: str = "1h", count: int = 4) -> RequirementClass:
    return an_operation(
        component=component or None,
        lifecycle={"expectedDuration": expected} if expected else None,
        resources={"accelerator": {"class": "gpu-80gb", "count": count}},
    )


def measured(operation: RequirementClass, environment: Candidate, **runs: Ran) -> Measurement:
    observed = Observed(runs={KEY: runs["ran"]} if runs else {})
    return Performance().measure(operation.requirements, environment, observed)


def ran(median_s: float, count: int = 12) -> Ran:
    return Ran(median_s, count, "2026-11-30 02Z")


def test_what_was_measured_here_of_the_same_component_counts_with_samples_and_age() -> None:
    found = measured(training(), an_environment(classes=FAST), ran=ran(900.0))
    assert (found.value, found.unit) == (900.0, "s")
    assert found.source == "median of the last 12 runs of trainer@3 on 4 gpu-80gb, the newest of 2026-11-30 02Z"


@pytest.mark.parametrize(
    "operation",
    [training(component="trainer@4"), training(component="other@3"), training(component=""), training(count=2)],
)
def test_other_versions_other_components_and_other_amounts_of_hardware_do_not(operation: RequirementClass) -> None:
    found = measured(operation, an_environment(classes=FAST), ran=ran(900.0))
    assert found.value == 1800.0, "an hour at speed 2"


def test_two_runs_are_no_measurement() -> None:
    found = measured(training(), an_environment(classes=FAST), ran=ran(900.0, count=2))
    assert found.value == 1800.0
    assert found.source == "expectedDuration at speed 2 of gpu-80gb (our run of 2026-10), contract version 1"


def test_without_an_expected_duration_a_declared_speed_is_told_as_a_ratio() -> None:
    found = measured(training(expected=""), an_environment(classes=FAST))
    assert (found.value, found.unit) == (0.5, "x")


def test_neither_runs_nor_a_speed_is_unknown() -> None:
    for speed in (None, 0.0):
        classes = {"gpu-80gb": {**PLAIN["gpu-80gb"], "speed": speed}}
        found = measured(training(), an_environment(classes=classes))
        assert found.value is None
        assert found.source == f"fewer than 3 runs of {KEY}, and contract version 1 states no speed"


def test_what_is_unknown_never_wins() -> None:
    fast, plain = an_environment("fast", classes=FAST), an_environment("plain", classes=PLAIN)
    slow = an_environment("slow", classes={"gpu-80gb": {**FAST["gpu-80gb"], "speed": 0.01}})
    ranking = rank(training().requirements, [fast, plain, slow], ONLY)
    assert [card.environment for card in ranking.cards] == ["fast", "slow", "plain"]
    assert ranking.cards[2].total == 0.0


def test_seconds_count_where_equally_many_are_measured_and_declared() -> None:
    measured_one, declared = an_environment("a", classes=PLAIN), an_environment("b", classes=FAST)
    observed = {"a": Observed(runs={KEY: ran(1e6)})}
    ranking = rank(training(expected="").requirements, [measured_one, declared], ONLY, observed=observed)
    assert [card.environment for card in ranking.cards] == ["a", "b"]
    [found] = [each for each in ranking.cards[1].measurements if each.preference == "performance"]
    assert found.unknown
    assert "not comparable with s" in found.source


def test_another_class_that_serves_the_request_counts_as_itself() -> None:
    document = {"gpu-40gb": {"attributes": {"memory": "40Gi"}}}
    environment = an_environment(classes=FAST, catalogue=a_catalogue(a_contract(classes=FAST), classes=document))
    operation = an_operation(component="trainer@3", resources={"accelerator": {"class": "gpu-40gb", "count": 4}})
    assert measured(operation, environment, ran=ran(700.0)).value == 700.0


def test_of_classes_of_processors_the_slowest_that_is_large_enough_counts_and_one_without_speed_leaves_it_unknown() -> (
    None
):
    small, large = {"cpu": "1", "speed": 0.1}, {"cpu": "64", "speed": 4.0}
    operation = an_operation(lifecycle={"expectedDuration": "1h"})
    classes: dict[str, Any] = {
        "cpu-general": None,
        "small": small,
        "large": large,
        "middle": {"cpu": "8", "speed": 2.0},
    }
    assert measured(operation, an_environment(classes=classes)).value == 1800.0
    assert measured(operation, an_environment(classes={**classes, "other": {"cpu": "32"}})).value is None


def test_work_without_accelerators_is_compared_by_its_processors() -> None:
    requirements = an_operation(component="trainer@3", replicas=2).requirements
    assert run_key("trainer@3", demand(requirements, an_environment())) == "trainer@3 on 4 processors"


@given(
    speeds=st.lists(st.none() | st.floats(0.1, 10), min_size=2, max_size=4),
    seconds=st.dictionaries(st.integers(0, 3), st.floats(1, 1e5)),
)
@example([None, None, None], {0: 25451.0, 1: 2.00001, 2: 2.0})
def test_the_fastest_of_what_is_known_wins_whatever_it_is_known_from(
    speeds: list[float | None], seconds: dict[int, float]
) -> None:
    sites = [
        an_environment(f"e{i}", classes={"gpu-80gb": {**PLAIN["gpu-80gb"], "speed": speed}})
        for i, speed in enumerate(speeds)
    ]
    observed = {f"e{i}": Observed(runs={KEY: ran(value)}) for i, value in seconds.items()}
    expected = {f"e{i}": seconds.get(i, 3600 / speed if speed else None) for i, speed in enumerate(speeds)}
    ranking = rank(training().requirements, sites, ONLY, observed=observed)
    known = {name: value for name, value in expected.items() if value is not None}
    if known:
        # Scores have nine digits: what differs by less beside the median is equally fast.
        told_apart = pytest.approx(min(known.values()), abs=4e-9 * median(known.values()))
        assert expected[ranking.cards[0].environment] == told_apart
    assert all(card.total == 0.0 for card in ranking.cards if expected[card.environment] is None)
