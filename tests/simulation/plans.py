"""The storms that seeds run through: what goes wrong, how often, and in what weather."""

from collections.abc import Callable

from simulation.world.bus import Weather
from simulation.world.world import Plan


def stormy() -> Plan:
    """Commands and grants come again and again, late, while environments lose their records."""
    weather = Weather(repeat=0.4, drop=0.1, slow=0.4, slow_delay=20_000)
    kinds = ("commands-again", "environment-restored", "cut", "term-raised")
    return Plan(kinds=(*kinds, *kinds, "move", "cancel", "preempted"), faults=40, weather=weather)


def cuts() -> Plan:
    """Only links are cut: requests and replies travel slowly around the ends of leases."""
    return Plan(kinds=("cut", "cut-all"))


def people() -> Plan:
    """People act all the time, often in vain, while dispatchers and stores come and go."""
    acts = (
        "cancel",
        "move",
        "move",
        "preempted",
        "queue-changed",
        "queue-changed",
        "override",
        "declared-dead",
        "hold-lifted",
        "quarantine-decided",
    )
    faults = ("dispatcher-killed", "environment-restored", "centre-restored", "stores-restored", "cut", "cut-all")
    return Plan(kinds=acts + acts + faults, faults=60)


def clocks() -> Plan:
    """Clocks go wrong, beyond every promise too: attempts may overlap there, and nothing else may go wrong."""
    return Plan(
        kinds=(
            "clock-offset",
            "clock-rate",
            "clock-jump",
            "clock-wrong",
            "cut",
            "cut-all",
            "dispatcher-paused",
            "cancel",
            "preempted",
            "move",
        ),
        faults=50,
    )


PLANS: dict[str, Callable[[], Plan]] = {
    "mixed": Plan,
    "storm": stormy,
    "cuts": cuts,
    "people": people,
    "clocks": clocks,
}
OTHERS = tuple(name for name in PLANS if name != "mixed")


def plans_of(seed: int) -> tuple[str, ...]:
    """Every seed runs through the mixed plan and through one of the others."""
    return ("mixed", OTHERS[seed % len(OTHERS)])
