"""Codes about the environment as it is now, and about time."""

from typing import Final

from landbridge.domain.reasons.base import Reason
from landbridge.domain.violation import Kind

_NEVER, _NOT_NOW, _WRONG = Kind.NEVER, Kind.NOT_NOW, Kind.MISCONFIGURED

STATE: Final = (
    Reason(
        "features",
        "feature-missing",
        _WRONG,
        "a dispatcher that understands <features>",
        "one that understands <features>",
        "upgrade the dispatcher of {environment}, or use an environment whose executor can do it",
    ),
    Reason(
        "contract",
        "not-yet-active",
        _NOT_NOW,
        "an active contract version",
        "version <version> is <phase>, and no version is active",
        "wait for its canary, register its draft (landbridge env register FILE), or see why it is held back: "
        "landbridge get environments {environment}",
    ),
    Reason(
        "contract",
        "no-longer-active",
        _NEVER,
        "an active contract version",
        "version <version> is <phase>, and no version is active",
        "register a new version of the contract of {environment}: landbridge env register FILE",
    ),
    Reason(
        "control",
        "paused",
        _NOT_NOW,
        "an environment that takes new work",
        "paused[ by <person>][: <reason>]",
        "wait, or ask that person: landbridge env resume {environment}",
    ),
    Reason(
        "control",
        "draining",
        _NOT_NOW,
        "an environment that takes new work",
        "draining[ by <person>][: <reason>]",
        "wait, or ask that person: landbridge env resume {environment}",
    ),
    Reason(
        "class-control",
        "class-paused",
        _NOT_NOW,
        "<amount> of classes that take new work",
        "class <class> paused[ with nodes <label>][ by <person>][: <reason>]",
        "wait, or ask that person: landbridge env resume {environment} --class C, or --node-selector K=V",
    ),
    Reason(
        "link",
        "control-lost",
        _NOT_NOW,
        "a connected dispatcher",
        "control lost[ since <time>]",
        "wait for the link, or look at the site: landbridge site status",
    ),
    Reason(
        "link",
        "reconciling",
        _NOT_NOW,
        "a connected dispatcher",
        "reconciling after a lost link[ since <time>]",
        "wait: it takes work when its inventory was compared (landbridge env reconciliation {environment})",
    ),
    Reason(
        "link",
        "never-connected",
        _NOT_NOW,
        "a connected dispatcher",
        "no dispatcher has connected yet",
        "start its dispatcher: landbridge env join {environment}",
    ),
    Reason(
        "deadline",
        "deadline-passed",
        _NEVER,
        "to be finished by <time>",
        "that moment has passed",
        "submit it again with a later spec.constraints.deadline",
    ),
    Reason(
        "deadline",
        "deadline-too-close",
        _NEVER,
        "to be finished by <time>",
        "<seconds> s needed to stage and run (<from what>)",
        "move spec.constraints.deadline, or use an environment nearer to the data",
    ),
    Reason(
        "deadline",
        "staging-time-unknown",
        _WRONG,
        "to be finished by <time>",
        "<from what>",
        "state the size of the inputs, and the bandwidth in {environment}'s contract",
    ),
    Reason(
        "support",
        "support-ended",
        _WRONG,
        "an environment that is supported",
        "its support ended <time>",
        "have {environment}'s owner register a contract with a later support.until, or use another environment",
    ),
    Reason(
        "maintenance",
        "in-maintenance",
        _NOT_NOW,
        "no maintenance while it runs",
        "a window from <time> until <time>",
        "wait for the end of the window",
    ),
    Reason(
        "maintenance",
        "maintenance-ahead",
        _NOT_NOW,
        "no maintenance while it runs",
        "a window from <time> until <time>",
        "wait for the end of the window, or state a shorter spec.lifecycle.expectedDuration if that is true",
    ),
)
