"""The fast path of ranking: the same rankings as `placement.rank`, measured again only when something changed.

Preferences read contracts, the catalogue and what was observed, nothing else of a candidate; so evidence that is
renewed every few seconds disturbs nothing here. What a preference knows of an environment is kept as its profile for as
long as nothing of that changes, and what it says to what it reads of an operation as a column over a set of profiles:
thousands of classes share most of it.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from operator import attrgetter, is_not
from typing import Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.measured import Column, column
from landbridge.domain.placement import Asked, Order, make_cards, order, ranking_of
from landbridge.domain.preferences import PREFERENCES, Observed, Preference
from landbridge.domain.ranking_profiles import Lineup, Profile, Profiles
from landbridge.domain.requirements import RequirementClass, Requirements, field_reader

MOST_CLASSES: Final = 20_000
# Columns are kept until they have so many measurements altogether.
MOST_MEASURED: Final = 1_000_000
_NAMES: Final = tuple(preference.name for preference in PREFERENCES)
_NOBODY: Final[frozenset[str]] = frozenset()
_name: Final = attrgetter("contract.environment")


class _Kept(NamedTuple):
    """A column with the profiles that were measured. Holding on to those keeps others from being taken for them."""

    profiles: list[Profile]
    column: Column


class _Known(NamedTuple):
    """A class's ranking, what it was asked with, and the columns that it is made of."""

    asked: Asked
    columns: tuple[Column, ...]
    order: Order


class RankingCache:
    """Rankings by class. `observed` is replaced as a whole with `observe`."""

    def __init__(self, *, most_classes: int = MOST_CLASSES, most_measured: int = MOST_MEASURED) -> None:
        self._most_classes = most_classes
        self._most_measured = most_measured
        self._classes: dict[str, _Known] = {}
        self._columns: dict[tuple[object, ...], _Kept] = {}
        self._lineups: dict[tuple[str, ...], Lineup] = {}
        self._numbers = count()
        self._measured = 0
        self._profiles = Profiles()
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
        names = tuple([candidate.place for candidate in candidates])
        away = frozenset([candidate.environment for candidate in hopeful]) if hopeful else _NOBODY
        requirements = requirement_class.requirements
        lineup = self._lineups.get(names)
        if lineup is None:
            lineup = self._lineups[names] = Lineup(names, next(self._numbers))
        lineup.follow(candidates, self._observed, self._profiles)
        weighed = tuple([weights.get(name, 0.0) for name in _NAMES])
        columns = tuple([self._column(p, requirements, lineup, w) for p, w in zip(PREFERENCES, weighed, strict=True)])
        known = self._classes.get(requirement_class.key)
        asked = lineup.asked_with(weighed, away, overflow_allowed, requirements.failed_over)
        if known is not None and known.asked == asked and not any(map(is_not, known.columns, columns)):
            return known.order
        if len(self._classes) >= self._most_classes:
            self._classes.clear()
        made = order(ranking_of(make_cards(names, columns, hopeful=away), columns, asked))
        self._classes[requirement_class.key] = _Known(asked, columns, made)
        return made

    def _column(self, preference: Preference, requirements: Requirements, lineup: Lineup, weight: float) -> Column:
        """Return the column of one preference; the same object for as long as nothing in it changes."""
        fields = preference.reads(requirements, backlog=self._backlog)
        key = (preference.name, fields, field_reader(fields)(requirements), lineup.number, weight)
        known, profiles = self._columns.get(key), lineup.profiles(preference)
        if known is not None and (known.profiles is profiles or known.profiles == profiles):
            return known.column
        measurements = preference.asking(requirements)(lineup.of(preference))
        made = column(preference.name, measurements, weight)
        if known is None:
            self._make_room(len(profiles))
        elif known.column.digest == made.digest:
            made = known.column
        self._columns[key] = _Kept(profiles, made)
        return made

    def _make_room(self, more: int) -> None:
        if self._measured + more > self._most_measured:
            self._columns.clear()
            self._lineups.clear()
            self._measured = 0
        self._measured += more
