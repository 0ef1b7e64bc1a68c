"""How an operation stands now, asked of ranking: an explanation is what was decided and what would be decided."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from landbridge.domain.classify import classify
from landbridge.domain.units import UnitError
from landbridge.runtime.asking import ask
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.event_v1 import Assessment, Phase
from landbridge.schema.wire.request_v1 import PlanRequest
from landbridge_lineage.fold import LIFECYCLE, Fact
from landbridge_lineage.state import TERMINAL_PHASES, State

if TYPE_CHECKING:
    from landbridge_lineage.service import LineageService

ASK_SECONDS: Final = 4.0


class _Accepted(msgspec.Struct):
    effective: bytes = b""


async def now_of(
    service: "LineageService", state: State, known: Sequence[Fact], assessment: Assessment | None
) -> dict[str, Any]:
    """Return `{"now": …}`, or with `now` None also `nowMissing`, which says why nothing can be told."""
    if state.phase in TERMINAL_PHASES and not (state.phase is Phase.FAILED and not state.environment):
        return {"now": None, "nowMissing": f"it is {state.phase.value}"}
    requirements = assessment.requirements if assessment is not None else b""
    question = PlanRequest(requirements=requirements or requirements_of(known), operation=state.operation)
    if not question.requirements:
        return {"now": None, "nowMissing": "its specification is not known here yet"}
    try:
        reply = await ask(service.bus, "ranking", "plan", question, ASK_SECONDS)
    except ProblemError as error:
        return {"now": None, "nowMissing": error.detail}
    if not reply.found:
        return {"now": None, "nowMissing": reply.message}
    return {"now": msgspec.json.decode(reply.json)}


def requirements_of(known: Sequence[Fact]) -> bytes:
    """Return the requirement class of the accepted specification; empty where that is not known or not readable."""
    for fact in known:
        if fact.lane == LIFECYCLE and fact.number == 1:
            try:
                return classify(msgspec.json.decode(fact.body, type=_Accepted).effective).body
            except (msgspec.MsgspecError, UnitError):
                return b""
    return b""
