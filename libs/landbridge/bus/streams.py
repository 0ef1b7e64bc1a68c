"""ONE table of streams and durable consumers. The centre declares it; nobody else creates anything.

Limits retention with `discard=new`: a full stream refuses, it never drops silently. Sizes in bytes, ages in seconds.
The broker reserves a stream's whole size, so the table holds shares of one budget that fits the disk.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from landbridge.bus import subjects

DAY_S: Final = 86_400
GIB: Final = 1024**3
DEFAULT_BUDGET_BYTES: Final = 16 * GIB
ACK_WAIT_S: Final = 10.0  # consumers prolong what they hold: this is when a dead one is noticed
# Pull requests through an account's import outlive a cut connection by seconds; what is sent into them comes again.
ENVIRONMENT_ACK_WAIT_S: Final = 5.0
MAX_ACK_PENDING: Final = 50_000  # several replicas with 4 x 1,000 prefetched and 1,000 in work each
MAX_WAITING: Final = 128  # pull requests; a flood of one user cannot fill the server
DUPLICATE_WINDOW_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream. `per_subject` keeps that many messages of each subject (0: no such limit)."""

    name: str
    subjects: tuple[str, ...]
    max_age_s: float = 0.0
    share: float = 0.05  # of the byte budget
    per_subject: int = 0
    max_message_bytes: int = -1
    direct: bool = False  # last-per-subject readers
    description: str = ""


@dataclass(frozen=True, slots=True)
class DurableSpec:
    """One durable consumer, which is asked for its messages unless `push_to` is set."""

    stream: str
    name: str
    filters: tuple[str, ...]
    ack_wait_s: float = ACK_WAIT_S
    max_ack_pending: int = MAX_ACK_PENDING
    max_waiting: int = MAX_WAITING
    description: str = ""
    start_time: str = ""  # RFC 3339: older messages are not delivered; empty: all are
    push_to: str = ""  # a subject to which a leaf node's stream has it pushed, instead of asking


SUBMISSIONS: Final = "SUBMISSIONS"
INTENTS: Final = "INTENTS"
OPERATIONS: Final = "OPERATIONS"
ENVIRONMENTS: Final = "ENVIRONMENTS"
COMMANDS: Final = "COMMANDS"
REPORTS: Final = "REPORTS"
CATALOGUE: Final = "CATALOGUE"
ALERTS: Final = "ALERTS"
DEADLETTERS: Final = "DEADLETTERS"
# In the JetStream domain of a site with its own NATS: `landbridge.bus.site_streams` declares them.
SITE_COMMANDS: Final = "SITE_COMMANDS"
SITE_REPORTS: Final = "SITE_REPORTS"

STREAMS: Final[tuple[StreamSpec, ...]] = (
    StreamSpec(SUBMISSIONS, (subjects.submit("*"),), 7 * DAY_S, 0.08, description="what applications ask for"),
    StreamSpec(INTENTS, (subjects.intent("*", "*"),), 7 * DAY_S, 0.05, description="wishes about what exists"),
    StreamSpec(OPERATIONS, (subjects.operation("*", "*"),), 7 * DAY_S, 0.40, description="what happened to operations"),
    StreamSpec(
        ENVIRONMENTS,
        (subjects.environment("*", "*"),),
        share=0.05,
        per_subject=64,
        direct=True,
        description="what is known about environments; the last message of a subject is its current value",
    ),
    StreamSpec(COMMANDS, (subjects.command("*", "*"),), 14 * DAY_S, 0.15, description="orders to environments"),
    StreamSpec(REPORTS, (subjects.report("*", "*"),), 14 * DAY_S, 0.15, description="what environments say"),
    StreamSpec(
        CATALOGUE,
        (subjects.catalogue("*", "*"),),
        share=0.05,
        per_subject=1,
        direct=True,
        description="projects, queues, policies, classes, connections: the current documents",
    ),
    StreamSpec(ALERTS, (subjects.alert("*"),), 30 * DAY_S, 0.02, per_subject=4096, direct=True, description="alerts"),
    StreamSpec(DEADLETTERS, (subjects.deadletter("*"),), 30 * DAY_S, 0.05, description="what nobody could handle"),
)


def _events(*names: str) -> tuple[str, ...]:
    return tuple(subjects.operation(name, "*") for name in names)


TERMINAL: Final = ("completed", "failed", "cancelled")

DURABLES: Final[tuple[DurableSpec, ...]] = (
    DurableSpec(SUBMISSIONS, "intake", (subjects.submit("*"),)),
    DurableSpec(OPERATIONS, "intake", _events("decided", "failed", "cancelled")),
    # No `completed`: what ran to its end was placed, and waits for no verdict.
    DurableSpec(OPERATIONS, "eligibility", _events("accepted", "requeued", "failed", "cancelled")),
    DurableSpec(OPERATIONS, "ranking", _events("assessed", "freed", "requeued", *TERMINAL)),
    DurableSpec(OPERATIONS, "coordinator", _events("accepted", "waiting", "decided", "preempted")),
    DurableSpec(INTENTS, "coordinator", (subjects.intent("cancel", "*"),)),
    DurableSpec(
        REPORTS, "coordinator", tuple(subjects.report("*", kind) for kind in ("attempts", "inventory", "survey"))
    ),
    DurableSpec(
        INTENTS, "contract-verifier", tuple(subjects.intent(kind, "*") for kind in ("contract", "control", "remove"))
    ),
    DurableSpec(REPORTS, "contract-verifier", (subjects.report("*", "evidence"),)),
    DurableSpec(OPERATIONS, "lineage", (subjects.operation("*", "*"),)),
    # No `completed`, no `running`: what was placed and ran is no alert, and most events are of these.
    DurableSpec(OPERATIONS, "alerting", _events("assessed", "waiting", "decided", "retrying", "failed", "cancelled")),
    DurableSpec(DEADLETTERS, "alerting", (subjects.deadletter("*"),)),
)


def environment_durable(environment: str, since: datetime | None = None) -> DurableSpec:
    """Return the durable from which that environment's dispatcher, and nobody else, reads its commands.

    `since`: commands before it are not meant for this environment, but for an earlier one of the same name.
    """
    filters = (subjects.every("command", environment),)
    start = _start_time(since)
    return DurableSpec(COMMANDS, f"env-{environment}", filters, ENVIRONMENT_ACK_WAIT_S, 10_000, start_time=start)


def leaf_durable(environment: str, since: datetime | None = None) -> DurableSpec:
    """Return the durable through which the NATS of that environment's site, and nobody else, sources its commands."""
    filters = (subjects.every("command", environment),)
    start = _start_time(since)
    return DurableSpec(COMMANDS, f"leaf-{environment}", filters, start_time=start, push_to=subjects.leaf(environment))


def _start_time(since: datetime | None) -> str:
    """Write a time as the broker does, without trailing zeros, so that the two can be compared."""
    if since is None:
        return ""
    return f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".") + "Z"


def ack_wait_of(stream: str, durable: str) -> float:
    """Return the seconds after which the broker gives a durable's unacknowledged messages to others."""
    found = next((spec for spec in DURABLES if (spec.stream, spec.name) == (stream, durable)), None)
    if found is not None:
        return found.ack_wait_s
    return ENVIRONMENT_ACK_WAIT_S if stream == COMMANDS else ACK_WAIT_S


def stream_spec(name: str) -> StreamSpec:
    return _BY_NAME[name]


def family_filter(name: str) -> str:
    """Return the filter for everything that a stream takes."""
    return subjects.every(subjects.family(stream_spec(name).subjects[0]))


_BY_NAME: Final = {spec.name: spec for spec in STREAMS}
_BY_FAMILY: Final = {subjects.family(spec.subjects[0]): spec.name for spec in STREAMS} | {"outgoing": SITE_REPORTS}


def stream_of(subject: str) -> str:
    """Return the stream that takes a subject. Raises ValueError for subjects of requests and unknown families."""
    name = _BY_FAMILY.get(subjects.family(subject))
    if name is None:
        raise ValueError(f"no stream takes {subject!r}; streams take {sorted(_BY_FAMILY)}")
    return name
