"""What ran, folded from the facts: placements, attempts, late reports."""

from landbridge.bus.envelope import Inbound
from landbridge.schema.wire.event_v1 import Condition, ReportVerdict
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_lineage.attempts import Placement, attempts, placements
from landbridge_lineage.facts import read
from landbridge_lineage.replay import fold_all
from landbridge_lineage.views import summary, timeline
from support.lineage_messages import OUTPUT, a_report, a_whole_life, accepted, an_operation, at, changed, placed

OPERATION = an_operation()


def placed_by(*messages: Inbound) -> list[Placement]:
    return placements(read(messages).facts)


def test_each_placement_keeps_what_it_ran_on_and_left_behind() -> None:
    first, second = placed_by(*a_whole_life(OPERATION))
    assert (first.epoch, first.attempt, first.environment, first.decision_id) == ("1.1", 1, "quay", "d-1")
    assert (first.outcome, first.signal, first.reason) == (AttemptOutcome.FAILED, 9, "signal")
    assert (second.exit_code, second.metrics, second.outputs) == (0, {"rmse": 0.1}, {"forecast": OUTPUT})
    assert second.resolved is not None
    assert second.resolved.host == "quay-1"
    assert (second.offered_at, second.finished_at) == (at(5), at(30))


def test_the_order_of_arrival_does_not_matter() -> None:
    life = a_whole_life(OPERATION)
    assert placed_by(*reversed(life)) == placed_by(*life)


def test_a_placement_that_never_started_is_no_attempt() -> None:
    facts = read(
        [
            accepted(OPERATION),
            placed(OPERATION, 2, "pending"),
            changed(OPERATION, 3, "queued", round=2, reason="offer-lapsed"),
            placed(OPERATION, 4, "pending", counter=2),
            placed(OPERATION, 5, "running", counter=2),
        ]
    ).facts
    assert [each.epoch for each in placements(facts)] == ["1.1", "1.2"]
    assert [each.epoch for each in attempts(facts)] == ["1.2"]


def test_a_late_report_is_kept_with_its_own_placement() -> None:
    late = placed(
        OPERATION,
        6,
        "running",
        counter=2,
        environment="reef",
        event="observed",
        verdict=ReportVerdict.SUPERSEDED,
        report=a_report(OPERATION, "finished", outcome="completed", exit_code=0),
    )
    first, second = placed_by(
        accepted(OPERATION),
        placed(OPERATION, 2, "pending"),
        placed(OPERATION, 3, "running"),
        placed(OPERATION, 4, "pending", counter=2, environment="reef"),
        placed(OPERATION, 5, "running", counter=2, environment="reef"),
        late,
    )
    assert (first.verdict, first.outcome, first.environment) == ("superseded", "completed", "quay")
    assert (second.verdict, second.outcome) == ("", "")


def test_conditions_are_listed_by_their_type() -> None:
    lost = Condition(type="control-lost", status=True, reason="lease-expired", message="not heard for 34 s")
    facts = read([accepted(OPERATION), changed(OPERATION, 2, "queued", event="condition", condition=lost)]).facts
    state = fold_all(facts)
    assert state is not None
    assert [(each["type"], each["reason"]) for each in summary(state)["conditions"]] == [
        ("control-lost", "lease-expired")
    ]
    assert timeline(facts)[1]["data"]["condition"]["message"] == "not heard for 34 s"
