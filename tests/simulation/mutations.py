"""Every rule of ownership, switched off: which seed notices first, and by which invariant."""

from dataclasses import dataclass

from msgspec.structs import replace

from landbridge.domain.ownership.rules import PRODUCTION, Rules
from simulation.plans import PLANS
from simulation.world.truth_centre import Violated
from simulation.world.world import run

RULES: tuple[str, ...] = Rules.__struct_fields__
BOUND = 500
"""A rule that no seed below this misses is dead or untested."""


@dataclass(frozen=True)
class Catch:
    """The first seed that breaks without a rule."""

    seed: int
    plan: str
    invariant: str


def catch(rule: str, seed: int, plan: str) -> Catch | None:
    """Run one seed without a rule; None: it held."""
    try:
        run(seed, replace(PRODUCTION, **{rule: False}), PLANS[plan]())
    except Violated as violated:
        return Catch(seed, plan, str(violated).split(": ")[1])
    return None


def first_catch(rule: str, bound: int = BOUND) -> Catch | None:
    """Return the first seed and plan that miss a rule, in order of seeds."""
    for seed in range(bound):
        for plan in PLANS:
            caught = catch(rule, seed, plan)
            if caught is not None:
                return caught
    return None


# Pinned for every run of the tests: without the rule this run breaks, with it the same run holds.
PINNED: dict[str, tuple[int, str]] = {
    "two_phase": (0, "mixed"),
    "true_start_check": (2, "storm"),
    "lease_from_send": (0, "storm"),
    "expiry_waits_drift": (4, "cuts"),
    "term_bump_on_release": (0, "mixed"),
    "continue_never_expires": (0, "storm"),
    "self_stop_verified": (1, "storm"),
    "tombstone_before_relinquish": (1, "storm"),
    "keep_slot_until_term_advances": (10, "people"),
    "terminal_needs_current_epoch": (0, "mixed"),
    "terminal_needs_term": (0, "storm"),
    "relinquish_needs_term": (0, "storm"),
    "no_grant_after_cancel": (4, "storm"),
    "stop_lower_first": (20, "mixed"),
    "detect_environment_restore": (7, "storm"),
    "no_grant_while_record_lost": (7, "storm"),
    "hello_raises_term": (0, "mixed"),
    "new_generation_on_restore": (1, "mixed"),
    "reconcile_after_restore": (4, "mixed"),
}


def table(caught: dict[str, Catch | None]) -> str:
    """Return the table for people: rule, first seed that misses it, invariant that breaks."""
    lines = ["| rule switched off | first seed | plan | invariant |", "|---|--:|---|---|"]
    for rule in RULES:
        found = caught.get(rule)
        cells = ("-", "-", "**nobody noticed**") if found is None else (found.seed, found.plan, found.invariant)
        lines.append(f"| {rule} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"
