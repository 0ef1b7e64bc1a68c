"""The centre's side: reports that are not about the current placement of their sender.

They move nothing. What an environment may tell of a placement that it held is kept as a record of that placement, and
its end once: who returns tells it in its buffered reports, in its inventory, and again in its new term.
"""

from typing import Final

from msgspec.structs import replace

from landbridge.domain.lifecycle import Condition
from landbridge.domain.ownership.centre_model import (
    Alarm,
    Decision,
    Former,
    KnownEnd,
    OperationState,
    PlacementState,
    ReportCheckpointed,
    Reported,
    ReportFailedToStart,
    ReportFinished,
    ReportRefused,
    ReportRelinquished,
    SendSettle,
    SendStop,
    Verdict,
)
from landbridge.domain.ownership.centre_shared import event, is_terminal, set_condition
from landbridge.domain.ownership.epochs import NEVER_PLACED
from landbridge.domain.ownership.rules import Rules

_FINAL: Final = (ReportFinished, ReportRelinquished, ReportFailedToStart)


def standing(state: OperationState, report: Reported, rules: Rules) -> Decision | None:
    """Deal with a report that is not about the current placement of its sender; None = it is."""
    if report.epoch == state.epoch and report.environment == state.environment:
        return None
    if state.placement is PlacementState.RECOVERING:
        return Decision(state)  # nothing is judged before the inventories are in
    if report.epoch > state.epoch:
        text = f"operation {state.operation}: {report.environment} reports epoch {report.epoch}, never issued here"
        return Decision(state, (Alarm("epoch-ahead", text),))
    theirs = _held(state, report) if report.epoch < state.epoch else None
    if theirs is None and report.epoch < state.epoch and isinstance(report, ReportRefused):
        return Decision(state)  # an offer delivered again after another took its place: offers are not remembered
    if theirs is None:
        text = f"operation {state.operation}: {report.environment} reports epoch {report.epoch}, which it never held"
        return Decision(state, (Alarm("foreign-report", text),))
    if not rules.terminal_needs_current_epoch and isinstance(report, ReportFinished) and not is_terminal(state):
        return None
    return _superseded(state, report, theirs)


def _held(state: OperationState, report: Reported) -> Former | None:
    """Return the earlier placement that a report is about, if its sender held it."""
    return next((f for f in state.former if (f.epoch, f.environment) == (report.epoch, report.environment)), None)


def _superseded(state: OperationState, report: Reported, former: Former) -> Decision:
    """Record a report of a placement that is over, and answer so that the environment can clean up."""
    if isinstance(report, ReportRefused | ReportCheckpointed):
        return Decision(state)
    if not isinstance(report, _FINAL):
        seen = _recorded(state, report, former)
        stop = SendStop(report.environment, report.epoch, "superseded", 0, True)
        return Decision(seen.state, (*seen.effects, stop))
    seen = Decision(state)
    told = _end_of(report)
    # That it was completed after all is told, whatever end was known.
    contradicts = told is KnownEnd.COMPLETED and former.told is not KnownEnd.COMPLETED
    if former.told is KnownEnd.NONE or contradicts:
        known = tuple(replace(each, told=told) if each is former else each for each in state.former)
        seen = _recorded(replace(state, former=known), report, former)
    seen = end_overlap(seen, report)
    return Decision(seen.state, (*seen.effects, SendSettle(report.environment, report.epoch)))


def _end_of(report: Reported) -> KnownEnd:
    completed = isinstance(report, ReportFinished) and report.outcome == KnownEnd.COMPLETED
    return KnownEnd.COMPLETED if completed else KnownEnd.ENDED


def _recorded(state: OperationState, report: Reported, former: Former) -> Decision:
    """Put a report into the history as one of the placement, attempt and environment that it is about."""
    state = replace(state, op_seq=state.op_seq + 1)
    observed = event(
        state,
        "observed",
        reason=report.reason,
        message=report.message,
        report=report.report,
        verdict=Verdict.SUPERSEDED,
    )
    placed = {"epoch": former.epoch, "environment": former.environment, "attempt": former.attempt}
    return Decision(state, (replace(observed, **placed, decision_id=""),))


def end_overlap(seen: Decision, report: Reported) -> Decision:
    """Take note that the attempt left by emergency override is over: its environment has said so."""
    state = seen.state
    if report.epoch != state.overlap or not isinstance(report, _FINAL):
        return seen
    state = replace(state, overlap=NEVER_PLACED)
    if is_terminal(state):
        return Decision(state, seen.effects)
    state, ended = set_condition(state, Condition.POSSIBLE_OVERLAP, False, "proven-stopped")
    return Decision(state, (*seen.effects, ended))
