"""What an operator says of its object, reduced to what decisions need. Everything in it may be absent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from landbridge_dispatch.executors.kubernetes.facts import condition


class State(StrEnum):
    """How an operator's object stands. `GONE`: it is not there."""

    WAITS = "waits"
    SUSPENDED = "suspended"
    RUNS = "runs"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Told:
    """`state` empty: no operator is concerned. `words`: the operator's own."""

    state: State | None = None
    words: str = ""

    @property
    def over(self) -> bool:
        """Whether the operator does no more."""
        return self.state in (State.SUCCEEDED, State.FAILED)


NOT_TOLD: Final = Told()
_BY_CONDITION: Final = {
    "JobSet": (
        ("Completed", State.SUCCEEDED),
        ("Failed", State.FAILED),
        ("Suspended", State.SUSPENDED),
    ),
    "TrainJob": (
        ("Complete", State.SUCCEEDED),
        ("Failed", State.FAILED),
        ("Suspended", State.SUSPENDED),
    ),
    "PyTorchJob": (
        ("Succeeded", State.SUCCEEDED),
        ("Failed", State.FAILED),
        ("Suspended", State.SUSPENDED),
        ("Running", State.RUNS),
    ),
}
_RAY_DEPLOYMENT: Final = {
    "Complete": State.SUCCEEDED,
    "Failed": State.FAILED,
    "ValidationFailed": State.FAILED,
    "Suspending": State.SUSPENDED,
    "Suspended": State.SUSPENDED,
    "Running": State.RUNS,
}


def told_by(item: Mapping[str, Any] | None) -> Told:
    """Read an operator's object; None: it is not there."""
    if item is None:
        return Told(State.GONE, "the operator's object is not there")
    if item.get("kind") == "RayJob":
        return _ray(item.get("status") or {})
    for kind, state in _BY_CONDITION.get(str(item.get("kind")), ()):
        if found := condition(item, kind):
            return Told(state, _words(kind, found.get("reason"), found.get("message")))
    return Told(State.WAITS, f"{item.get('kind')}: nothing told yet")


def _ray(status: Mapping[str, Any]) -> Told:
    """Read a RayJob, which has no conditions: one field for its cluster and submission, one for the job on it."""
    deployment, job = str(status.get("jobDeploymentStatus") or ""), str(status.get("jobStatus") or "")
    state = _RAY_DEPLOYMENT.get(deployment, State.WAITS)
    # `Complete` says that it has ended, the job's own status how.
    if state is State.SUCCEEDED and job in ("FAILED", "STOPPED"):
        state = State.FAILED
    return Told(state, _words(" ".join(filter(None, (deployment, job))), status.get("reason"), status.get("message")))


def _words(state: str, reason: object, message: object) -> str:
    told = ": ".join(str(part) for part in (reason, message) if part)
    return f"{state or 'nothing told yet'} ({told})" if told else state or "nothing told yet"
