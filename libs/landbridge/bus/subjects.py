"""The only place where subjects are spelled. Everything else calls these functions.

A subject is `lb.v1.<family>.<…>`; every variable part is one token. The project token `_` means "no project".
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

ROOT: Final = "lb.v1"
NO_PROJECT: Final = "_"
ANY: Final = "*"
REST: Final = ">"

_TOKEN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_=@+~-]{0,252}")
_FAMILIES_BY_PROJECT: Final = frozenset({"submit", "intent", "operation"})
_FAMILIES_BY_ENVIRONMENT: Final = frozenset(
    {"environment", "command", "report", "outgoing", "lease", "claim", "query", "answer"}
)


def check_token(value: str, what: str) -> str:
    """Return `value` if it can be one subject token (or the wildcard `*`); raise ValueError that names `what`."""
    if value == ANY or _TOKEN.fullmatch(value):
        return value
    raise ValueError(
        f"{what} {value!r} cannot be part of a subject: expected 1 to 253 of letters, digits, '-', '_', '=', '@', '+', "
        "'~' and no dot, space or wildcard"
    )


@lru_cache(maxsize=65536)
def submit(project: str) -> str:
    return f"{ROOT}.submit.{check_token(project, 'project')}"


@lru_cache(maxsize=65536)
def operation(event: str, project: str) -> str:
    return f"{ROOT}.operation.{check_token(event, 'event')}.{check_token(project or NO_PROJECT, 'project')}"


@lru_cache(maxsize=65536)
def intent(kind: str, project: str = NO_PROJECT) -> str:
    return f"{ROOT}.intent.{check_token(kind, 'intent')}.{check_token(project or NO_PROJECT, 'project')}"


@lru_cache(maxsize=65536)
def environment(event: str, name: str) -> str:
    return f"{ROOT}.environment.{check_token(event, 'event')}.{check_token(name, 'environment')}"


@lru_cache(maxsize=65536)
def command(env: str, kind: str) -> str:
    return f"{ROOT}.command.{check_token(env, 'environment')}.{check_token(kind, 'command')}"


@lru_cache(maxsize=65536)
def report(env: str, kind: str) -> str:
    return f"{ROOT}.report.{check_token(env, 'environment')}.{check_token(kind, 'report')}"


@lru_cache(maxsize=4096)
def outgoing(env: str, kind: str) -> str:
    """Return the name of a report that waits in the site's own NATS; it does not cross to the centre."""
    return f"{ROOT}.outgoing.{check_token(env, 'environment')}.{check_token(kind, 'report')}"


@lru_cache(maxsize=4096)
def alert(rule: str) -> str:
    return f"{ROOT}.alert.{check_token(rule, 'rule')}"


@lru_cache(maxsize=4096)
def deadletter(service: str) -> str:
    return f"{ROOT}.deadletter.{check_token(service, 'service')}"


@lru_cache(maxsize=65536)
def catalogue(kind: str, name: str) -> str:
    return f"{ROOT}.catalogue.{check_token(kind, 'kind')}.{check_token(name, 'name')}"


@lru_cache(maxsize=65536)
def lease(env: str) -> str:
    return f"{ROOT}.lease.{check_token(env, 'environment')}"


@lru_cache(maxsize=65536)
def claim(env: str) -> str:
    return f"{ROOT}.claim.{check_token(env, 'environment')}"


@lru_cache(maxsize=65536)
def query(env: str, kind: str) -> str:
    return f"{ROOT}.query.{check_token(env, 'environment')}.{check_token(kind, 'query')}"


@lru_cache(maxsize=64)
def ask(service: str, kind: str) -> str:
    """Return the subject of a question to a service of the centre; one of its replicas answers."""
    return f"{ROOT}.ask.{check_token(service, 'service')}.{check_token(kind, 'question')}"


def leaf(env: str) -> str:
    """Where the centre hands an environment's commands to the NATS of its site."""
    return f"{ROOT}.leaf.{check_token(env, 'environment')}.cmd"


def leaf_api(env: str) -> str:
    """Return the prefix under which a site sees its part of the centre's JetStream API, instead of `$JS.API`."""
    return f"{ROOT}.js.{check_token(env, 'environment')}"


def answer(env: str, token_: str) -> str:
    return f"{ROOT}.answer.{check_token(env, 'environment')}.{check_token(token_, 'answer')}"


def every(family: str, *leading: str) -> str:
    """Return the filter for all subjects of a family, below fixed leading tokens: `every("report", "onprem-a")`."""
    tokens = [ROOT, check_token(family, "family"), *(check_token(part, "token") for part in leading), REST]
    return ".".join(tokens)


def token(subject: str, i: int) -> str:
    """Token `i` of a subject, counted from 0 at `lb`; an empty string if there are fewer."""
    parts = subject.split(".")
    return parts[i] if -len(parts) <= i < len(parts) else ""


def among(events: Iterable[str]) -> Callable[[bytes], bool]:
    """Return what tells whether a subject of an event, as it is read from the wire, is of one of `events`."""
    named = frozenset(event.encode() for event in events)
    return lambda subject: subject.split(b".", 4)[3] in named


def family(subject: str) -> str:
    return token(subject, 2)


def project_of(subject: str) -> str:
    """Return the project of a submission, intent or operation subject; `_` if none; "" for other families."""
    parts = subject.split(".")
    return parts[-1] if len(parts) > 3 and parts[2] in _FAMILIES_BY_PROJECT else ""


def environment_of(subject: str) -> str:
    """Return the environment that a subject belongs to; "" for families without one. Never trust a payload for this."""
    parts = subject.split(".")
    if len(parts) < 4 or parts[2] not in _FAMILIES_BY_ENVIRONMENT:
        return ""
    return parts[4] if parts[2] == "environment" and len(parts) > 4 else parts[3]


def template(subject: str) -> str:
    """Return the subject with its variable parts named, for metrics and span names: bounded, whatever the traffic."""
    parts = subject.split(".")
    if len(parts) < 3 or ".".join(parts[:2]) != ROOT:
        return "other"
    return _template(parts[2], tuple(parts[3:]))


_TEMPLATES: Final = {  # family -> the parts behind it; "." keeps what is there, a bounded word
    "submit": "{project}",
    "operation": ". {project}",
    "intent": ". {project}",
    "environment": ". {environment}",
    "command": "{environment} .",
    "report": "{environment} .",
    "outgoing": "{environment} .",
    "query": "{environment} .",
    "lease": "{environment}",
    "claim": "{environment}",
    "answer": "{environment} {token}",
    "ask": ". .",
    "catalogue": ". {name}",
    "alert": ".",
    "deadletter": ".",
}


def _template(name: str, rest: tuple[str, ...]) -> str:
    parts = _TEMPLATES.get(name, "").split()
    if not parts or len(rest) < len(parts):
        return "other"
    return ".".join([ROOT, name, *(found if part == "." else part for part, found in zip(parts, rest, strict=False))])
