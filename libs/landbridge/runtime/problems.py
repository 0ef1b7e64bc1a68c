"""Errors of HTTP answers as `application/problem+json` (RFC 9457)."""

from collections.abc import Iterable, Mapping
from typing import Any

from landbridge.domain.errors import Problem

MEDIA_TYPE = "application/problem+json"


class ProblemError(Exception):
    """Raise it anywhere below an HTTP route: it becomes the answer."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        *,
        problems: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
        kind: str = "about:blank",
        **members: object,
    ) -> None:
        """`members` are further members of the answer, such as `operation`."""
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail
        self.problems = tuple(problems)
        self.headers = dict(headers or {})
        self.kind = kind
        self.members = members

    def body(self) -> dict[str, Any]:
        """Return the answer's content."""
        content: dict[str, Any] = {"type": self.kind, "title": self.title, "status": self.status}
        if self.detail:
            content["detail"] = self.detail
        if self.problems:
            content["problems"] = [problem_members(problem) for problem in self.problems]
        return {**content, **self.members}


def problem_members(problem: Problem) -> dict[str, Any]:
    """Return one problem of a document as JSON members; what is not known is left out."""
    members: dict[str, Any] = {"path": problem.path, "code": problem.code, "message": problem.message}
    if problem.suggestion:
        members["suggestion"] = problem.suggestion
    if problem.line:
        members["line"], members["column"] = problem.line, problem.column
    return members
