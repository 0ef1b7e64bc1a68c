"""The fast path of ranking: the same rankings as `placement.rank`, measured again only where something changed.

Preferences read contracts, the catalogue and what was observed, nothing else of a candidate; so evidence that is
renewed every few seconds disturbs nothing here. What a preference says to what it reads of an operation is remembered
for each environment, and as a whole column for each set of environments: thousands of classes share most of it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import Contract
from landbridge.domain.placement import Column, Order, column, make_cards, order, ranking_of
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Measurement, Observed, Preference
from landbridge.domain.requirements import RequirementClass, Requirements, field_reader

MOST_CLASSES: Final = 20_000
MOST_COLUMNS: Final = 20_000
MOST_QUESTIONS: Final = 20_000


class _Measured(NamedTuple):
    """A measurement and what it was made from. Holding on to that keeps it from being taken for something else."""

    contract: Contract
    catalogue: Catalogue
    observed: Observed
    measurement: Measurement


class _Kept(NamedTuple):
    """A column with what it was made from. `held` keeps what `stamp` identifies from being taken for something else."""

    stamp: tuple[int, ...]
    version: int
    measurements: list[Measurement]
    column: Column
    held: list[tuple[Contract, Catalogue]]


class _Known(NamedTuple):
    """A class's ranking, what it was asked with, and the columns that it is made of."""

    asked: tuple[object, ...]
    columns: tuple[Column, ...]
    order: Order


class RankingCache:
    """Rankings by class. `observed` is replaced as a whole with `observe`."""

    def __init__(self, *, most_classes: int = MOST_CLASSES) -> None:
        self._most_classes = most_classes
        self._classes: dict[str, _Known] = {}
        self._questions: dict[tuple[object, ...], dict[str, _Measured]] = {}
        self._columns: dict[tuple[object, ...], _Kept] = {}
        self._observed: Mapping[str, Observed] = {}
        self._backlog = False
        self.version = 0

    def observe(self, observed: Mapping[str, Observed]) -> None:
        """Take on a new view of what environments do lately; rankings follow if it differs."""
        if observed != self._observed:
            self._observed = dict(observed)
            self._backlog = any(seen.backlog is not None for seen in observed.values())
            self.version += 1

    @property
    def observed(self) -> Mapping[str, Observed]:
        """What environments do lately, as rankings have it."""
        return self._observed

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
        candidates = sorted([*eligible, *hopeful], key=_name)
        names = tuple([candidate.contract.environment for candidate in candidates])
        away = frozenset(candidate.environment for candidate in hopeful)
        requirements = requirement_class.requirements
        stamp = tuple([id(part) for c in candidates for part in (c.contract, c.catalogue)])
        columns = tuple(
            [self._column(p, requirements, candidates, names, stamp, weights.get(p.name, 0.0)) for p in PREFERENCES]
        )
        known = self._classes.get(requirement_class.key)
        asked = (names, away, overflow_allowed)
        if known is not None and known.asked == asked and all(map(_same, known.columns, columns)):
            return known.order
        if len(self._classes) >= self._most_classes:
            self._classes.clear()
        cards = make_cards(names, columns, hopeful=away)
        ranking = ranking_of(
            cards, names, columns, hopeful=away, overflow_allowed=overflow_allowed, failed_over=requirements.failed_over
        )
        made = order(ranking)
        self._classes[requirement_class.key] = _Known(asked, columns, made)
        return made

    def _column(
        self,
        preference: Preference,
        requirements: Requirements,
        candidates: Sequence[Candidate],
        names: tuple[str, ...],
        stamp: tuple[int, ...],
        weight: float,
    ) -> Column:
        """Return the column of one preference; the same object for as long as nothing in it changes."""
        fields = preference.reads(requirements, backlog=self._backlog)
        asked = (preference.name, fields, field_reader(fields)(requirements))
        key = (asked, names, weight)
        version = self.version if preference.observes else 0
        known = self._columns.get(key)
        if known is not None and known.stamp == stamp and known.version == version:
            return known.column
        measurements = self._measurements(preference, asked, requirements, candidates)
        same = known is not None and known.measurements == measurements
        made = known.column if known is not None and same else column(preference.name, measurements, weight)
        if len(self._columns) >= MOST_COLUMNS:
            self._columns.clear()
        held = [(candidate.contract, candidate.catalogue) for candidate in candidates]
        self._columns[key] = _Kept(stamp, version, measurements, made, held)
        return made

    def _measurements(
        self,
        preference: Preference,
        asked: tuple[object, ...],
        requirements: Requirements,
        candidates: Sequence[Candidate],
    ) -> list[Measurement]:
        observed = self._observed if preference.observes else {}
        known = self._questions.get(asked)
        if known is None:
            return self._first_measurements(preference, asked, requirements, candidates, observed)
        found: list[Measurement] = []
        for candidate in candidates:
            contract, catalogue = candidate.contract, candidate.catalogue
            seen = observed.get(contract.environment, NOTHING_OBSERVED)
            item = known.get(contract.environment)
            if (
                item is None
                or item.contract is not contract
                or item.catalogue is not catalogue
                or (item.observed is not seen and item.observed != seen)
            ):
                measurement = preference.measure(requirements, candidate, seen)
                item = known[contract.environment] = _Measured(contract, catalogue, seen, measurement)
            found.append(item.measurement)
        return found

    def _first_measurements(
        self,
        preference: Preference,
        asked: tuple[object, ...],
        requirements: Requirements,
        candidates: Sequence[Candidate],
        observed: Mapping[str, Observed],
    ) -> list[Measurement]:
        """Ask every candidate what nobody has been asked yet."""
        if len(self._questions) >= MOST_QUESTIONS:
            self._questions.clear()
        measure = preference.measure
        seen = [observed.get(candidate.contract.environment, NOTHING_OBSERVED) for candidate in candidates]
        found = [measure(requirements, candidate, of) for candidate, of in zip(candidates, seen, strict=True)]
        self._questions[asked] = {
            candidate.contract.environment: _Measured(candidate.contract, candidate.catalogue, of, measurement)
            for candidate, of, measurement in zip(candidates, seen, found, strict=True)
        }
        return found


def _name(candidate: Candidate) -> str:
    return candidate.contract.environment


def _same(left: Column, right: Column) -> bool:
    return left is right
