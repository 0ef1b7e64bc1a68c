"""The fold: every order and repetition of the same facts gives the same state, byte for byte."""

import itertools
import random

import msgspec
import pytest

from landbridge.bus.envelope import Inbound
from landbridge.runtime.ids import new_id
from landbridge.schema.wire.event_v1 import Condition, Phase, ReportVerdict
from landbridge_lineage import fold as folding
from landbridge_lineage.facts import UnreadableError, read
from landbridge_lineage.fold import TooManyParkedError, fold
from landbridge_lineage.state import State, decode, encode
from support.lineage_messages import (
    a_report,
    a_whole_life,
    accepted,
    an_epoch,
    an_operation,
    at,
    changed,
    placed,
    waiting,
)

OPERATION = an_operation()


def folded(*messages: Inbound) -> State:
    state: State | None = None
    for fact in read(messages).facts:
        state = fold(state, fact)
    assert state is not None
    return state


def test_a_whole_life_ends_in_its_last_phase() -> None:
    state = folded(*a_whole_life(OPERATION))
    assert (state.phase, state.seq, state.attempt, state.environment) == (Phase.COMPLETED, 7, 2, "quay")
    assert (state.accepted_at, state.started_at, state.ended_at) == (at(1), at(3), at(7))
    assert (state.name, state.queue, state.type, state.labels) == ("tides", "batch", "job", {"team": "forecasting"})


def test_every_order_of_the_last_six_events_gives_the_same_bytes() -> None:
    first, *last = a_whole_life(OPERATION)
    expected = encode(folded(first, *last))
    for order in itertools.permutations(last):
        assert encode(folded(first, *order)) == expected


def test_every_order_of_a_short_life_with_waits_gives_the_same_bytes() -> None:
    messages = [
        accepted(OPERATION),
        waiting(OPERATION, reason="class"),
        changed(OPERATION, 2, "queued", round=1),
        waiting(OPERATION, reason="quota"),
        placed(OPERATION, 3, "pending"),
        placed(OPERATION, 4, "failed", reason="timeout"),
    ]
    expected = encode(folded(*messages))
    for order in itertools.permutations(messages):
        assert encode(folded(*order)) == expected


def test_repeating_events_in_any_mixture_changes_nothing() -> None:
    life = a_whole_life(OPERATION)
    expected = encode(folded(*life))
    source = random.Random(7)
    for _ in range(50):
        mixture = life * 2
        source.shuffle(mixture)
        assert encode(folded(*mixture)) == expected


def test_an_event_that_came_before_is_the_same_object() -> None:
    life = a_whole_life(OPERATION)
    state = folded(*life)
    for fact in read(life).facts:
        assert fold(state, fact) is state


def test_events_behind_a_gap_wait_and_do_not_show() -> None:
    first, second, third, *_ = a_whole_life(OPERATION)
    state = folded(first, third)
    assert (state.phase, state.seq, list(state.parked)) == (Phase.ACCEPTED, 1, ["3"])
    state = fold(state, read([second]).facts[0])
    assert (state.phase, state.seq, dict(state.parked)) == (Phase.RUNNING, 3, {})


def test_what_is_stored_reads_back_as_the_same_state() -> None:
    life = a_whole_life(OPERATION)
    for count in range(1, len(life) + 1):
        state = folded(*life[:count], *life[count + 1 :])
        assert decode(encode(state)) == state
        assert encode(decode(encode(state))) == encode(state)


def test_more_than_a_thousand_early_events_are_refused() -> None:
    state = folded(accepted(OPERATION))
    for number in range(3, 3 + folding.PARKED_MAX):
        state = fold(state, read([changed(OPERATION, number, "running")]).facts[0])
    with pytest.raises(TooManyParkedError, match="event 2 is missing and 1000 later ones"):
        fold(state, read([changed(OPERATION, 2000, "running")]).facts[0])


def test_a_superseded_report_is_counted_and_changes_nothing_else() -> None:
    before = folded(*a_whole_life(OPERATION)[:6])
    late = placed(
        OPERATION,
        7,
        "running",
        environment="reef",
        event="observed",
        verdict=ReportVerdict.SUPERSEDED,
        report=a_report(OPERATION, "finished", outcome="completed"),
    )
    after = fold(before, read([late]).facts[0])
    assert after == msgspec.structs.replace(before, seq=7, superseded=1)


def test_a_condition_holds_from_its_first_report_until_it_is_lifted() -> None:
    lost = Condition(type="control-lost", status=True, reason="lease-expired")
    life = [accepted(OPERATION), placed(OPERATION, 2, "pending"), placed(OPERATION, 3, "running")]
    held = folded(
        *life,
        changed(OPERATION, 4, "running", event="condition", condition=lost),
        changed(OPERATION, 5, "running", event="condition", condition=lost),
    )
    assert held.conditions["control-lost"].since == at(4)
    assert held.environment == "quay"
    found = Condition(type="control-lost", status=False)
    state = fold(held, read([changed(OPERATION, 6, "running", event="condition", condition=found)]).facts[0])
    assert state.conditions == {}


def test_nothing_holds_of_an_operation_that_has_ended() -> None:
    lost = Condition(type="cancelling", status=True)
    state = folded(
        accepted(OPERATION),
        changed(OPERATION, 2, "queued", event="condition", condition=lost),
        changed(OPERATION, 3, "cancelled", reason="by-request"),
    )
    assert (state.conditions, state.ended_at, state.environment) == ({}, at(3), "")


def test_a_wait_shows_while_the_operation_waits_in_that_round() -> None:
    state = folded(accepted(OPERATION), waiting(OPERATION, reason="quota", assessment_id="a-1"))
    assert state.waits is not None
    assert (state.waits.reason, state.waits.assessment_id) == ("quota", "a-1")
    state = fold(state, read([placed(OPERATION, 2, "pending")]).facts[0])
    assert state.waits is None
    state = fold(state, read([changed(OPERATION, 3, "retrying", round=2)]).facts[0])
    assert state.waits is None
    assert state.environment == ""


def test_the_newest_reason_of_the_highest_round_counts() -> None:
    older, newer = new_id(), new_id()
    state = folded(
        accepted(OPERATION),
        waiting(OPERATION, reason="new", message_id=newer),
        waiting(OPERATION, reason="old", message_id=older),
    )
    assert state.waiting is not None
    assert state.waiting.reason == "new"


def test_a_phase_of_a_later_release_leaves_the_phase_as_it_is() -> None:
    state = folded(accepted(OPERATION))
    odd = changed(OPERATION, 2, "queued")
    odd = msgspec.structs.replace(odd, body=odd.body.replace(b'"queued"', b'"teleporting"'))
    state = fold(state, read([odd]).facts[0])
    assert (state.phase, state.seq) == (Phase.ACCEPTED, 2)


def test_the_epoch_of_the_placement_is_kept_as_text() -> None:
    state = folded(accepted(OPERATION), placed(OPERATION, 2, "pending", epoch=an_epoch(7)))
    assert state.epoch == "1.7"


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(accepted(OPERATION), body=b"{}"),
        msgspec.structs.replace(accepted(OPERATION), body=b"not json"),
        changed(OPERATION, 1, "running"),
        changed("no-uuid", 2, "running"),
        waiting(OPERATION, message_id="no-uuid"),
    ],
    ids=["empty", "not-json", "second-acceptance", "operation-id", "message-id"],
)
def test_a_message_that_is_not_what_it_says_is_named(message: Inbound) -> None:
    with pytest.raises(UnreadableError) as caught:
        read([accepted(OPERATION), message])
    assert caught.value.args[0] == message.id


def test_a_type_of_a_later_release_is_passed_over() -> None:
    later = msgspec.structs.replace(accepted(OPERATION), type="io.landbridge.operation.v1.OperationTeleported")
    assert read([later]).facts == []
