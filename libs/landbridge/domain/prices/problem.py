"""What is wrong with a price list, where, and what to do."""

from typing import NamedTuple


class Problem(NamedTuple):
    """One problem: the line (0: the file as a whole), the column, what was expected and found, the next step."""

    line: int
    column: str
    message: str
    suggestion: str = ""

    def text(self, file: str) -> str:
        """Write it as one line."""
        place = f"{file}:{self.line}" if self.line else file
        column = f"{self.column}: " if self.column else ""
        return f"{place}: {column}{self.message}{f'; {self.suggestion}' if self.suggestion else ''}"
