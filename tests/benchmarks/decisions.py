"""Decisions per second of the pure domain on one core: hard rules and ranking, every environment explained.

`python -m tests.benchmarks.decisions` prints figures for 50, 200 and 500 environments. Each decision is of a shape that
was not seen before (1,000 distinct ones), so no answer is reused as a whole; what one constraint said about one
environment may be. Time is that of the processor: others on the same machine do not count.

The main figure is of the busy world (`decisions_world`), which changes faster than real ones do: at 2,500 decisions a
second the evidence of one environment is renewed ten times a second, and all observations five times. `bare` is the
world without backlogs and observations, in which nothing changes; `plain` is the definition, which caches nothing.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from landbridge.domain.eligibility import evaluate_eligibility
from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.placement import Order, choose, order, rank
from landbridge.domain.preferences import PREFERENCES
from landbridge.domain.ranking_cache import RankingCache
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.verdict import Assessment
from landbridge.runtime.runner import GC_THRESHOLD
from support.deciding import NOW

from .decisions_world import SHAPES, classes, environments, evidence_renewed, observations

SIZES = (50, 200, 500)
_PLAIN_SHAPES = 100  # every tenth
_BEFORE = 100  # decisions about other shapes: services are not measured in their first moment
_EVIDENCE_EVERY = 250  # decisions
_OBSERVED_EVERY = 500
WEIGHTS = {preference.name: 1.0 / len(PREFERENCES) for preference in PREFERENCES}


class Deciding:
    """The fast path over a world that changes as it goes."""

    def __init__(
        self, count: int, *, busy: bool, evidence_every: int = _EVIDENCE_EVERY, observed_every: int = _OBSERVED_EVERY
    ) -> None:
        self.candidates = environments(count, busy=busy)
        self.seen = observations(count, 0) if busy else {}
        self._busy = busy
        self._evidence_every, self._observed_every = evidence_every, observed_every
        self._looks = [observations(count, turn) for turn in (1, 2)]
        self._turn = 0
        self.index = EligibilityIndex()
        self.rankings = RankingCache()
        self.rankings.observe(self.seen)
        self._by_name = {candidate.environment: candidate for candidate in self.candidates}
        for candidate in self.candidates:
            self.index.set_environment(candidate.environment, [candidate])

    def decide(self, item: RequirementClass) -> tuple[Assessment, Order | None]:
        """Judge, measure, weigh, order, and pick for one operation."""
        if self._busy:
            self._follow()
        assessment = self.index.assess(item, NOW)
        eligible = [self._by_name[v.environment] for v in assessment.verdicts if not v.violations]
        if not eligible:
            return assessment, None
        ordered = self.rankings.ranked(item, eligible, WEIGHTS)
        _pick(ordered, item)
        return assessment, ordered

    def _follow(self) -> None:
        self._turn += 1
        if self._turn % self._evidence_every == 0:
            number = self._turn // self._evidence_every * 7 % len(self.candidates)
            changed = self.candidates[number] = evidence_renewed(self.candidates[number], self._turn)
            self._by_name[changed.environment] = changed
            self.index.set_environment(changed.environment, [changed])
        if self._turn % self._observed_every == 0:
            self.seen = self._looks[self._turn // self._observed_every % 2]
            self.rankings.observe(self.seen)

    def decide_plainly(self, item: RequirementClass) -> tuple[Assessment, Order | None]:
        """Do the same by the definition."""
        assessment = evaluate_eligibility(item, self.candidates, NOW)
        eligible = [c for c, v in zip(self.candidates, assessment.verdicts, strict=True) if not v.violations]
        if not eligible:
            return assessment, None
        ordered = order(rank(item.requirements, eligible, WEIGHTS, observed=self.seen))
        _pick(ordered, item)
        return assessment, ordered


def _pick(ordered: Order, item: RequirementClass) -> None:
    if choose(ordered, item.key, ()) is None:
        raise RuntimeError("nothing was chosen although something is eligible")


def check_equal(world: Deciding, some: Sequence[RequirementClass]) -> None:
    """Raise unless the fast path answers as the definition does."""
    for item in some:
        plain, fast = world.decide_plainly(item), world.decide(item)
        if (plain[0].id, plain[0].verdicts, plain[1]) != (fast[0].id, fast[0].verdicts, fast[1]):
            raise RuntimeError("the fast path and the plain evaluation disagree")


def measure_world(count: int, *, busy: bool) -> dict[str, Any]:
    """Decide all shapes over `count` environments of one world."""
    world, found = Deciding(count, busy=busy), classes(busy=busy)
    for item in classes(busy=busy, first=SHAPES, count=_BEFORE):
        world.decide(item)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)  # as in a service
    scored = explained = 0
    started = time.process_time()
    for item in found:
        assessment, ordered = world.decide(item)
        explained += len(assessment.verdicts)
        scored += len(ordered.ranking.cards) if ordered is not None else 0
    elapsed = time.process_time() - started
    if explained != SHAPES * count:
        raise RuntimeError(f"expected {SHAPES * count} verdicts, got {explained}")
    every = SHAPES // _PLAIN_SHAPES
    started = time.process_time()
    for item in found[::every]:
        world.decide_plainly(item)
    plain = time.process_time() - started
    check_equal(world, found[:: every * 5])
    gc.unfreeze()
    return {
        "decisions_per_second": round(SHAPES / elapsed, 1),
        "plain_decisions_per_second": round(_PLAIN_SHAPES / plain, 1),
        "eligible_on_average": round(scored / SHAPES, 1),
    }


def measure(count: int) -> dict[str, Any]:
    """Measure both worlds with `count` environments."""
    busy, bare = measure_world(count, busy=True), measure_world(count, busy=False)
    return {**busy, "environments": count, "shapes": SHAPES, "verdicts": SHAPES * count, "bare": bare}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.decisions")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    arguments = parser.parse_args()
    figures = [measure(size) for size in arguments.sizes]
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
