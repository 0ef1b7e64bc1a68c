"""How much work a decision is, counted and not timed: what was answered is not asked again, what changed is."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from benchmarks.decisions_world import classes, environments, evidence_renewed, observations
from landbridge.domain import ranking_profiles
from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints import GROUPS, Constraint
from landbridge.domain.constraints.operator_rules import NAME as OPERATOR_RULES
from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.placement import Order
from landbridge.domain.preferences import PREFERENCES, Measurement, Preference
from landbridge.domain.ranking_cache import RankingCache
from landbridge.domain.requirements import RequirementClass, Requirements
from landbridge.domain.violation import Violations
from support.deciding import NOW

MANY = 20
WEIGHTS = {preference.name: 1.0 for preference in PREFERENCES}


class Counted:
    """A constraint that counts about how many environments it was asked."""

    def __init__(self, constraint: Constraint, asked: Counter[str]) -> None:
        self._constraint = constraint
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._constraint, name)

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        self._asked[self._constraint.name] += 1
        return self._constraint.check(requirements, candidate, now)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        self._asked[self._constraint.name] += len(candidates)
        return self._constraint.check_all(requirements, candidates, now)


def counting(asked: Counter[str]) -> EligibilityIndex:
    """An index over `MANY` environments of the busy world that counts; operators' rules it asks by itself."""
    index = EligibilityIndex(
        [[c if c.name == OPERATOR_RULES else Counted(c, asked) for c in group] for group in GROUPS]
    )
    for candidate in environments(MANY, busy=True):
        index.set_environment(candidate.environment, [candidate])
    return index


def test_a_shape_that_differs_in_amounts_only_asks_only_about_amounts() -> None:
    asked: Counter[str] = Counter()
    index, found = counting(asked), classes(busy=True)
    # Every 240th has the same duration, priority and places; a few have no deadline, accelerators or inputs either.
    first, later = found[1], found[241]
    index.assess(first, NOW)
    assert len(asked) > 25
    asked.clear()
    index.assess(later, NOW)
    assert asked == {"compute": MANY, "class-control": MANY}


def test_a_thousand_shapes_ask_less_than_six_rules_each() -> None:
    asked: Counter[str] = Counter()
    index = counting(asked)
    for item in classes(busy=True):
        index.assess(item, NOW)
    assert sum(asked.values()) < 6 * 1000 * MANY


def test_renewed_evidence_asks_about_its_environment_only_and_only_what_reads_it() -> None:
    asked: Counter[str] = Counter()
    index, item = counting(asked), classes(busy=True)[1]
    index.assess(item, NOW)
    asked.clear()
    changed = evidence_renewed(index.candidates("env-003")[0], 1)
    index.set_environment(changed.environment, [changed])
    index.assess(item, NOW)
    reading = {constraint.name for group in GROUPS for constraint in group if "evidence" in constraint.reads}
    assert set(asked) == reading
    assert set(asked.values()) == {1}


# -- ranking -----------------------------------------------------------------------------------------------------------


class World:
    """Rankings of the busy world that count how many environments each preference measures and prepares."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured: Counter[str] = Counter()
        self.prepared: Counter[str] = Counter()
        self.cache = RankingCache()
        self.sites = environments(MANY, busy=True)
        self.cache.observe(observations(MANY, 0))
        for preference in PREFERENCES:
            self._count(monkeypatch, preference)

    def _count(self, monkeypatch: pytest.MonkeyPatch, preference: Preference) -> None:
        asking, profile, name = preference.asking, preference.profile, preference.name

        def counted(requirements: Requirements) -> Callable[[Sequence[Any]], list[Measurement]]:
            ask = asking(requirements)

            def counting(profiles: Sequence[Any]) -> list[Measurement]:
                self.measured[name] += len(profiles)
                return ask(profiles)

            return counting

        def prepared(candidate: Candidate, observed: Any) -> Any:
            self.prepared[name] += 1
            return profile(candidate, observed)

        monkeypatch.setattr(preference, "asking", counted)
        monkeypatch.setattr(preference, "profile", prepared)

    def rank(self, item: RequirementClass) -> Order:
        return self.cache.ranked(item, self.sites, WEIGHTS)


def test_a_ranking_that_stands_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, item = World(monkeypatch), classes(busy=True)[1]
    first = world.rank(item)
    assert all(world.measured[preference.name] == MANY for preference in PREFERENCES)
    world.measured.clear()
    world.sites[3] = evidence_renewed(world.sites[3], 1)
    assert world.rank(item) is first
    assert not world.measured


def test_another_shape_measures_only_what_it_asks_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    world, found = World(monkeypatch), classes(busy=True)
    world.rank(found[1])
    world.measured.clear()
    world.rank(found[241])
    assert world.measured == {"queue-delay": MANY, "performance": MANY, "cost": MANY}
    assert all(world.prepared[preference.name] == MANY for preference in PREFERENCES)


def test_a_new_look_prepares_only_what_looks_different(monkeypatch: pytest.MonkeyPatch) -> None:
    world, item = World(monkeypatch), classes(busy=True)[1]
    world.rank(item)
    world.prepared.clear()
    world.measured.clear()
    seen = observations(MANY, 0)
    name = world.sites[4].environment
    world.cache.observe({**seen, name: seen[name]._replace(starts=9, start_delay_s=77.0)})
    world.rank(item)
    observing = {preference.name for preference in PREFERENCES if preference.observes}
    assert set(world.prepared) == set(world.measured) == observing
    assert set(world.prepared.values()) == {1}


def test_profiles_are_kept_for_a_bounded_number_of_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_profiles, "MOST_KEPT", 5)
    world, item = World(monkeypatch), classes(busy=True)[1]
    assert len(world.rank(item).ranking.cards) == MANY
    assert len(world.cache._profiles._kept) <= 5


def test_columns_are_kept_for_a_bounded_number_of_measurements() -> None:
    cache, sites = RankingCache(most_measured=10 * MANY), environments(MANY, busy=True)
    for item in classes(busy=True, count=60):
        assert len(cache.ranked(item, sites, WEIGHTS).ranking.cards) == MANY
        assert sum(len(kept.profiles) for kept in cache._columns.values()) <= 10 * MANY
    assert len(cache._lineups) <= 1
