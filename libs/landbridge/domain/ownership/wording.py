"""What a cut means for the work behind it, in plain words: who or what may free it, and from when.

Pure. The answers follow the same rules by which the centre acts; nothing here acts.
"""

from enum import StrEnum

import msgspec

from landbridge.domain.ownership.centre_model import OperationState, PlacementState
from landbridge.domain.ownership.expiry import release_wait_ms
from landbridge.domain.ownership.policy import OnDisconnect, Timing


class Prospect(StrEnum):
    """What becomes of a placement while its environment is not heard."""

    RUNS_ON = "runs-on"
    MAY_MOVE = "may-be-placed-again"
    WAITS = "waits-for-the-environment-or-a-person"
    HELD = "held"


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a lost environment. `since`: when its silence was noticed, milliseconds since 1970."""

    environment: str
    since: int
    self_stop_verified: bool
    held: bool


class Outlook(msgspec.Struct, frozen=True):
    """The prospect of one placement. `not_before`: milliseconds since 1970; 0 = time frees nothing."""

    prospect: Prospect
    not_before: int
    text: str


_PERSON = (
    "only its environment's word, `landbridge env declare-dead {environment}` or "
    "`landbridge release {operation} --override` frees it"
)


def outlook(state: OperationState, silence: Silence, timing: Timing) -> Outlook:
    """Return what becomes of a placement in an environment that is not heard."""
    person = _PERSON.format(environment=silence.environment, operation=state.operation[:8])
    policy = state.policy.policy
    if state.missing:
        text = f"the environment was restored and has no record of it; it counts as running: {person}"
        return Outlook(Prospect.WAITS, 0, text)
    if not state.policy.self_stopping:
        word = "it runs on" if policy is OnDisconnect.CONTINUE else "it runs on to its end"
        started = state.placement is PlacementState.RUNNING
        begun = word if started else "it was claimed and may have started; if it has, " + word
        return Outlook(Prospect.RUNS_ON, 0, f"declared {policy}: {begun}; {person}")
    stops = "stops by itself" + (", with a checkpoint" if policy is OnDisconnect.CHECKPOINT_THEN_STOP else "")
    if not silence.self_stop_verified:
        text = f"declared {policy}: it {stops}, but that is not proven there: {person}"
        return Outlook(Prospect.WAITS, 0, text)
    if silence.held:
        text = f"declared {policy}: it {stops}; nothing moves while the centre doubts its own hearing"
        return Outlook(Prospect.HELD, 0, f"{text}: `landbridge hold show`")
    not_before = silence.since - timing.ttl_ms + release_wait_ms(state.policy.stop_ms, timing)
    then = "it is cancelled then" if state.cancel else "it may be placed again then"
    return Outlook(Prospect.MAY_MOVE, not_before, f"declared {policy}: it {stops}; {then}")
