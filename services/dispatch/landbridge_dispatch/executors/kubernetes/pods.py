"""The pod of a workload: Restricted pod security, the wrapper first, and only what the operation names. Pure."""

from typing import Any, Final

from landbridge.domain import units
from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import carrying, names
from landbridge_dispatch.executors.kubernetes import variables as told
from landbridge_dispatch.executors.kubernetes.resolution import CONNECTIONS, Resolved
from landbridge_dispatch.executors.kubernetes.settings import ConnectionOptions, KubernetesSettings
from landbridge_dispatch.executors.local.build import expand
from landbridge_dispatch.executors.protocol import Work
from landbridge_dispatch.specification import STOP_GRACE_MS, Spec, milliseconds

DEVICES: Final = "devices"
"""Name of the claim for accelerators within a pod."""
_NO_RIGHTS: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_SHELL_LIMITS: Final = {"cpu": "100m", "memory": "32Mi"}


def pod_spec(bindings: Bindings, work: Work, found: Resolved, gang: told.Gang = told.ALONE) -> dict[str, Any]:
    """Return the pod's spec. A service's pods restart by themselves; others never do."""
    site, spec = bindings.kubernetes, work.view.spec
    service = spec.type == "service"
    pod: dict[str, Any] = {
        "restartPolicy": "Always" if service else "Never",
        "serviceAccountName": found.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds(work),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": site.run_as_user,
            "runAsGroup": site.run_as_group,
            "fsGroup": site.run_as_group,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(bindings, work, found, gang)],
        "volumes": _volumes(site, found),
    }
    if site.wrapper.image:
        pod["initContainers"] = [_shell_container(site)]
    if found.carried:
        pod.setdefault("initContainers", []).append(carrying.container(bindings, work, found))
    if gang.ranks > 1 and gang.tells_ranks:
        pod["subdomain"] = names.name_of(work.key)
    if found.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in found.pull_secrets]
    _place(pod, site, found, names.name_of(work.key))
    return pod


def grace_seconds(work: Work) -> int:
    """Return the longest time between TERM and KILL that anybody may grant this work."""
    declared = milliseconds(work.view.spec.lifecycle.stop_grace, STOP_GRACE_MS)
    return -(-(max(declared, work.policy.grace_ms) + KILL_MARGIN_MS) // 1000)


def _container(bindings: Bindings, work: Work, found: Resolved, gang: told.Gang) -> dict[str, Any]:
    site, spec = bindings.kubernetes, work.view.spec
    tools = bool(site.wrapper.image)
    env = told.workload_variables(work, found, gang.ranks)
    wrapper = told.wrapper_variables(
        work,
        found,
        keeper=site.keeper.url,
        start_wait_ms=milliseconds(bindings.executor.start_wait),
        tools=tools,
        carrier_wait_ms=milliseconds(site.carrier.within) if found.carried else 0,
    )
    words = [told.literal(expand(word, env)) for word in (*spec.command, *spec.args)]
    secrets = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for name, (secret, key) in found.secret_env.items()
    ]
    container: dict[str, Any] = {
        "name": gang.container,
        "image": found.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [f"{told.TOOLS}/sh" if tools else "/bin/sh", f"{names.ROOT}/wrapper/{names.WRAPPER_FILE}"],
        "args": words,
        "env": [*told.entries(env), *told.rank_variables(work, gang), *secrets, *told.entries(wrapper)],
        "resources": _resources(spec, found),
        "securityContext": dict(_NO_RIGHTS),
        "terminationMessagePath": told.MESSAGE,
        "terminationMessagePolicy": "File",
        "volumeMounts": _mounts(site, found),
    }
    if spec.ports:
        container["ports"] = [
            {"name": port_name(name), "containerPort": port.port} for name, port in spec.ports.items()
        ]
    if spec.type == "service":
        container["readinessProbe"] = _readiness(spec)
    return container


def port_name(name: str) -> str:
    """Return a port's name as Kubernetes allows it: at most 15 characters, with a letter."""
    short = name[:15].strip("-")
    return short if any(letter.isalpha() for letter in short) else f"p{short[:14]}"


def _readiness(spec: Spec) -> dict[str, Any]:
    """Return the probe that says when a service runs: its health path, else that its port is open."""
    route = spec.route
    named = route.port if route is not None and route.port in spec.ports else min(spec.ports)
    port = spec.ports[named].port
    if route is not None and route.health_path:
        return {"httpGet": {"path": route.health_path, "port": port}, "periodSeconds": 2, "timeoutSeconds": 2}
    return {"tcpSocket": {"port": port}, "periodSeconds": 2, "timeoutSeconds": 2}


def _resources(spec: Spec, found: Resolved) -> dict[str, Any]:
    """Return requests and limits. Memory is limited to what was asked for; processor time is not cut off."""
    asked = spec.resources.requests
    requests = {
        name: quantity
        for name, quantity in (
            ("cpu", asked.cpu),
            ("memory", asked.memory),
            ("ephemeral-storage", asked.ephemeral_storage),
        )
        if quantity
    }
    limits = {name: quantity for name, quantity in requests.items() if name != "cpu"}
    resources: dict[str, Any] = {}
    reached, accelerator = found.reached, spec.resources.accelerator
    if reached is not None and accelerator is not None:
        if reached.resource:
            limits[reached.resource] = str(accelerator.count)
        elif reached.device_class or reached.claim_template:
            resources["claims"] = [{"name": DEVICES}]
    if requests:
        resources["requests"] = requests
    if limits:
        resources["limits"] = limits
    return resources


def _place(pod: dict[str, Any], site: KubernetesSettings, found: Resolved, name: str) -> None:
    """Say on which nodes, and with which devices."""
    selector, tolerations = dict(site.node_selector), list(site.tolerations)
    reached = found.reached
    if reached is not None:
        selector |= reached.node_selector
        tolerations += reached.tolerations
        if reached.runtime_class:
            pod["runtimeClassName"] = reached.runtime_class
        template = reached.claim_template or (name if reached.device_class else "")
        if template:
            pod["resourceClaims"] = [{"name": DEVICES, "resourceClaimTemplateName": template}]
    if found.affinity:
        pod["affinity"] = found.affinity
    if selector:
        pod["nodeSelector"] = selector
    if tolerations:
        pod["tolerations"] = [
            {key: value for key in ("key", "operator", "value", "effect") if (value := getattr(item, key))}
            for item in tolerations
        ]


def _volumes(site: KubernetesSettings, found: Resolved) -> list[dict[str, Any]]:
    keeper = site.keeper
    volumes: list[dict[str, Any]] = [
        {"name": "wrapper", "configMap": {"name": names.wrapper_name(), "defaultMode": 0o555}},
        {"name": "work", "emptyDir": {"sizeLimit": str(units.parse_bytes(site.work_size))}},
        {"name": "keeper", **_token(keeper.audience, keeper.token_seconds)},
    ]
    if found.audience:
        volumes.append({"name": "identity", **_token(found.audience, keeper.token_seconds)})
    if site.wrapper.image:
        volumes.append({"name": "tools", "emptyDir": {"sizeLimit": "16Mi"}})
    if found.carried:
        volumes += carrying.volumes(site, found)
    return volumes + [
        {"name": f"connection-{index}", **volume_of(options, writable=name in found.writable)}
        for index, (name, options) in enumerate(sorted(found.mounts.items()))
    ]


def _token(audience: str, seconds: int) -> dict[str, Any]:
    token = {"audience": audience, "expirationSeconds": seconds, "path": "token"}
    return {"projected": {"sources": [{"serviceAccountToken": token}], "defaultMode": 0o440}}


def volume_of(options: ConnectionOptions, *, writable: bool) -> dict[str, Any]:
    """Return the volume that a connection is in the cluster."""
    if options.claim:
        return {"persistentVolumeClaim": {"claimName": options.claim, "readOnly": not writable}}
    if options.config_map:
        return {"configMap": {"name": options.config_map}}
    if options.secret:
        return {"secret": {"secretName": options.secret, "defaultMode": 0o440}}
    assert options.csi is not None
    csi: dict[str, Any] = {"driver": options.csi.driver, "readOnly": not writable}
    if options.csi.attributes:
        csi["volumeAttributes"] = dict(options.csi.attributes)
    if options.csi.node_publish_secret:
        csi["nodePublishSecretRef"] = {"name": options.csi.node_publish_secret}
    if options.csi.fs_type:
        csi["fsType"] = options.csi.fs_type
    return {"csi": csi}


def _mounts(site: KubernetesSettings, found: Resolved) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "wrapper", "mountPath": f"{names.ROOT}/wrapper", "readOnly": True},
        {"name": "work", "mountPath": told.WORK},
        {"name": "keeper", "mountPath": f"{names.ROOT}/keeper", "readOnly": True},
    ]
    if found.audience:
        mounts.append({"name": "identity", "mountPath": f"{names.ROOT}/identity", "readOnly": True})
    if site.wrapper.image:
        mounts.append({"name": "tools", "mountPath": told.TOOLS, "readOnly": True})
    if found.carried:
        mounts += carrying.mounts(found)
    for index, (name, options) in enumerate(sorted(found.mounts.items())):
        mount: dict[str, Any] = {"name": f"connection-{index}", "mountPath": f"{CONNECTIONS}/{name}"}
        if name not in found.writable:
            mount["readOnly"] = True
        if options.sub_path:
            mount["subPath"] = options.sub_path
        mounts.append(mount)
    return mounts


def _shell_container(site: KubernetesSettings) -> dict[str, Any]:
    """Return the container that lays a static shell with its tools beside the image, which may have none."""
    shell = site.wrapper.shell
    lay = f'cp "{shell}" {told.TOOLS}/busybox && {told.TOOLS}/busybox --install -s {told.TOOLS}'
    return {
        "name": names.SHELL_CONTAINER,
        "image": site.wrapper.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [shell, "sh", "-c", lay],
        "resources": {"requests": dict(_SHELL_LIMITS), "limits": {"memory": _SHELL_LIMITS["memory"]}},
        "securityContext": dict(_NO_RIGHTS),
        "volumeMounts": [{"name": "tools", "mountPath": told.TOOLS}],
    }
