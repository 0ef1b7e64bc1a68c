"""`env join --kubernetes`: what to apply to a cluster, so that its dispatcher joins."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from landbridge.cli.exits import CliError, Exit


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about the cluster."""

    image: str
    namespace: str
    work_namespaces: tuple[str, ...]


def checked(image: str, namespace: str, work_namespaces: list[str]) -> Choices:
    """Check what can be checked before anything is made. Raises CliError."""
    if "@sha256:" not in image:
        raise CliError(f"--image: expected a reference by digest (…@sha256:…), found {image!r}", Exit.INVALID)
    return Choices(image, namespace, tuple(work_namespaces))


def text_of(name: str, answer: dict[str, Any], bindings: str, choices: Choices) -> str:
    """Return the manifests with the environment's credentials, as YAML. Raises CliError."""
    try:
        import yaml

        from landbridge_dispatch.executors.kubernetes.installing import Installation, manifests
    except ImportError as error:
        raise CliError(f"manifests need landbridge[server]: {error}", Exit.INVALID) from error
    url = str(answer.get("natsUrl") or "nats://ADDRESS:4222")
    site = Installation(
        environment=name,
        image=choices.image,
        nats_url=url,
        namespace=choices.namespace,
        work_namespaces=choices.work_namespaces,
        bindings=bindings,
        credentials=answer["creds"],
        nats_ports=tuple(sorted({urlsplit(each.strip()).port or 4222 for each in url.split(",")}))
        if ":" in url
        else (),
        operators=operators_of(bindings),
        routes=routes_of(bindings),
    )
    return yaml.safe_dump_all(manifests(site), sort_keys=False, width=110)


def operators_of(bindings: str) -> tuple[str, ...]:
    """Return the operators that the bindings let the dispatcher use. Raises CliError."""
    from landbridge_dispatch.executors.kubernetes.permissions import OPERATORS

    named = tuple(str(name) for name in _section(bindings).get("operators") or ())
    if unknown := [name for name in named if name not in OPERATORS]:
        known = ", ".join(OPERATORS)
        raise CliError(f"--bindings: kubernetes.operators: expected {known}, found {', '.join(unknown)}", Exit.INVALID)
    return named


def routes_of(bindings: str) -> tuple[str, ...]:
    """Return the kind of object by which the bindings have services reached from outside. Raises CliError."""
    route = _section(bindings).get("route")
    if not isinstance(route, dict):
        return ()
    return ("HTTPRoute",) if route.get("gateway") else ("Ingress",)


def _section(bindings: str) -> dict[str, Any]:
    import yaml

    try:
        section = (yaml.safe_load(bindings) or {}).get("kubernetes") or {}
    except (yaml.YAMLError, AttributeError) as error:
        raise CliError(f"--bindings: {error}", Exit.INVALID) from error
    if not isinstance(section, dict):
        raise CliError("--bindings: kubernetes: expected a section with fields", Exit.INVALID)
    return section


def advice(bindings: str, choices: Choices) -> str:
    """Return what is wrong with the bindings' address of the lease keeper; empty for nothing."""
    wanted = f"http://landbridge-dispatcher.{choices.namespace}:8480"
    if wanted in bindings or f"{wanted.rpartition(':')[0]}." in bindings:
        return ""
    return f'# In the bindings work is to find the lease keeper: kubernetes: {{keeper: {{url: "{wanted}"}}}}'
