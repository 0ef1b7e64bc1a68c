"""What preferences know of environments whatever the operation, kept for as long as nothing of it changes."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import Contract
from landbridge.domain.placement import Asked, asked_with
from landbridge.domain.preferences import NOTHING_OBSERVED, PREFERENCES, Observed, Preference

MOST_KEPT: Final = 20_000
_MOST_ASKED: Final = 8
_OBSERVING = tuple(preference for preference in PREFERENCES if preference.observes)
_OTHERS = tuple(preference for preference in PREFERENCES if not preference.observes)


class Profile:
    """One environment as some preferences know it: `of` each by its name. Another object as soon as that differs."""

    __slots__ = ("of",)

    def __init__(self, candidate: Candidate, observed: Observed, preferences: Sequence[Preference]) -> None:
        self.of: dict[str, Any] = {each.name: each.profile(candidate, observed) for each in preferences}


class _Kept(NamedTuple):
    """Both profiles of an environment and what they were made from, held on to so that nothing else is taken for it."""

    contract: Contract
    catalogue: Catalogue
    observed: Observed
    still: Profile
    seen: Profile


class Profiles:
    """The newest profiles of each environment: one for preferences that do not observe, one for those that do.

    Two contract versions of an environment may be ranked in turn, for one operation and another: each has its own, and
    so has each accelerator class where several could serve.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], _Kept] = {}

    def of(
        self, candidates: Sequence[Candidate], observed: Mapping[str, Observed]
    ) -> tuple[list[Profile], list[Profile]]:
        """Return the profiles of candidates for preferences that do not observe, and for those that do."""
        still, seen = [], []
        for candidate in candidates:
            contract = candidate.contract
            name = contract.environment
            sight = observed.get(name, NOTHING_OBSERVED)
            kept = self._kept.get((candidate.place, contract.version))
            if (
                kept is None
                or kept.contract is not contract
                or kept.catalogue is not candidate.catalogue
                or kept.observed is not sight
            ):
                kept = self._renewed(kept, candidate, sight)
            still.append(kept.still)
            seen.append(kept.seen)
        return still, seen

    def _renewed(self, kept: _Kept | None, candidate: Candidate, sight: Observed) -> _Kept:
        """Keep what is still true: a new look mostly shows the same, and never what only contracts tell."""
        contract, catalogue = candidate.contract, candidate.catalogue
        if kept is not None and kept.contract is contract and kept.catalogue is catalogue:
            seen = kept.seen if kept.observed == sight else Profile(candidate, sight, _OBSERVING)
            made = _Kept(contract, catalogue, sight, kept.still, seen)
        else:
            still = Profile(candidate, NOTHING_OBSERVED, _OTHERS)
            made = _Kept(contract, catalogue, sight, still, Profile(candidate, sight, _OBSERVING))
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[candidate.place, contract.version] = made
        return made


class Lineup:
    """Environments that are ranked together, in the order of their names: many classes have the same in question.

    What preferences know of them is kept by preference, and is the same list for as long as nothing of it changes.
    """

    def __init__(self, names: tuple[str, ...], number: int) -> None:
        self.number = number
        self._names = names
        self._candidates: list[Candidate] = []
        self._observed: Mapping[str, Observed] | None = None
        self._still: list[Profile] = []
        self._seen: list[Profile] = []
        self._of: dict[str, list[Any]] = {}
        self._asked: dict[tuple[object, ...], Asked] = {}

    def follow(self, candidates: list[Candidate], observed: Mapping[str, Observed], profiles: Profiles) -> None:
        """Take on what is known of the environments now."""
        if observed is self._observed and all(map(is_, candidates, self._candidates)):
            return
        still, seen = profiles.of(candidates, observed)
        self._candidates, self._observed = candidates, observed
        if still != self._still:
            self._still, self._of = still, {}
        if seen != self._seen:
            self._seen, self._of = seen, {}

    def profiles(self, preference: Preference) -> list[Profile]:
        return self._seen if preference.observes else self._still

    def of(self, preference: Preference) -> list[Any]:
        """Return what a preference knows of each."""
        name = preference.name
        found = self._of.get(name)
        if found is None:
            found = self._of[name] = [profile.of[name] for profile in self.profiles(preference)]
        return found

    def asked_with(
        self, weights: tuple[float, ...], away: frozenset[str], overflow_allowed: bool, failed_over: bool
    ) -> Asked:
        """Return what a ranking of them is asked with."""
        key = (weights, away, overflow_allowed, failed_over)
        known = self._asked.get(key)
        if known is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            known = self._asked[key] = asked_with(
                self._names, weights, hopeful=away, overflow_allowed=overflow_allowed, failed_over=failed_over
            )
        return known
