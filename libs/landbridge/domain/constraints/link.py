"""The centre hears the environment. What is cut off gets no new work; what runs there follows its own policy."""

from datetime import datetime
from typing import Final

from landbridge.domain.candidate import Candidate, LinkState, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, moment
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation

_CODES: Final = {
    LinkState.LOST: ("control-lost", "control lost"),
    LinkState.RECONCILING: ("reconciling", "reconciling after a lost link"),
    LinkState.NEVER: ("never-connected", "no dispatcher has connected yet"),
}


class Link(Rule):
    """Codes: `control-lost`, `reconciling`, `never-connected`."""

    name = "link"
    reads = frozenset({Source.LINK})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        link = candidate.link
        if link.state is LinkState.CONNECTED:
            return OK
        code, found = _CODES[link.state]
        if link.since is not None and link.state is not LinkState.NEVER:
            found += f" since {moment(link.since)}"
        return (Violation(self.name, code, Kind.NOT_NOW, "a connected dispatcher", found),)
