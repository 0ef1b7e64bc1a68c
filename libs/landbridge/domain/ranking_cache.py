"""The fast path of ranking: the same rankings as `placement.rank`, measured again only where something changed.

Preferences read contracts, the catalogue and what was observed, nothing else of a candidate; so evidence that is
renewed every few seconds disturbs nothing here. What depends on the environment alone is measured once for all classes,
the rest once per class and contract. A class's ranking stands until its eligible environments, a contract, the
catalogue, the weights or what was observed change.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import Contract
from landbridge.domain.placement import Order, make_ranking, order, score
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Measurement, Observed
from landbridge.domain.requirements import RequirementClass, Requirements

MOST_CLASSES = 20_000


Row = tuple[Measurement | None, ...]


class _Measured(NamedTuple):
    """Measurements and what they were made from. Holding on to that keeps it from being taken for something else."""

    contract: Contract
    catalogue: Catalogue
    observed: Observed
    row: Row

    def stands(self, candidate: Candidate) -> bool:
        return self.contract is candidate.contract and self.catalogue is candidate.catalogue


class _Known:
    """What is remembered of one class."""

    __slots__ = ("asked", "order", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, _Measured] = {}
        self.asked: object = None
        self.order: Order | None = None


class RankingCache:
    """Rankings by class. `observed` is replaced as a whole with `observe`."""

    def __init__(self, *, most_classes: int = MOST_CLASSES) -> None:
        self._most_classes = most_classes
        self._classes: dict[str, _Known] = {}
        self._own: dict[str, _Measured] = {}
        self._observed: Mapping[str, Observed] = {}
        self.version = 0

    def observe(self, observed: Mapping[str, Observed]) -> None:
        """Take on a new view of what environments do lately; rankings follow if it differs."""
        if observed != self._observed:
            self._observed = dict(observed)
            self.version += 1

    def ranked(
        self,
        requirement_class: RequirementClass,
        eligible: Sequence[Candidate],
        weights: Mapping[str, float],
        *,
        hopeful: Sequence[Candidate] = (),
        overflow_allowed: bool = True,
    ) -> Order:
        """Return what `rank` returns for the same arguments, made ready for choosing."""
        known = self._classes.get(requirement_class.key)
        if known is None:
            if len(self._classes) >= self._most_classes:
                self._classes.clear()
            known = self._classes[requirement_class.key] = _Known()
        candidates = [*eligible, *hopeful]
        asked = (self.version, [c.environment for c in candidates], len(hopeful), dict(weights), overflow_allowed)
        rows = known.rows
        if known.order is not None and known.asked == asked and all(rows[c.environment].stands(c) for c in candidates):
            return known.order
        requirements = requirement_class.requirements
        cards = score(
            [candidate.environment for candidate in candidates],
            [self._row(known, requirements, candidate) for candidate in candidates],
            weights,
            hopeful={candidate.environment for candidate in hopeful},
        )
        made = make_ranking(cards, overflow_allowed=overflow_allowed, failed_over=requirements.failed_over)
        known.rows = {candidate.environment: rows[candidate.environment] for candidate in candidates}
        known.asked, known.order = asked, order(made)
        return known.order

    def _row(self, known: _Known, requirements: Requirements, candidate: Candidate) -> list[Measurement]:
        name = candidate.environment
        own = known.rows.get(name)
        if own is None or not own.stands(candidate):
            row = self._measure(requirements, candidate, NOTHING_OBSERVED, of_operation=True)
            own = known.rows[name] = _Measured(candidate.contract, candidate.catalogue, NOTHING_OBSERVED, row)
        seen = self._observed.get(name, NOTHING_OBSERVED)
        shared = self._own.get(name)
        if shared is None or not shared.stands(candidate) or shared.observed != seen:
            row = self._measure(requirements, candidate, seen, of_operation=False)
            shared = self._own[name] = _Measured(candidate.contract, candidate.catalogue, seen, row)
        pairs = zip(own.row, shared.row, strict=True)
        return [found for mine, others in pairs if (found := mine or others) is not None]

    @staticmethod
    def _measure(requirements: Requirements, candidate: Candidate, seen: Observed, *, of_operation: bool) -> Row:
        """Measure what depends on the operation, or what does not; None stands for the others."""
        return tuple(
            preference.measure(requirements, candidate, seen) if preference.of_operation is of_operation else None
            for preference in PREFERENCES
        )
