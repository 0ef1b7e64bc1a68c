"""How decisions are told over HTTP: the same problems, in the same words, as in events and on the command line."""

from collections.abc import Sequence
from typing import Any, Final

from landbridge.domain.errors import Problem, render_problems
from landbridge.runtime.problems import ProblemError, problem_members
from landbridge_intake.accept import CONFLICT, CREATED, EXISTING, FULL, REFUSED, Outcome

STATUS: Final = {CREATED: 201, EXISTING: 200, CONFLICT: 409, REFUSED: 422, FULL: 429}
_TITLES: Final = {409: "Conflict", 422: "Refused", 429: "Too many requests"}
FULL_RETRY_AFTER_S: Final = 10
RETRY_AFTER_S: Final = 2


def problem_count(problems: Sequence[Problem]) -> str:
    """Return `1 problem` or `3 problems`."""
    return f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"


def refusal(problems: Sequence[Problem], *, conflict: bool = False, operation: str = "") -> ProblemError:
    """Return the error that answers a refused document; `text` has all problems as the command line shows them.

    `operation` names the one that a conflict is with.
    """
    status, title = (409, "Conflict") if conflict else (422, "Refused")
    text = render_problems(problems)
    if operation:
        return ProblemError(status, title, problem_count(problems), problems=problems, text=text, operation=operation)
    return ProblemError(status, title, problem_count(problems), problems=problems, text=text)


def accepted_members(outcome: Outcome, key: str) -> dict[str, Any]:
    """Return the answer for an operation that is there now."""
    return {
        "operation": outcome.operation,
        "phase": "accepted",
        "existing": outcome.status == EXISTING,
        "idempotencyKey": key,
    }


def error_of(outcome: Outcome) -> ProblemError:
    """Return the error for a submission that was not accepted."""
    if outcome.status == CONFLICT:
        return refusal(outcome.problems, conflict=True, operation=outcome.operation)
    if outcome.status == FULL:
        problems, headers = outcome.problems, {"Retry-After": str(FULL_RETRY_AFTER_S)}
        text = render_problems(problems)
        return ProblemError(429, _TITLES[429], problems[0].message, headers=headers, problems=problems, text=text)
    return refusal(outcome.problems)


def item_members(outcome: Outcome, key: str) -> dict[str, Any]:
    """Return one item of a bulk answer, with the status that it would have had alone."""
    status = STATUS[outcome.status]
    if status < 300:
        return {"status": status, **accepted_members(outcome, key)}
    members: dict[str, Any] = {
        "status": status,
        "title": _TITLES[status],
        "detail": problem_count(outcome.problems),
        "problems": [problem_members(problem) for problem in outcome.problems],
        "idempotencyKey": key,
    }
    return {**members, "operation": outcome.operation} if outcome.operation else members


def busy(reason: str) -> ProblemError:
    """Return the answer while too much waits to be published."""
    detail = f"{reason}; nothing of this request was kept, send it again"
    return ProblemError(429, "Too many requests", detail, headers={"Retry-After": str(RETRY_AFTER_S)})
