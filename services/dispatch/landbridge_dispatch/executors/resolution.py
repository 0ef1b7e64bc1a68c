"""From logical names to this site's places, for one operation; refuses, typed, before anything starts.

The site's own policy (`accepts` in the bindings) has the last word. A workload is told only the places that its
operation names. Plain processes of one user can read what that user can read: give roles users of their own where
that matters (`identities`).
"""

import os
import pwd
import re
from dataclasses import dataclass, field
from pathlib import Path

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.checkpoints import resumable
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work

_OPERATION_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class Place:
    """A directory here and the same place below its logical connection."""

    connection: str
    path: str
    directory: Path


@dataclass(slots=True)
class Resolution:
    """What the names of one operation mean here."""

    inputs: dict[str, Path] = field(default_factory=dict)
    outputs: dict[str, Place] = field(default_factory=dict)
    checkpoint: Place | None = None
    resume_from: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    secret_files: dict[str, str] = field(default_factory=dict)
    secret_variables: dict[str, str] = field(default_factory=dict)
    """Variables of the dispatcher's own environment by the name that the workload sees."""
    locations: dict[str, str] = field(default_factory=dict)
    user: tuple[int, int] | None = None
    principal: str = ""


def resolve(bindings: Bindings, work: Work) -> Resolution:
    """Resolve every name of `work`. Raises RefusedError; writes nothing."""
    check_acceptance(bindings, work)
    spec = work.view.spec
    if not _OPERATION_ID.fullmatch(work.operation):
        raise RefusedError(RefusalCode.UNREADABLE, "operation id: expected letters, digits and hyphens")
    found = Resolution()
    found.user, found.principal = _principal(bindings, spec.identity)
    attempt = f"{work.operation}/e{work.epoch.generation}-{work.epoch.counter}"
    for name, wanted in spec.inputs.items():
        found.inputs[name] = _existing(bindings, name, wanted.connection, wanted.path)
    for name, output in spec.outputs.items():
        # Every attempt writes to a place of its own, so that a superseded one overwrites nothing.
        path = _join(output.path, attempt, name)
        found.outputs[name] = Place(output.connection, path, bindings.place(output.connection, path, write=True))
    if spec.checkpoints is not None:
        path = _join(spec.checkpoints.path, attempt)
        directory = bindings.place(spec.checkpoints.connection, path, write=True)
        found.checkpoint = Place(spec.checkpoints.connection, path, directory)
    found.resume_from = resumable(bindings, work)
    for connection in sorted(spec.connections()):
        _take_connection(bindings, connection, found)
    return found


def check_acceptance(bindings: Bindings, work: Work) -> None:
    """Raise RefusedError where the site's own policy does not let the operation in."""
    accepts, spec = bindings.accepts, work.view.spec
    if not _lets_in(accepts.projects, work.project):
        raise RefusedError(RefusalCode.PROJECT, f"project {work.project} is not accepted at this site")
    if spec.identity and not _lets_in(accepts.identities, spec.identity):
        raise RefusedError(RefusalCode.IDENTITY, f"identity {spec.identity} is not accepted at this site")
    check_role(bindings, spec.identity)
    for connection in sorted(spec.connections()):
        binding = bindings.connections.get(connection)
        if binding is None:
            raise RefusedError(
                RefusalCode.CONNECTION_MISSING,
                f"connection {connection} is not bound here: add it to the site's bindings",
            )
        if not _lets_in(accepts.connections, connection) or not _lets_in(binding.projects, work.project):
            raise RefusedError(
                RefusalCode.CONNECTION_FORBIDDEN,
                f"connection {connection} is not accepted at this site for project {work.project}",
            )


def check_role(bindings: Bindings, role: str) -> None:
    """Raise RefusedError for a role that is nobody here."""
    if role and (bindings.identities is not None or bindings.roles is not None):
        known = bindings.roles if bindings.identities is None else frozenset(bindings.identities)
        if role not in (known or ()):
            raise RefusedError(RefusalCode.IDENTITY, f"identity {role} is mapped to nobody at this site")


def _lets_in(listed: tuple[str, ...], name: str) -> bool:
    return not listed or "*" in listed or name in listed


def _existing(bindings: Bindings, name: str, connection: str, path: str) -> Path:
    place = bindings.place(connection, path)
    if not place.exists():
        raise RefusedError(
            RefusalCode.CONNECTION_UNAVAILABLE, f"input {name}: there is no {path!r} below connection {connection}"
        )
    return place


def _take_connection(bindings: Bindings, name: str, found: Resolution) -> None:
    binding = bindings.connections[name]
    found.locations[name] = bindings.location(name)
    found.env.update(binding.env)
    for variable, secret in binding.secrets.items():
        if secret.file:
            path = bindings.home / secret.file
            if not os.access(path, os.R_OK):
                raise RefusedError(RefusalCode.SECRET, f"connection {name}: the file of secret {variable} is missing")
            found.secret_files[variable] = str(path)
        elif secret.env in os.environ:
            found.secret_variables[variable] = secret.env
        else:
            raise RefusedError(RefusalCode.SECRET, f"connection {name}: the variable of secret {variable} is not set")


def _principal(bindings: Bindings, role: str) -> tuple[tuple[int, int] | None, str]:
    """Return user and group to switch to (None: stay), and the local principal's name."""
    own = pwd.getpwuid(os.getuid()).pw_name
    if not role:
        return None, own
    if bindings.identities is None:
        return None, own
    principal = bindings.identities[role]
    if not principal.user or principal.user == own:
        return None, own
    if os.getuid() != 0:
        raise RefusedError(
            RefusalCode.IDENTITY, f"identity {role} is mapped to another user, which the dispatcher may not become"
        )
    try:
        entry = pwd.getpwnam(principal.user)
    except KeyError:
        raise RefusedError(RefusalCode.IDENTITY, f"identity {role} is mapped to a user that does not exist") from None
    return (entry.pw_uid, entry.pw_gid), principal.user


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))
