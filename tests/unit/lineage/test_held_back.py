"""What is claimed and waits for the others of its gang says so wherever people look."""

from datetime import UTC, datetime
from typing import Any

import pytest

from landbridge.cli import explain
from landbridge.schema.wire.event_v1 import Phase
from landbridge_dashboard.views import placement
from landbridge_lineage.explain import explanation
from landbridge_lineage.state import State

AT = datetime(2026, 12, 1, tzinfo=UTC)
TOLD = "claimed by x; gang train has 1 of 2 members claimed, not b (offered to y)"


def a_state(**more: Any) -> State:
    given: dict[str, Any] = {"phase": Phase.PENDING, "reason": "gang-incomplete", "message": TOLD, "changed_at": AT}
    return State(operation="a", project="p", round=1, **{**given, **more})


def test_a_member_that_is_claimed_tells_which_others_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    answer = explanation(a_state(), (), None, None, None)
    assert (answer["waiting"]["by"], answer["waiting"]["message"]) == ("dispatch", TOLD)
    explain.show({**answer, "now": {"eligible": True}}, "north")
    assert f"gang-incomplete: {TOLD}" in capsys.readouterr().out
    assert placement(answer)["summary"] == f"Waits: {TOLD}."


@pytest.mark.parametrize("other", [{"reason": "gang-claimed"}, {"phase": Phase.RUNNING, "reason": "started"}])
def test_once_all_are_claimed_nothing_is_waited_for(other: dict[str, Any]) -> None:
    assert explanation(a_state(**other), (), None, None, None)["waiting"] is None
