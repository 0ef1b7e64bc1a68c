"""ONE table of who may say and hear what. Users, accounts and tests are all made from it.

Services of the centre are users of the account HUB. Every environment and every project has an account of its own with
imports for exactly its subjects, so that not even a reply subject can speak for another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from landbridge.bus import jwt, streams, subjects
from landbridge.bus.credentials import INBOX

API: Final = "$JS.API"
ADVISORY: Final = "$JS.EVENT.ADVISORY"
LIFECYCLE_EVENTS: Final = (
    *("queued", "pending", "running", "retrying", "completed", "failed", "cancelled"),
    *("condition", "observed", "requeued", "freed"),
)
CATALOGUE_KINDS: Final = ("project", "queue", "policy", "rule", "preset", "component", "capability-class", "connection")
STATE_STREAMS: Final = (streams.ENVIRONMENTS, streams.CATALOGUE)
SITE_USER: Final = "dispatcher"
SOURCING_REPLIES: Final = "$JSC.R.>"  # a server's own inbox for answers about what it sources
_SITE_VERBS: Final = ("INFO", "CREATE", "UPDATE", "PURGE")


@dataclass(frozen=True, slots=True)
class Grant:
    """What one service may do. Durables of its name, its inbox and its dead-letter subject come by themselves."""

    writes: tuple[str, ...] = ()  # subjects of streams
    reads_state: tuple[str, ...] = STATE_STREAMS  # streams, last value per subject
    asks: tuple[str, ...] = ()  # requests
    answers: tuple[str, ...] = ()  # requests that it responds to
    hears: tuple[str, ...] = ()  # plain subscriptions
    administers: tuple[str, ...] = ()  # parts of the JetStream API


def _operations(*events: str) -> tuple[str, ...]:
    return tuple(subjects.operation(event, "*") for event in events)


def _commands(*kinds: str) -> tuple[str, ...]:
    return tuple(subjects.command("*", kind) for kind in kinds)


def _environments(*events: str) -> tuple[str, ...]:
    return tuple(subjects.environment(event, "*") for event in events)


SERVICES: Final[dict[str, Grant]] = {
    "intake": Grant(
        writes=(
            *_operations("accepted", "refused"),
            *(subjects.catalogue(kind, "*") for kind in CATALOGUE_KINDS),
            *(subjects.intent(kind, "*") for kind in ("cancel", "contract", "control", "remove")),
        ),
        asks=(subjects.ask("ranking", "plan"),),
    ),
    "eligibility": Grant(writes=_operations("assessed", "waiting")),
    "ranking": Grant(
        writes=(
            *_operations("decided", "preempted", "waiting"),
            *_environments("charges"),
            subjects.catalogue("queue-control", "*"),
        ),
        answers=tuple(subjects.ask("ranking", kind) for kind in ("plan", "replay", "override")),
        asks=(
            subjects.ask("ranking", "override"),  # of the replica that admits, by the one that a person spoke to
            subjects.ask("coordinator", "standing"),
        ),
    ),
    "coordinator": Grant(
        writes=(
            *_operations(*LIFECYCLE_EVENTS),
            *_environments("link", "drift"),
            *_commands("offer", "withdraw", "stop", "settle"),
        ),
        answers=(subjects.lease("*"), subjects.claim("*"), subjects.ask("coordinator", "standing")),
        administers=(f"STREAM.INFO.{streams.OPERATIONS}",),  # to notice that the stream was lost
    ),
    "contract-verifier": Grant(
        writes=(
            *_environments("contract", "evidence", "control"),
            *_commands("probe-plan", "verify"),
            subjects.catalogue("access", "*"),
            subjects.operation("refused", subjects.NO_PROJECT),
        ),
        answers=(subjects.ask("contract-verifier", "broker"),),
        administers=(
            # only consumers of COMMANDS, and only with a filter for one environment
            f"CONSUMER.CREATE.{streams.COMMANDS}.*.{subjects.every('command', '*')}",
            f"CONSUMER.INFO.{streams.COMMANDS}.*",
            f"CONSUMER.DELETE.{streams.COMMANDS}.*",
        ),
    ),
    "lineage": Grant(
        asks=(subjects.query("*", "*"), subjects.ask("ranking", "plan"), subjects.ask("ranking", "replay")),
        hears=(subjects.every("answer", "*"),),
        reads_state=(*STATE_STREAMS, streams.ALERTS),
    ),
    "alerting": Grant(
        writes=(subjects.alert("*"),),
        reads_state=(*STATE_STREAMS, streams.ALERTS),
        asks=(subjects.ask("contract-verifier", "broker"),),
        hears=(f"{ADVISORY}.>",),
    ),
    "dashboard": Grant(
        reads_state=(*STATE_STREAMS, streams.ALERTS),
        hears=(subjects.operation("*", "*"),),
    ),
    "streams": Grant(reads_state=(), administers=(">",)),
}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The allow-lists of one user."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


def inbox(name: str) -> str:
    return f"{INBOX}_{name}.>"


def service_permissions(service: str) -> Permissions:
    """Return the allow-lists of a service's user. Raises KeyError for a name that is not in the table."""
    grant = SERVICES[service]
    publish = [*grant.writes, *grant.asks, *(f"{API}.{path}" for path in grant.administers)]
    subscribe = [inbox(service), *grant.answers, *grant.hears]
    if service != "streams":
        publish.append(subjects.deadletter(service))
    for durable in (spec for spec in streams.DURABLES if spec.name == service):
        publish += _consume(durable.stream, durable.name)
        publish.append(f"{API}.CONSUMER.INFO.{durable.stream}.{durable.name}")
    for name in grant.reads_state:
        publish.append(f"{API}.DIRECT.GET.{name}")
        subscribe.append(streams.family_filter(name))
    return Permissions(tuple(publish), tuple(dict.fromkeys(subscribe)), bool(grant.answers))


def _consume(stream: str, durable: str) -> tuple[str, str]:
    return f"{API}.CONSUMER.MSG.NEXT.{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>"


# -- environments -----------------------------------------------------------------------------------------------------


def environment_permissions(environment: str, user: str) -> Permissions:
    """Return the allow-lists of a dispatcher's user inside its environment's account."""
    durable = streams.environment_durable(environment)
    return Permissions(
        publish=(
            *_spoken(environment),
            *_consume(durable.stream, durable.name),
        ),
        subscribe=(inbox(user), subjects.every("query", environment)),
    )


def environment_imports(hub: str, environment: str, *, leaf: bool = False) -> list[dict[str, Any]]:
    """Return what an environment's account gets from HUB: exactly its subjects. Never the creation of consumers.

    `leaf`: its site has a NATS of its own, which sources the commands, so nobody there reads the centre's durable.
    """
    query = jwt.stream_import(hub, subjects.every("query", environment))
    if not leaf:
        own = environment_permissions(environment, "dispatcher")
        return [*(jwt.service_import(hub, subject) for subject in own.publish), query]
    reset = _reset(environment)
    return [
        *(jwt.service_import(hub, subject) for subject in _spoken(environment)),
        query,
        jwt.stream_import(hub, f"{subjects.ROOT}.leaf.{environment}.>"),
        jwt.service_import(hub, _flow(environment)),
        jwt.service_import(hub, f"{API}.{reset}", f"{subjects.leaf_api(environment)}.{reset}"),
    ]


def _spoken(environment: str) -> tuple[str, ...]:
    return (
        subjects.every("report", environment),
        subjects.lease(environment),
        subjects.claim(environment),
        subjects.every("answer", environment),
    )


def _reset(environment: str) -> str:
    durable = streams.leaf_durable(environment)
    return f"CONSUMER.RESET.{durable.stream}.{durable.name}"


def _flow(environment: str) -> str:
    durable = streams.leaf_durable(environment)
    return f"$JS.FC.{durable.stream}.{durable.name}.>"


def leaf_permissions(environment: str) -> Permissions:
    """Return what may pass between the centre and the NATS of an environment's site, in the centre's own words."""
    return Permissions(
        publish=(*_spoken(environment), _flow(environment), f"{subjects.leaf_api(environment)}.{_reset(environment)}"),
        subscribe=(
            inbox(SITE_USER),
            subjects.every("query", environment),
            f"{subjects.ROOT}.leaf.{environment}.>",
            SOURCING_REPLIES,
        ),
    )


def site_permissions(environment: str) -> Permissions:
    """Return the allow-lists of a dispatcher in its site's own NATS.

    The server checks them behind its mapping of the domain's API to `$JS.API`.
    """
    commands, reports, durable = streams.SITE_COMMANDS, streams.SITE_REPORTS, SITE_USER
    return Permissions(
        publish=(
            *_spoken(environment),
            subjects.every("outgoing", environment),
            *(f"{API}.STREAM.{verb}.{name}" for name in (commands, reports) for verb in _SITE_VERBS),
            f"{API}.DIRECT.GET.{reports}",
            f"{API}.CONSUMER.INFO.{commands}.{durable}",
            f"{API}.CONSUMER.DURABLE.CREATE.{commands}.{durable}",
            f"{API}.CONSUMER.MSG.NEXT.{commands}.{durable}",
            f"$JS.ACK.{commands}.{durable}.>",
        ),
        subscribe=(inbox(SITE_USER), subjects.every("query", environment)),
    )


# -- projects ---------------------------------------------------------------------------------------------------------


def application_permissions(project: str, user: str, *, submits: bool = True) -> Permissions:
    """Return the allow-lists of an application's user inside its project's account; without `submits` it only hears."""
    return Permissions(
        publish=(subjects.submit(project), subjects.intent("cancel", project)) if submits else (),
        subscribe=(inbox(user), subjects.operation("*", project)),
    )


def project_imports(hub: str, project: str) -> list[dict[str, Any]]:
    permissions = application_permissions(project, "application")
    return [
        *(jwt.service_import(hub, subject) for subject in permissions.publish),
        jwt.stream_import(hub, subjects.operation("*", project)),
    ]


# -- HUB --------------------------------------------------------------------------------------------------------------


def hub_exports() -> Sequence[dict[str, Any]]:
    """Return HUB's exports, with wildcards and once: pushing HUB's JWT at run time drops replies in flight."""
    commands = streams.COMMANDS
    return [
        jwt.service_export(subjects.every("report", "*")),
        jwt.service_export(subjects.lease("*")),
        jwt.service_export(subjects.claim("*")),
        jwt.service_export(subjects.every("answer", "*")),
        jwt.service_export(f"{API}.CONSUMER.MSG.NEXT.{commands}.*", streamed=True),
        jwt.service_export(f"$JS.ACK.{commands}.*.>"),
        jwt.stream_export(subjects.every("query", "*")),
        jwt.stream_export(f"{subjects.ROOT}.leaf.*.>"),
        jwt.service_export(f"$JS.FC.{commands}.*.>"),
        jwt.service_export(f"{API}.CONSUMER.RESET.{commands}.*"),
        jwt.service_export(subjects.submit("*")),
        jwt.service_export(subjects.intent("cancel", "*")),
        jwt.stream_export(subjects.operation("*", "*")),
    ]
