"""The centre's side: what a report counts for.

A report counts only for the current epoch, from the environment that holds it and, if it ends the placement, for the
term of the latest grant. Everything else is kept as a record and moves nothing.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_late import end_overlap, standing
from landbridge.domain.ownership.centre_model import (
    Alarm,
    Decision,
    Effect,
    OperationState,
    PlacementState,
    ReportCheckpointed,
    Reported,
    ReportFailedToStart,
    ReportFinished,
    ReportRefused,
    ReportRelinquished,
    ReportStarted,
    SendSettle,
    SendStop,
    Timer,
    Verdict,
)
from landbridge.domain.ownership.centre_placement import take_back
from landbridge.domain.ownership.centre_shared import (
    end,
    event,
    is_owned,
    is_terminal,
    leave,
    move,
    observe,
    phase_after_leaving,
)
from landbridge.domain.ownership.environment_work import LATE
from landbridge.domain.ownership.policy import FAILED_START_LIMIT, Timing
from landbridge.domain.ownership.rules import Rules

# Refusals that say nothing against placing the operation there again.
_PASSING_REFUSALS = frozenset({"no-capacity", "stale-epoch", "paused"})
_NEVER_RETRIED = frozenset({"acceptance-not-met"})


def _counts(state: OperationState, report: Reported, needs_term: bool) -> bool:
    """Whether a final report is for the term of the latest grant.

    A term above it is the environment's claim for a newer grant in the same breath, if that term is in force.
    """
    if not needs_term or report.term == state.grant_term:
        return True
    return state.grant_term < report.term == report.environment_term


def _stale_term(state: OperationState) -> Decision:
    """Ignore a final report of an older term: the slot is its record, and is reported again in the newer term."""
    return Decision(state)


def _started(state: OperationState, report: ReportStarted, _now: int, rules: Rules, _timing: Timing) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    if state.placement is PlacementState.CLAIMED:
        return mark_running(state, report)
    if state.placement in (PlacementState.RUNNING, PlacementState.RECOVERING) or state.concluded:
        return Decision(state)
    stop = SendStop(report.environment, report.epoch, "superseded", 0, True)
    if state.placement is PlacementState.OFFERED:
        seen = observe(state, report, Verdict.REFUSED, "started-without-grant")
        text = f"operation {state.operation}: {report.environment} started epoch {report.epoch} without a grant"
        return Decision(seen.state, (*seen.effects, stop, Alarm("started-without-grant", text)))
    seen = observe(state, report, Verdict.SUPERSEDED)
    return Decision(seen.state, (*seen.effects, stop))


def mark_running(state: OperationState, report: Reported) -> Decision:
    """Begin an attempt: from now on users see it run."""
    if state.pinned == state.environment:
        state = replace(state, pinned="")
    state = move(
        state,
        Phase.RUNNING,
        placement=PlacementState.RUNNING,
        attempts=state.attempts + 1,
        returns=0,
        timer=Timer.NONE,
        due_at=0,
    )
    running = event(state, "running", reason="started", report=report.report, verdict=Verdict.ACCEPTED)
    return Decision(state, (running,))


def _finished(state: OperationState, report: ReportFinished, now: int, rules: Rules, _timing: Timing) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    settle = SendSettle(report.environment, report.epoch)
    if not is_owned(state):
        return _finished_late(state, report, settle)
    if not _counts(state, report, rules.terminal_needs_term):
        return _stale_term(state)
    before: tuple[Effect, ...] = ()
    if state.placement is PlacementState.CLAIMED:
        begun = mark_running(state, report)
        state, before = begun.state, begun.effects
    decision = _conclude(state, report, now, settle)
    return Decision(decision.state, before + decision.effects)


def _conclude(state: OperationState, report: ReportFinished, now: int, settle: SendSettle) -> Decision:
    """End the attempt as reported: completed, cancelled, failed, or failed with another attempt to follow."""
    if report.outcome == "completed":
        message = "completed before the cancel took effect" if state.cancel else report.message
        reason = "cancel-lost" if state.cancel else report.reason or "completed"
        return end(state, Phase.COMPLETED, reason=reason, message=message, report=report.report, extra=(settle,))
    if report.outcome == "cancelled":
        reason = report.reason or "cancelled"
        return end(state, Phase.CANCELLED, reason=reason, message=report.message, report=report.report, extra=(settle,))
    return fail_attempt(
        state, now, report.reason or "failed", report.message, report.exit_code, report.report, (settle,)
    )


def fail_attempt(
    state: OperationState,
    now: int,
    reason: str,
    message: str,
    exit_code: int | None,
    report: object,
    extra: tuple[Effect, ...],
) -> Decision:
    """Try again as the operation declares, else end as failed. A pending cancel ends it instead of another attempt."""
    may_retry = (
        state.failures < state.retries.limit
        and reason not in _NEVER_RETRIED
        and (exit_code is None or exit_code not in state.retries.except_exit_codes)
    )
    if not may_retry:
        return end(state, Phase.FAILED, reason=reason, message=message, report=report, extra=extra)
    if state.cancel:
        return end(state, Phase.CANCELLED, reason="cancelled", message=message, report=report, extra=extra)
    state = replace(state, failures=state.failures + 1)
    wait_ms = state.retries.wait_ms(state.failures)
    return leave(
        state, Phase.RETRYING, now, reason=reason, message=message, wait_ms=wait_ms, report=report, extra=extra
    )


def _finished_late(state: OperationState, report: ReportFinished, settle: SendSettle) -> Decision:
    """Judge a finished report of the current epoch whose placement was already left, or never granted."""
    if state.placement is PlacementState.RECOVERING:
        return Decision(state)  # the inventory will show the slot
    if state.concluded and (not is_terminal(state) or state.phase.value == report.outcome):
        return Decision(state, (settle,))
    freed = state.placement is PlacementState.IDLE and state.grant_term > 0 and not state.cancel
    if freed and report.outcome == "completed" and report.term == state.grant_term:
        # Thought lost, yet finished, and nothing else was started since: work that finished stays finished.
        return end(state, Phase.COMPLETED, reason="late-completion", report=report.report, extra=(settle,))
    seen = end_overlap(observe(replace(state, concluded=True), report, Verdict.SUPERSEDED), report)
    return Decision(seen.state, (*seen.effects, settle))


def _relinquished(
    state: OperationState, report: ReportRelinquished, now: int, rules: Rules, _timing: Timing
) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    settle = SendSettle(report.environment, report.epoch)
    if state.placement is PlacementState.OFFERED:
        back = take_back(state, now, report.reason or "relinquished", report.message)
        return Decision(replace(back.state, concluded=True), (*back.effects, settle))
    if not is_owned(state):
        return _given_back_late(state, report, settle)
    if not _counts(state, report, rules.relinquish_needs_term):
        return _stale_term(state)
    reason = report.reason or "relinquished"
    if report.checkpoint:
        state = replace(state, checkpoint=report.checkpoint)
    if reason == "not-here" and state.placement is PlacementState.RUNNING and not state.cancel:
        # It had started and its record is gone: removed behind our back, now confirmed.
        return fail_attempt(state, now, "missing", report.message, None, report.report, (settle,))
    return leave(
        state,
        phase_after_leaving(state),
        now,
        reason=reason,
        message=report.message,
        # Where a gang did not come up in time it need not be tried again at once.
        exclude=(*state.exclude, report.environment) if reason == LATE else (),
        report=report.report,
        extra=(settle,),
    )


def _given_back_late(state: OperationState, report: Reported, settle: SendSettle) -> Decision:
    if state.placement is PlacementState.RECOVERING:
        return Decision(state)
    if state.concluded:
        return Decision(state, (settle,))
    seen = end_overlap(observe(replace(state, concluded=True), report, Verdict.SUPERSEDED), report)
    return Decision(seen.state, (*seen.effects, settle))


def _failed_to_start(
    state: OperationState, report: ReportFailedToStart, now: int, rules: Rules, _timing: Timing
) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    settle = SendSettle(report.environment, report.epoch)
    if not is_owned(state):
        return _given_back_late(state, report, settle)
    if not _counts(state, report, rules.relinquish_needs_term):
        return _stale_term(state)
    if state.cancel:
        return end(state, Phase.CANCELLED, reason="cancelled", report=report.report, extra=(settle,))
    reason = report.reason or "failed-to-start"
    if state.failed_starts + 1 >= FAILED_START_LIMIT:
        return end(state, Phase.FAILED, reason=reason, message=report.message, report=report.report, extra=(settle,))
    state = replace(state, failed_starts=state.failed_starts + 1)
    return leave(
        state,
        Phase.RETRYING,
        now,
        reason=reason,
        message=report.message,
        exclude=(*state.exclude, report.environment),
        report=report.report,
        extra=(settle,),
    )


def _checkpointed(
    state: OperationState, report: ReportCheckpointed, _now: int, rules: Rules, _timing: Timing
) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    if state.placement is not PlacementState.RUNNING or not report.checkpoint:
        return Decision(state)
    return observe(replace(state, checkpoint=report.checkpoint), report, Verdict.ACCEPTED, "checkpointed")


def _refused(state: OperationState, report: ReportRefused, now: int, rules: Rules, _timing: Timing) -> Decision:
    elsewhere = standing(state, report, rules)
    if elsewhere is not None:
        return elsewhere
    if state.placement is PlacementState.OFFERED and report.reason != "stale-epoch":
        exclude = () if report.reason in _PASSING_REFUSALS else (*state.exclude, report.environment)
        return take_back(state, now, report.reason or "refused", report.message, exclude=exclude)
    if is_owned(state) and report.reason == "must-finish":
        return observe(state, report, Verdict.ACCEPTED)
    return Decision(state)


REPORT_HANDLERS: dict[type, Callable[[OperationState, Any, int, Rules, Timing], Decision]] = {
    ReportStarted: _started,
    ReportFinished: _finished,
    ReportRelinquished: _relinquished,
    ReportFailedToStart: _failed_to_start,
    ReportCheckpointed: _checkpointed,
    ReportRefused: _refused,
}
