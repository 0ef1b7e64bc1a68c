"""The environment's side of ownership: `decide(state, message, lease, now) -> Decision`.

Pure: the same code runs in the dispatcher, in the state machine tests and in the simulation. `now` is the boot clock
in milliseconds, `lease` the environment's lease as held at that moment.
"""

from landbridge.domain.ownership.environment_model import Decision, HeldOperation, Message
from landbridge.domain.ownership.leases import HeldLease
from landbridge.domain.ownership.rules import PRODUCTION, Rules


def decide(state: HeldOperation, message: Message, lease: HeldLease, now: int, rules: Rules = PRODUCTION) -> Decision:
    """What one message changes for one operation in this environment, and what must be done about it, in order."""
    raise NotImplementedError
