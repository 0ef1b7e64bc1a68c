"""How measurements become scores, and whose weights count."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add, mul
from typing import Final

from landbridge.domain.catalogue import Catalogue, Policy
from landbridge.domain.requirements import Requirements

# What holds where nobody registered a policy.
BUILT_IN: Final = Policy(
    name="built-in",
    preferences={
        "queue-delay": 1.0,
        "transfer-time": 1.0,
        "performance": 1.0,
        "reliability": 1.0,
        "carbon": 0.0,
        "cost": 1.0,
    },
)


def policy_for(requirements: Requirements, catalogue: Catalogue) -> Policy:
    """Return the policy that applies: the one its project names, else the first in precedence that covers it."""
    project = catalogue.projects.get(requirements.project)
    if project is not None and project.policy in catalogue.policies:
        return catalogue.policies[project.policy]
    covering = [
        policy
        for policy in catalogue.policies.values()
        if policy.scope.covers(requirements.project, requirements.queue, requirements.workload)
    ]
    return min(covering, key=lambda policy: (-policy.precedence, policy.name), default=BUILT_IN)


def weights_for(requirements: Requirements, catalogue: Catalogue, policy: Policy) -> dict[str, float]:
    """Return weights by preference: operation (with its presets) over project over policy; 0 where nobody says."""
    project = catalogue.projects.get(requirements.project)
    weights = dict(policy.preferences)
    if project is not None:
        weights.update(project.preferences)
    weights.update(requirements.preferences)
    return weights


def policy_version(policy: Policy, catalogue: Catalogue, project: str) -> str:
    """Name the versions that weights came from, such as `carbon-first@3+retail-eu@1`."""
    found = catalogue.projects.get(project)
    version = f"{policy.name}@{policy.version}"
    return f"{version}+{project}@{found.version}" if found is not None and found.preferences else version


def common_unit(values: Sequence[float | None], units: Sequence[str]) -> str:
    """Return the unit that most known values share (the first by name of several): others cannot be compared."""
    found = [unit for value, unit in zip(values, units, strict=True) if value is not None]
    return min(set(found), key=lambda unit: (-found.count(unit), unit), default="")


def normalise(values: Sequence[float | None]) -> list[float]:
    """Map values of one unit, lower being better, to 0 (worst, or unknown) … 1 (best).

    The median maps to a half, twice the median to a third, nothing to one. So differences count by their ratio, in
    whatever unit; and because the median does not follow it, one outlier moves nobody but itself.
    """
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    lowest = min(known)
    if lowest < 0.0:
        known = [max(0.0, value) for value in known]
    middle = _median(known) or min((value for value in known if value > 0.0), default=1.0)
    if lowest > 0.0 and len(known) == len(values):  # as mostly
        return [middle / (middle + value) for value in known]
    return [0.0 if value is None else middle / (middle + value) if value > 0.0 else 1.0 for value in values]


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def weighted(scores: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """Return the weighted means of columns of scores, rounded so that equal situations give equal totals.

    Without any weight every total is 0: then all are equal.
    """
    whole = sum(weights)
    if whole <= 0.0:
        return [0.0] * len(scores[0])
    sums: Iterable[float] = repeat(0.0, len(scores[0]))
    for column, weight in zip(scores, weights, strict=True):
        if (
            weight
        ):  # one after the other for each place, not by `sum`, whose last digits depend on the version of Python
            sums = map(add, sums, map(mul, column, repeat(weight)))
    # To nine digits as `round` does it, in a third of the time unless it is about a tie.
    return [
        below / 1e9
        if 0.001 < (shifted := (mean := value / whole) * 1e9 + 0.5) - (below := int(shifted)) < 0.999
        and 0.0 <= mean <= 1.0
        else round(mean, 9)
        for value in sums
    ]
