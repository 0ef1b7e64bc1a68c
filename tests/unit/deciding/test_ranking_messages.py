"""What ranking writes is what the contracts say, and what it reads of others' messages is what they wrote."""

from datetime import timedelta

import msgspec

from landbridge.domain.decision_record import make_record
from landbridge.domain.placement import choose, order, rank
from landbridge.domain.queues import Wait, WaitReason
from landbridge.schema.wire import event_v1
from landbridge_ranking import messages
from support.deciding import NOW, an_environment, an_operation


def test_a_decision_reads_as_the_contract_says() -> None:
    environments = [an_environment("a"), an_environment("b", cost={"perHour": {"cpu-general": None}})]
    ranking = rank(an_operation().requirements, environments, {"cost": 2.0}, hopeful=[an_environment("c")])
    choice = choose(order(ranking), "op", ())
    assert choice is not None
    record = make_record(assessment="a1", at=NOW, policy="p@1", ranking=ranking, choice=choice, inputs={"x": "1"})
    later = NOW + timedelta(minutes=1)
    [event] = messages.DecisionEncoder().decided(
        "retail-eu", record, NOW, [("op", 3)], contract_version=8, valid_until=later
    )
    assert event.subject == "lb.v1.operation.decided.retail-eu"
    found = msgspec.json.decode(event.body, type=event_v1.OperationsDecided)
    assert found.operations == (
        event_v1.DecidedOperation(
            operation="op", round=3, environment=choice.environment, contract_version=8, valid_until=later
        ),
    )
    decision = found.decision
    assert (decision.id, decision.assessment_id, decision.policy_version) == (record.id, "a1", "p@1")
    assert (decision.at, decision.route, decision.inputs) == (NOW, event_v1.Route(choice.route), {"x": "1"})
    assert decision.ranked == tuple(messages.to_wire(card) for card in ranking.cards if card.eligible)
    [card] = [card for card in decision.ranked if card.environment == "b"]
    [cost] = [measured for measured in card.measurements if measured.preference == "cost"]
    assert (cost.value, cost.unknown, cost.normalised) == (None, True, 0.0)


def test_a_long_list_is_told_in_several_messages() -> None:
    ranking = rank(an_operation().requirements, [an_environment("a")], {})
    choice = choose(order(ranking), "op", ())
    assert choice is not None
    record = make_record(assessment="a1", at=NOW, policy="p", ranking=ranking, choice=choice, inputs={})
    operations = [(f"op{i}", 1) for i in range(2500)]
    events = messages.DecisionEncoder().decided("p", record, NOW, operations, contract_version=1, valid_until=None)
    found = [msgspec.json.decode(event.body, type=event_v1.OperationsDecided) for event in events]
    assert [len(event.operations) for event in found] == [1000, 1000, 500]


def test_a_wait_reads_as_the_contract_says() -> None:
    wait = Wait(WaitReason.QUOTA, "queue q holds 4 of 4 gpu, 2 more are needed")
    operation = event_v1.OperationRound(operation="op", round=2)
    [event] = messages.waiting("p", wait, [operation], assessment="a1", condition="")
    assert msgspec.json.decode(event.body, type=event_v1.OperationsWaiting) == event_v1.OperationsWaiting(
        by="ranking", operations=(operation,), reason="quota", message=wait.message, assessment_id="a1"
    )


def test_of_an_assessment_ranking_reads_what_eligibility_wrote() -> None:
    verdicts = (
        event_v1.EnvironmentVerdict(environment="a", contract_version=8, eligible=True, valid_until=NOW),
        event_v1.EnvironmentVerdict(
            environment="b",
            violations=(
                event_v1.Violation(constraint="link", reason="control-lost", kind=event_v1.ViolationKind.NOT_NOW),
            ),
        ),
        event_v1.EnvironmentVerdict(
            environment="c",
            violations=(
                event_v1.Violation(constraint="link", kind=event_v1.ViolationKind.NOT_NOW),
                event_v1.Violation(constraint="residency", kind=event_v1.ViolationKind.NEVER),
            ),
        ),
    )
    written = event_v1.Assessment(
        id="a1", requirement_class="k", at=NOW, requirements=b"{}", environments=verdicts, inputs={"environments": "7"}
    )
    found = messages.read_assessment.decode(msgspec.json.encode(written))
    assert [verdict.eligible for verdict in found.environments] == [True, False, False]
    assert [verdict.hopeful for verdict in found.environments] == [False, True, False]
    assert (found.requirements, found.environments[0].valid_until, found.read) == (b"{}", NOW, 7)


def test_who_has_read_more_supersedes_unless_the_streams_were_rebuilt() -> None:
    def made(read: int, seconds: int) -> messages.Assessment:
        at = NOW + timedelta(seconds=seconds)
        return messages.Assessment("a", "k", at, inputs={"environments": str(read), "catalogue": "1"})

    assert made(8, -5).supersedes(made(7, 0))
    assert made(7, 1).supersedes(made(7, 0))
    assert not made(7, -1).supersedes(made(7, 0))
    assert not made(6, 5).supersedes(made(7, 0))
    assert made(1, 61).supersedes(made(900, 0))
