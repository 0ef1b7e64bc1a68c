"""Shell scripts as command and arguments."""

import re
from collections.abc import Iterable

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def escaped(script: str, variables: Iterable[str]) -> str:
    """Keep what a shell reads from being taken for a reference to a variable.

    In a command `$(NAME)` stands for a variable of env and `$$` for one dollar; to a shell they are the output of a
    program and its own process id.
    """
    known = set(variables)
    doubled = script.replace("$$", "$$$$")
    return _REFERENCE.sub(lambda match: f"${match[0]}" if match[1] in known else match[0], doubled)
