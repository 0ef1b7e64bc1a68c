"""The whole protocol under faults, on virtual time: seeds that hold, mutations that must not, and what was covered."""

from collections import Counter

import pytest
from msgspec.structs import replace

from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.rules import PRODUCTION, Rules
from simulation.world.bus import Weather
from simulation.world.faults import FAULTS
from simulation.world.truth import Violated
from simulation.world.world import Plan, run

SEEDS = 200
BLOCK = 20

_covered: Counter[tuple[str, str]] = Counter()
_blocks_run: set[int] = set()


def stormy() -> Plan:
    """Commands and grants come again and again, late, while environments lose their records."""
    weather = Weather(repeat=0.4, drop=0.1, slow=0.4, slow_delay=20_000)
    return Plan(kinds=("commands-again", "environment-restored", "cut", "term-raised"), faults=40, weather=weather)


def cuts() -> Plan:
    """Only links are cut: requests and replies travel slowly around the ends of leases."""
    return Plan(kinds=("cut", "cut-all"))


PLANS = {"mixed": Plan, "storm": stormy, "cuts": cuts}


def _run_block(block: int) -> None:
    if block in _blocks_run:
        return
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        _covered.update(run(seed).truth.covered)
    _blocks_run.add(block)


@pytest.mark.parametrize("block", range(SEEDS // BLOCK))
def test_invariants_hold_at_every_step_of_every_seed(block: int) -> None:
    _run_block(block)


@pytest.mark.parametrize("seed", range(5))
def test_invariants_hold_in_a_storm_of_repeats_and_restores(seed: int) -> None:
    run(seed, plan=stormy())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("block", range(100))
def test_invariants_hold_for_many_more_seeds(block: int) -> None:
    for seed in range(1_000 + block * 100, 1_100 + block * 100):
        run(seed)
        run(seed, plan=stormy())


def test_the_same_seed_replays_exactly() -> None:
    first, second = run(11), run(11)

    assert first.truth.trace == second.truth.trace
    assert first.centre.store.operations == second.centre.store.operations


def test_a_violation_names_its_seed_and_shows_the_trace() -> None:
    with pytest.raises(Violated, match=r"seed 0: I3: (?s:.*)START"):
        run(0, replace(PRODUCTION, two_phase=False))


# One pinned seed per rule: without the rule this run breaks, with it the same run holds.
PINNED: dict[str, tuple[int, str]] = {
    "two_phase": (0, "mixed"),
    "true_start_check": (3, "mixed"),
    "lease_from_send": (361, "cuts"),
    "expiry_waits_drift": (32, "mixed"),
    "term_bump_on_release": (1, "mixed"),
    "continue_never_expires": (0, "storm"),
    "self_stop_verified": (7, "mixed"),
    "tombstone_before_relinquish": (19, "storm"),
    "keep_slot_until_term_advances": (7, "storm"),
    "terminal_needs_current_epoch": (1, "storm"),
    "terminal_needs_term": (105, "mixed"),
    "relinquish_needs_term": (11, "storm"),
    "no_grant_after_cancel": (204, "mixed"),
    "stop_lower_first": (98, "mixed"),
    "detect_environment_restore": (3, "mixed"),
    "no_grant_while_record_lost": (1964, "storm"),
    "hello_raises_term": (1, "mixed"),
    "new_generation_on_restore": (0, "mixed"),
    "reconcile_after_restore": (6, "mixed"),
}


@pytest.mark.parametrize("rule", Rules.__struct_fields__)
def test_every_rule_is_missed_when_switched_off(rule: str) -> None:
    seed, plan = PINNED[rule]

    with pytest.raises(Violated):
        run(seed, replace(PRODUCTION, **{rule: False}), PLANS[plan]())
    run(seed, PRODUCTION, PLANS[plan]())


_STATES = (
    PlacementState.IDLE,
    PlacementState.OFFERED,
    PlacementState.CLAIMED,
    PlacementState.RUNNING,
    PlacementState.DONE,
)


def test_every_fault_strikes_in_every_placement_state_at_least_twenty_times() -> None:
    for block in range(SEEDS // BLOCK):
        _run_block(block)
    thin = {
        (kind, str(state)): _covered[f"fault {kind}", str(state)]
        for kind in FAULTS
        for state in _STATES
        if _covered[f"fault {kind}", str(state)] < 20
    }

    assert thin == {}, _table()


def _table() -> str:
    """The coverage table, for people: faults down, placement states across."""
    lines = ["fault".ljust(22) + "".join(str(state).rjust(12) for state in PlacementState)]
    for kind in FAULTS:
        counts = (_covered[f"fault {kind}", str(state)] for state in PlacementState)
        lines.append(kind.ljust(22) + "".join(str(count).rjust(12) for count in counts))
    return "\n".join(lines)
