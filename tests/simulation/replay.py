"""`python -m simulation.replay SEED [PLAN] [RULE]`: run one seed again and print all of it; RULE is switched off."""

import sys

from msgspec.structs import replace

from landbridge.domain.ownership.rules import PRODUCTION
from simulation.plans import PLANS
from simulation.world.truth_centre import Violated
from simulation.world.world import World


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 3 or not arguments[0].isdecimal():
        print(f"usage: python -m simulation.replay SEED [{'|'.join(PLANS)}] [RULE]", file=sys.stderr)
        return 2
    plan = arguments[1] if len(arguments) > 1 else "mixed"
    rules = replace(PRODUCTION, **{arguments[2]: False}) if len(arguments) > 2 else PRODUCTION
    world = World(int(arguments[0]), rules, PLANS[plan]())
    outcome = "held"
    try:
        world.run()
    except Violated as violated:
        outcome = f"VIOLATED {violated}"
    print("\n".join(world.truth.trace))
    print(outcome)
    return 0 if outcome == "held" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
