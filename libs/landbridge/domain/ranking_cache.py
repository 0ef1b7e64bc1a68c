"""The fast path of ranking: the same rankings as `placement.rank`, measured again only where something changed.

What depends on the environment alone is measured once for all classes; what depends on the operation's class, once per
class and candidate. A class's ranking stands until its eligible environments, a candidate, the weights or what was
observed change.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.placement import Order, make_ranking, order, score
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Measurement, Observed
from landbridge.domain.requirements import RequirementClass, Requirements

MOST_CLASSES = 20_000


class _Own(NamedTuple):
    """Measurements of an environment by itself, and what they were made from."""

    candidate: Candidate
    observed: Observed
    row: tuple[Measurement | None, ...]


class _Known:
    """What is remembered of one class."""

    __slots__ = ("asked", "order", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Candidate, tuple[Measurement | None, ...]]] = {}
        self.asked: object = None
        self.order: Order | None = None


class RankingCache:
    """Rankings by class. `observed` is replaced as a whole with `observe`."""

    def __init__(self, *, most_classes: int = MOST_CLASSES) -> None:
        self._most_classes = most_classes
        self._classes: dict[str, _Known] = {}
        self._own: dict[str, _Own] = {}
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
        asked = (self.version, [id(c) for c in eligible], [id(c) for c in hopeful], dict(weights), overflow_allowed)
        if known.order is not None and known.asked == asked:
            return known.order
        requirements = requirement_class.requirements
        candidates = [*eligible, *hopeful]
        cards = score(
            [candidate.environment for candidate in candidates],
            [self._row(known, requirements, candidate) for candidate in candidates],
            weights,
            hopeful={candidate.environment for candidate in hopeful},
        )
        made = make_ranking(cards, overflow_allowed=overflow_allowed, failed_over=requirements.failed_over)
        # The rows keep their candidates alive, so that no other object can take on the identities in `asked`.
        known.rows = {candidate.environment: known.rows[candidate.environment] for candidate in candidates}
        known.asked, known.order = asked, order(made)
        return known.order

    def _row(self, known: _Known, requirements: Requirements, candidate: Candidate) -> list[Measurement]:
        name = candidate.environment
        remembered = known.rows.get(name)
        if remembered is None or remembered[0] is not candidate:
            seen = self._observed.get(name, NOTHING_OBSERVED)
            row = tuple(p.measure(requirements, candidate, seen) if p.of_operation else None for p in PREFERENCES)
            remembered = known.rows[name] = (candidate, row)
        own = self._own_row(requirements, candidate)
        pairs = zip(remembered[1], own, strict=True)
        return [found for mine, shared in pairs if (found := mine or shared) is not None]

    def _own_row(self, requirements: Requirements, candidate: Candidate) -> tuple[Measurement | None, ...]:
        name = candidate.environment
        seen = self._observed.get(name, NOTHING_OBSERVED)
        own = self._own.get(name)
        if own is None or own.candidate is not candidate or own.observed != seen:
            row = tuple(None if p.of_operation else p.measure(requirements, candidate, seen) for p in PREFERENCES)
            own = self._own[name] = _Own(candidate, seen, row)
        return own.row
