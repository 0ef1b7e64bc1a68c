"""What eligibility writes is what the contracts say; an assessment that did not change is encoded once."""

import msgspec

from landbridge.domain.candidate import Control
from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.waiting import reason
from landbridge.schema.wire import event_v1
from landbridge_eligibility import messages
from support.deciding import NOW, an_environment, an_operation

OPERATION = an_operation()
ASSESSMENT = evaluate_eligibility(
    OPERATION,
    [an_environment("a"), an_environment("b", control=Control(paused=True, reason="disk swap"))],
    NOW,
    inputs={"environments": "12", "catalogue": "3"},
)


def test_an_assessment_reads_as_the_contract_says() -> None:
    encoder = messages.AssessmentEncoder()
    rounds = [event_v1.OperationRound(operation="op", round=1)]
    [event] = messages.assessed("retail-eu", encoder.encode(OPERATION, ASSESSMENT), rounds)
    assert event.subject == "lb.v1.operation.assessed.retail-eu"
    found = msgspec.json.decode(event.body, type=event_v1.OperationsAssessed)
    assert found.operations == tuple(rounds)
    assert found.assessment == messages.to_wire(OPERATION, ASSESSMENT)
    paused = found.assessment.environments[1]
    assert (paused.environment, paused.eligible) == ("b", False)
    [violation] = paused.violations
    assert (violation.constraint, violation.reason, violation.kind) == ("control", "paused", "not-now")
    assert found.assessment.requirements == OPERATION.body
    assert found.assessment.inputs == {"environments": "12", "catalogue": "3"}


def test_an_assessment_is_encoded_once() -> None:
    encoder = messages.AssessmentEncoder()
    assert encoder.encode(OPERATION, ASSESSMENT) is encoder.encode(OPERATION, ASSESSMENT)


def test_a_changed_verdict_is_announced_without_operations() -> None:
    [event] = messages.assessed("p", messages.AssessmentEncoder().encode(OPERATION, ASSESSMENT), ())
    assert msgspec.json.decode(event.body, type=event_v1.OperationsAssessed).operations == ()


def test_waiting_tells_the_nearest_miss() -> None:
    nothing = evaluate_eligibility(OPERATION, [an_environment("a", workloads=["service"])], NOW)
    rounds = [event_v1.OperationRound(operation="op", round=1)]
    [event] = messages.waiting("p", nothing, reason(nothing), rounds)
    found = msgspec.json.decode(event.body, type=event_v1.OperationsWaiting)
    assert (found.by, found.reason, found.condition) == ("eligibility", "incompatible", "unplaceable")
    assert found.message.startswith("no environment is eligible; nearest is a (contract version 1): workload-type:")
