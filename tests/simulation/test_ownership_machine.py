"""Hypothesis drives the world step by step: it chooses what happens next, and shrinks what breaks.

`LANDBRIDGE_DEEP=1` (`make test-deep`) looks at more and longer runs, other ones each time.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from landbridge.domain.ownership.policy import Disconnection
from simulation.world.centre import INSIDE
from simulation.world.faults import STANDARD, keep_copies, strike
from simulation.world.world import POLICIES, Plan, World

_MOMENTS_MS = (100, 1_000, 9_000, 31_000, 70_000)


class Ownership(RuleBasedStateMachine):
    """Submissions, time and faults in any order; every decision is checked against the ground truth as it is made."""

    @initialize(seed=st.integers(0, 10_000))
    def begin(self, seed: int) -> None:
        self.world = World(seed, plan=Plan(operations=0, faults=0))
        self.submitted = 0
        keep_copies(self.world)
        self.world.until(3_000)

    @rule(policy=st.sampled_from(POLICIES))
    def submit(self, policy: Disconnection) -> None:
        self.submitted += 1
        self.world.submit(self.submitted, policy)

    @rule(moment=st.sampled_from(_MOMENTS_MS))
    def pass_time(self, moment: int) -> None:
        self.world.until(self.world.timeline.now + moment)

    @rule(kind=st.sampled_from(sorted(set(STANDARD))))
    def fault(self, kind: str) -> None:
        strike(self.world, kind)

    @invariant()
    def nothing_acknowledged_is_lost(self) -> None:
        """What intake has committed is known to the coordinator, or on its way there."""
        if hasattr(self, "world"):
            known = set(self.world.centre.store.operations)
            coming = {accepted.operation for accepted, _ in self.world.bus.waiting.get(INSIDE, []) if accepted}
            assert {accepted.operation for accepted in self.world.submitted} <= known | coming

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.finish()


_DEEP = os.environ.get("LANDBRIDGE_DEEP") == "1"

TestOwnership = Ownership.TestCase
TestOwnership.settings = settings(
    max_examples=1_500 if _DEEP else 60,
    stateful_step_count=100 if _DEEP else 40,
    deadline=None,
    derandomize=not _DEEP,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
