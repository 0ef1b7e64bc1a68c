"""What the benchmark of decisions decides about is as hard as it says, and the fast path answers as the definition."""

from benchmarks.decisions import WEIGHTS, Deciding
from benchmarks.decisions_world import classes, environments
from landbridge.domain.preferences import PREFERENCES


def test_in_the_busy_world_every_preference_tells_environments_apart() -> None:
    world = Deciding(24, busy=True)
    values: dict[str, set[float | None]] = {preference.name: set() for preference in PREFERENCES}
    for item in classes(busy=True)[::20]:
        _, ordered = world.decide(item)
        for card in ordered.ranking.cards if ordered is not None else ():
            for measured in card.measurements:
                values[measured.preference].add(measured.value)
    assert all(len(found - {None}) > 1 for found in values.values()), values
    assert WEIGHTS.keys() == values.keys()


def test_in_the_busy_world_rules_of_most_kinds_are_broken() -> None:
    world = Deciding(24, busy=True)
    found = {
        violation.constraint
        for item in classes(busy=True)[::20]
        for verdict in world.decide(item)[0].verdicts
        for violation in verdict.violations
    }
    timed = {"deadline", "maintenance", "support", "compute-evidence"}
    assert found >= timed | {"operator-rules", "hardware", "compute", "class-control", "residency", "security-tier"}


def test_the_fast_path_answers_as_the_definition_while_the_busy_world_changes() -> None:
    world = Deciding(8, busy=True, evidence_every=3, observed_every=7)
    for item in classes(busy=True)[::25] * 2:
        fast = world.decide(item)
        plain = world.decide_plainly(item)
        assert (plain[0].id, plain[0].verdicts, plain[1]) == (fast[0].id, fast[0].verdicts, fast[1])


def test_environments_are_the_same_each_time() -> None:
    assert environments(6, busy=True) == environments(6, busy=True)
