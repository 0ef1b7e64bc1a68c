"""Codes of the rules that operators write; after the colon stands the rule's name."""

from typing import Final

from landbridge.domain.reasons.base import Reason
from landbridge.domain.violation import Kind

_WANTED: Final = "rule <name>: <its message>"
_READ: Final = "read it: landbridge get rules {name}; then change the operation, or ask whoever wrote the rule"

OPERATORS: Final = (
    Reason("operator-rules", "rule:<name>", Kind.NEVER, _WANTED, "not so for <environment>", _READ),
    Reason(
        "operator-rules",
        "rule-not-now:<name>",
        Kind.NOT_NOW,
        _WANTED,
        "not so for <environment>",
        "wait, or read it: landbridge get rules {name}",
    ),
    Reason(
        "operator-rules",
        "rule-error:<name>",
        Kind.MISCONFIGURED,
        _WANTED,
        "it cannot be evaluated: <why>",
        "have rule {name} corrected, or what it asks about stated in {environment}'s contract",
    ),
)
