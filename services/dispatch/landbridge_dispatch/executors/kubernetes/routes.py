"""The way to a service from outside, where the site's bindings offer one: an Ingress or an HTTPRoute. Pure.

It is a part of the slot like the service itself: applied under this dispatcher's name, owned by the slot's Job, gone
with it. Objects of others that have its name are left alone, and the service does not start.
"""

from typing import Final

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.objects import Object, part
from landbridge_dispatch.executors.kubernetes.pods import port_name
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.kubernetes.settings import Gateway, Route
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work

HOST_MAX: Final = 253
LABEL_MAX: Final = 63
_GATEWAY: Final = "gateway.networking.k8s.io/v1"


def route_of(bindings: Bindings, work: Work, found: Resolved) -> Object | None:
    """Return the route's object; None where the operation names none or the site offers none. Raises RefusedError."""
    offered, asked = bindings.kubernetes.route, work.view.spec.route
    if offered is None or asked is None or not asked.name or work.view.spec.type != "service":
        return None
    host = _host(offered, work)
    if offered.gateway is None:
        made = part("networking.k8s.io/v1", "Ingress", bindings, work, found, _ingress(offered, work, host))
    else:
        made = part(_GATEWAY, "HTTPRoute", bindings, work, found, _http_route(offered.gateway, work, host))
    if offered.annotations:
        made["metadata"]["annotations"] = dict(offered.annotations)
    return made


def check_route(bindings: Bindings, work: Work, *, served: bool) -> None:
    """Raise RefusedError where the operation's route would need a kind that the cluster does not serve."""
    offered, asked = bindings.kubernetes.route, work.view.spec.route
    if not served and offered is not None and asked is not None and asked.name:
        raise RefusedError(
            RefusalCode.OPERATOR,
            f"route {asked.name}: the bindings lead services through a Gateway, whose HTTPRoutes this cluster does not"
            " serve: have the Gateway API installed, or state ingressClass",
        )


def endpoint_of(bindings: Bindings, work: Work, found: Resolved) -> str:
    """Return where callers reach a service; empty for other work. Raises RefusedError."""
    spec, offered = work.view.spec, bindings.kubernetes.route
    if spec.type != "service":
        return ""
    if offered is not None and spec.route is not None and spec.route.name:
        secure = offered.gateway.https if offered.gateway is not None else bool(offered.tls_secret)
        return f"{'https' if secure else 'http'}://{_host(offered, work)}{_path(work)}"
    port = spec.ports[routed_port(work)]
    return f"{port.protocol}://{names.name_of(work.key)}.{found.namespace}.svc:{port.port}"


def routed_port(work: Work) -> str:
    """Return the name of the port that callers are led to: the route's, else the first."""
    spec = work.view.spec
    return spec.route.port if spec.route is not None and spec.route.port in spec.ports else min(spec.ports)


def _host(offered: Route, work: Work) -> str:
    assert work.view.spec.route is not None
    host = offered.host.replace("{name}", work.view.spec.route.name).replace("{project}", work.project)
    if len(host) > HOST_MAX or any(len(label) > LABEL_MAX for label in host.split(".")):
        raise RefusedError(
            RefusalCode.WORKLOAD,
            f"route {work.view.spec.route.name}: the host name {host[:80]}… is longer than host names may be",
        )
    return host


def _path(work: Work) -> str:
    assert work.view.spec.route is not None
    return "/" + work.view.spec.route.path.strip("/")


def _ingress(offered: Route, work: Work, host: str) -> Object:
    service = {"name": names.name_of(work.key), "port": {"name": port_name(routed_port(work))}}
    path = {"path": _path(work), "pathType": "Prefix", "backend": {"service": service}}
    spec: Object = {"ingressClassName": offered.ingress_class, "rules": [{"host": host, "http": {"paths": [path]}}]}
    if offered.tls_secret:
        spec["tls"] = [{"hosts": [host], "secretName": offered.tls_secret}]
    return spec


def _http_route(gateway: Gateway, work: Work, host: str) -> Object:
    parent = {"name": gateway.name}
    parent |= {"namespace": gateway.namespace} if gateway.namespace else {}
    parent |= {"sectionName": gateway.section_name} if gateway.section_name else {}
    backend = {"name": names.name_of(work.key), "port": work.view.spec.ports[routed_port(work)].port}
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": _path(work)}}], "backendRefs": [backend]}
    return {"parentRefs": [parent], "hostnames": [host], "rules": [rule]}
