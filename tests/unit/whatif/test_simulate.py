"""Scenarios run through the code that decides."""

from xml.etree import ElementTree as ET

import pytest

from landbridge_ranking.whatif.measures import Report
from landbridge_ranking.whatif.plot import draw
from landbridge_ranking.whatif.simulate import simulate

from .conftest import COMMON, Write, contract, document, operation

DEAR = contract("a-dear", cost={"currency": "EUR", "perHour": {"cpu-general": 0.4}})
CHEAP = contract("b-cheap", cost={"currency": "EUR", "perHour": {"cpu-general": 0.1}})
WORK = operation("w")


def only(report: dict[str, Report]) -> Report:
    [found] = report.values()
    return found


def test_each_way_to_choose_goes_its_own_way(scenario: Write) -> None:
    rows = [f"{at},3600,w" for at in range(0, 40_000, 10_000)]
    policies = [
        {"name": "cheapest", "preferences": {"cost": 1}},
        {"name": "first", "choosing": "first-fit"},
        {"name": "any", "choosing": "random"},
    ]
    found = simulate(scenario([*COMMON, DEAR, CHEAP, WORK], rows, policies=policies)).reports
    assert found["cheapest"].cost == {"EUR": pytest.approx(0.4)}  # four hours of one processor at b-cheap
    assert found["first"].cost == {"EUR": pytest.approx(1.6)}
    assert 0.4 <= found["any"].cost["EUR"] <= 1.6
    assert [each.waits.most for each in found.values()] == [0, 0, 0]


def test_what_does_not_fit_waits_until_something_ends(scenario: Write) -> None:
    rows = [f"0,{100 * (number + 1)},w" for number in range(4)] + ["10,50,w"]
    found = only(simulate(scenario([*COMMON, CHEAP, WORK], rows)).reports)
    assert found.waits.count == 5
    assert found.waits.most == pytest.approx(90)
    assert not found.exceeded
    assert found.ended == 5


def test_a_quota_holds_and_its_queue_waits_alone(scenario: Write) -> None:
    documents = [
        *COMMON,
        document("Queue", "narrow", quota={"cpu": "1"}),
        contract("big", classes={"cpu-general": {"cpu": "64", "memory": "64Gi"}}),
        WORK,
        operation("n", queue="narrow"),
    ]
    rows = ["0,100,n", "0,100,n", "0,100,n", "0,100,w"]
    found = only(simulate(scenario(documents, rows)).reports)
    assert not found.exceeded
    assert found.waits_by_queue["narrow"].most == pytest.approx(200)
    assert found.waits_by_queue["q"].most == 0


def test_maintenance_is_waited_for(scenario: Write) -> None:
    """The window is open as time begins, 2026-01-01 00:00 UTC, for two hours."""
    window = {"rrule": "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0", "duration": "2h", "timeZone": "UTC"}
    found = only(simulate(scenario([*COMMON, contract("site", maintenance=[window]), WORK], ["60,100,w"])).reports)
    assert found.waits.count == 1
    assert 7000 <= found.waits.most <= 7600


def test_a_refusal_names_what_stands_against_every_environment(scenario: Write) -> None:
    big = operation("big", resources={"requests": {"cpu": "5", "memory": "1Gi"}})
    found = simulate(scenario([*COMMON, DEAR, CHEAP, WORK, big], ["0,100,w", "5,100,big"]))
    report = only(found.reports)
    assert report.unplaced == {"no-eligible-environment": 1}
    [reasons] = found.refusals["landbridge"].values()
    assert [reason.split(":")[:2] for reason in reasons] == [
        ["a-dear", " cpu-exceeds-capacity"],
        ["b-cheap", " cpu-exceeds-capacity"],
    ]


def test_work_that_waits_for_ever_ends_the_run(scenario: Write) -> None:
    documents = [*COMMON, document("Queue", "stopped", paused=True), CHEAP, operation("s", queue="stopped")]
    assert only(simulate(scenario(documents, ["0,100,s"])).reports).unplaced == {"queue-paused": 1}


def test_higher_priority_displaces_where_the_queue_allows_it(scenario: Write) -> None:
    documents = [
        COMMON[0],
        document(
            "Queue", "q", priorityClasses={"urgent": 100, "calm": 1}, preemption="lower-priority", description="shared"
        ),
        contract("site", classes={"cpu-general": {"cpu": "1", "memory": "16Gi"}}),
        operation("calm", priority="calm", lifecycle={"recovery": {"mode": "restart"}}),
        operation("urgent", priority="urgent"),
    ]
    found = only(simulate(scenario(documents, ["0,1000,calm", "100,50,urgent"])).reports)
    assert found.evictions == 1
    assert found.waits.most < 10  # the urgent one did not wait for the calm one's end
    assert found.ended == 2
    assert found.makespan_s >= 1150  # the calm one began again


def test_arrivals_are_brought_within_a_time(scenario: Write) -> None:
    rows = ["0,10,w", "50000,10,w", "100000,10,w"]
    found = only(simulate(scenario([*COMMON, CHEAP, WORK], rows, trace={"arrivalsWithin": "100s"})).reports)
    assert found.makespan_s == pytest.approx(110)


def test_the_same_scenario_gives_the_same_figures(scenario: Write) -> None:
    rows = [f"{at},{50 + at % 37},w" for at in range(0, 600, 7)]
    file = scenario([*COMMON, DEAR, CHEAP, WORK], rows, policies=[{"name": "r", "choosing": "random"}])
    assert simulate(file).reports == simulate(file).reports


def test_carbon_and_fairness_are_told(scenario: Write) -> None:
    documents = [
        *COMMON,
        document("Project", "other", defaultQueue="q"),
        contract("green", carbon={"gramsPerKWh": 20, "source": "grid"}),
        WORK,
    ]
    rows = ["0,100,w,p", "0,100,w,p", "0,100,w,other", "0,100,w,p"]
    found = only(simulate(scenario(documents, rows, header="at,duration,operation,project")).reports)
    assert found.grams_per_kwh == pytest.approx(20)
    assert found.fairness == pytest.approx((3 + 1) ** 2 / (2 * (9 + 1)))


def test_the_picture_is_a_document_with_a_line_for_each_policy(scenario: Write) -> None:
    policies = [{"name": "x"}, {"name": "y", "choosing": "random"}]
    found = simulate(scenario([*COMMON, DEAR, CHEAP, WORK], [f"{at},90,w" for at in range(30)], policies=policies))
    root = ET.fromstring(draw("<two> & more", found.reports))
    lines = [each for each in root.iter() if each.get("stroke-width") == "1.8"]
    assert len(lines) == 4
    assert {"x", "y"} <= {each.text for each in root.iter()}


def test_a_price_that_ends_during_a_scenario_is_unknown_from_then_on_and_what_was_paid_stays(scenario: Write) -> None:
    ends = {"cpu-general": "2026-01-01T05:00:00Z"}
    offer = contract("b-cheap", cost={"currency": "EUR", "perHour": {"cpu-general": 0.1}, "ends": ends})
    rows = [f"{hour * 3600},3600,w" for hour in range(8)]
    policies = [{"name": "cheapest", "preferences": {"cost": 1}}]
    found = only(simulate(scenario([*COMMON, DEAR, offer, WORK], rows, policies=policies)).reports)
    assert found.cost == {"EUR": pytest.approx(5 * 0.1 + 3 * 0.4)}
    assert found.unpriced == 0
