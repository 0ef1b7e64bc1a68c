"""Ranking: measured with unit and source, robust, reproducible; the unknown never wins; every decision replays."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.constraints.serving import serving
from landbridge.domain.decision_record import Placed, make_record, replay
from landbridge.domain.eligibility import judge
from landbridge.domain.evidence import Evidence
from landbridge.domain.hardware import alternatives
from landbridge.domain.measured import Measured
from landbridge.domain.placement import Choice, Ranking, Route, ScoreCard, choose, order, rank
from landbridge.domain.preferences import PREFERENCES, Observed
from landbridge.domain.ranking_cache import RankingCache
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.staging import measured_bandwidths
from landbridge.domain.weighing import BUILT_IN, normalise, policy_for, weighted, weights_for
from support.deciding import NOW, a_catalogue, a_contract, an_environment, an_operation
from unit.domain.observed import observations
from unit.domain.strategies import ENVIRONMENTS, candidates, operations

ONLY_COST = {"cost": 1.0}


def measured(name: str, operation: RequirementClass, environment: Candidate, observed: Observed | None = None) -> Any:
    preference = next(preference for preference in PREFERENCES if preference.name == name)
    found = preference.measure(operation.requirements, environment, observed or Observed())
    assert found.unit
    assert found.source
    return found.value


def card(ranking: Ranking, environment: str, preference: str) -> Measured:
    [found] = [c for c in ranking.cards if c.environment == environment]
    [measurement] = [m for m in found.measurements if m.preference == preference]
    return measurement


def hour(**spec: Any) -> RequirementClass:
    return an_operation(lifecycle={"expectedDuration": "1h"}, **spec)


def priced(name: str, price: float | None, currency: str = "EUR") -> Candidate:
    return an_environment(name, cost={"currency": currency, "perHour": {"cpu-general": price}})


def test_cost_is_price_times_processors_times_hours() -> None:
    assert measured("cost", hour(), priced("x", 0.05)) == pytest.approx(0.1)
    assert measured("cost", an_operation(), priced("x", 0.05)) == pytest.approx(0.1)  # an hour, none being expected


def test_cost_of_accelerators_follows_the_class_that_serves() -> None:
    gpu = {"gpu-80gb": {"count": 8, "memory": "80Gi"}}
    environment = an_environment("x", classes=gpu, cost={"perHour": {"gpu-80gb": 2.0}})
    operation = hour(resources={"accelerator": {"class": "gpu-80gb", "count": 4}})
    assert measured("cost", operation, environment) == pytest.approx(8.0)


def test_the_price_of_moving_data_is_part_of_the_cost() -> None:
    far = a_contract(
        "far", location={"regions": ["us-east-1"]}, cost={"currency": "EUR", "egressPerGB": 0.1}, connections={}
    )
    here: dict[str, Any] = {
        "connections": {"events": {"region": "us-east-1"}},
        "links": {"far": {"bandwidth": "1Gbit/s"}},
    }
    environment = an_environment("x", catalogue=a_catalogue(a_contract("x", **here), far), **here)
    operation = hour(inputs={"a": {"connection": "events", "size": "10G"}})
    assert measured("cost", operation, environment) == pytest.approx(0.1 + 1.0)
    assert measured("transfer-time", operation, environment) == pytest.approx(80.0)


def test_a_bandwidth_that_probes_measured_lately_counts_for_more_than_what_is_stated() -> None:
    proof = Evidence(claims.bandwidth("events"), "proven", NOW, NOW + timedelta(hours=1), proven=1e8, claimed=1e9)
    remote: dict[str, Any] = {"connections": {"events": {"region": "us-east-1", "bandwidth": "1Gbit/s"}}}
    operation = hour(inputs={"a": {"connection": "events", "size": "10G"}})
    slow = an_environment("slow", evidence={proof.claim: proof}, **remote)
    stated = an_environment("stated", **remote)

    found = measured_bandwidths(slow, NOW)
    assert found == {"events": 1e8}
    assert measured("transfer-time", operation, slow, Observed(bandwidths=found)) == pytest.approx(800.0)
    assert measured("transfer-time", operation, slow) == pytest.approx(80.0)
    seen = {"slow": Observed(bandwidths=found)}
    ranking = rank(operation.requirements, [slow, stated], {"transfer-time": 1.0}, observed=seen)
    assert ranking.cards[0].environment == "stated"
    assert "at 100Mbit/s, as measured there" in card(ranking, "slow", "transfer-time").source
    assert measured_bandwidths(slow, NOW + timedelta(hours=1)) == {}, "an old measurement is none"
    failed = an_environment("failed", evidence={proof.claim: proof._replace(result="unknown", proven=None)}, **remote)
    assert measured_bandwidths(failed, NOW) == {}


def test_an_unknown_price_is_unknown_and_never_zero() -> None:
    assert measured("cost", hour(), priced("x", None)) is None


def test_an_unknown_price_never_wins_on_cost() -> None:
    ranking = rank(hour().requirements, [priced("dear", 100.0), priced("unstated", None)], ONLY_COST)
    assert [c.environment for c in ranking.cards] == ["dear", "unstated"]
    assert card(ranking, "unstated", "cost").unknown
    assert card(ranking, "unstated", "cost").normalised == 0.0


def test_a_stated_zero_is_prepaid_and_wins_on_cost() -> None:
    ranking = rank(hour().requirements, [priced("cheap", 0.01), priced("prepaid", 0.0)], ONLY_COST)
    assert ranking.cards[0].environment == "prepaid"
    assert "paid for in advance" in card(ranking, "prepaid", "cost").source


@given(st.floats(0.0, 1.0) | st.integers(0, 2 * 10**9).map(lambda halves: halves / 2e9))
@settings(max_examples=500)
def test_totals_are_rounded_to_nine_digits(mean: float) -> None:
    assert weighted([[mean]], [1.0]) == [round(mean, 9)]


def test_prices_in_another_currency_are_not_compared() -> None:
    environments = [priced("a", 0.1), priced("b", 0.2), priced("c", 0.01, "USD")]
    ranking = rank(hour().requirements, environments, ONLY_COST)
    assert [c.environment for c in ranking.cards] == ["a", "b", "c"]
    assert "not comparable with EUR" in card(ranking, "c", "cost").source


def test_all_prices_unknown_is_no_reason_to_prefer_anybody() -> None:
    ranking = rank(hour().requirements, [priced("a", None), priced("b", None)], ONLY_COST)
    assert {c.total for c in ranking.cards} == {0.0}


def test_queue_delay_is_observed_before_it_is_promised_and_unknown_otherwise() -> None:
    promised, silent = an_environment("x"), an_environment("y", objectives={"startWithin": None})
    assert measured("queue-delay", hour(), promised) == 60.0
    assert measured("queue-delay", hour(), promised, Observed(starts=5, start_delay_s=7.5)) == 7.5
    assert measured("queue-delay", hour(), silent) is None


def test_reliability_moves_from_the_objective_to_what_is_observed() -> None:
    environment = an_environment("x")  # 99.5 %
    silent = an_environment("y", objectives={"availability": None})
    assert measured("reliability", hour(), environment) == pytest.approx(0.005)
    assert measured("reliability", hour(), environment, Observed(attempts=180, failures=20)) > 0.09
    assert measured("reliability", hour(), silent, Observed(attempts=4, failures=1)) is None
    assert measured("reliability", hour(), silent, Observed(attempts=10, failures=1)) == pytest.approx(0.1)


def test_data_at_hand_takes_no_time_and_data_over_an_unknown_way_takes_unknown_time() -> None:
    operation = hour(inputs={"a": {"connection": "events", "size": "1G"}})
    away = {"events": {"region": "us-east-1"}}
    assert measured("transfer-time", operation, an_environment("x")) == 0.0
    assert measured("transfer-time", operation, an_environment("x", connections=away)) is None
    cached = {"events": {"region": "us-east-1", "cached": True}}
    assert measured("transfer-time", operation, an_environment("x", connections=cached)) == 0.0


@given(
    numbers=st.lists(st.floats(0.001, 1000), min_size=3, max_size=8),
    factor=st.floats(1, 1e6),
)
def test_one_outlier_moves_nobody_but_itself(numbers: list[float], factor: float) -> None:
    numbers = sorted(numbers)
    before = normalise(numbers)
    after = normalise([*numbers[:-1], numbers[-1] * factor])
    assert after[:-1] == pytest.approx(before[:-1])
    assert after[-1] <= before[-1] or after[-1] == pytest.approx(before[-1])


@given(numbers=st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=8))
def test_scores_lie_between_nothing_and_one_and_lower_values_never_score_less(numbers: list[float | None]) -> None:
    scores = normalise(numbers)
    assert all(0.0 <= score <= 1.0 for score in scores)
    known = sorted((number, score) for number, score in zip(numbers, scores, strict=True) if number is not None)
    assert all(left[1] >= right[1] for left, right in pairwise(known))
    unknown = [score for number, score in zip(numbers, scores, strict=True) if number is None]
    assert all(score == 0.0 for score in unknown)


def test_units_do_not_matter_only_ratios_do() -> None:
    assert normalise([1, 2, 10]) == pytest.approx(normalise([1000, 2000, 10_000]))


def test_the_operations_weights_win_over_the_projects_and_those_over_the_policys() -> None:
    catalogue = a_catalogue(
        projects={"retail-eu": {"preferences": {"cost": 5, "carbon": 4}}},
        policies={"green": {"preferences": {"cost": 1, "carbon": 9, "reliability": 2}, "precedence": 1}},
    )
    requirements = an_operation(preferences={"cost": 3}).requirements
    policy = policy_for(requirements, catalogue)
    assert policy.name == "green"
    assert weights_for(requirements, catalogue, policy) == {"cost": 3.0, "carbon": 4.0, "reliability": 2.0}


def test_a_policy_applies_to_whom_it_names_and_the_built_in_one_to_all_others() -> None:
    catalogue = a_catalogue(policies={"search-only": {"scope": {"projects": ["search"]}}})
    assert policy_for(an_operation().requirements, catalogue) is BUILT_IN
    assert policy_for(an_operation("search").requirements, catalogue).name == "search-only"


def flat(*names: str, failed_over: bool = False, overflow: bool = True) -> Ranking:
    cards = tuple(ScoreCard(name, 0.5, ()) for name in sorted(names))
    return Ranking("r", cards, failed_over=failed_over, overflow_allowed=overflow)


def test_equals_are_told_apart_by_the_operation_reproducibly_and_evenly() -> None:
    ready = order(flat("a", "b", "c"))
    picks = [choose(ready, f"op{i}", ()) for i in range(3000)]
    again = [choose(order(flat("c", "b", "a")), f"op{i}", ()) for i in range(3000)]
    assert picks == again
    chosen = [pick.environment for pick in picks if pick is not None]
    assert all(900 < chosen.count(name) < 1100 for name in "abc")


def test_routes_say_why_an_environment_was_chosen() -> None:
    cards = (ScoreCard("best", 0.9, ()), ScoreCard("next", 0.5, ()))
    ready = order(Ranking("r", cards))
    assert choose(ready, "op", ()) == Choice("best", Route.PREFERRED, ())
    assert choose(ready, "op", {"best"}) == Choice("next", Route.OVERFLOW, ("best",))
    assert choose(ready, "op", (), previous="next") == Choice("best", Route.DRIFT, ())
    assert choose(ready, "op", {"best", "next"}) is None
    assert choose(ready, "op", {"best"}, overflow=False) is None
    failed = choose(order(Ranking("r", cards, failed_over=True)), "op", ())
    assert failed is not None
    assert failed.route is Route.FAILOVER


def test_what_a_better_environment_cannot_take_for_now_is_an_overflow() -> None:
    """The best one is cut off or in maintenance: intended overflow, not preference."""
    ranking = rank(hour().requirements, [priced("dear", 1.0)], ONLY_COST, hopeful=[priced("cheap", 0.1)])
    found = choose(order(ranking), "op", ())
    assert found is not None
    assert (found.environment, found.route) == ("dear", Route.OVERFLOW)


def test_where_overflow_is_not_allowed_only_the_best_are_chosen() -> None:
    cards = (ScoreCard("best", 0.9, ()), ScoreCard("next", 0.5, ()))
    assert choose(order(Ranking("r", cards, overflow_allowed=False)), "op", {"best"}) is None


@given(
    operation=operations(),
    sites=st.tuples(*(candidates(name) for name in ENVIRONMENTS)),
    weights=st.dictionaries(st.sampled_from([p.name for p in PREFERENCES]), st.sampled_from((0.0, 1.0, 2.5))),
    observed=st.dictionaries(st.sampled_from(ENVIRONMENTS), observations()),
    full=st.sets(st.sampled_from(ENVIRONMENTS), max_size=2),
    previous=st.sampled_from(("", *ENVIRONMENTS)),
)
@settings(max_examples=100, deadline=None)
def test_every_decision_can_be_computed_again_from_its_record(
    operation: RequirementClass,
    sites: tuple[Candidate, ...],
    weights: dict[str, float],
    observed: dict[str, Observed],
    full: set[str],
    previous: str,
) -> None:
    verdicts = {site.environment: judge(operation.requirements, site, CONSTRAINTS, NOW) for site in sites}
    eligible = [site for site in sites if verdicts[site.environment].is_eligible] or list(sites[:2])
    hopeful = [site for site in sites if site not in eligible]
    ranking = rank(operation.requirements, eligible, weights, hopeful=hopeful, observed=observed)
    choice = choose(order(ranking), "op-1", full, previous=previous)
    if choice is None:
        return
    record = make_record(assessment="a1", at=NOW, policy="p@1", ranking=ranking, choice=choice, inputs={"x": "1"})
    assert replay(record, Placed("op-1", 1, previous)) == record


@given(
    operations_=st.lists(operations(), min_size=1, max_size=3),
    sites=st.tuples(*(candidates(name) for name in ENVIRONMENTS)),
    others=st.tuples(*(candidates(name) for name in ENVIRONMENTS)),
    changes=st.lists(st.tuples(st.sampled_from(range(3)), st.booleans(), observations()), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_remembered_rankings_equal_those_made_afresh(
    operations_: list[RequirementClass],
    sites: tuple[Candidate, ...],
    others: tuple[Candidate, ...],
    changes: list[tuple[int, bool, Observed]],
) -> None:
    cache, now_at, observed = RankingCache(most_classes=2, most_measured=12), list(sites), dict[str, Observed]()
    weights = {"cost": 2.0, "transfer-time": 1.0, "queue-delay": 1.0, "performance": 1.0}
    for number, swap, seen in [(0, False, Observed()), *changes]:
        if swap:
            now_at[number] = others[number]
        observed = {**observed, ENVIRONMENTS[number]: seen}
        cache.observe(observed)
        for operation in operations_:
            need, hopeful = operation.requirements.accelerator, now_at[2:]
            able = [(site, serving(operation.requirements, site, NOW)) for site in now_at[:2]]
            eligible = [place for site, classes in able for place in alternatives(need, site, classes)]
            plain = rank(operation.requirements, eligible, weights, hopeful=hopeful, observed=observed)
            assert cache.ranked(operation, eligible, weights, hopeful=hopeful).ranking == plain


def test_records_of_equal_decisions_have_equal_ids_whenever_they_were_made() -> None:
    ranking = rank(hour().requirements, [priced("a", 0.1), priced("b", 0.2)], ONLY_COST)
    choice = choose(order(ranking), "op", ())
    assert choice is not None
    first, later = (
        make_record(assessment="a1", at=NOW + timedelta(hours=h), policy="p", ranking=ranking, choice=choice, inputs={})
        for h in (0, 1)
    )
    assert first.id == later.id
