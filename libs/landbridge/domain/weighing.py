"""How measurements become scores, and whose weights count."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add, mul
from typing import Final

from landbridge.domain.catalogue import Catalogue, Policy
from landbridge.domain.preferences.base import Measurement
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


def common_unit(measurements: Sequence[Measurement]) -> str:
    """Return the unit that most known measurements share (the first by name of several): others cannot be compared."""
    units = {measurement[1] for measurement in measurements if measurement[0] is not None}
    if len(units) < 2:
        return units.pop() if units else ""
    found = [measurement[1] for measurement in measurements if measurement[0] is not None]
    return min(units, key=lambda unit: (-found.count(unit), unit))


def normalise(measurements: Sequence[Measurement], unit: str | None = None) -> list[float]:
    """Map measurements, lower being better, to 0 (worst, or unknown) … 1 (best).

    The median maps to a half, twice the median to a third, nothing to one. So differences count by their ratio, in
    whatever unit; and because the median does not follow it, one outlier moves nobody but itself. `unit` is the common
    one, where it is known.
    """
    unit = common_unit(measurements) if unit is None else unit
    known = [m[0] for m in measurements if m[0] is not None and m[1] == unit]
    if not known:
        return [0.0] * len(measurements)
    lowest = min(known)
    if lowest < 0.0:
        known = [max(0.0, value) for value in known]
    middle = _median(known) or min((value for value in known if value > 0.0), default=1.0)
    if lowest > 0.0 and len(known) == len(measurements):  # as mostly
        return [middle / (middle + value) for value in known]
    return [
        0.0 if m[0] is None or m[1] != unit else middle / (middle + m[0]) if m[0] > 0.0 else 1.0 for m in measurements
    ]


def _median(values: list[float]) -> float:
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
    return [_rounded(value / whole) for value in sums]


def _rounded(value: float) -> float:
    """Round a mean of scores to nine digits as `round` does, in a third of the time unless it is about a tie."""
    shifted = value * 1e9 + 0.5
    below = int(shifted)
    return below / 1e9 if 0.0 <= value <= 1.0 and 0.001 < shifted - below < 0.999 else round(value, 9)
