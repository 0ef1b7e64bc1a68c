"""Problems of a document, told in one text wherever people meet them: CLI, HTTP and the refused event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document.

    `path` is dotted (`spec.resources.requests.memory`, list items as `[0]`), empty for the document as a whole.
    `line` and `column` count from 1; 0 means that no place is known. `code` is stable, for programs;
    `message` says what was expected and found, `suggestion` what to do. Neither ever holds a secret value.
    """

    path: str
    code: str
    message: str
    suggestion: str = ""
    line: int = 0
    column: int = 0

    @property
    def text(self) -> str:
        """The problem without its place: `spec.resources.requests.memroy: unknown field; did you mean "memory"?`."""
        told = f"{self.message}; {self.suggestion}" if self.suggestion else self.message
        return f"{self.path}: {told}" if self.path else told


def render_problem(problem: Problem, source: str = "document") -> str:
    """One line, with its place in `source` where it is known: `operation.yaml:12:5 spec.type: ...`."""
    place = f"{source}:{problem.line}:{problem.column} " if problem.line else f"{source}: "
    return place + problem.text


def render_problems(problems: Iterable[Problem], source: str = "document") -> str:
    """All problems, one a line, in the order given."""
    return "\n".join(render_problem(problem, source) for problem in problems)


def in_reading_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sorted as a person reads the document; equal problems once, and one problem per path and code."""
    first: dict[tuple[str, str, int, int], Problem] = {}
    for problem in problems:
        first.setdefault((problem.path, problem.code, problem.line, problem.column), problem)
    return tuple(sorted(first.values(), key=lambda p: (p.line == 0, p.line, p.column, p.path, p.code)))


class RefusedError(Exception):
    """A document was refused. Carries every problem; the text is the one of `render_problems`."""

    def __init__(self, problems: Sequence[Problem], source: str = "document") -> None:
        super().__init__(render_problems(problems, source))
        self.problems = tuple(problems)
