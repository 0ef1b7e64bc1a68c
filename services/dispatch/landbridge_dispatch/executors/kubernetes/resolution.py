"""From logical names to objects of the cluster, for one operation; refuses, typed, before anything starts. Pure.

A workload reaches only the connections that it names: others are not mounted, and no variable tells of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from landbridge_dispatch.executors.bindings import WRITABLE, Binding, Bindings, Principal
from landbridge_dispatch.executors.kubernetes import names, stores
from landbridge_dispatch.executors.kubernetes.records import Place
from landbridge_dispatch.executors.kubernetes.settings import S3, ConnectionOptions, ReachedClass, connection_options
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work
from landbridge_dispatch.executors.resolution import check_acceptance
from landbridge_dispatch.specification import Image, Spec

CONNECTIONS: Final = f"{names.ROOT}/connections"
MANIFEST: Final = "manifest.json"
OUTPUTS_MAX: Final = 24
"""The termination message, 4096 bytes, tells of each with its digest."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(slots=True)
class Resolved:
    """What the names of one operation mean in the cluster."""

    namespace: str
    image: str = ""
    pull_secrets: list[str] = field(default_factory=list)
    service_account: str = "default"
    audience: str = ""
    principal: str = ""
    reached: ReachedClass | None = None
    affinity: dict[str, Any] = field(default_factory=dict)
    """To nodes that are proven; empty: any."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Paths as the workload sees them."""
    outputs: dict[str, Place] = field(default_factory=dict)
    checkpoint: Place | None = None
    resume_from: str = ""
    resume_path: str = ""
    """The same below its connection."""
    env: dict[str, str] = field(default_factory=dict)
    secret_env: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Secret and key by variable."""
    mounts: dict[str, ConnectionOptions] = field(default_factory=dict)
    writable: set[str] = field(default_factory=set)
    locations: dict[str, str] = field(default_factory=dict)
    stores: dict[str, S3] = field(default_factory=dict)
    """Object stores by connection."""
    carried: set[str] = field(default_factory=set)
    """Object stores that the carrier writes to, and brings the checkpoint from: work sees files of the pod."""

    def claims(self) -> set[str]:
        """Return the PersistentVolumeClaims that must be there."""
        return {options.claim for options in self.mounts.values() if options.claim}


def resolve(bindings: Bindings, work: Work) -> Resolved:
    """Resolve every name of `work`. Raises RefusedError."""
    check_acceptance(bindings, work)
    spec = work.view.spec
    if len(spec.outputs) > OUTPUTS_MAX:
        raise RefusedError(RefusalCode.WORKLOAD, f"at most {OUTPUTS_MAX} outputs here, found {len(spec.outputs)}")
    namespace = bindings.kubernetes.namespace_of(work.project)
    if not _DNS_LABEL.fullmatch(namespace):
        raise RefusedError(RefusalCode.PROJECT, f"project {work.project}: its namespace's name is not a valid one")
    found = Resolved(namespace)
    _take_identity(bindings, spec.identity, found)
    _take_image(bindings, work, found)
    _take_class(bindings, spec, found)
    for name in sorted(spec.connections()):
        _take_connection(name, bindings.connections[name], found)
    _take_places(bindings, work, found)
    if found.carried:
        stores.check_carried(bindings.kubernetes, spec, sorted(found.carried))
    return found


def connection_path(connection: str, path: str) -> str:
    """Return where the workload sees `path` of a connection."""
    return "/".join(part for part in (CONNECTIONS, connection, path.strip("/")) if part)


def _take_identity(bindings: Bindings, role: str, found: Resolved) -> None:
    principal = (bindings.identities or {}).get(role, Principal())
    found.service_account = principal.service_account or "default"
    found.audience = principal.audience
    found.principal = f"system:serviceaccount:{found.namespace}:{found.service_account}"


def _take_image(bindings: Bindings, work: Work, found: Resolved) -> None:
    spec, image = work.view.spec, work.view.spec.image
    if image is None or spec.source is not None:
        raise RefusedError(
            RefusalCode.WORKLOAD,
            "work in this cluster needs an image, and no source: write image with registry, name and digest, and put "
            "the code into it",
        )
    if not spec.command:
        # The registry could tell, but reading its credentials is no right that a dispatcher has.
        raise RefusedError(
            RefusalCode.COMMAND,
            f"image {image.name}: write what it starts by itself, its ENTRYPOINT and CMD, as command: the wrapper "
            "starts a command, and what is in the image it cannot see",
        )
    binding = bindings.connections.get(image.registry)
    accepted = bindings.accepts.images
    if accepted and "*" not in accepted and image.registry not in accepted:
        raise RefusedError(RefusalCode.IMAGE, f"images of registry {image.registry} are not accepted at this site")
    if binding is None or not (options := _options(image.registry, binding)).registry:
        raise RefusedError(
            RefusalCode.CONNECTION_MISSING,
            f"registry {image.registry} is not bound here: add it to the site's bindings with options.registry",
        )
    _check_project(image.registry, binding, work.project)
    name, digest = _variant(image, spec)
    if not _DIGEST.fullmatch(digest):
        raise RefusedError(RefusalCode.IMAGE, f"image {name}: expected a digest sha256:…, found {digest!r}")
    found.image = f"{options.registry.rstrip('/')}/{name}@{digest}"
    if options.pull_secret:
        found.pull_secrets.append(options.pull_secret)


def _variant(image: Image, spec: Spec) -> tuple[str, str]:
    """Return name and digest: the variant for the class of accelerators that serves, else for the one named, if any."""
    accelerator = spec.resources.accelerator
    for wanted in (accelerator.class_, accelerator.instead_of) if accelerator is not None else ():
        for _, variant in sorted(image.variants.items()):
            if wanted and variant.accelerator == wanted:
                return variant.name or image.name, variant.digest
    return image.name, image.digest


def _take_class(bindings: Bindings, spec: Spec, found: Resolved) -> None:
    accelerator = spec.resources.accelerator
    if accelerator is None:
        return
    reached = bindings.kubernetes.classes.get(accelerator.class_)
    if reached is None:
        raise RefusedError(
            RefusalCode.CLASS,
            f"class {accelerator.class_} is not reached here: add it to kubernetes.classes of the site's bindings",
        )
    found.reached = reached


def _take_connection(name: str, binding: Binding, found: Resolved) -> None:
    options = _options(name, binding)
    found.locations[name] = binding.location or _location(found.namespace, options)
    found.env.update(binding.env)
    if options.s3 is not None:
        found.stores[name] = options.s3
    if binding.secrets:
        raise RefusedError(
            RefusalCode.SECRET, f"connection {name}: secrets of files or variables are for processes; use secretEnv"
        )
    for variable, place in options.secret_env.items():
        found.secret_env[variable] = (place.secret, place.key)
    if options.mounted:
        found.mounts[name] = options


def _location(namespace: str, options: ConnectionOptions) -> str:
    if options.claim:
        return f"pvc://{namespace}/{options.claim}" + (f"/{options.sub_path}" if options.sub_path else "")
    if options.s3 is not None:
        return options.s3.location
    return f"csi://{options.csi.driver}" if options.csi else ""


def _take_places(bindings: Bindings, work: Work, found: Resolved) -> None:
    spec = work.view.spec
    attempt = f"{work.operation}/e{work.epoch.generation}-{work.epoch.counter}"
    for name, wanted in spec.inputs.items():
        path = _below(wanted.connection, wanted.path)
        if wanted.connection in found.mounts:
            found.inputs[name] = connection_path(wanted.connection, path)
        else:
            found.inputs[name] = _address(bindings.connections[wanted.connection], wanted.connection, path, found)
    for name, output in spec.outputs.items():
        # Every attempt writes to a place of its own, so that a superseded one overwrites nothing.
        found.outputs[name] = _writable(bindings, output.connection, _join(output.path, attempt, name), found)
    if spec.checkpoints is not None:
        connection = spec.checkpoints.connection
        found.checkpoint = _writable(bindings, connection, _join(spec.checkpoints.path, attempt), found)
    if work.resume_from:
        connection, found.resume_path = _resume(work, spec)
        # From an object store the carrier brings it, and then says where it lies.
        found.resume_from = "" if connection in found.carried else connection_path(connection, found.resume_path)
    read = {wanted.connection for wanted in spec.inputs.values()}
    env, secret_env = stores.variables({name: store for name, store in found.stores.items() if name in read})
    found.env = {**env, **found.env}
    found.secret_env = {**secret_env, **found.secret_env}


def _address(binding: Binding, connection: str, path: str, found: Resolved) -> str:
    """Return the address of data that programs read through a client of their own."""
    store = found.stores.get(connection)
    location = store.location if store is not None else binding.location
    if not location:
        raise RefusedError(
            RefusalCode.CONNECTION_UNAVAILABLE,
            f"connection {connection} has neither files nor a location: state claim, csi, s3, configMap or location",
        )
    return "/".join(part for part in (location.rstrip("/"), path.strip("/")) if part)


def _writable(bindings: Bindings, connection: str, path: str, found: Resolved) -> Place:
    options = found.mounts.get(connection)
    if bindings.connections[connection].access not in WRITABLE:
        raise RefusedError(RefusalCode.CONNECTION_READ_ONLY, f"connection {connection} is read-only here")
    if connection in found.stores:
        found.carried.add(connection)
        return Place(connection, _below(connection, path))
    if options is None or not (options.claim or options.csi):
        raise RefusedError(
            RefusalCode.CONNECTION_UNAVAILABLE,
            f"connection {connection} cannot be written as files: bind claim, csi or s3",
        )
    found.writable.add(connection)
    return Place(connection, _below(connection, path))


def _resume(work: Work, spec: Spec) -> tuple[str, str]:
    """Return connection and path of the sealed directory to go on from."""
    if spec.checkpoints is None:
        raise RefusedError(RefusalCode.RESUME, "a checkpoint to resume from, but the operation declares none")
    path = PurePosixPath(_below(spec.checkpoints.connection, work.resume_from))
    if path.name != MANIFEST:
        raise RefusedError(RefusalCode.RESUME, f"checkpoint {work.resume_from}: expected the path of a {MANIFEST}")
    return spec.checkpoints.connection, str(path.parent)


def _below(connection: str, path: str) -> str:
    parts = PurePosixPath(path)
    if "\x00" in path or "\n" in path or parts.is_absolute() or ".." in parts.parts:
        raise RefusedError(RefusalCode.PATH, f"connection {connection}: path {path!r} must stay below the connection")
    return "" if str(parts) == "." else str(parts)


def _options(name: str, binding: Binding) -> ConnectionOptions:
    try:
        return connection_options(binding.options)
    except (msgspec.ValidationError, ValueError) as error:
        raise RefusedError(
            RefusalCode.CONNECTION_UNAVAILABLE, f"connection {name}: its binding cannot be used: {error}"
        ) from error


def _check_project(name: str, binding: Binding, project: str) -> None:
    if binding.projects and "*" not in binding.projects and project not in binding.projects:
        raise RefusedError(
            RefusalCode.CONNECTION_FORBIDDEN, f"connection {name} is not accepted at this site for project {project}"
        )


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def problems_of(connections: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the options of bound connections, for whoever reads the bindings."""
    found = []
    for name, binding in connections.items():
        try:
            connection_options(binding.options)
        except (msgspec.ValidationError, ValueError) as error:
            found.append(f"connections.{name}.options: {error}")
    return found
