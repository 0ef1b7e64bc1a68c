"""What a reason code means to people: its text as they see it, and what they do next."""

import re
from functools import lru_cache
from typing import NamedTuple

from landbridge.domain.violation import Kind, Violation


class Reason(NamedTuple):
    """One code of one rule.

    `wanted` and `found` are the texts that a violation carries, with the parts that vary in angle brackets. `next` is
    what to do, with `{environment}` for the environment that was judged.
    """

    rule: str
    code: str
    kind: Kind
    wanted: str
    found: str
    next: str

    def fits(self, violation: Violation) -> bool:
        """Tell whether a violation reads as this table says."""
        return (
            violation.kind is self.kind
            and bool(_pattern(self.wanted).fullmatch(violation.wanted))
            and bool(_pattern(self.found).fullmatch(violation.found))
        )


class Told(NamedTuple):
    """One code that is no violation: what it means, and what to do."""

    code: str
    meaning: str
    next: str


@lru_cache(maxsize=1024)
def _pattern(template: str) -> re.Pattern[str]:
    """Return what a template stands for: `<…>` for any text, `[…]` for a part that may be missing."""
    parts = re.split(r"(<[^>]*>|\[|\])", template)
    written = [
        ".+" if part.startswith("<") else {"[": "(?:", "]": ")?"}.get(part, re.escape(part)) for part in parts if part
    ]
    return re.compile("".join(written), re.DOTALL)
