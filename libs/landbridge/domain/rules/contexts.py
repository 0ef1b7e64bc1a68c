"""Environments in the form in which the library evaluates expressions about them, made once for each contract.

Making that form takes ten times as long as most evaluations. Environments that look the same to an expression are one:
what it reads, such as who operates them, has few values.
"""

from typing import Any, Final

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import Contract
from landbridge.domain.requirements import field_reader
from landbridge.domain.rules.facts import OPERATION_FIELDS, Reads, environment_facts
from landbridge.domain.rules.library import library
from landbridge.domain.rules.variables import ENVIRONMENT, OPERATION

MOST_KEPT: Final = 2_000
_encode = msgspec.json.Encoder(order="deterministic").encode


class Contexts:
    """What one expression reads: of operations as a key, of environments as the library's contexts."""

    def __init__(self, reads: Reads) -> None:
        fields = {field for name in reads.get(OPERATION, ()) for field in OPERATION_FIELDS[name][0]}
        self.reader = field_reader(tuple(sorted(fields)))
        # By the contract's identity, held on to so that nothing else takes it.
        self._kept: dict[int, tuple[Contract, Any]] = {}
        self._by_facts: dict[bytes, Any] = {}

    def of(self, candidate: Candidate, reads: Reads) -> Any:
        """Return the context of an environment. Facts follow from its contract only; the operation's are put in."""
        contract = candidate.contract
        kept = self._kept.get(id(contract))
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
                self._by_facts.clear()
            facts = environment_facts(candidate, reads)
            made = self._by_facts.setdefault(_encode(facts), library().Context({ENVIRONMENT: facts}))
            kept = self._kept[id(contract)] = contract, made
        return kept[1]
