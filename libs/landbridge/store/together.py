"""Writes that can be sent as one statement: each but the last becomes a common table expression of the last."""

import re
from collections.abc import Sequence
from functools import lru_cache

_PARAMETER = re.compile(r"\$(\d+)")


class Together:
    """Writes in the order in which they were added, each under the name of what it touches."""

    __slots__ = ("_arguments", "_names", "_statements")

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._statements: list[str] = []
        self._arguments: list[object] = []

    def __bool__(self) -> bool:
        return bool(self._statements)

    def holds(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str, sql: str, arguments: Sequence[object]) -> None:
        """Take one plain write that uses each of its parameters `$1` to `$n`."""
        self._names.add(name)
        self._statements.append(_moved(sql, len(self._arguments)))
        self._arguments += arguments

    def take(self) -> tuple[str, list[object]]:
        """Return the one statement that does it all, with its parameters, and forget it; not for none."""
        sql, arguments = _joined(tuple(self._statements)), self._arguments
        self._names, self._statements, self._arguments = set(), [], []
        return sql, arguments


@lru_cache(maxsize=1024)
def _moved(sql: str, by: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", sql) if by else sql


@lru_cache(maxsize=1024)
def _joined(statements: tuple[str, ...]) -> str:
    *before, last = statements
    if not before:
        return last
    expressions = ", ".join(f"write_{number} as ({sql})" for number, sql in enumerate(before, 1))
    return f"with {expressions} {last}"
