"""Decisions per second of the pure domain on one core: hard rules and ranking, every environment explained.

`python -m tests.benchmarks.decisions` prints a figure for 50, 200 and 500 environments. Each decision is of a shape
that was not seen before (1,000 distinct ones), so no answer is reused as a whole; what one constraint said about one
environment may be.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from landbridge.domain.candidate import Candidate
from landbridge.domain.classify import classify
from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.placement import choose
from landbridge.domain.preferences import PREFERENCES
from landbridge.domain.ranking_cache import RankingCache
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.verdict import Assessment
from landbridge.runtime.runner import GC_THRESHOLD
from support.deciding import NOW, a_catalogue, a_contract, all_proven, an_environment, effective

SIZES = (50, 200, 500)
SHAPES = 1000
_PLAIN_SHAPES = 20
_PLACES = (("eu-de-1", ["DE", "EU"]), ("eu-fr-1", ["FR", "EU"]), ("us-east-1", ["US"]), ("ap-jp-1", ["JP"]))
_TIERS = ("standard", "restricted")
_GIB = 1024**3


def environments(count: int) -> list[Candidate]:
    """Make `count` environments that differ in place, size, tier, cost, quality and what is proven."""
    contracts = [_contract(number) for number in range(count)]
    catalogue = a_catalogue(*contracts)
    made = []
    for number, contract in enumerate(contracts):
        evidence: dict[str, None] = {}
        if number % 7 == 0:  # something is claimed and not proven
            evidence = {next(iter(all_proven(contract))): None}
        made.append(an_environment(f"env-{number:03d}", evidence=evidence, catalogue=catalogue, **_spec(number)))
    return made


def _contract(number: int) -> Any:
    return a_contract(f"env-{number:03d}", **_spec(number))


def _spec(number: int) -> dict[str, Any]:
    region, jurisdictions = _PLACES[number % len(_PLACES)]
    return {
        "location": {"regions": [region], "jurisdictions": jurisdictions},
        "classes": {"cpu-general": {"cpu": str(4 + number % 5 * 16), "memory": f"{8 + number % 9 * 32}Gi"}},
        "connections": {"events": {"region": region}},
        "boundaries": {"securityTier": _TIERS[number // 2 % 2]},
        "cost": {"perHour": {"cpu-general": 0.03 + number % 11 * 0.01}},
        "objectives": {"availability": f"{99 + number % 10 * 0.1:.1f}%", "startWithin": f"{1 + number % 6}m"},
    }


def shapes(count: int = SHAPES) -> list[bytes]:
    """Make `count` effective operations, no two of one requirement class."""
    return [effective(**_operation(number)) for number in range(count)]


def _operation(number: int) -> dict[str, Any]:
    constraints: dict[str, Any] = {}
    if number % 3 == 0:
        constraints["jurisdictions"] = [("EU", "US", "DE")[number // 3 % 3]]
    if number % 4 == 0:
        constraints["securityTier"] = _TIERS[number // 4 % 2]
    spec: dict[str, Any] = {
        "resources": {"requests": {"cpu": f"{500 + number}m", "memory": f"{1 + number % 64}Gi"}},
        "lifecycle": {"expectedDuration": f"{1 + number % 120}m"},
    }
    if constraints:
        spec["constraints"] = constraints
    if number % 5 == 0:
        spec["inputs"] = {"events": {"connection": "events", "path": "x"}}
    return spec


def classes() -> list[RequirementClass]:
    """Read all shapes; they are of distinct classes."""
    found = [classify(body) for body in shapes()]
    distinct = len({item.key for item in found})
    if distinct != SHAPES:
        raise RuntimeError(f"expected {SHAPES} distinct requirement classes, made {distinct}")
    return found


def check_equal(candidates: Sequence[Candidate], index: EligibilityIndex, some: Sequence[RequirementClass]) -> None:
    """Raise unless the fast path answers as the definition does."""
    for item in some:
        plain, fast = evaluate_eligibility(item, candidates, NOW), index.assess(item, NOW)
        if plain.verdicts != fast.verdicts:
            raise RuntimeError("the index and the plain evaluation disagree")


def measure(count: int, rank: Callable[[RequirementClass, Assessment, EligibilityIndex], int]) -> dict[str, Any]:
    """Decide all shapes over `count` environments; `rank` returns how many environments it scored."""
    candidates = environments(count)
    found = classes()
    started = time.perf_counter()
    for item in found[:_PLAIN_SHAPES]:
        evaluate_eligibility(item, candidates, NOW)
    plain = _PLAIN_SHAPES / (time.perf_counter() - started)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)  # as in a service
    index = EligibilityIndex()
    for candidate in candidates:
        index.set_environment(candidate.environment, [candidate])
    scored = explained = 0
    started = time.perf_counter()
    for item in found:
        assessment = index.assess(item, NOW)
        explained += len(assessment.verdicts)
        scored += rank(item, assessment, index)
    elapsed = time.perf_counter() - started
    check_equal(candidates, index, found[:: SHAPES // 10])
    if explained != SHAPES * count:
        raise RuntimeError(f"expected {SHAPES * count} verdicts, got {explained}")
    return {
        "decisions_per_second": round(SHAPES / elapsed, 1),
        "plain_eligibility_per_second": round(plain, 1),
        "environments": count,
        "shapes": SHAPES,
        "verdicts": explained,
        "eligible_on_average": round(scored / SHAPES, 1),
    }


def ranker() -> Callable[[RequirementClass, Assessment, EligibilityIndex], int]:
    """Return the ranking step of a decision: measure, weigh, order, and pick for one operation."""
    cache = RankingCache()
    weights = {preference.name: 1.0 / len(PREFERENCES) for preference in PREFERENCES}

    def rank(item: RequirementClass, assessment: Assessment, index: EligibilityIndex) -> int:
        eligible = [index.candidates(v.environment)[0] for v in assessment.verdicts if not v.violations]
        if eligible:
            ordered = cache.ranked(item, eligible, weights)
            if choose(ordered, item.key, ()) is None:
                raise RuntimeError("nothing was chosen although something is eligible")
        return len(eligible)

    return rank


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.decisions")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    arguments = parser.parse_args()
    figures = [measure(size, ranker()) for size in arguments.sizes]
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
