"""Random queues from seeds: no limit is exceeded at any event, displacing comes to an end, shares come out fair.

`QueueWorld` checks limits after every event and that everything comes to rest; see there. A few hundred seeds in every
run, ten thousand with the mark `slow`.
"""

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.ledger import Charge, Ledger
from landbridge.domain.requirements import ConnectionNeed, requirement_class
from support.deciding import NOW
from unit.domain import strategies
from unit.domain.admission_world import a_plan, an_admission, arrive
from unit.domain.queue_world import QueueWorld

FEW, MANY = 300, 10_000


def run_seeds(first: int, count: int) -> Counter[str]:
    """Run worlds and count what happened in them; the message of a failure begins with its seed."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            world = QueueWorld(seed).run(events=30)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        seen["admitted"] += len(world.admitted)
        seen["displaced"] += world.displaced
        seen["worlds that displaced"] += world.displaced > 0
        seen["borrowed"] += sum(found.charge.borrowed for found in world.admitted)
    return seen


def test_limits_hold_and_displacing_ends_in_a_few_hundred_worlds() -> None:
    seen = run_seeds(0, FEW)
    assert seen["admitted"] > 10 * FEW
    assert seen["worlds that displaced"] > FEW / 10
    assert seen["borrowed"] > FEW


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_limits_hold_and_displacing_ends_in_ten_thousand_worlds() -> None:
    seen = run_seeds(FEW, MANY)
    assert seen["worlds that displaced"] > MANY / 10


@given(seed=st.integers(FEW + MANY, 10**9), events=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_limits_hold_and_displacing_ends_wherever_hypothesis_looks(seed: int, events: int) -> None:
    QueueWorld(seed).run(events)


@given(seed=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_the_ledger_sums_up_what_it_holds_whatever_came_and_went(seed: int) -> None:
    world = QueueWorld(seed).run(10)
    kept = world.admission.ledger
    anew = Ledger(kept.charges(), world.limits.chain)
    scopes = {(scope, name) for scope, name in kept._used if any(kept.used(scope, name).values())}
    for scope, name in scopes:
        assert {r: n for r, n in kept.used(scope, name).items() if n} == anew.used(scope, name)
        assert sorted(c.operation for c in kept.held_in(scope, name)) == sorted(
            c.operation for c in anew.held_in(scope, name)
        )


# -- fair shares -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_over_a_long_run_every_project_has_its_share_within_one_gang(seed: int) -> None:
    """Projects of random weights, gangs of random sizes, more work than ever fits, random ends."""
    draw = random.Random(seed)
    capacity = 240
    weights = {name: draw.choice((1.0, 2.0, 3.0)) for name in "abcd"[: draw.randint(2, 4)]}
    gangs = {name: draw.choice((1, 2, 4, 8)) for name in weights}
    admission = an_admission({"q": {}}, {"x": {"gpu": capacity}})
    for name, weight in weights.items():
        amounts = {"running": 1, "gpu": gangs[name]}
        admission.set_plan(name, a_plan("q", name, amounts, environments={"x": 1.0}, weight=weight))
        arrive(admission, name, *(f"{name}{i}" for i in range(4000)))
    largest = max(gangs.values())
    for step in range(600):
        now = NOW + timedelta(seconds=step)
        admission.admit(now)
        held = admission.ledger.charges()
        for charge in draw.sample(held, min(len(held), draw.randint(1, 6))):
            admission.release(charge.operation)
        admission.admit(now)
        if step >= 300:
            _within_one_gang(admission.ledger.charges(), weights, capacity, largest)


def _within_one_gang(charges: list[Charge], weights: dict[str, float], capacity: int, largest: int) -> None:
    held = Counter[str]()
    for charge in charges:
        held[charge.project] += charge.amounts["gpu"]
    whole = sum(weights.values())
    for name, weight in weights.items():
        ideal = capacity * weight / whole
        assert abs(held[name] - ideal) <= largest, f"{name} holds {held[name]}, its share is {ideal:.0f}"


# -- constraints -------------------------------------------------------------------------------------------------------

_ADDED: tuple[dict[str, Any], ...] = (
    {"jurisdictions": ("EU",)},
    {"regions": ("us-east-1",)},
    {"security_tier": "restricted"},
    {"controls": ("default-deny-egress",)},
    {"forbid": ("alpha",)},
    {"allow": ("beta", "gamma")},
    {"architectures": ("arm64",)},
    {"operated_by": ("own",)},
    {"excluded": ("gamma",)},
    {"kubernetes": ">=1.33"},
    {"operators": ("kueue",)},
    {"identity": "trainer"},
    {"deadline": NOW + timedelta(minutes=90)},
    {"cpu": 200_000},
    {"connections": (ConnectionNeed("models", ("inputs.m",), reads=True),)},
)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_an_added_constraint_never_makes_more_environments_eligible(data: st.DataObject) -> None:
    before = data.draw(strategies.operations())
    environments = [data.draw(strategies.candidates(name)) for name in strategies.ENVIRONMENTS]
    added = data.draw(st.sampled_from(_ADDED))
    [field] = added
    if getattr(before.requirements, field) not in ((), "", None, 0) and field != "cpu":
        return  # it had been constrained there: another value is no added one
    after = requirement_class(msgspec.structs.replace(before.requirements, **added))
    eligible = {v.environment for v in evaluate_eligibility(before, environments, NOW).eligible}
    assert {v.environment for v in evaluate_eligibility(after, environments, NOW).eligible} <= eligible
