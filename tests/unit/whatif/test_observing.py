"""Rankings of a scenario follow what environments really do, as they would in production."""

from typing import Any

import pytest

from landbridge_ranking.whatif.measures import Report
from landbridge_ranking.whatif.problems import ScenarioError
from landbridge_ranking.whatif.simulate import Compared, simulate

from .conftest import COMMON, Write, contract, document, operation

# Both promise the same, and the first by name is as good as the other.
_CLASSES = {"cpu-general": {"cpu": "4", "memory": "16Gi", "speed": 1.0}}
SITES = [contract(name, classes=_CLASSES) for name in ("a-site", "b-site")]
TRAINER = {
    **document("Component", "trainer", operation={"type": "job", "command": ["run"]}),
    "metadata": {"name": "trainer", "version": 1},
}
WORK = operation("w", lifecycle={"expectedDuration": "10m", "recovery": {"mode": "never"}})
# One after the other, so that there is always room everywhere.
ROWS = [f"{at},600,w" for at in range(0, 100 * 1000, 1000)]
RELIABLE = [{"name": "reliable", "preferences": {"reliability": 1}}]


def run(scenario: Write, policies: list[dict[str, Any]], work: dict[str, Any] = WORK, **spec: Any) -> Compared:
    return simulate(scenario([*COMMON, *SITES, TRAINER, work], ROWS, policies=policies, **spec))


def only(found: Compared) -> Report:
    [report] = found.reports.values()
    return report


def test_an_environment_that_lets_attempts_down_loses_placements(scenario: Write) -> None:
    alike = only(run(scenario, RELIABLE)).observed
    preferred = max(alike, key=lambda name: alike[name].attempts)  # whose clean record grew first
    [other] = {"a-site", "b-site"} - {preferred}
    assert alike[preferred].attempts == 50  # as many as are looked back at
    report = only(run(scenario, RELIABLE, behaviour={preferred: {"failures": 0.5}}))
    assert 0 < report.observed[preferred].failures == report.let_down
    assert report.observed[preferred].attempts < 10
    assert (report.observed[other].attempts, report.observed[other].failures) == (50, 0)
    assert report.ended == report.operations


def test_one_that_is_faster_than_declared_gains_placements(scenario: Write) -> None:
    work = operation("w", component="trainer@1", lifecycle=WORK["spec"]["lifecycle"])
    for each in ("type", "command"):
        del work["spec"][each]
    fast = [{"name": "fast", "preferences": {"performance": 1}}]
    alike = only(run(scenario, fast, work)).observed
    assert min(alike["a-site"].attempts, alike["b-site"].attempts) > 30
    report = only(run(scenario, fast, work, behaviour={"b-site": {"speed": 2}}))
    [ran] = report.observed["b-site"].runs.values()
    assert ran.median_s == 300
    assert report.observed["b-site"].attempts == 50
    assert report.observed["a-site"].attempts < 20


def test_one_where_work_starts_late_loses_placements(scenario: Write) -> None:
    soon = [{"name": "soon", "preferences": {"queue-delay": 1}}]
    report = only(run(scenario, soon, behaviour={"a-site": {"startDelay": "5m"}}))
    assert report.observed["a-site"].start_delay_s == 300
    assert report.observed["a-site"].attempts < 20
    assert report.observed["b-site"].attempts == 50


def test_the_way_to_choose_by_name_learns_nothing_and_tells_what_there_was_to_learn(scenario: Write) -> None:
    first = [{"name": "first", "choosing": "first-fit"}]
    report = only(run(scenario, first, behaviour={"a-site": {"failures": 0.5}}))
    assert report.observed["a-site"].attempts == 50
    assert "b-site" not in report.observed
    assert 60 <= report.let_down <= 150  # of 100 operations, about each once


def test_luck_is_the_same_in_every_run_and_another_with_another_seed(scenario: Write) -> None:
    behaviour = {"a-site": {"failures": 0.5}, "b-site": {"failures": 0.3}}
    first, again, other = (only(run(scenario, RELIABLE, behaviour=behaviour, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.let_down != other.let_down or first.observed != other.observed


def test_an_environment_that_is_not_there_is_named(scenario: Write) -> None:
    with pytest.raises(ScenarioError, match=r"spec\.behaviour: nowhere has no EnvironmentContract .* a-site, b-site"):
        run(scenario, RELIABLE, behaviour={"nowhere": {"failures": 0.5}})
