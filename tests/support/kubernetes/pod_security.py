"""Pod security standards, as the admission plug-in of every API server enforces them by namespace label."""

from collections.abc import Iterator

from support.kubernetes.errors import Object

ENFORCE = "pod-security.kubernetes.io/enforce"
_ADDABLE = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_RESTRICTED_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
        "image",
    )
)


def violations(spec: Object, level: str) -> list[str]:
    """What of a pod's spec is against the level; empty for `privileged`."""
    if level not in ("baseline", "restricted"):
        return []
    found = list(_baseline(spec))
    return found + list(_restricted(spec)) if level == "restricted" else found


def _containers(spec: Object) -> list[Object]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _baseline(spec: Object) -> Iterator[str]:
    spaces = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    if spaces:
        yield "host namespaces (" + ", ".join(f"{name}=true" for name in spaces) + ")"
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume:
            yield f'hostPath volumes (volume "{volume["name"]}")'
    if ((spec.get("securityContext") or {}).get("seccompProfile") or {}).get("type") == "Unconfined":
        yield "seccompProfile (pod must not set securityContext.seccompProfile.type to Unconfined)"
    for container in _containers(spec):
        name, context = container["name"], container.get("securityContext") or {}
        if context.get("privileged"):
            yield f'privileged (container "{name}" must not set securityContext.privileged=true)'
        added = set((context.get("capabilities") or {}).get("add") or ()) - _ADDABLE
        if added:
            yield f'non-default capabilities (container "{name}" must not include {sorted(added)})'
        if any(port.get("hostPort") for port in container.get("ports") or ()):
            yield f'hostPort (container "{name}" uses hostPorts)'
        if context.get("procMount", "Default") != "Default":
            yield f'procMount (container "{name}" must not set securityContext.procMount)'


def _restricted(spec: Object) -> Iterator[str]:
    pod = spec.get("securityContext") or {}
    for volume in spec.get("volumes") or ():
        kinds = set(volume) - {"name"}
        if kinds - _RESTRICTED_VOLUMES:
            yield f'restricted volume types (volume "{volume["name"]}" uses restricted volume type {sorted(kinds)})'
    for container in _containers(spec):
        name, context = container["name"], container.get("securityContext") or {}
        if context.get("allowPrivilegeEscalation") is not False:
            yield f'allowPrivilegeEscalation != false (container "{name}" must set it to false)'
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()) or set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}:
            yield f'unrestricted capabilities (container "{name}" must set securityContext.capabilities.drop=["ALL"])'
        if not context.get("runAsNonRoot", pod.get("runAsNonRoot")):
            yield f'runAsNonRoot != true (pod or container "{name}" must set securityContext.runAsNonRoot=true)'
        if context.get("runAsUser", pod.get("runAsUser")) == 0:
            yield f'runAsUser=0 (container "{name}" must not set runAsUser=0)'
        seccomp = (context.get("seccompProfile") or pod.get("seccompProfile") or {}).get("type")
        if seccomp not in ("RuntimeDefault", "Localhost"):
            yield f'seccompProfile (pod or container "{name}" must set securityContext.seccompProfile.type)'
