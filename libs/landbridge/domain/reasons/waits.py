"""Every code that tells why an operation waits: because nothing is eligible, or because it is not its turn."""

# ruff: noqa: E501  one code an entry, like a table

from typing import Final

from landbridge.domain.queues import WaitReason
from landbridge.domain.reasons.base import Told
from landbridge.domain.verdict import Outlook
from landbridge.domain.waiting import NoPlace

_EXPLAIN: Final = "landbridge explain ID shows every environment and the change that would help"

OUTLOOKS: Final = (
    Told(
        Outlook.NOT_NOW.value,
        "no environment is eligible, but what stands against at least one may pass by itself",
        f"wait; {_EXPLAIN}",
    ),
    Told(
        Outlook.UNPLACEABLE.value,
        "no environment can run it unless somebody changes something; it waits until its queueTimeout, then fails",
        _EXPLAIN,
    ),
)
NO_PLACES: Final = (
    Told(NoPlace.NO_ENVIRONMENT.value, "no environment is registered; register one", "landbridge env register FILE"),
    Told(
        NoPlace.INCOMPATIBLE.value,
        "no environment is eligible; nearest is <environment> (contract version <version>): … which can never run it",
        _EXPLAIN,
    ),
    Told(
        NoPlace.MISCONFIGURED.value,
        "no environment is eligible; nearest is <environment> (contract version <version>): … where somebody has to correct something",
        _EXPLAIN,
    ),
    Told(
        NoPlace.UNVERIFIED.value,
        "no environment is eligible; nearest is <environment> (contract version <version>): … which could run it once it is proven again",
        "landbridge env verify NAME runs its probes; what fails is to be repaired there",
    ),
    Told(
        NoPlace.UNAVAILABLE.value,
        "no environment is eligible; nearest is <environment> (contract version <version>): … which takes nothing for now",
        "wait: it is paused, draining, cut off or in maintenance; landbridge get environments tells which",
    ),
)
TURNS: Final = (
    Told(
        WaitReason.QUEUE_PAUSED.value,
        "queue <queue> is paused; landbridge queue resume <queue>, or take paused out of its document",
        "wait, or do what the text says; or landbridge queue move ID --to QUEUE",
    ),
    Told(
        WaitReason.QUEUE_DRAINING.value,
        "queue <queue> is drained and takes nothing new; landbridge queue resume <queue>, or move to another queue",
        "landbridge queue move ID --to QUEUE, or wait until it is resumed",
    ),
    Told(
        WaitReason.CONCURRENCY.value,
        "queue <queue> (or project <project>) runs <count> of at most <count> operations",
        "wait: it goes on as others end; or have concurrency (limits.running) raised",
    ),
    Told(
        WaitReason.QUOTA.value,
        "queue <queue> (or project <project>) holds <amount> of <amount> <resource>, <amount> more are needed",
        "wait: it goes on as others end; or ask for less, or have the quota raised",
    ),
    Told(
        WaitReason.EXCEEDS_QUOTA.value,
        "it asks for <amount> <resource>, queue <queue> (or project <project>) may hold <amount>",
        "waiting does not help: raise the quota or ask for less",
    ),
    Told(
        WaitReason.EXCEEDS_CAPACITY.value,
        "the <count> members of gang <gang> do not fit into their environments together, even if those are empty",
        "waiting does not help: ask for less, or let them be in more environments (gang.spanEnvironments, constraints)",
    ),
    Told(
        WaitReason.AT_CAPACITY.value,
        "<environment> holds <amount> of <amount> <resource>, <amount> more are needed[; <environments> are full as well]",
        "wait: it goes on as others end there; landbridge explain ID has the forecast",
    ),
    Told(
        WaitReason.RESERVED.value,
        "<resource> of <environment, queue or project> is kept for an operation that goes before it",
        "wait: what is kept is for larger work that has waited longer",
    ),
    Told(
        WaitReason.MAKING_ROOM.value,
        "room is made in <environment> for the oldest of its kind: others were asked to leave and have not ended yet",
        "wait: they seal what they have and go",
    ),
    Told(
        WaitReason.GANG_INCOMPLETE.value,
        "gang <gang> has <count> of <count> members waiting here; …; or, while it is offered: claimed by <environment>, and not all others are",
        "wait: all members start together; submit those that are missing, or cancel one and with it all",
    ),
    Told(
        WaitReason.NO_ELIGIBLE_ENVIRONMENT.value,
        "no environment is eligible any more, or every verdict has run out and is being renewed",
        _EXPLAIN,
    ),
)
WAITS: Final[tuple[Told, ...]] = (*OUTLOOKS, *NO_PLACES, *TURNS)
