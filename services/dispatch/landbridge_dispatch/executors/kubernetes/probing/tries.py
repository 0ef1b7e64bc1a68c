"""Pods that a pod security standard forbids, each with one thing wrong, and a harmless one. Pure."""

from collections.abc import Mapping
from typing import Any, Final

Object = dict[str, Any]

NOWHERE: Final = "landbridge-probe.invalid/stranger@sha256:" + "0" * 64
"""An image that nobody has. Dry runs pull nothing."""
HARMLESS: Final = "a harmless pod"
LEVELS: Final[Mapping[str, str]] = {"standard": "baseline", "restricted": "restricted"}
"""The pod security standard that a security tier stands for."""

_LABELS: Final = {"app.kubernetes.io/managed-by": "landbridge-probe"}
_FINE: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_BASELINE: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "a privileged pod": ({}, {"privileged": True, "allowPrivilegeEscalation": True}),
    "a pod that mounts a path of its host": (
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
        {},
    ),
    "a pod in its host's network": ({"hostNetwork": True}, {}),
    "a pod that sees its host's processes": ({"hostPID": True}, {}),
    "a pod with the capability SYS_ADMIN": ({}, {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
}
_RESTRICTED: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "a pod that runs as root": ({}, {"runAsNonRoot": None, "runAsUser": 0}),
    "a pod that may gain privileges": ({}, {"allowPrivilegeEscalation": None}),
    "a pod without a seccomp profile": ({}, {"seccompProfile": None}),
}


def harmless(account: str, image: str) -> Object:
    """Return a pod that the strictest standard lets in."""
    return _pod(account, image, {}, {})


def forbidden(level: str, account: str, image: str) -> dict[str, Object]:
    """Return pods that a standard forbids, by what is wrong with each; none for `privileged`."""
    tries = dict(_BASELINE) if level in ("baseline", "restricted") else {}
    if level == "restricted":
        tries |= _RESTRICTED
    return {what: _pod(account, image, spec, context) for what, (spec, context) in tries.items()}


def _pod(account: str, image: str, spec: Mapping[str, Any], context: Mapping[str, Any]) -> Object:
    own = {key: value for key, value in {**_FINE, **context}.items() if value is not None}
    container = {
        "name": "probe",
        "image": image,
        "resources": {
            "requests": {"cpu": "1m", "memory": "1Mi"},
            "limits": {"cpu": "1m", "memory": "1Mi"},
        },
        "securityContext": own,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "landbridge-probe-", "labels": _LABELS},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": account,
            "automountServiceAccountToken": False,
            "containers": [container],
            **spec,
        },
    }  # fmt: skip
