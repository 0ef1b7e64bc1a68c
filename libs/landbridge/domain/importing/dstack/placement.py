"""Where and how long a dstack run may go on: what a profile or a configuration says of it."""

from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.hardware import take_spot
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.sizes import duration
from landbridge.domain.importing.wishes import CLUSTER, INSTANCE, REGION, SCHEDULE

_PLACEMENT: Final[dict[str, Left]] = {
    **dict.fromkeys(("backends", "regions", "availability_zones"), REGION),
    "instance_types": INSTANCE,
    "reservation": Left(
        Why.NAME, "capacity of one provider", "offer it in an environment's contract; the class says it"
    ),
    "max_price": Left(Why.DECISION, "a bound on the price", "weigh cost in spec.preferences; quotas bound it"),
    "fleets": Left(
        Why.DECISION, "machines by name", "say what they are for: a class, a control, or constraints.environments"
    ),
    "instances": Left(
        Why.DECISION, "machines by name", "say what they are for: a class, a control, or constraints.environments"
    ),
    **dict.fromkeys(("creation_policy", "idle_duration", "backend_options"), CLUSTER),
    "utilization_policy": Left(
        Why.NO_COUNTERPART, "ends work that leaves its devices idle", "let the program end itself, or set an alert"
    ),
    "startup_order": Left(Why.NOT_NEEDED, "replicas of a gang start together"),
    "stop_criteria": Left(Why.NOT_NEEDED, "a gang has ended when all its replicas have"),
    "schedule": SCHEDULE,
}
_SPOT: Final = {"spot": "require", "auto": "allow"}


def take_placement(sheet: Sheet) -> None:
    """Map times, retries and interruptible hardware; what pins a place is told."""
    _time(sheet, "max_duration", ("spec", "lifecycle", "timeout"))
    _time(sheet, "stop_duration", ("spec", "lifecycle", "stopGrace"))
    policy = sheet.text("spot_policy")
    if policy in _SPOT:
        take_spot(sheet, ("spot_policy",), _SPOT[policy])
    elif policy == "on-demand":
        left = Left(Why.NOT_NEEDED, "hardware that can be taken away is forbidden unless asked for")
        sheet.leave(("spot_policy",), left)
    _retry(sheet)
    sheet.leave_known((), _PLACEMENT)


def _time(sheet: Sheet, field: str, target: Path) -> None:
    if not sheet.has(field):
        return
    time = duration(sheet.at(field))
    if time:
        sheet.put((field,), target, time, "of each attempt" if target[-1] == "timeout" else "")
    elif sheet.at(field) in ("off", False, -1):
        sheet.leave((field,), Left(Why.NOT_NEEDED, "without a limit, as if nothing were said"))
    else:
        sheet.leave((field,), Left(Why.DECISION, "not a time that can be read", f"write lifecycle.{target[-1]}"))


def _retry(sheet: Sheet) -> None:
    """Map what brings a run back. dstack bounds it by time, an operation by the number of attempts."""
    if not sheet.has("retry"):
        return
    if sheet.at("retry") is False:
        sheet.leave(("retry",), Left(Why.NOT_NEEDED, "nothing is tried again unless asked for"))
        return
    bounded = Left(
        Why.DECISION,
        "goes on for a time; an operation has a number of further attempts",
        "write lifecycle.retries.limit, and queueTimeout for the time that it may wait",
    )
    if not sheet.map("retry"):
        sheet.leave(("retry",), bounded)
        return
    for index, event in enumerate(sheet.list("retry", "on_events")):
        source: Path = ("retry", "on_events", index)
        if event == "interruption":
            sheet.put(source, ("spec", "lifecycle", "recovery", "mode"), "restart", "lost work starts again")
        elif event == "no-capacity":
            reason = "work waits for room by itself, until lifecycle.queueTimeout"
            sheet.leave(source, Left(Why.NOT_NEEDED, reason))
        else:
            sheet.leave(source, bounded)
    if sheet.has("retry", "duration"):
        sheet.leave(("retry", "duration"), bounded)
